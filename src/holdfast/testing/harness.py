"""The harness: what the conformance suite must know about one engine and its server."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import uuid4

from ..errors import EngineUnavailable, NotSupported
from ..memory_state import shared_state


class Harness:
    """Subclass it for an engine and set what differs; `url` is all that is needed.

    A test that needs a hook which the subclass does not define is not collected at all.
    """

    url: str
    connect_options: Mapping[str, Any] = MappingProxyType({})  # handed to every connect()
    shortest_ttl: float = 1.0  # tests let leases of this TTL expire
    patience: float = 10.0  # how long a test waits for what must happen
    moment: float = 0.0005  # about as long as the engine takes to answer

    def start(self) -> None:
        """Bring the server up, before the first test of a class."""

    def stop(self) -> None:
        """Take it down again, after the last one."""

    def cut(self) -> None:
        """Let no request of any client reach the server until `heal`, nor any push come back."""
        self._cannot("cut clients off")

    def heal(self) -> None:
        """Undo `cut`."""
        self._cannot("heal a cut")

    def pause(self) -> None:
        """Stop the server, with its state, until `resume` (SIGSTOP)."""
        self._cannot("pause its server")

    def resume(self) -> None:
        """Undo `pause`."""
        self._cannot("resume its server")

    def restart(self, *, keep_data: bool) -> None:
        """Kill the server and start it where it was, with what it had on disk or with nothing."""
        self._cannot("restart its server")

    def supports(self, *hooks: str) -> bool:
        """Say whether the subclass defines all these hooks."""
        return all(getattr(type(self), hook) is not getattr(Harness, hook) for hook in hooks)

    def _cannot(self, what: str) -> NoReturn:
        raise NotSupported(f"{type(self).__name__} cannot {what}; define that method to test it.")


class SqliteHarness(Harness):
    """sqlite:/// in a folder of its own, removed at the end."""

    shortest_ttl = 0.3

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="holdfast-")
        self.url = f"sqlite://{self._folder.name}/locks.db"


class MemoryHarness(Harness):
    """memory:// under a URL of its own, so that no other test shares its state."""

    shortest_ttl = 0.3

    _verbs = ("claim", "renew", "release", "inspect", "list", "force")

    def __init__(self) -> None:
        self.url = f"memory://{uuid4().hex}"

    def cut(self) -> None:
        """Make every verb of the state fail as an unreachable server would."""

        def refuse(*_: object) -> NoReturn:
            raise EngineUnavailable("the test harness has cut the link", engine=self.url)

        for verb in self._verbs:
            setattr(shared_state(self.url), verb, refuse)

    def heal(self) -> None:
        """Let the state answer again."""
        for verb in self._verbs:
            vars(shared_state(self.url)).pop(verb, None)
