"""The harness: what the conformance suite must know about one engine and its server."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn
from uuid import uuid4

from ..errors import EngineUnavailable, NotSupported
from ..memory_state import shared_state


class Harness:
    """Subclass it for an engine and set what differs; `url` is all that is needed.

    A test that needs a hook which the subclass does not define is not collected at all, and a fault
    of `holdfast lab` that needs one is called impossible there.
    """

    lab: ClassVar[str] = ""  # its name in `holdfast lab`; empty = it is not there

    url: str
    connect_options: Mapping[str, Any] = MappingProxyType({})  # handed to every connect()
    shortest_ttl: float = 1.0  # tests let leases of this TTL expire
    patience: float = 10.0  # how long a test waits for what must happen
    moment: float = 0.0005  # about as long as the engine takes to answer
    brief: float = 0.06  # a wait in vain: longer than the first answer of all takes
    nodes: int = 1  # how many servers it has
    recovery: float = 0.0  # seconds until a server that forgot everything counts again
    on_a_log: bool = False  # tokens and sessions live in a log: its loss is nobody's promise
    why_not: str = ""  # why it lacks hooks, in words that follow a colon

    def missing(self) -> str:
        """Say in one sentence what must be installed before `start`; empty if nothing."""
        return ""

    def equip(self, *hooks: str) -> None:
        """Make ready, before `start`, for hooks that cost something to have: a clock, a disk.

        Raises `ServerMissing` for what is not installed.
        """

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

    # --- Further faults, for the lab. ---

    def forget(self) -> None:
        """Kill the server and start it with nothing, where that is a thing that can be done."""
        self._cannot("lose its server's data")

    def lab_urls(self, ttl: float) -> Sequence[str]:
        """Return URLs that suit leases of this TTL, with all options in them.

        Several lead to the same servers by different ways, which can be cut one by one.
        """
        return [self.url]

    def parts(self) -> Sequence[Harness]:
        """Return the servers one by one, for faults that hit some of them."""
        return [self]

    def links(self) -> Sequence[Sequence[Harness]]:
        """Return, for each way of `lab_urls`, the way to each server: for faults of the network."""
        return [self.parts()]

    def bears(self, *hooks: str) -> bool:
        """Say whether its parts define all these hooks; also before `start`."""
        return self.supports(*hooks)

    def lose_replies(self) -> None:
        """Let requests arrive and nothing come back, until `heal`."""
        self._cannot("lose replies")

    def slow(self, seconds: float) -> None:
        """Let every reply take that much longer, until `heal`."""
        self._cannot("slow its network down")

    def reset(self) -> None:
        """Break all connections; new ones are welcome."""
        self._cannot("break connections")

    def keep_copy(self) -> None:
        """Copy what is on disk, for `roll_back`."""
        self._cannot("copy its data")

    def roll_back(self) -> None:
        """Let the engine go on with the copy that `keep_copy` made, as after a restored backup."""
        self._cannot("roll its data back")

    def step_clock(self, seconds: float) -> None:
        """Set the server's wall clock that far from the real one; 0 sets it right."""
        self._cannot("set its server's clock")

    def part_replica(self) -> None:
        """Let a replica hear nothing more, until `fail_over`."""
        self._cannot("cut a replica off")

    def fail_over(self) -> None:
        """Let the server die and its replica take over, with what that has heard."""
        self._cannot("fail over")

    def evict(self) -> None:
        """Let the server's memory run full, so that it throws out what it likes."""
        self._cannot("run out of memory")

    def flush(self) -> None:
        """Delete everything, as an administrator may."""
        self._cannot("delete everything")

    def kick(self) -> None:
        """Close all connections and forget scripts and sessions, as an administrator may."""
        self._cannot("close connections")

    def connections(self) -> int | None:
        """Return how many connections clients have open; None where nobody knows."""
        return None

    def logs(self) -> Mapping[str, str]:
        """Return what the servers have written, by file name."""
        return {}

    def supports(self, *hooks: str) -> bool:
        """Say whether the subclass defines all these hooks."""
        return defines(type(self), *hooks)

    def _cannot(self, what: str) -> NoReturn:
        raise NotSupported(f"{type(self).__name__} cannot {what}; define that method to test it.")


def defines(kind: type[Harness], *hooks: str) -> bool:
    """Say whether a subclass defines all these hooks."""
    return all(getattr(kind, hook) is not getattr(Harness, hook) for hook in hooks)


class SqliteHarness(Harness):
    """sqlite:/// in a folder of its own, removed at the end."""

    lab = "sqlite"
    shortest_ttl = 0.3
    why_not = "there is no server and no network, only a file"

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="holdfast-")
        self._file = Path(self._folder.name) / "locks.db"
        self.url = f"sqlite://{self._file}"

    def start(self) -> None:
        """Have the folder."""
        self._file.parent.mkdir(exist_ok=True)

    def stop(self) -> None:
        """Remove it, with all that is in it."""
        self._folder.cleanup()

    def keep_copy(self) -> None:
        """Back the file up."""
        self._copy(self._file, self._file.with_name("copy.db"))

    def roll_back(self) -> None:
        """Restore the backup while clients are at work, in one transaction."""
        self._copy(self._file.with_name("copy.db"), self._file)

    def flush(self) -> None:
        """Delete all rows."""
        with closing(sqlite3.connect(self._file, timeout=30)) as file, file:
            file.execute("DELETE FROM record")

    def _copy(self, source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)


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
