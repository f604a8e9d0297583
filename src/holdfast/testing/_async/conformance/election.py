"""Election: one leader, whose value all can see, and work that only the leader does."""

from __future__ import annotations

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent
from ...running import AsyncBody, AsyncSpawned
from .base import AsyncBase
from .kinds import AsyncCandidate


class AsyncElectionTests(AsyncBase):
    """campaign, leader, observe, run."""

    async def test_leader_is_seen_by_all(self) -> None:
        """Who wins is shown with value, token and owner; after resigning nobody leads."""
        other = self.connect()
        mine, theirs = self.client.election("x", "node é 1"), other.election("x", "node 2")
        assert await theirs.leader() is None
        lease = await mine.campaign()
        assert lease is not None
        expected = holdfast.Leader("node é 1", lease.token, lease.owner)
        assert await mine.leader() == expected
        assert await theirs.leader() == expected
        assert await theirs.campaign(timeout=self.harness.brief) is None
        assert await lease.release() is True
        assert await mine.leader() is None

    async def test_next_candidate_follows(self) -> None:
        """When the leader resigns, the one that waits leads, with a larger token."""
        other = self.connect()
        first = await self.client.election("x", "one").campaign()
        assert first is not None
        waiter = await self.queue(other, AsyncCandidate(other.election("x", "two")))
        await first.release()
        second = await waiter.result()
        leader = await self.client.election("x").leader()
        assert leader == holdfast.Leader("two", second.token, second.owner)
        assert second.token > first.token
        await second.release()

    async def test_observe_sees_changes(self) -> None:
        """Observers see the state now, and each new leader; a quick change may be skipped."""
        seen: list[str | None] = []
        heard = {value: AsyncEvent() for value in (None, "one", "two")}

        async def watch() -> None:
            async for leader in self.connect().election("x").observe():
                value = None if leader is None else leader.value
                seen.append(value)
                heard[value].set()
                if value == "two":
                    return

        watching = AsyncSpawned(watch)
        assert await heard[None].wait(self.harness.patience)
        for value in ("one", "two"):
            lease = await self.client.election("x", value).campaign()
            assert lease is not None
            assert await heard[value].wait(self.harness.patience)
            await lease.release()
        await watching.result()
        assert [value for value in seen if value] == ["one", "two"]
        assert seen[0] is None

    async def test_observe_ends_with_its_client(self) -> None:
        """Who observes through a client that is closed gets ClientClosed, not silence."""
        client = self.connect()
        looked = AsyncEvent()

        async def watch() -> None:
            async for _ in client.election("x").observe():
                looked.set()

        watching = AsyncSpawned(watch)
        assert await looked.wait(self.harness.patience)
        await client.close()
        await self.raises(holdfast.ClientClosed, watching.result)

    async def test_run_returns_the_result(self) -> None:
        """Work that ends resigns and hands back its result."""
        election = self.client.election("x", "me")

        async def work(lease: holdfast.Lease) -> str:
            leader = await self.client.election("x").leader()
            assert leader is not None
            assert leader.token == lease.token
            assert holdfast.current_lease() is lease
            return "done"

        assert await election.run(work) == "done"
        assert await election.leader() is None

    async def test_run_leads_again_after_a_loss(self) -> None:
        """Work is stopped when leadership is lost, and started anew with the next one."""
        election = self.client.election("x", "me", ttl=self.ttl)
        started = [AsyncEvent(), AsyncEvent()]
        tokens: list[int] = []

        async def work(lease: holdfast.Lease) -> int:
            tokens.append(lease.token)
            started[len(tokens) - 1].set()
            if len(tokens) == 1:
                await AsyncBody.work_on(lease)
            return len(tokens)

        running = AsyncSpawned(election.run, work)
        assert await started[0].wait(self.harness.patience)
        assert await self.connect().force_release("x") == 1
        assert await running.result() == 2
        assert tokens[1] > tokens[0]
        assert await election.leader() is None

    async def test_error_of_the_work_resigns(self) -> None:
        """An error of the work is raised, after resigning; it is not taken for a loss."""
        election = self.client.election("x", "me")

        async def fail(lease: holdfast.Lease) -> None:
            raise KeyError("the work's own")

        async def foreign_loss(lease: holdfast.Lease) -> None:
            other = await self.take(self.client.lock("other"))
            await other.release()
            await other.ensure_held()

        await self.raises(KeyError, election.run, fail)
        assert await election.leader() is None
        error = await self.raises(holdfast.LeaseLost, election.run, foreign_loss)
        assert error.name == "other"
        assert await election.leader() is None

    async def test_election_is_a_lock(self) -> None:
        """A plain lock under the name keeps candidates out, and shows as a leader of no value."""
        lease = await self.take(self.client.lock("x"))
        election = self.connect().election("x", "me")
        assert await election.campaign(timeout=0) is None
        leader = await election.leader()
        assert leader is not None
        assert leader.value == ""
        await lease.release()
