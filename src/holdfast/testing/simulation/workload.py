"""What the clients do: take locks of every kind, work on guarded registers, give the locks back.

Most cycles are W-reg of reliability.md §3.3: begin (the token is recorded), read, take some time,
look at the lease now and then, write one more. The others are quick pairs (W-mutex) and looks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import Context

from ..._async.lease import AsyncLease
from ..._async.recipes.lock import AsyncLock
from ...errors import (
    ClientClosed,
    EngineUnavailable,
    LeaseLost,
    NotAcquired,
    OutcomeUnknown,
    StaleToken,
)
from ...model import Mode
from . import plan as plans
from .history import Answered, Unexpected
from .machine import Machine
from .plan import LONGEST_EXTENSION, Key
from .register import Register

# Nodes of every tree, and the registers that a lock on each may work on.
NODES = {"": ("/a/b", "/c"), "/a": ("/a/b",), "/a/b": ("/a/b",), "/c": ("/c",)}
PAUSES = (0.5, 1.1, 3.0)  # in TTLs
LONGEST_BACKOFF = 0.8  # see rules.backoff
EXPECTED = (EngineUnavailable, OutcomeUnknown, LeaseLost, NotAcquired, StaleToken)


class Worker:
    """One task of a client that takes locks until the world heals."""

    def __init__(self, machine: Machine, number: int) -> None:
        self._machine = machine
        self._world = machine.world
        self._plan = machine.world.plan
        self._dice = random.Random(f"{self._plan.seed} {machine.name} {number}")
        self._loop = machine.world.loop
        self._calls = machine.world.history.calls

    async def run(self) -> None:
        """Work until the world heals, whatever happens."""
        task = asyncio.current_task()
        assert task is not None
        while self._loop.time() < self._world.heal_at:
            try:
                await self._cycle()
                await self._rest(self._dice.random() ** 3 * 0.3)
            except asyncio.CancelledError:
                task.uncancel()
            except EXPECTED as error:
                self._judge(error)
                await asyncio.sleep(0.001)
            except ClientClosed:
                return
            except Exception as error:
                self._world.history.add(Unexpected(self._loop.time(), repr(error)))
                return

    def _judge(self, error: Exception) -> None:
        """Take note of an engine that is called silent long after everything was healed."""
        longest = max(self._plan.connect_timeout, self._plan.longest_ttl / 3)
        settled = self._world.heal_at + longest + LONGEST_BACKOFF + 0.1
        silent = isinstance(error, EngineUnavailable | OutcomeUnknown)
        if silent and self._loop.time() > settled:
            self._world.history.add(Unexpected(self._loop.time(), repr(error)))

    async def _rest(self, ttls: float) -> None:
        """Let time pass, but not beyond healing: then everybody finishes."""
        seconds = min(ttls * self._plan.ttl, self._world.heal_at - self._loop.time())
        await asyncio.sleep(max(0.0005, seconds))

    # --- One cycle. ---

    async def _cycle(self) -> None:
        dice = self._dice
        key = dice.choice(self._plan.keys)
        if dice.random() < 0.04:
            self._calls["inspect"] += 1
            await self._machine.client.inspect(key.name)
            return
        node = dice.choice(tuple(NODES)) if key.kind == plans.TREE else ""
        max_hold = dice.uniform(0.4, 1.0) * key.ttl if dice.random() < 0.08 else None
        lock = self.make_lock(key, node, shared=dice.random() < 0.4, max_hold=max_hold)
        if dice.random() < 0.4:
            body, most = self._nothing, 0.0
        elif key.kind == plans.SEMAPHORE:
            body, most = self._stay, 0.5
        else:
            body, most = self._work, 1.5
        # Most holds are short, so that much happens; the longest outlast their TTL by half.
        hold = dice.random() ** 3 * most
        register = self._world.registers[key.name + dice.choice(NODES[node])]
        if dice.random() < 0.3:
            await self._inside(lock, key, register, hold, body)
        else:
            await self._by_hand(lock, key, register, hold, body)

    def make_lock(
        self, key: Key, node: str = "", *, shared: bool, max_hold: float | None = None
    ) -> AsyncLock:
        """Describe a lock of the key's kind."""
        client = self._machine.client
        timeout = self._dice.choice((0.2, 1.0, 1.0, 3.0, None))
        wait = None if timeout is None else timeout * key.ttl
        if key.kind == plans.MUTEX:
            return client.lock(key.name, ttl=key.ttl, timeout=wait, max_hold=max_hold)
        if key.kind == plans.SEMAPHORE:
            return client.semaphore(
                key.name, key.limit, ttl=key.ttl, timeout=wait, max_hold=max_hold
            )
        name = key.name + node
        make = client.tree if key.kind == plans.TREE else client.rwlock
        pair = make(name, ttl=key.ttl, timeout=wait, max_hold=max_hold)
        return pair.read() if shared else pair.write()

    async def _inside(
        self, lock: AsyncLock, key: Key, register: Register, hold: float, body: _Body
    ) -> None:
        """Use `async with`: a loss cancels the body."""
        invoked = self._loop.time()
        self._calls["with"] += 1
        async with lock as lease:
            self._machine.took(lease, key, invoked)
            try:
                await body(lease, key, register, hold)
            finally:
                self._machine.leave(lease)

    async def _by_hand(
        self, lock: AsyncLock, key: Key, register: Register, hold: float, body: _Body
    ) -> None:
        """Acquire and release by hand: nobody stops the body but itself."""
        invoked = self._loop.time()
        if self._dice.random() < 0.2:
            self._calls["try_acquire"] += 1
            lease = await lock.try_acquire()
        else:
            self._calls["acquire"] += 1
            lease = await lock.acquire()
        if lease is None:
            return
        self._machine.took(lease, key, invoked)
        try:
            await body(lease, key, register, hold)
        finally:
            self._machine.leave(lease)
            self._calls["release"] += 1
            await lease.release()

    # --- Bodies. ---

    async def _nothing(self, lease: AsyncLease, key: Key, register: Register, hold: float) -> None:
        """W-mutex: in and out."""

    async def _stay(self, lease: AsyncLease, key: Key, register: Register, hold: float) -> None:
        """Hold a permit: semaphores cannot fence, so there is nothing to write (S23)."""
        await self._early_pause()
        await self._spend(lease, hold)

    async def _work(self, lease: AsyncLease, key: Key, register: Register, hold: float) -> None:
        """W-reg: begin, read, take some time, write."""
        await self._early_pause()
        if lease.mode is Mode.SHARED:
            register.read(lease.token)
            await self._spend(lease, hold)
            register.read(lease.token)
            return
        value, unguarded = register.begin(lease.token), register.unguarded
        await self._spend(lease, hold)
        register.write_unguarded(self._loop.time(), lease.token, unguarded)
        await self._write(register, lease.token, value)

    async def _early_pause(self) -> None:
        """Stand still between grant and use (N1)."""
        if plans.EARLY_PAUSE in self._plan.faults and self._dice.random() < 0.04:
            ttls = self._dice.choice(PAUSES)
            now = self._loop.time()
            self._world.history.inject(now, plans.EARLY_PAUSE, f"{self._machine.name} {ttls} TTL")
            self._machine.pause(ttls * self._plan.ttl)
            await asyncio.sleep(0)

    async def _spend(self, lease: AsyncLease, hold: float) -> None:
        """Take the time, looking at the lease in between as careful holders do."""
        dice = self._dice
        await self._rest(hold * 0.6)
        roll = dice.random()
        if roll < 0.12:
            self._calls["ensure_held"] += 1
            margin = dice.choice((0.0, 0.3, 0.8)) * lease.ttl
            await lease.ensure_held(margin)
        elif roll < 0.2:
            self._calls["extend"] += 1
            factor = dice.choice((0.5, 1.0, LONGEST_EXTENSION))
            await lease.extend(factor * lease.ttl if lease.ttl <= self._plan.ttl else None)
        await self._rest(hold * 0.4)
        self._machine.look(lease)
        if not lease.held:  # who goes on regardless must at least be told the same again
            await self._rest(0.2)
            self._machine.look(lease)

    async def _write(self, register: Register, token: int, value: int) -> None:
        """Write at once, or through a network that may be slow and lose the answer."""
        dice, history = self._dice, self._world.history
        if dice.random() < 0.7:
            register.write(self._loop.time(), token, value)
            history.add(Answered(self._loop.time(), register.name, token, True))
            return
        answer: asyncio.Future[StaleToken | bool] = self._loop.create_future()
        silent = dice.random() < 0.2

        def arrive() -> None:
            result: StaleToken | bool = True
            try:
                register.write(self._loop.time(), token, value)
            except StaleToken as stale:
                result = stale
            if not silent and not answer.done():
                answer.set_result(result)

        def give_up() -> None:
            if not answer.done():
                answer.set_result(False)

        self._loop.call_later(dice.random() * 0.3 * self._plan.ttl, arrive, context=Context())
        timer = self._loop.call_later(0.25 * self._plan.ttl, give_up)
        result = await answer
        timer.cancel()
        if isinstance(result, StaleToken):
            raise result
        # After silence nothing more is done under this lease: the write may still arrive.
        history.add(Answered(self._loop.time(), register.name, token, result))


_Body = Callable[[AsyncLease, Key, Register, float], Awaitable[None]]
