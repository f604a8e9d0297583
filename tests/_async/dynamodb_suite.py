"""What tests of the DynamoDB engine stand on: a look at raw items, and answers that are faulty."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]
from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]

import holdfast.aio as holdfast
from holdfast.names import encode, record_key
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.dynamodb_harness import TABLE, DynamoDBHarness
from holdfast.testing.servers import DynamoDBServer, Proxy
from tests.guards.dynamo import connect

UPDATE = b"DynamoDB_20120810.UpdateItem"


class AsyncDynamoDBSuite(AsyncBase):
    """A test, its clients, and the server behind its proxy."""

    harness: ClassVar[DynamoDBHarness]
    raw: Any  # a client of boto3 that goes around the proxy

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and heal whatever it did to the network."""
        self.raw = connect(self.server.url)
        try:
            await super().conduct(test, **arguments)
        finally:
            self.harness.heal()
            self.raw.close()

    @property
    def server(self) -> DynamoDBServer:
        """The server itself."""
        return self.harness.server

    @property
    def proxy(self) -> Proxy:
        """What stands between it and the clients."""
        return self.harness.proxy

    def place(self, name: str) -> dict[str, Any]:
        """Return where the item of a name is, as arguments of boto3."""
        space, _, own = record_key(self.namespace, encode(name)).rpartition("/")
        return {"TableName": TABLE, "Key": {"space": {"S": space}, "name": {"S": own}}}

    def item(self, name: str) -> dict[str, Any]:
        """Return an item as the server has it, {} if there is none."""
        found = self.raw.get_item(**self.place(name), ConsistentRead=True)
        return dict(found.get("Item", {}))

    def holders(self, name: str) -> list[str]:
        """Return the owners that hold a name."""
        return list(self.item(name).get("h", {}).get("M", {}))

    def waiters(self, name: str) -> list[str]:
        """Return the owners that wait for it."""
        return [entry["M"]["o"]["S"] for entry in self.item(name).get("q", {}).get("L", [])]

    def floor(self) -> int:
        """Return the shared floor of the namespace."""
        place = {**self.place("x")["Key"], "name": {"S": "."}}
        found = self.raw.get_item(TableName=TABLE, Key=place, ConsistentRead=True)
        return int(found.get("Item", {}).get("f", {"N": "0"})["N"])

    def set_floor(self, floor: int) -> None:
        """Set it, as somebody does who folds names away."""
        space = self.place("x")["Key"]["space"]
        item = {"space": space, "name": {"S": "."}, "f": {"N": str(floor)}}
        self.raw.put_item(TableName=TABLE, Item=item)

    async def cycle(self, client: holdfast.Client, name: str = "x") -> int:
        """Acquire and release once; return the token."""
        lease = await self.take(client.lock(name))
        assert lease.held
        assert await lease.release() is True
        return lease.token

    async def until_free(self, name: str = "x") -> None:
        """Return when the server says that nobody holds or waits, asked without our link."""

        async def free() -> bool:
            return not self.holders(name) and not self.waiters(name)

        await self.until(free)

    def deliver(self, request: Any) -> int:
        """Send a request that was kept to the server; return the status of its answer."""
        return deliver(request)[0]

    def intrude(self, client: holdfast.Client) -> Intruder:
        """Stand between a client and the network, inside of botocore."""
        return Intruder(client)


class Intruder:
    """Counts the requests of one client, and answers some of them itself."""

    def __init__(self, client: holdfast.Client) -> None:
        self.counts: Counter[str] = Counter()
        self.kept: list[Any] = []  # requests that are still on their way
        self._faults: dict[str, list[Callable[[Any], Any]]] = {}
        client.engine.table.forget_chance = 0.0  # type: ignore[attr-defined]  # one in 1,000 releases
        botocore: Any = client.engine.link._caller._connect()  # type: ignore[attr-defined]
        botocore.meta.events.register("before-send.dynamodb", self._before)

    def _before(self, request: Any, event_name: str, **_: Any) -> Any:
        operation = event_name.rpartition(".")[2]
        self.counts[operation] += 1
        faults = self._faults.get(operation)
        return faults.pop(0)(request) if faults else None

    def refuse(self, operation: str, code: str, status: int = 400, times: int = 1) -> None:
        """Answer the next requests with an error, and do nothing."""
        self._add(operation, times, lambda request: _answer(request, status, code))

    def fail(self, operation: str) -> None:
        """Do what the next request says, and answer that the server has failed."""

        def fault(request: Any) -> Any:
            deliver(request)
            return _answer(request, 500, "InternalServerError")

        self._add(operation, 1, fault)

    def lose(self, operation: str) -> None:
        """Do what the next request says; its answer does not come."""

        def fault(request: Any) -> Any:
            deliver(request)
            raise ReadTimeoutError(endpoint_url=request.url)

        self._add(operation, 1, fault)

    def keep(self, operation: str) -> None:
        """Let the next request be on its way until `deliver`; its client does not wait for it."""

        def fault(request: Any) -> Any:
            self.kept.append(request)
            raise ReadTimeoutError(endpoint_url=request.url)

        self._add(operation, 1, fault)

    def let_pass(self, operation: str) -> None:
        """Do nothing to the next request."""
        self._add(operation, 1, lambda request: None)

    def _add(self, operation: str, times: int, fault: Callable[[Any], Any]) -> None:
        self._faults.setdefault(operation, []).extend([fault] * times)

    @property
    def total(self) -> int:
        """How many requests there were."""
        return sum(self.counts.values())


def deliver(request: Any) -> tuple[int, dict[str, Any]]:
    """Send a prepared request to the server; return status and answer."""
    host = request.url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        headers = {name: _text(value) for name, value in request.headers.items()}
        connection.request("POST", "/", request.body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    finally:
        connection.close()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _answer(request: Any, status: int, code: str) -> Any:
    kind = f"com.amazonaws.dynamodb.v20120810#{code}"
    body = json.dumps({"__type": kind, "message": "on purpose"})
    return AWSResponse(request.url, status, {}, _Raw(body.encode()))


class _Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> list[bytes]:
        """Return all of it."""
        return [self._body]
