"""What a worker does: take a lock, read the resource, take its time, write, give the lock back.

Written once for both colours (see hands.py). It is the careless user on purpose: it looks at its
lease, writes that down, and then writes to the resource whatever the lease said. What a guard is
worth can be seen only if somebody needs it.
"""

from __future__ import annotations

import random

from ..fencing import fence_of
from .assignment import RUSH, Assignment
from .diary import Diary
from .failpoint import Failpoint
from .hands import Client, Hands, Lease
from .ledger import Ledger
from .orders import GRANTED, READ, Orders
from .register import GUARDED, Register

LONGEST_HOLD = 1.5  # in units of pace; most are much shorter
WAITS = (0.2, 0.5, 1.0, 3.0)  # likewise
BRIEFLY = 0.6  # likewise: there are more locks than the one whose holder was struck
LONG = 5.0  # seconds; to see whether a longer TTL is renewed is not worth the wait
EPILOGUE = 25.0  # seconds to wait for a lock once all is well: the checker says what was too long


class Workload:
    """The leases of one worker, and how it uses them."""

    def __init__(
        self, assignment: Assignment, hands: Hands, client: Client, diary: Diary, orders: Orders
    ) -> None:
        self._assignment = assignment
        self._hands, self._diary = hands, diary
        self._orders = orders
        self._register = Register(assignment.register, assignment.name)
        self._failpoint = Failpoint(assignment, diary, orders)
        self._ledger = Ledger(hands, client, diary)

    async def run(self, number: int) -> None:
        """Take locks until told to finish; several may run at once."""
        dice = random.Random(f"{self._assignment.seed} {self._assignment.name} {number}")
        while not self._orders.finish:
            await self._cycle(dice)
            self._failpoint.listen()

    async def rush(self, number: int) -> None:
        """Take locks and give them back at once, until told to finish; one of several."""
        dice = random.Random(f"{self._assignment.seed} {self._assignment.name} rush {number}")
        pause = self._assignment.rushes / self._assignment.rush
        while not self._orders.finish:
            lease = await self._ledger.take(dice.choice(RUSH), BRIEFLY * self._assignment.pace)
            if lease is not None:
                await self._ledger.leave(lease)
            await self._hands.sleep(dice.uniform(0.0, 2.0 * pause))

    async def finish(self) -> None:
        """Show that all is well again: every lock can be had, and a lease is renewed."""
        own = (f"own/{self._assignment.name}",) if self._assignment.ttl < LONG else ()
        for key in (*self._assignment.keys, *own):
            lease = await self._ledger.take(key, EPILOGUE)
            if lease is None:
                continue
            if key.startswith("own/"):
                await self._hands.sleep(1.3 * self._assignment.ttl)
                self._diary.note("kept", held=lease.held)
            await self._ledger.leave(lease)
        self._register.close()
        self._failpoint.reap()

    # --- One cycle. ---

    async def _cycle(self, dice: random.Random) -> None:
        pace = self._assignment.pace
        key = dice.choice(self._assignment.keys)
        lease = await self._ledger.take(key, dice.choice(WAITS) * pace)
        if lease is None:
            await self._hands.sleep(0.02)
            return
        try:
            if self._failpoint.wanted:  # long enough to be renewed before it hurts
                await self._work(lease, key, dice.uniform(0.0, 1.2) * pace)
            elif dice.random() > self._assignment.quick:
                await self._work(lease, key, dice.random() ** 4 * LONGEST_HOLD * pace)
        finally:
            await self._ledger.leave(lease)
        await self._hands.sleep(0.001 + dice.random() ** 3 * 0.03)

    async def _work(self, lease: Lease, key: str, hold: float) -> None:
        self._failpoint.pass_at(GRANTED, lease)
        fence = fence_of(lease)
        read = self._register.begin(key, fence)
        await self._hands.sleep(hold / 2)
        self._failpoint.pass_at(READ, lease)
        self._ledger.look(lease)
        await self._hands.sleep(hold / 2)
        taken = self._register.write(key, fence, read)
        self._diary.note("wrote", key=key, token=lease.token, taken=taken[GUARDED])
        self._ledger.look(lease)
