"""The scene of one run: what a nemesis can reach, and how it lets time pass."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..testing import Harness
from .diary import Diary
from .fleet import Fleet


class Scene:
    """Servers, workers, the diary of the lab, and the signal that it is over."""

    def __init__(self, harness: Harness, fleet: Fleet, diary: Diary, pace: float) -> None:
        self.harness, self.fleet, self.diary = harness, fleet, diary
        self.pace = pace  # the unit of time, a TTL as a rule
        self.over = threading.Event()
        self.parts, self.links = harness.parts(), harness.links()

    def wait(self, seconds: float) -> bool:
        """Let time pass; return at once, with True, when the run is over."""
        return self.over.wait(seconds)

    def minority(self, dice: random.Random) -> Sequence[Harness]:
        """Return so few servers that the others can do without; the only one if there is one."""
        most = max(1, (len(self.parts) - 1) // 2)
        return dice.sample(self.parts, dice.randint(1, most))

    def some(self, dice: random.Random) -> Sequence[Harness]:
        """Return some servers: few, many or all."""
        if dice.random() < 0.6:
            return self.minority(dice)
        return dice.sample(self.parts, dice.randint(1, len(self.parts)))

    def routes(self, dice: random.Random) -> tuple[str, Sequence[Harness]]:
        """Return some links and their name: of a group of clients, of some servers, or of both."""
        parts = self.parts if dice.random() < 0.3 else self.some(dice)
        ways = self.links
        who = "all clients"
        if len(ways) > 1 and dice.random() < 0.6:
            number = dice.randrange(len(ways))
            ways, who = ways[number : number + 1], f"clients of group {number + 1}"
        numbers = [list(self.parts).index(part) for part in parts]
        links = [way[number] for way in ways for number in numbers]
        return f"{who} and {self.name(parts)}", links

    def name(self, parts: Sequence[Harness]) -> str:
        """Name servers for people."""
        if len(self.parts) == 1:
            return "the server"
        numbers = sorted(list(self.parts).index(part) + 1 for part in parts)
        return f"server {', '.join(map(str, numbers))} of {len(self.parts)}"

    @contextmanager
    def fault(self, name: str, detail: str) -> Iterator[None]:
        """Write down a fault for as long as the block lasts, its undoing included."""
        self.diary.note("fault", name=name, detail=detail)
        try:
            yield
        finally:
            self.diary.note("fault over", name=name)
