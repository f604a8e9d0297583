"""The middlewares around the SQL guard: floor, work and answer are one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import httpx
import pytest

from holdfast.aio import guards as aio_guards
from holdfast.guards import Fence, FenceAuth, FencedASGI, FencedWSGI, SQLGuard
from holdfast.guards.asgi import Receive, Scope, Send

DOMAIN, URL = "tests", "http://service/stock"
INSERT = "INSERT INTO sold VALUES (?)"

# Each: the token, the status that the application gives, and what the client is told.
REQUESTS = [
    (7, 200, 200),
    (6, 200, 412),
    (8, 409, 409),
    (7, 200, 200),
    (9, 500, 500),
    (9, 201, 201),
]
SOLD = ["7", "7", "9"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sold (token TEXT)")
    return path


def sold(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [token for (token,) in connection.execute("SELECT token FROM sold")]


def test_asgi(database: Path) -> None:
    """Old tokens are 412; what the application refuses is undone, and its token with it."""

    @asynccontextmanager
    async def transaction(resource: str, fence: Fence) -> AsyncIterator[aiosqlite.Connection]:
        async with aiosqlite.connect(database) as connection:
            async with aio_guards.SQLGuard(connection).transaction(resource, fence):
                yield connection

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        await scope["holdfast"].execute(INSERT, (headers[b"fencing-token"].decode(),))
        status = int((await receive())["body"])
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body"})

    async def run() -> list[int]:
        fenced = FencedASGI(app, resource=lambda scope: scope["path"][1:], guard=transaction)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(fenced)) as client:
            return [
                (
                    await client.post(
                        URL,
                        content=str(status),
                        auth=FenceAuth("stock", Fence(token, DOMAIN)),
                    )
                ).status_code
                for token, status, _ in REQUESTS
            ]

    assert asyncio.run(run()) == [told for *_, told in REQUESTS]
    assert sold(database) == SOLD


def test_wsgi(database: Path) -> None:
    """The same in the blocking colour."""

    @contextmanager
    def transaction(resource: str, fence: Fence) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(database)) as connection:
            with SQLGuard(connection).transaction(resource, fence):
                yield connection

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        connection = environ["holdfast.transaction"]
        connection.execute(INSERT, (environ["HTTP_FENCING_TOKEN"],))
        status = environ["wsgi.input"].read().decode()
        start_response(f"{status} As Asked", [])
        return []

    fenced = FencedWSGI(app, resource=lambda environ: environ["PATH_INFO"][1:], guard=transaction)
    with httpx.Client(transport=httpx.WSGITransport(fenced)) as client:
        told = [
            client.post(
                URL, content=str(status), auth=FenceAuth("stock", Fence(token, DOMAIN))
            ).status_code
            for token, status, _ in REQUESTS
        ]
    assert told == [status for *_, status in REQUESTS]
    assert sold(database) == SOLD
