"""One simulated client process: the real client, its workers, and what it holds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..._async.client import AsyncClient
from ..._async.lease import AsyncLease
from ...clocks import Clock
from ..loop import Process, ProcessClock
from .engine import SimEngine
from .history import Acquired, Ended, Killed, Looked, Paused
from .network import QUICK, Link
from .plan import Key

if TYPE_CHECKING:
    from .world import World


class LeaseClock:
    """The machine's clock, as a process reads it: each reading takes 50 ns, as a real one does.

    Without that a timer that rings a hair too early, as timers on a drifting clock do, would be set
    again and again, by less than the loop's time can show.
    """

    __slots__ = ("_rate", "_time", "_zero")

    def __init__(self, time: Callable[[], float], clock: ProcessClock) -> None:
        self._time = time
        self._rate = clock.rate
        self._zero = clock() - time() * clock.rate

    def __call__(self) -> float:
        self._zero += 5e-8
        return self._zero + self._time() * self._rate


class Machine:
    """A process with a client; several live one after another on the same host."""

    def __init__(self, world: World, name: str, link: Link, clock: ProcessClock) -> None:
        self.world = world
        self.name = name
        self.link = link
        self.clock = clock
        self.process = Process(name, clock)
        self.workers: list[asyncio.Task[None]] = []
        self.leases: dict[str, AsyncLease] = {}  # that have not ended
        self.client: AsyncClient
        self.engine: SimEngine

    def boot(self) -> None:
        """Make the client; runs inside the process, so that all it starts belongs there."""
        world, plan = self.world, self.world.plan
        dice = random.Random(f"{plan.seed} {self.name}")
        clock = self.lease_clock()
        self.engine = SimEngine(
            world.loop, world.network, world.server, self.link, world.history, clock, self.name
        )
        self.client = AsyncClient(
            self.engine,
            namespace="sim",
            ttl=plan.ttl,
            connect_timeout=plan.connect_timeout,
            label=self.name,
            clock=clock,
            entropy=dice.randbytes,
            chance=dice.random,
        )

    def lease_clock(self) -> Clock:
        """Return the clock that the client lives by: one that never steps (S8)."""
        return LeaseClock(self.world.loop.time, self.clock)

    # --- What happens to the process. ---

    @property
    def alive(self) -> bool:
        """Whether it was not killed."""
        return self.process.alive

    def pause(self, seconds: float) -> None:
        """Stop the process for a while, at most until the world heals."""
        now, heal_at = self.world.loop.time(), self.world.heal_at
        until = min(now + seconds, heal_at)
        if self.alive and until > now:
            self.world.history.add(Paused(now, self.name, until))
            self.world.loop.pause(self.process, until - now)

    def kill(self) -> None:
        """End the process; the server hears of it soon, unless the network is cut."""
        world, now = self.world, self.world.loop.time()
        for owner in list(self.leases):
            self._end(owner, "killed")
        world.history.add(Killed(now, self.name))
        world.loop.kill(self.process)
        world.loop.call_later(QUICK, self.hang_up)

    def hang_up(self) -> None:
        """Let the server see that the process is gone, if it can."""
        if self.link.up_open:
            self.engine.session.over = True
            self.engine.session.connected = False

    # --- What is written down about its leases. ---

    def took(self, lease: AsyncLease, key: Key, invoked: float) -> None:
        """Write down a new lease; must be called in the step in which it was given."""
        owner = lease.owner
        self.leases[owner] = lease
        self.world.history.add(
            Acquired(
                self.world.loop.time(),
                invoked,
                self.name,
                key.name,
                lease._claim.path,
                lease.mode,
                key.limit,
                owner,
                lease.token,
            )
        )
        lease.watch_loss(partial(self._end, owner, "lost"))

    def leave(self, lease: AsyncLease) -> None:
        """Write down that a lease is about to be released."""
        self._end(lease.owner, "released")

    def look(self, lease: AsyncLease) -> None:
        """Write down what the lease says about itself."""
        now = self.world.loop.time()
        self.world.history.add(Looked(now, lease.owner, lease.held, lease.lost.is_set()))

    def _end(self, owner: str, how: str) -> None:
        lease = self.leases.pop(owner, None)
        if lease is not None:
            now = self.world.loop.time()
            left = (lease._deadline - lease._runtime.clock()) / self.clock.rate
            reason = lease.lost_reason or ""
            self.world.history.add(Ended(now, owner, how, now + left, str(reason)))
