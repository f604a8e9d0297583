"""The DynamoDB guard on DynamoDB Local: who is let in, what is written and told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr  # type: ignore[import-untyped]

import holdfast.aio as holdfast
from holdfast._async.guards.dynamodb import AsyncDynamoGuard
from holdfast.events import Accepted, Adopted, Event, Refused
from holdfast.fencing import Fence, Floors
from holdfast.guards.dynamodb_items import floors_in, without_fence
from holdfast.model import Mode
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.running import AsyncSpawned
from tests.guards.dynamo import FENCES, TABLE, table
from tests.guards.dynamo_harness import AsyncCalls, DynamoHarness
from tests.guards.fences import BAD_FENCES, DOMAIN, NEIGHBOURS, mixture, told

pytestmark = pytest.mark.slow

CROWD = 6
SET = {"UpdateExpression": "SET stock = :s", "ExpressionAttributeValues": {":s": {"N": "5"}}}


class TestDynamoGuard(AsyncBase):
    """One server; each test has an item of its own."""

    harness = DynamoHarness()
    guard: AsyncDynamoGuard
    heard: list[Event]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Give each test a guard."""
        self.boto, self.heard = self.harness.connection, []
        self.guard = AsyncDynamoGuard(self.boto, TABLE, call=AsyncCalls.through)
        self.guard.listen(self.heard.append)
        await super().conduct(test, **arguments)

    @property
    def key(self) -> dict[str, Any]:
        """The key of this test's item."""
        return {"id": {"S": self.namespace}}

    @property
    def name(self) -> str:
        """What errors and events call it."""
        return f"{TABLE}/{self.namespace}"

    def fence(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> Fence:
        return Fence(token, domain, mode)

    def item(self, name: str = "", table: str = TABLE) -> dict[str, Any] | None:
        """Return the item, or another of this test, asked without the guard."""
        key = {"id": {"S": f"{self.namespace}{name}"}}
        found: Any = self.boto.get_item(TableName=table, Key=key, ConsistentRead=True)
        item: dict[str, Any] | None = found.get("Item")
        return item

    def floors(self) -> Floors | None:
        """Return what the item remembers."""
        return floors_in(self.item() or {})

    def put_of(self, name: str, **options: Any) -> dict[str, Any]:
        """Return a write to another item of this test, for a transaction."""
        item = {"id": {"S": f"{self.namespace}{name}"}, "n": {"N": "1"}}
        return {"Put": {"TableName": TABLE, "Item": item, **options}}

    def writes(self) -> dict[str, Callable[[Fence], Awaitable[Any]]]:
        """Return every way to write, each as a call that takes a fence."""
        return {
            "update": lambda fence: self.guard.update(self.key, fence, **SET),
            "put": lambda fence: self.guard.put(self.key, fence, {"stock": {"N": "5"}}),
            "delete": lambda fence: self.guard.delete(self.key, fence),
            "transact": lambda fence: self.guard.transact(self.key, fence, [self.put_of("/other")]),
        }

    # --- Who is let in. ---

    @pytest.mark.parametrize("seed", range(2))
    async def test_floors_are_those_of_the_model(self, seed: int) -> None:
        """Whoever passes or not, and what is remembered, is what `judge` says, step by step."""
        for fence, floors, passes in mixture(seed, 60):
            if passes:
                await self.guard.begin(self.key, fence)
            else:
                with pytest.raises(holdfast.StaleToken):
                    await self.guard.begin(self.key, fence)
            assert self.floors() == floors, fence
        assert {type(event) for event in self.heard} == {Accepted, Refused}

    @pytest.mark.parametrize("how", ["update", "put", "delete", "transact"])
    @pytest.mark.parametrize("seed", range(2))
    async def test_every_write_keeps_to_the_model(self, seed: int, how: str) -> None:
        """Reading and writing in turn, each kind of write lets in whom `judge` lets in.

        After a put the shared floor may be lower than in the model, where it no longer matters.
        """
        write = self.writes()[how]

        async def read(fence: Fence) -> None:
            await self.guard.begin(self.key, fence)

        for fence, floors, passes in mixture(seed, 40):
            act = write if fence.mode is Mode.EXCLUSIVE else read
            if passes:
                await act(fence)
            else:
                with pytest.raises(holdfast.StaleToken):
                    await act(fence)
            found = self.floors()
            assert found is not None
            assert floors is not None
            assert found.exclusive == floors.exclusive
            assert found.seen == floors.seen

    @pytest.mark.parametrize(("high", "low"), NEIGHBOURS)
    async def test_tokens_are_compared_as_integers(self, high: int, low: int) -> None:
        """One more is more, at any size; equal passes, in every kind of write."""
        for write in self.writes().values():
            await self.guard.adopt(self.key, f"{DOMAIN}:{write}")
            await self.guard.adopt(self.key, DOMAIN)
            for token in (low, high, high):
                await write(self.fence(token))
            with pytest.raises(holdfast.StaleToken) as refused:
                await write(self.fence(low))
            assert (refused.value.seen, refused.value.offered) == (high, low)

    @pytest.mark.parametrize("how", ["update", "put", "delete", "transact"])
    async def test_begin_keeps_the_old_holder_out(self, how: str) -> None:
        """A holder that was overtaken between its read and its write is refused (S23)."""
        await self.guard.put(self.key, self.fence(1), {"stock": {"N": "4"}})
        before = {**self.key, "stock": {"N": "4"}}
        assert await self.guard.begin(self.key, self.fence(2)) == before  # nothing written yet
        with pytest.raises(holdfast.StaleToken, match=f"{self.name}' has seen token 2"):
            await self.writes()[how](self.fence(1))
        assert without_fence(self.item() or {}) == before
        assert self.item("/other") is None
        await self.writes()[how](self.fence(2))

    async def test_shared_leases_read(self) -> None:
        """Shared holders read beside one another, keep older writers out, and never write."""
        await self.guard.put(self.key, self.fence(1), {"stock": {"N": "4"}})
        seen = {**self.key, "stock": {"N": "4"}}
        assert await self.guard.begin(self.key, self.fence(5, Mode.SHARED)) == seen
        assert await self.guard.begin(self.key, self.fence(4, Mode.SHARED)) == seen
        for write in self.writes().values():
            with pytest.raises(holdfast.StaleToken):
                await write(self.fence(4))
            with pytest.raises(holdfast.NotSupported, match="take the lock exclusively"):
                await write(self.fence(6, Mode.SHARED))
        assert without_fence(self.item() or {}) == seen
        await self.guard.update(self.key, self.fence(5), **SET)
        with pytest.raises(holdfast.StaleToken, match="nothing was read"):
            await self.guard.begin(self.key, self.fence(4, Mode.SHARED))

    async def test_real_leases(self) -> None:
        """A lease is shown as it is; one that was overtaken is refused."""
        first = await self.take(self.client.lock("x"))
        await self.guard.begin(self.key, first)
        await first.release()
        second = await self.take(self.client.lock("x"))
        await self.guard.update(self.key, second, **SET)
        with pytest.raises(holdfast.StaleToken):
            await self.guard.delete(self.key, first)
        assert self.floors() == Floors(second.domain, second.token)
        await second.release()

    # --- Domains. ---

    async def test_another_domain_is_refused_until_adopted(self) -> None:
        """Tokens of two origins are never compared; the error names both, and nothing changes."""
        await self.guard.begin(self.key, self.fence(7))
        other = self.fence(9, domain="other:locks")
        for write in self.writes().values():
            with pytest.raises(holdfast.DomainMismatch, match=r"test:locks.*other:locks"):
                await write(other)
        with pytest.raises(holdfast.DomainMismatch):
            await self.guard.begin(self.key, other)
        await self.guard.adopt(self.key, DOMAIN)
        assert self.floors() == Floors(DOMAIN, 7), "its own domain changes nothing"
        await self.guard.adopt(self.key, "other:locks")
        assert self.floors() == Floors("other:locks")
        await self.guard.begin(self.key, self.fence(1, domain="other:locks"))
        adopted = [event for event in self.heard if isinstance(event, Adopted)]
        assert [(event.name, event.engine, event.previous, event.domain) for event in adopted] == [
            (self.name, "dynamodb", DOMAIN, "other:locks")
        ]

    async def test_domain_before_the_first_token(self) -> None:
        """An item that nobody has touched can be given to a domain."""
        await self.guard.adopt(self.key, "other")
        assert self.floors() == Floors("other")
        assert [event.previous for event in self.heard if isinstance(event, Adopted)] == [""]

    # --- What is written. ---

    async def test_begin_gives_the_item(self) -> None:
        """None while there is none, then all of it, without what is the guard's own."""
        assert await self.guard.begin(self.key, self.fence(1)) is None
        answer = await self.guard.update(self.key, self.fence(1), **SET, ReturnValues="ALL_NEW")
        item = {**self.key, "stock": {"N": "5"}}
        assert answer["Attributes"] == item
        assert await self.guard.begin(self.key, self.fence(1)) == item
        assert await self.guard.begin(self.key, self.fence(3, Mode.SHARED)) == item
        assert await self.guard.begin(self.key, self.fence(2, Mode.SHARED)) == item

    async def test_deleted_item_keeps_its_floor(self) -> None:
        """A delete gives the item as it was, leaves nothing of it, and still keeps old ones out."""
        await self.guard.put(self.key, self.fence(5), {"stock": {"N": "4"}})
        gone = await self.guard.delete(self.key, self.fence(6), ReturnValues="ALL_OLD")
        assert gone["Attributes"] == {**self.key, "stock": {"N": "4"}}
        assert without_fence(self.item() or {}) == self.key
        with pytest.raises(holdfast.StaleToken):
            await self.guard.put(self.key, self.fence(5), {"stock": {"N": "4"}})
        assert await self.guard.begin(self.key, self.fence(6)) is None

    @pytest.mark.parametrize(
        ("expression", "names", "left"),
        [
            ("SET stock = :n", {}, {"stock": "7", "sold": "1"}),
            ("set stock = :n, sold = :n", {}, {"stock": "7", "sold": "7"}),
            ("REMOVE sold", {}, {}),
            ("REMOVE sold SET stock = :n", {}, {"stock": "7"}),
            ("ADD sold :n", {}, {"sold": "8"}),
            ("REMOVE sold\nSET #set = :n", {"#set": "set"}, {"set": "7"}),
            ("ADD #set :n", {"#set": "set"}, {"set": "7", "sold": "1"}),
            ("", {}, {"sold": "1"}),
        ],
    )
    async def test_update_expressions(
        self, expression: str, names: dict[str, str], left: dict[str, str]
    ) -> None:
        """Whatever an update does, it does it beside the fence, in one request."""
        await self.guard.put(self.key, self.fence(1), {"sold": {"N": "1"}})
        options: dict[str, Any] = {"UpdateExpression": expression} if expression else {}
        if names:
            options["ExpressionAttributeNames"] = names
        if ":n" in expression:
            options["ExpressionAttributeValues"] = {":n": {"N": "7"}}
        await self.guard.update(self.key, self.fence(2), **options)
        expected = {name: {"N": number} for name, number in left.items()}
        assert without_fence(self.item() or {}) == {**self.key, **expected}
        assert self.floors() == Floors(DOMAIN, 2)

    async def test_own_conditions(self) -> None:
        """A condition of the caller's is told apart from a stale token, which comes first."""
        condition = {
            "ConditionExpression": "stock > :least OR #size = :least",
            "ExpressionAttributeNames": {"#size": "size"},
            "ExpressionAttributeValues": {":least": {"N": "3"}, ":s": {"N": "5"}},
        }
        update = {"UpdateExpression": "SET stock = :s", **condition}
        put = {**condition, "ExpressionAttributeValues": {":least": {"N": "3"}}}
        failed = self.boto.exceptions.ConditionalCheckFailedException
        await self.guard.put(self.key, self.fence(2), {"stock": {"N": "3"}})
        before = self.item()
        with pytest.raises(failed):
            await self.guard.update(self.key, self.fence(4), **update)
        with pytest.raises(failed):
            await self.guard.put(self.key, self.fence(4), {}, **put)
        with pytest.raises(failed):
            await self.guard.delete(self.key, self.fence(4), **put)
        assert self.item() == before
        with pytest.raises(holdfast.StaleToken):
            await self.guard.update(self.key, self.fence(1), **update)
        await self.guard.update(self.key, self.fence(4), **SET)
        await self.guard.update(self.key, self.fence(4), **update)
        await self.guard.delete(self.key, self.fence(4), **put)
        assert [type(event) for event in self.heard].count(Refused) == 1

    async def test_transaction_behind_a_fence(self) -> None:
        """Several items, also deletes that leave nothing, behind the fence of another table."""
        guard = AsyncDynamoGuard(self.boto, FENCES, call=AsyncCalls.through)
        await guard.begin(self.key, self.fence(3))
        await guard.transact(self.key, self.fence(3), [self.put_of("/a"), self.put_of("/b")])
        delete = {"Delete": {"TableName": TABLE, "Key": {"id": {"S": f"{self.namespace}/a"}}}}
        with pytest.raises(holdfast.StaleToken, match=f"{FENCES}/"):
            await guard.transact(self.key, self.fence(2), [delete])
        assert self.item("/a") is not None
        await guard.transact(self.key, self.fence(3), [delete])
        assert self.item("/a") is None
        assert self.item("/b") is not None
        with pytest.raises(holdfast.StaleToken):
            await guard.transact(self.key, self.fence(2), [self.put_of("/a")])

    async def test_transaction_with_own_conditions(self) -> None:
        """One that fails is the client's error, nothing is written, the fence does not rise."""
        await self.guard.begin(self.key, self.fence(2))
        fails = self.put_of("/a", ConditionExpression="attribute_exists(id)")
        cancelled = self.boto.exceptions.TransactionCanceledException
        with pytest.raises(cancelled, match="ConditionalCheckFailed"):
            await self.guard.transact(self.key, self.fence(3), [self.put_of("/b"), fails])
        assert self.item("/a") is None
        assert self.item("/b") is None
        assert self.floors() == Floors(DOMAIN, 2)
        with pytest.raises(holdfast.StaleToken):
            await self.guard.transact(self.key, self.fence(1), [fails])

    async def test_repeated_transaction_is_done_once(self) -> None:
        """What a client repeats after a lost reply is known by its request's token."""
        add = {
            "Update": {
                "TableName": TABLE,
                "Key": {"id": {"S": f"{self.namespace}/sum"}},
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }
        for _ in range(2):
            await self.guard.transact(
                self.key, self.fence(1), [add], ClientRequestToken=self.namespace
            )
        assert (self.item("/sum") or {})["n"] == {"N": "1"}

    async def test_table_of_boto3(self) -> None:
        """A Table is guarded as well, with Python's own values and boto3's own conditions."""
        with_table = table(self.harness.server.url)
        guard = AsyncDynamoGuard(with_table, call=AsyncCalls.through)
        key = {"id": self.namespace}
        assert await guard.begin(key, self.fence(1)) is None
        await guard.put(key, self.fence(2), {"stock": 4, "words": ["a"]})
        assert await guard.begin(key, self.fence(2)) == {"stock": 4, "words": ["a"], **key}
        enough = {"ConditionExpression": Attr("stock").gt(3) & Attr("words").exists()}
        less = {
            "UpdateExpression": "SET stock = stock - :n",
            "ExpressionAttributeValues": {":n": 1},
        }
        await guard.update(key, self.fence(2), **less, **enough)
        with pytest.raises(self.boto.exceptions.ClientError, match="ConditionalCheckFailed"):
            await guard.update(key, self.fence(2), **less, **enough)
        with pytest.raises(holdfast.StaleToken):
            await guard.update(key, self.fence(1), **less, **enough)
        with pytest.raises(holdfast.StaleToken):
            await guard.put(key, self.fence(1), {}, **enough)
        assert await guard.begin(key, self.fence(4, Mode.SHARED)) == {
            "stock": 3,
            "words": ["a"],
            **key,
        }
        assert await guard.begin(key, self.fence(3, Mode.SHARED)) is not None
        await guard.delete(key, self.fence(4), ConditionExpression=Attr("stock").exists())
        other = {"Put": {"TableName": TABLE, "Item": {"id": f"{self.namespace}/o", "n": 1}}}

        async def work() -> tuple[list[Any], Any]:
            return [other], 7

        await guard.transact(key, self.fence(5), [other])
        with pytest.raises(holdfast.StaleToken):
            await guard.transact(key, self.fence(4), [other])
        for _ in range(2):
            assert await guard.once({"id": f"{self.namespace}/1"}, work) == 7
        await guard.adopt(key, "else")
        assert self.floors() == Floors("else")
        with_table.meta.client.close()

    # --- Events. ---

    async def test_events(self) -> None:
        """Who was let in and who was not is told: item, highest token seen, token offered."""
        await self.guard.update(self.key, self.fence(4), **SET)
        await self.guard.begin(self.key, self.fence(6, Mode.SHARED))
        await self.guard.begin(self.key, self.fence(5, Mode.SHARED))
        await self.guard.transact(self.key, self.fence(6), [self.put_of("/a")])
        with pytest.raises(holdfast.StaleToken) as refused:
            await self.guard.begin(self.key, self.fence(5))
        common = ("dynamodb", self.name, DOMAIN)
        assert told(self.heard) == [
            ("Accepted", *common, Mode.EXCLUSIVE, 4, 4),
            ("Accepted", *common, Mode.SHARED, 6, 6),
            ("Accepted", *common, Mode.SHARED, 6, 5),
            ("Accepted", *common, Mode.EXCLUSIVE, 6, 6),
            ("Refused", *common, Mode.EXCLUSIVE, 6, 5),
        ]
        assert [event.error for event in self.heard if isinstance(event, Refused)] == [
            str(refused.value)
        ]

    # --- Once. ---

    def work(self, name: str, result: Any) -> Callable[[], Awaitable[tuple[list[Any], Any]]]:
        """Return work that writes one item and has a result."""

        async def function() -> tuple[list[Any], Any]:
            return [self.put_of(name)], result

        return function

    async def test_once(self) -> None:
        """Later callers are given the first one's result, and are not asked for theirs."""
        result = {"paid": 5, "how": ["card", None]}
        assert await self.guard.once(self.key, self.work("/a", result)) == result
        assert self.item("/a") is not None
        for _ in range(2):
            assert await self.guard.once(self.key, self.work("/b", 7)) == result
        assert self.item("/b") is None

    async def test_once_in_a_crowd(self) -> None:
        """Of many at the same time the writes of one are done, and all are given its result."""
        crowd = [
            AsyncSpawned(self.guard.once, self.key, self.work(f"/{number}", number))
            for number in range(CROWD)
        ]
        results = {await one.result() for one in crowd}
        written = [number for number in range(CROWD) if self.item(f"/{number}") is not None]
        assert [*results] == written

    async def test_once_that_fails_may_be_tried_again(self) -> None:
        """Work that raises, or whose writes are refused, leaves the key free."""

        async def fails() -> tuple[list[Any], Any]:
            raise LookupError("no such card")

        async def is_refused() -> tuple[list[Any], Any]:
            return [self.put_of("/a", ConditionExpression="attribute_exists(id)")], 1

        async def cannot_be_kept() -> tuple[list[Any], Any]:
            return [self.put_of("/a")], object()

        async def forgets_the_result() -> Any:
            return [self.put_of("/a"), self.put_of("/b")]

        with pytest.raises(LookupError, match="card"):
            await self.guard.once(self.key, fails)
        with pytest.raises(self.boto.exceptions.TransactionCanceledException):
            await self.guard.once(self.key, is_refused)
        with pytest.raises(TypeError, match="JSON"):
            await self.guard.once(self.key, cannot_be_kept)
        with pytest.raises(TypeError, match=r"\(writes, result\)"):
            await self.guard.once(self.key, forgets_the_result)
        assert self.item("/a") is None
        assert await self.guard.once(self.key, self.work("/a", 2)) == 2

    async def test_once_beside_an_item(self) -> None:
        """A key that is an item's own takes nothing away from it, nor from its fence."""
        await self.guard.put(self.key, self.fence(3), {"stock": {"N": "4"}})
        assert await self.guard.once(self.key, self.work("/a", 1)) == 1
        assert await self.guard.begin(self.key, self.fence(3)) == {
            **self.key,
            "stock": {"N": "4"},
        }

    # --- What no guard takes. ---

    @pytest.mark.parametrize(("lease", "error", "says"), BAD_FENCES)
    async def test_bad_fences(self, lease: Any, error: type[Exception], says: str) -> None:
        """One sentence, and nothing is written."""
        for act in (lambda fence: self.guard.begin(self.key, fence), *self.writes().values()):
            with pytest.raises(error, match=says):
                await act(lease)
        assert self.item() is None
        assert self.item("/other") is None
        assert self.heard == []

    async def test_semaphore_cannot_fence(self) -> None:
        """Several hold it at once, so none is the newest."""
        lease = await self.take(self.client.semaphore("s", 3))
        with pytest.raises(holdfast.NotSupported, match="cannot fence"):
            await self.guard.begin(self.key, lease)
        assert self.item() is None
        await lease.release()

    @pytest.mark.parametrize("key", ["orders/7", 7, None, {}])
    async def test_bad_keys(self, key: Any) -> None:
        """What cannot name an item is refused."""
        for act in (
            lambda: self.guard.begin(key, self.fence(1)),
            lambda: self.guard.update(key, self.fence(1)),
            lambda: self.guard.put(key, self.fence(1), {}),
            lambda: self.guard.transact(key, self.fence(1), []),
            lambda: self.guard.once(key, self.work("/a", 1)),
            lambda: self.guard.adopt(key, DOMAIN),
        ):
            with pytest.raises((TypeError, ValueError), match="named by its key"):
                await act()

    async def test_what_is_the_guards_own(self) -> None:
        """Its placeholders, and what it says itself, are refused before anything is written."""
        taken = {"ExpressionAttributeValues": {":holdfast_token": {"N": "1"}}}
        with pytest.raises(ValueError, match="the guard's own"):
            await self.guard.update(self.key, self.fence(1), **taken)
        for options in ({"TableName": "else"}, {"Key": self.key}):
            with pytest.raises(TypeError, match="leave it out"):
                await self.guard.update(self.key, self.fence(1), **options)
        with pytest.raises(TypeError, match="leave it out"):
            await self.guard.put(self.key, self.fence(1), {}, Item={})
        with pytest.raises(TypeError, match="leave it out"):
            await self.guard.transact(self.key, self.fence(1), [], TransactItems=[])
        assert self.item() is None

    async def test_missing_table(self) -> None:
        """The client's own error says so."""
        guard = AsyncDynamoGuard(self.boto, "nowhere", call=AsyncCalls.through)
        with pytest.raises(self.boto.exceptions.ResourceNotFoundException):
            await guard.begin(self.key, self.fence(1))
        with pytest.raises(self.boto.exceptions.ResourceNotFoundException):
            await guard.transact(self.key, self.fence(1), [self.put_of("/a")])
        assert self.item("/a") is None
        assert self.heard == []
