"""DynamoDB Local for a suite of tests in both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

from holdfast.testing.harness import MemoryHarness
from holdfast.testing.servers import DynamoDBServer, dynamodb_program, need
from tests.guards.dynamo import FENCES, TABLE, connect, create_table


@cache
def running_server() -> DynamoDBServer:
    """Return a server with two empty tables, one for all suites: it takes seconds to start.

    It is stopped when this process ends.
    """
    server = DynamoDBServer(need(dynamodb_program)).start()
    client = connect(server.url)
    for name in (TABLE, FENCES):
        create_table(client, name)
    client.close()
    return server


class DynamoHarness(MemoryHarness):
    """Locks in memory, and a client of the server."""

    def start(self) -> None:
        """Connect."""
        super().start()
        self.server = running_server()
        self.connection = connect(self.server.url)

    def stop(self) -> None:
        """Disconnect."""
        self.connection.close()
        super().stop()


class AsyncCalls:
    """How a coroutine calls a client that blocks."""

    @staticmethod
    async def through(function: Callable[..., Any], **arguments: Any) -> Any:
        """Call it in a thread."""
        return await asyncio.to_thread(function, **arguments)


class Calls:
    """How anybody else does."""

    @staticmethod
    def through(function: Callable[..., Any], **arguments: Any) -> Any:
        """Call it."""
        return function(**arguments)
