"""Nothing delays a loss: not a blocked renewal, not a callback that sleeps (S25)."""

from __future__ import annotations

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.clocks import boot_clock
from holdfast.model import Reason
from holdfast.testing.faults import block
from holdfast.testing.running import AsyncSpawned
from tests._async.faulty_suite import PATIENCE, AsyncFaultySuite

TTLS = (0.30, 0.34, 0.38, 0.42, 0.46)
LATEST = 0.05  # after the deadline; never widened
ROUNDS = 3  # on a machine that does other things too, the best one counts


class TestPunctual(AsyncFaultySuite):
    """The clock is on time."""

    async def test_every_loss_is_noticed_within_50_ms(self) -> None:
        """A renewal blocked for 3 TTL and sleeping callbacks: all leases still end on time."""
        rounds = [await self.measure() for _ in range(ROUNDS)]
        assert all(delay >= 0 for delays in rounds for delay in delays), "lost before its time"
        assert min(max(delays) for delays in rounds) <= LATEST, rounds

    async def measure(self) -> list[float]:
        """Let five leases run out, and return how long after its deadline each was lost."""
        self.plan(("renew", None, block(3 * max(TTLS))))
        called: list[Reason] = []

        async def sleepily(lease: holdfast.Lease, reason: Reason) -> None:
            await asleep(0.2)
            called.append(reason)

        leases = [
            await self.take(f"lock-{ttl}", ttl=ttl, on_lost=sleepily, timeout=PATIENCE)
            for ttl in TTLS
        ]
        watches = [AsyncSpawned(self.watch, lease) for lease in leases]
        delays = [await watch.result() for watch in watches]
        assert [lease.lost_reason for lease in leases] == ["unreachable"] * len(TTLS)
        self.plan()
        self.faulty.unblock()
        await self.until(lambda: len(called) == len(TTLS))
        return delays

    async def watch(self, lease: holdfast.Lease) -> float:
        """Wait for a loss as a user does; return by how much it came after the deadline."""
        deadline = lease._deadline
        assert await lease.lost.wait(PATIENCE)
        return boot_clock() - deadline
