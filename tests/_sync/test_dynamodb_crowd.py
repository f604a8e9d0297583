"""(Generated from _async/test_dynamodb_crowd.py by tools/unasync.py: do not edit.) Many who want one lock of DynamoDB: they queue without being in the way of each other."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dynamodb_draft import HANDOVER
from holdfast.dynamodb_record import join_request, key_of
from holdfast.model import Claim, Family, Mode, Queued
from holdfast.testing.dynamodb_harness import TABLE, DynamoDBHarness
from holdfast.testing.running import Spawned
from tests._sync.dynamodb_suite import DynamoDBSuite

LONG = 30.0  # a TTL that nobody waits for
LIMIT = 10.0  # seconds for one answer
CROWD = 12


class TestJoining(DynamoDBSuite):
    """Who comes when others wait already goes to the end of the queue, whatever else happens."""

    harness = DynamoDBHarness()

    def version(self, claim: Claim) -> str:
        """Return the version of an item, which every change has to know but two."""
        found = self.raw.get_item(TableName=TABLE, Key=key_of(claim.key), ConsistentRead=True)
        return str(found["Item"]["v"]["S"])

    def wait_with(self, claim: Claim) -> Queued:
        """Let a claim of this client wait."""
        answer = self.client.engine.claim(claim, LIMIT)
        assert isinstance(answer, Queued)
        return answer

    def join(self, claim: Claim) -> bool:
        """Let a claim join the queue by a request of its own; say whether it was let in."""
        try:
            self.raw.update_item(TableName=TABLE, **join_request(claim))
        except self.raw.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def test_nobody_is_disturbed(self) -> None:
        """The second waiter and those after it change no version: the place is the next one."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        first, second, third = (self.claim("x", ttl=LONG) for _ in range(3))
        assert (self.wait_with(first)).position == 0
        before = self.version(first)
        assert (self.wait_with(second)).position == 1
        assert (self.wait_with(third)).position == 2
        assert self.version(first) == before
        assert self.waiters("x") == [first.owner, second.owner, third.owner]
        assert lease.release() is True
        assert self.holders("x") == [first.owner]
        assert self.waiters("x") == [second.owner, third.owner]

    def test_requests_of_a_crowd(self) -> None:
        """However many come at once, each needs few requests: it is not one of them at a time."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        self.wait_with(self.claim("x", ttl=LONG))
        wire = self.intrude(self.client)
        claims = [self.claim("x", ttl=LONG) for _ in range(CROWD)]
        spawned = [Spawned(self.wait_with, claim) for claim in claims]
        for one in spawned:
            one.result()
        assert wire.counts == {"UpdateItem": 2 * CROWD}  # a claim that is refused, and the place
        assert set(self.waiters("x")[1:]) == {claim.owner for claim in claims}
        assert lease.release() is True

    @pytest.mark.parametrize("mode", [Mode.EXCLUSIVE, Mode.SHARED])
    def test_who_joins_while_the_last_one_is_let_in(self, mode: Mode) -> None:
        """A release that knows of one waiter does not take the queue away from a second."""
        holder = self.connect()
        held = self.claim("x", ttl=LONG)
        holder.engine.claim(held, LIMIT)
        first, second = (self.claim("x", ttl=LONG, mode=mode) for _ in range(2))
        self.wait_with(first)
        holder.engine.renew([held], LIMIT)  # by which it has heard of the first
        self.wait_with(second)
        assert holder.engine.release(held, LIMIT) is True
        if mode is Mode.SHARED:
            assert set(self.holders("x")) == {first.owner, second.owner}
            assert self.waiters("x") == []
        else:
            assert self.holders("x") == [first.owner]
            assert self.waiters("x") == [second.owner]

    def test_who_joins_while_another_leaves(self) -> None:
        """A withdrawal that has looked before does not undo the place of who came after."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        other = self.connect()
        first, second = (self.claim("x", ttl=LONG) for _ in range(2))
        assert isinstance(other.engine.claim(first, LIMIT), Queued)
        look: Any = other.engine.table.look  # type: ignore[attr-defined]

        def look_and_be_overtaken(*args: Any) -> Any:
            item = look(*args)
            self.wait_with(second)
            return item

        other.engine.table.look = look_and_be_overtaken  # type: ignore[attr-defined]
        assert other.engine.release(first, LIMIT) is False
        assert self.waiters("x") == [second.owner]
        assert lease.release() is True
        assert self.holders("x") == [second.owner]

    def test_where_nobody_waits_nobody_joins(self) -> None:
        """Not to an idle lock, nor to one that is only held: it could be free before it is heard
        of, and nobody would let the newcomer in."""
        assert not self.join(self.claim("x"))
        lease = self.take(self.client.lock("x", ttl=LONG))
        assert not self.join(self.claim("x"))
        lease.release()
        assert not self.join(self.claim("x"))

    @pytest.mark.parametrize(
        "other",
        [
            {"family": Family.SEMAPHORE, "limit": 2},
            {"mode": Mode.SHARED},
            {"family": Family.TREE, "path": ("a",)},
        ],
    )
    def test_who_wants_something_else_does_not_join(self, other: dict[str, Any]) -> None:
        """The queue may have ended meanwhile, and one for another kind of lock begun."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        self.wait_with(self.claim("x", ttl=LONG))
        assert not self.join(self.claim("x", ttl=LONG, **other))
        assert self.join(self.claim("x", ttl=LONG))
        lease.release()

    def test_copies_that_come_late(self) -> None:
        """One that holds by now, or has let go in doubt, gets no place by an old request."""
        lease = self.take(self.connect().lock("x", ttl=LONG))
        first, second, gone = (self.claim("x", ttl=LONG) for _ in range(3))
        self.wait_with(first)
        self.wait_with(second)
        engine: Any = self.client.engine
        engine._doubts.add(gone.owner)
        assert engine.release(gone, LIMIT) is False
        assert not self.join(gone)
        assert lease.release() is True
        assert self.holders("x") == [first.owner]
        assert not self.join(first)

    def test_a_copy_that_makes_a_second_place(self) -> None:
        """Of two places of one owner both are used up when it is let in."""
        lease = self.take(self.connect().lock("x", ttl=HANDOVER))
        first, second = (self.claim("x", ttl=LONG) for _ in range(2))
        self.wait_with(first)
        self.wait_with(second)
        assert self.join(second)
        assert self.waiters("x") == [first.owner, second.owner, second.owner]
        assert lease.release() is True
        assert self.client.engine.release(first, LIMIT) is True
        assert self.holders("x") == [second.owner]
        assert self.waiters("x") == []

    def test_places_of_a_tree_are_found_on_an_image(self) -> None:
        """There a newcomer may enter along with the first: who lets that in must have seen it."""
        held, first, second = (self.claim("t/a", "tree", ttl=LONG) for _ in range(3))
        self.connect().engine.claim(held, LIMIT)
        self.wait_with(first)
        before = self.version(first)
        self.wait_with(second)
        assert self.version(first) != before
