"""(Generated from _async/conformance/election.py by tools/unasync.py: do not edit.) Election: one leader, whose value all can see, and work that only the leader does."""

from __future__ import annotations

import holdfast

from ...._concurrency import Event
from ...running import Body, Spawned
from .base import Base
from .kinds import Candidate


class ElectionTests(Base):
    """campaign, leader, observe, run."""

    def test_leader_is_seen_by_all(self) -> None:
        """Who wins is shown with value, token and owner; after resigning nobody leads."""
        other = self.connect()
        mine, theirs = self.client.election("x", "node é 1"), other.election("x", "node 2")
        assert theirs.leader() is None
        lease = mine.campaign()
        assert lease is not None
        expected = holdfast.Leader("node é 1", lease.token, lease.owner)
        assert mine.leader() == expected
        assert theirs.leader() == expected
        assert theirs.campaign(timeout=self.harness.brief) is None
        assert lease.release() is True
        assert mine.leader() is None

    def test_next_candidate_follows(self) -> None:
        """When the leader resigns, the one that waits leads, with a larger token."""
        other = self.connect()
        first = self.client.election("x", "one").campaign()
        assert first is not None
        waiter = self.queue(other, Candidate(other.election("x", "two")))
        first.release()
        second = waiter.result()
        leader = self.client.election("x").leader()
        assert leader == holdfast.Leader("two", second.token, second.owner)
        assert second.token > first.token
        second.release()

    def test_observe_sees_changes(self) -> None:
        """Observers see the state now, and each new leader; a quick change may be skipped."""
        seen: list[str | None] = []
        heard = {value: Event() for value in (None, "one", "two")}

        def watch() -> None:
            for leader in self.connect().election("x").observe():
                value = None if leader is None else leader.value
                seen.append(value)
                heard[value].set()
                if value == "two":
                    return

        watching = Spawned(watch)
        assert heard[None].wait(self.harness.patience)
        for value in ("one", "two"):
            lease = self.client.election("x", value).campaign()
            assert lease is not None
            assert heard[value].wait(self.harness.patience)
            lease.release()
        watching.result()
        assert [value for value in seen if value] == ["one", "two"]
        assert seen[0] is None

    def test_observe_ends_with_its_client(self) -> None:
        """Who observes through a client that is closed gets ClientClosed, not silence."""
        client = self.connect()
        looked = Event()

        def watch() -> None:
            for _ in client.election("x").observe():
                looked.set()

        watching = Spawned(watch)
        assert looked.wait(self.harness.patience)
        client.close()
        self.raises(holdfast.ClientClosed, watching.result)

    def test_run_returns_the_result(self) -> None:
        """Work that ends resigns and hands back its result."""
        election = self.client.election("x", "me")

        def work(lease: holdfast.Lease) -> str:
            leader = self.client.election("x").leader()
            assert leader is not None
            assert leader.token == lease.token
            assert holdfast.current_lease() is lease
            return "done"

        assert election.run(work) == "done"
        assert election.leader() is None

    def test_run_leads_again_after_a_loss(self) -> None:
        """Work is stopped when leadership is lost, and started anew with the next one."""
        election = self.client.election("x", "me", ttl=self.ttl)
        started = [Event(), Event()]
        tokens: list[int] = []

        def work(lease: holdfast.Lease) -> int:
            tokens.append(lease.token)
            started[len(tokens) - 1].set()
            if len(tokens) == 1:
                Body.work_on(lease)
            return len(tokens)

        running = Spawned(election.run, work)
        assert started[0].wait(self.harness.patience)
        assert self.connect().force_release("x") == 1
        assert running.result() == 2
        assert tokens[1] > tokens[0]
        assert election.leader() is None

    def test_error_of_the_work_resigns(self) -> None:
        """An error of the work is raised, after resigning; it is not taken for a loss."""
        election = self.client.election("x", "me")

        def fail(lease: holdfast.Lease) -> None:
            raise KeyError("the work's own")

        def foreign_loss(lease: holdfast.Lease) -> None:
            other = self.take(self.client.lock("other"))
            other.release()
            other.ensure_held()

        self.raises(KeyError, election.run, fail)
        assert election.leader() is None
        error = self.raises(holdfast.LeaseLost, election.run, foreign_loss)
        assert error.name == "other"
        assert election.leader() is None

    def test_election_is_a_lock(self) -> None:
        """A plain lock under the name keeps candidates out, and shows as a leader of no value."""
        lease = self.take(self.client.lock("x"))
        election = self.connect().election("x", "me")
        assert election.campaign(timeout=0) is None
        leader = election.leader()
        assert leader is not None
        assert leader.value == ""
        lease.release()
