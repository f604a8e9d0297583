"""Locks on DynamoDB."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from importlib import import_module
from typing import Any

from ..contestant import Contestant
from ..handle import PATIENCE, Handle

TABLE = "python-dynamodb-lock"


def boto_settings(address: str) -> dict[str, Any]:
    """Return what boto3 needs to reach a server on this machine, without asking twice."""
    return {
        "endpoint_url": f"http://{address}",
        "region_name": "local",
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
        "config": import_module("botocore.config").Config(
            retries={"total_max_attempts": 1}, max_pool_connections=100
        ),
    }


def boto_client(stack: ExitStack, address: str) -> Any:
    """Return a client of boto3, closed with the stack."""
    client = import_module("boto3").client("dynamodb", **boto_settings(address))
    stack.callback(client.close)
    return client


class PythonDynamoDBLock(Contestant):
    """python-dynamodb-lock, after Amazon's client for Java: it looks at the table now and then."""

    name = "python-dynamodb-lock"
    package = "python-dynamodb-lock"
    lacks = "no token, no queue"

    def open(self) -> None:
        """Make the table, if it is not there, and a client with its threads."""
        address = self.place.addresses[0]
        boto = boto_client(self.stack, address)
        kind = import_module("python_dynamodb_lock.python_dynamodb_lock").DynamoDBLockClient
        try:
            kind.create_dynamodb_table(boto, table_name=TABLE)
        except boto.exceptions.ResourceInUseException:
            pass  # another process was quicker
        resource = import_module("boto3").resource("dynamodb", **boto_settings(address))
        self.stack.callback(resource.meta.client.close)
        self._client = kind(
            resource,
            table_name=TABLE,
            lease_duration=timedelta(seconds=self.ttl),
            heartbeat_period=timedelta(seconds=self.ttl / 6),
            safe_period=timedelta(seconds=self.ttl * 2 / 3),
        )

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        held: list[Any] = []
        patience = timedelta(seconds=PATIENCE)
        often = timedelta(seconds=0.1)

        def acquire() -> None:
            got = self._client.acquire_lock(key, retry_period=often, retry_timeout=patience)
            held.append(got)

        return Handle(acquire, lambda: held.pop().release(best_effort=False))
