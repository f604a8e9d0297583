"""Middleware for ASGI: a request does its work inside a guard's transaction, or not at all (S24).

Rule 1: the transaction is entered before the application sees the request, with its fence.
Rule 2: the response is held back until the transaction is committed: nobody hears "done" before.
Rule 3: only a whole response below 400 commits (below 500 if the method is safe: it was read). An
        error, a client that has gone away and a cancelled task roll back.
Rule 4: whatever is not a fenced HTTP request passes untouched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from ..errors import LockError
from ..fencing import Fence
from .http import (
    SAFE_METHODS,
    TOKEN,
    Answer,
    BadRequest,
    RolledBack,
    answer_to,
    read_fence,
    undone_from,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
OpenAsync = Callable[[str, Fence], AbstractAsyncContextManager[Any]]


class FencedASGI:
    """Lets a request with an old token not reach the application's data.

    `resource(scope)` names what a request is about; a client that names something else is refused.
    `guard(resource, fence)` opens the transaction for one request, as a store guard's
    `transaction` does; what it yields is in `scope["holdfast"]`. `door=` in place of `guard=` only
    judges and records before the application runs: weaker, because a request that was let in
    may still write when a newer token has come. `fenced(scope)` says which requests need a
    token; by default those with an unsafe method, and those that show one.
    """

    def __init__(
        self,
        app: Application,
        *,
        resource: Callable[[Scope], str],
        guard: OpenAsync | None = None,
        door: OpenAsync | None = None,
        fenced: Callable[[Scope], bool] | None = None,
    ) -> None:
        chosen = door if guard is None else guard
        if chosen is None or (guard is not None and door is not None):
            raise TypeError("FencedASGI takes either guard= or door=.")
        self._app = app
        self._resource = resource
        self._open = chosen
        self._at_door = guard is None
        self._fenced = fenced or _needs_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not self._fenced(scope):
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        held = _Held(receive, undone_from(method))
        try:
            resource = self._resource(scope)
            reads = method in SAFE_METHODS
            fence = read_fence(_headers(scope), resource, reads=reads)
            async with self._open(resource, fence) as transaction:
                if not self._at_door:
                    await self._app(_inside(scope, transaction), held.receive, held.send)
                    if not held.done:
                        raise RolledBack
        except RolledBack:
            pass
        except BadRequest as error:
            held.replace(error.answer)
        except LockError as error:
            held.replace(answer_to(error))
        else:
            if self._at_door:
                await self._app(scope, receive, send)
                return
        await held.release(send)


def _headers(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def _needs_token(scope: Scope) -> bool:
    return scope["method"] not in SAFE_METHODS or TOKEN.lower() in _headers(scope)


def _inside(scope: Scope, transaction: Any) -> Scope:
    """Return the scope for an application whose response is held back: in plain messages."""
    extensions = {
        name: value
        for name, value in (scope.get("extensions") or {}).items()
        if not name.startswith("http.response")
    }
    return {**scope, "extensions": extensions, "holdfast": transaction}


class _Held:
    """A response on its way: all its messages, and whether the client is still there."""

    def __init__(self, receive: Receive, undone_from: int) -> None:
        self._receive = receive
        self._undone_from = undone_from
        self._messages: list[Message] = []
        self._left = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._left = self._left or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        self._messages.append(message)

    @property
    def _whole(self) -> bool:
        """Whether all of it is here; of half a response a client would believe the status."""
        return len(self._messages) > 1 and not self._messages[-1].get("more_body", False)

    @property
    def done(self) -> bool:
        """Whether the request was done: a whole response that says so, and somebody to hear it."""
        return self._whole and not self._left and self._messages[0]["status"] < self._undone_from

    def replace(self, answer: Answer) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
        self._messages = [
            {"type": "http.response.start", "status": answer.status, "headers": headers},
            {"type": "http.response.body", "body": answer.body},
        ]

    async def release(self, send: Send) -> None:
        if self._whole and not self._left:
            for message in self._messages:
                await send(message)
