"""Which clients the DynamoDB guard takes, and what becomes of replies that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    HTTPClientError,
)

from holdfast._async.guards.dynamodb import AsyncDynamoGuard
from holdfast._sync.guards.dynamodb import DynamoGuard
from holdfast.errors import InProgress, StaleToken
from holdfast.events import Event
from holdfast.fencing import Fence
from holdfast.testing.servers import Proxy
from tests.guards.dynamo import FENCES, TABLE, connect
from tests.guards.dynamo_harness import DynamoHarness

pytestmark = pytest.mark.slow

HARNESS = DynamoHarness()
KEY = {"id": {"S": "sum"}}
ADD = {
    "TableName": TABLE,
    "Key": KEY,
    "UpdateExpression": "ADD n :one",
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}


def fence(token: int) -> Fence:
    return Fence(token, "test:locks")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """DynamoDB Local; gives its URL."""
    HARNESS.start()
    yield HARNESS.server.url
    HARNESS.stop()


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    """What stands between the server and `repeating`."""
    with Proxy(HARNESS.server.port) as running:
        yield running


@pytest.fixture
def repeating(proxy: Proxy) -> Iterator[Any]:
    """A client that repeats what had no answer, as boto3 does by default."""
    client = connect(f"http://127.0.0.1:{proxy.port}", attempts=3)
    yield client
    client.close()


def total(key: dict[str, Any] = KEY) -> int:
    item = HARNESS.connection.get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item")
    return int(item["n"]["N"]) if item else 0


class Awaitable:
    """A client whose methods are coroutines, as those of aiobotocore are."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def update_item(self, **arguments: Any) -> Any:
        return await asyncio.to_thread(self._client.update_item, **arguments)


def test_clients_that_no_guard_can_call(server: str) -> None:
    """The other colour, no table, something else: each is told in a sentence, in time."""
    with pytest.raises(TypeError, match=r"holdfast\.aio\.guards"):
        DynamoGuard(Awaitable(HARNESS.connection), TABLE)
    with pytest.raises(TypeError, match=r"call=asyncio\.to_thread"):
        AsyncDynamoGuard(HARNESS.connection, TABLE)
    with pytest.raises(TypeError, match="a client and a table's name, or a boto3 Table"):
        DynamoGuard(HARNESS.connection)
    with pytest.raises(TypeError, match="takes a client of boto3, not str"):
        DynamoGuard("http://localhost:8000", TABLE)


def test_awaitable_client(server: str) -> None:
    """A client that is awaitable itself needs nothing else."""
    guard = AsyncDynamoGuard(Awaitable(HARNESS.connection), TABLE)
    key = {"id": {"S": "awaitable"}}

    async def main() -> None:
        assert await guard.begin(key, fence(2)) is None
        with pytest.raises(StaleToken):
            await guard.begin(key, fence(1))

    asyncio.run(main())


def test_lost_reply_to_a_transaction(proxy: Proxy, repeating: Any) -> None:
    """boto3 repeats it under the same request token: it is done once, and counts as accepted."""
    before = total()
    heard: list[Event] = []
    guard = DynamoGuard(repeating, FENCES)
    guard.listen(heard.append)
    guard.begin(KEY, fence(1))
    lost = proxy.drop_next_reply(b"TransactWriteItems")
    guard.transact(KEY, fence(1), [{"Update": ADD}])
    assert lost.is_set()
    assert total() == before + 1
    assert len(heard) == 2


def test_lost_reply_to_an_update(proxy: Proxy, repeating: Any) -> None:
    """boto3 repeats it, and equal tokens pass: what adds is added twice, as the page says."""
    guard = DynamoGuard(repeating, TABLE)
    key = {"id": {"S": "twice"}}
    guard.begin(key, fence(1))
    lost = proxy.drop_next_reply(b"UpdateItem")
    change = {name: ADD[name] for name in ("UpdateExpression", "ExpressionAttributeValues")}
    guard.update(key, fence(1), **change)
    assert lost.is_set()
    assert total(key) == 2


def test_lost_reply_without_repetition(proxy: Proxy, server: str) -> None:
    """The client's own error, no event; the same holder may look and go on."""
    client = connect(f"http://127.0.0.1:{proxy.port}")
    heard: list[Event] = []
    guard = DynamoGuard(client, TABLE)
    guard.listen(heard.append)
    key = {"id": {"S": "unknown"}}
    proxy.drop_next_reply(b"PutItem")
    with pytest.raises(HTTPClientError):
        guard.put(key, fence(1), {"n": {"N": "5"}})
    assert heard == []
    assert guard.begin(key, fence(1)) == {**key, "n": {"N": "5"}}
    client.close()


def test_lost_reply_to_once(proxy: Proxy, repeating: Any) -> None:
    """The writes are done once, and asking again gives the result."""
    before = total()
    guard = DynamoGuard(repeating, FENCES)
    lost = proxy.drop_next_reply(b"TransactWriteItems")

    def work() -> tuple[list[Any], int]:
        results.append(len(results))
        return [{"Update": ADD}], results[-1]

    results: list[int] = []
    for _ in range(2):
        assert guard.once({"id": {"S": "payment"}}, work) == 0
    assert lost.is_set()
    assert total() == before + 1


def test_two_at_the_same_time_are_told(server: str) -> None:
    """Where DynamoDB sees two transactions at one key, the one it stops is told to ask again."""

    class Conflict:
        def __getattr__(self, name: str) -> Any:
            return getattr(HARNESS.connection, name)

        def transact_write_items(self, **_: Any) -> None:
            answer: Any = {
                "Error": {"Code": "TransactionCanceledException", "Message": "conflict"},
                "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}],
            }
            raise ClientError(answer, "TransactWriteItems")

    guard = DynamoGuard(Conflict(), FENCES)
    with pytest.raises(InProgress, match=r"'fences/both' right now: ask again"):
        guard.once({"id": {"S": "both"}}, lambda: ([], 1))
    with pytest.raises(ClientError, match="conflict"):
        guard.transact({"id": {"S": "both"}}, fence(1), [])
