"""Counters in DynamoDB: an item with its own fence, and one behind the fence of another table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast._sync.guards.dynamodb import DynamoGuard
from holdfast.guards import Fence
from tests.guards.contest import Resource
from tests.guards.dynamo import FENCES, TABLE, connect, create_table

KEY = {"id": {"S": "counter"}}
PLACE: dict[str, Any] = {"TableName": TABLE, "Key": KEY}


def setting(value: int) -> dict[str, Any]:
    """Return the update that sets the counter."""
    values = {":value": {"N": str(value)}}
    return {"UpdateExpression": "SET amount = :value", "ExpressionAttributeValues": values}


class DynamoItem(Resource):
    """An item that carries its fence: `begin` reads it, a conditional update writes it."""

    table = TABLE

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._client = connect(address)
        self._guard = DynamoGuard(self._client, self.table)

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """Start a server."""
        # Here, because no contender needs it, and it imports a lot.
        from holdfast.testing.servers import DynamoDBServer, dynamodb_program, need

        with DynamoDBServer(need(dynamodb_program)) as server:
            yield server.url

    def create(self) -> None:
        """Set it to 0."""
        for name in (TABLE, FENCES):
            create_table(self._client, name)
        self._client.update_item(**PLACE, **setting(0))

    def value(self) -> int:
        """Return what it says."""
        return self._amount(self._client.get_item(**PLACE, ConsistentRead=True)["Item"])

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """Read, pause, set."""
        value = self.begin(fence) if guarded else self.value()
        pause()
        if guarded:
            self.write(fence, value + 1)
        else:
            self._client.update_item(**PLACE, **setting(value + 1))

    def begin(self, fence: Fence) -> int:
        """Record the token and read."""
        return self._amount(self._guard.begin(KEY, fence) or {})

    def write(self, fence: Fence, value: int) -> None:
        """Write if the token passes."""
        self._guard.update(KEY, fence, **setting(value))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @staticmethod
    def _amount(item: dict[str, Any]) -> int:
        return int(item["amount"]["N"])


class DynamoTransaction(DynamoItem):
    """An item without a fence, written in one transaction with that of another item."""

    table = FENCES

    def begin(self, fence: Fence) -> int:
        """Record the token, then read."""
        self._guard.begin(KEY, fence)
        return self.value()

    def write(self, fence: Fence, value: int) -> None:
        """Write if the token passes at the other item."""
        self._guard.transact(KEY, fence, [{"Update": {**PLACE, **setting(value)}}])
