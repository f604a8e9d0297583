"""The stage of a story: real servers, actors in processes of their own, a narrator with a clock."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from ..clocks import boot_clock
from ..testing import Harness
from ..testing.redis_harness import RedisHarness
from ..testing.servers import ServerMissing
from .assignment import REGISTER, SYNC, Assignment
from .chronicle import LAB, Chronicle, read_chronicle
from .diary import Diary
from .experiment import Impossible
from .player import Player
from .register import Register

TTL = 1.0  # seconds

Narrator = Callable[[float, str], None]


class Told(NamedTuple):
    """One sentence, and when it was said."""

    at: float
    text: str


class Contrast(NamedTuple):
    """What came of it, in words, where the register does not show it."""

    without: str
    with_guard: str


class Stage:
    """Builds what a story needs, and takes it down whatever happens."""

    def __init__(self, narrator: Narrator | None = None, ttl: float = TTL) -> None:
        self.ttl = ttl
        self.lines: list[Told] = []
        self.contrast: Contrast | None = None
        self._narrator = narrator or (lambda at, text: None)
        self._stack = ExitStack()
        self._tokens: dict[str, list[int]] = {}
        self._start = 0.0
        self._ways = 0

    def __enter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-lab-"))
        self._folder = Path(folder)
        Register.create(self._folder / REGISTER)
        self._diary = Diary(self._folder, LAB)
        self._stack.callback(self._diary.close)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    # --- Building. ---

    def serve(self, harness: Harness, *hooks: str) -> Harness:
        """Start servers, ready for these hooks."""
        self._stack.callback(harness.stop)
        missing = harness.missing()
        if missing:
            raise Impossible(missing)
        try:
            harness.equip("links", *hooks)
        except ServerMissing as error:
            raise Impossible(str(error)) from None
        harness.start()
        return harness

    def redis(self, *hooks: str) -> RedisHarness:
        """Start one Redis server, ready for these hooks."""
        harness = RedisHarness()
        self.serve(harness, *hooks)
        return harness

    def players(self, harness: Harness, *names: str, colour: str = SYNC) -> Sequence[Player]:
        """Let actors enter, each on a way of its own to the servers, as far as there are ways."""
        urls, links = harness.lab_urls(self.ttl), harness.links()
        found = []
        for name in names:
            way = self._ways % len(urls)
            self._ways += 1
            assignment = Assignment(
                name=name,
                colour=colour,
                url=urls[way],
                ttl=self.ttl,
                pace=self.ttl,
                keys=(),
                seed="",
                folder=str(self._folder),
            )
            player = Player(self, assignment, links[way])
            self._stack.callback(player.leave)
            found.append(player)
        for player in found:
            player.do("ready")
        return found

    def begin(self) -> None:
        """Let the clock run from here."""
        self._start = self._diary.note("begin", ttl=self.ttl)

    # --- Telling. ---

    def say(self, text: str) -> None:
        """Tell what has just happened."""
        told = Told(boot_clock() - self._start, text)
        self.lines.append(told)
        self._narrator(*told)

    def rank(self, name: str, token: int) -> int:
        """Number the tokens of a lock, as they come."""
        known = self._tokens.setdefault(name, [])
        if token not in known:
            known.append(token)
        return sorted(known).index(token) + 1

    def wait(self, ttls: float) -> None:
        """Let that many TTLs pass."""
        time.sleep(ttls * self.ttl)

    @contextmanager
    def fault(self, name: str, says: str) -> Iterator[None]:
        """Mark the time of a fault."""
        self.say(says)
        self._diary.note("fault", name=name, detail=says)
        try:
            yield
        finally:
            self._diary.note("fault over", name=name)

    @contextmanager
    def standing_still(self, player: Player) -> Iterator[None]:
        """Stop an actor while the block lasts."""
        with self.fault("pause", f"{player.name} is stopped, and does not know it."):
            player.stop()
            try:
                yield
            finally:
                player.go_on()
        self.say(f"{player.name} goes on.")

    @contextmanager
    def cut_off(self, player: Player, says: str = "") -> Iterator[None]:
        """Cut an actor off from the servers while the block lasts; the resource it can reach."""
        with self.fault(
            "cut", says or f"{player.name} and the server are cut off from each other."
        ):
            for link in player.links:
                link.cut()
            try:
                yield
            finally:
                for link in player.links:
                    link.heal()
        self.say(f"{player.name} reaches the server again.")

    def killed(self, player: Player) -> None:
        """Kill an actor."""
        self._diary.note("killed", client=player.name, whole=True)
        player.kill()

    def chronicle(self) -> Chronicle:
        """Return what the processes have written down."""
        self._diary.note("curtain")
        return read_chronicle(self._folder)
