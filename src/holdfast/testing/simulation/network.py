"""The simulated network: every message has its own fate, and none is trusted to keep its order.

Rule 1: a message is carried by the world, not by its sender: it arrives when the sender is dead.
Rule 2: what arrives at a process runs in that process: while it is paused, the message waits.
Rule 3: a partition loses messages, or keeps them until it ends, as TCP does; sometimes one way.
Rule 4: once the world has healed, everything that is still under way arrives within moments.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import partial

from ..loop import VirtualLoop
from . import plan as faults
from .history import History
from .plan import Plan

QUICK = 0.004  # seconds one way when nothing is wrong
SETTLING = 0.02  # by then all that was under way at healing has arrived


class Link:
    """The way between one client machine and the server."""

    __slots__ = ("down_open", "keeps", "kept", "name", "up_open")

    def __init__(self, name: str) -> None:
        self.name = name
        self.up_open = True
        self.down_open = True
        self.keeps = False  # does this partition keep messages, or lose them?
        self.kept: list[Callable[[], None]] = []


class Network:
    """Carries messages between machines, as badly as the plan wants."""

    def __init__(self, loop: VirtualLoop, plan: Plan, history: History, heal_at: float) -> None:
        self._loop = loop
        self._plan = plan
        self._history = history
        self._heal_at = heal_at
        self._world = Context()  # without a process: the network never pauses
        self._chance = plan.chance
        self._random = loop.random.random
        slow = faults.SLOW in plan.faults
        self._base = loop.random.uniform(0.01, 0.1) * plan.ttl if slow else QUICK
        if slow:
            history.inject(loop.time(), faults.SLOW, f"{self._base:.4f} s")

    def request(self, link: Link, arrive: Callable[..., None], *args: object) -> None:
        """Carry a request to the server, perhaps twice; `arrive` gets `copy` as last argument."""
        now = self._loop.time()
        if self._happens(faults.DROP, now, link):
            return
        self._carry(link, link.up_open, self._world, arrive, *args, False)
        if self._happens(faults.DUPLICATE, now, link):
            later = self._delay(now, link) + self._random() * 2.0 * self._plan.ttl
            when = self._before_healing(now, now + later)
            self._loop.call_at(when, partial(arrive, *args, True), context=self._world)

    def reply(
        self, link: Link, context: Context, arrive: Callable[..., None], *args: object
    ) -> None:
        """Carry a reply or a push to a client."""
        if not self._happens(faults.DROP_REPLY, self._loop.time(), link):
            self._carry(link, link.down_open, context, arrive, *args)

    def cut(self, link: Link, up: bool, down: bool, keeps: bool) -> None:
        """Begin a partition, in one direction or both."""
        link.up_open, link.down_open, link.keeps = not up, not down, keeps

    def mend(self, link: Link) -> None:
        """End a partition; what it kept arrives now."""
        link.up_open = link.down_open = True
        kept, link.kept = link.kept, []
        for deliver in kept:
            deliver()

    def _carry(
        self,
        link: Link,
        is_open: bool,
        context: Context,
        arrive: Callable[..., None],
        *args: object,
    ) -> None:
        if not is_open:
            if link.keeps:
                link.kept.append(lambda: self._send(link, context, arrive, *args))
            return
        self._send(link, context, arrive, *args)

    def _send(
        self, link: Link, context: Context, arrive: Callable[..., None], *args: object
    ) -> None:
        now = self._loop.time()
        when = self._before_healing(now, now + self._delay(now, link))
        self._loop.call_at(when, arrive, *args, context=context)

    def _delay(self, now: float, link: Link) -> float:
        random = self._random
        if now >= self._heal_at:
            return QUICK * (0.5 + random())
        delay = self._base * (0.5 + random())
        if self._happens(faults.JITTER, now, link):
            delay += random() * 0.5 * self._plan.ttl
        if self._happens(faults.LATE, now, link):
            delay += (0.3 + 2.2 * random()) * self._plan.ttl
        return delay

    def _before_healing(self, now: float, when: float) -> float:
        if now < self._heal_at < when:
            return self._heal_at + self._random() * SETTLING
        return when

    def _happens(self, fault: str, now: float, link: Link) -> bool:
        chance = self._chance.get(fault)
        if chance is None or now >= self._heal_at or self._random() >= chance:
            return False
        self._history.inject(now, fault, link.name)
        return True
