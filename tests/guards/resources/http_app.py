"""The service of http.py, for uvicorn: a number in a file, fenced below /guarded only."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast._async.guards.file import AsyncFile, AsyncFileGuard
from holdfast.guards import Fence
from holdfast.guards.asgi import FencedASGI, Receive, Scope, Send

COUNTER = Path(os.environ["HOLDFAST_TEST_COUNTER"])

if sys.platform == "linux":  # workers must not outlive a supervisor that was killed
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


async def counter(scope: Scope, receive: Receive, send: Send) -> None:
    """Show the number, or put another in its place."""
    if scope["type"] != "http":
        raise RuntimeError("this service only speaks HTTP")
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    file: AsyncFile | None = scope.get("holdfast")
    if scope["method"] == "GET":
        answer = bare_read() if file is None else file.read() or b""
    else:
        answer = str(os.getpid()).encode()
        if file is None:
            bare_write(body)
        else:
            file.write(body)
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def bare_read() -> bytes:
    return COUNTER.read_bytes()


def bare_write(data: bytes) -> None:
    beside = COUNTER.with_name(f"{COUNTER.name}.{os.getpid()}")
    beside.write_bytes(data)
    os.replace(beside, COUNTER)


def transaction(resource: str, fence: Fence) -> Any:
    """Open the transaction of one request."""
    return AsyncFileGuard(COUNTER).transaction(fence)


def is_guarded(scope: Scope) -> bool:
    return str(scope["path"]).startswith("/guarded")


app = FencedASGI(
    counter, resource=lambda scope: scope["path"], guard=transaction, fenced=is_guarded
)
