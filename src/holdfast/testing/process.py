"""A simulated process on a virtual loop: its name, its clock, whether it lives."""

from __future__ import annotations

import math
from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable
from contextvars import ContextVar


class ProcessClock:
    """The clock of one machine. Timers do not follow it: they run on the loop's time."""

    def __init__(self, loop: AbstractEventLoop, *, offset: float = 0.0, rate: float = 1.0) -> None:
        if not rate > 0:
            raise ValueError(f"a clock needs a rate above 0, not {rate!r}")
        self._loop, self._origin, self._offset, self.rate = loop, loop.time(), offset, rate

    def __call__(self) -> float:
        return self._origin + self._offset + (self._loop.time() - self._origin) * self.rate

    def step(self, seconds: float) -> None:
        """Set the clock forward, or back if negative, as happens to wall clocks."""
        self._offset += seconds


class Process:
    """A simulated process; only `VirtualLoop.pause`, `resume` and `kill` change its state."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name, self.clock, self.alive, self.paused = name, clock, True, False
        self._halted = False  # paused or dead: all that the hot path has to ask
        self._held: list[Handle] = []
        self._until = -math.inf

    def __repr__(self) -> str:
        state = "killed" if not self.alive else "paused" if self.paused else "running"
        return f"<Process {self.name} {state}>"


process_of: ContextVar[Process | None] = ContextVar("holdfast_process", default=None)
current_process: Callable[[], Process | None] = process_of.get  # None in the world
