"""Middleware for WSGI: a request does its work inside a guard's transaction, or not at all (S24).

The rules are those of `asgi`; the transaction is in `environ["holdfast.transaction"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..errors import LockError
from ..fencing import Fence
from .http import (
    DOMAIN,
    MODE,
    RESOURCE,
    SAFE_METHODS,
    TOKEN,
    Answer,
    BadRequest,
    RolledBack,
    answer_to,
    read_fence,
    undone_from,
)

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication

Environ = dict[str, Any]
Open = Callable[[str, Fence], AbstractContextManager[Any]]

_HEADERS = {
    name: f"HTTP_{name.upper().replace('-', '_')}" for name in (TOKEN, RESOURCE, DOMAIN, MODE)
}


class FencedWSGI:
    """Lets a request with an old token not reach the application's data.

    `resource(environ)` names what a request is about; a client that names something else is
    refused. `guard(resource, fence)` opens the transaction for one request, as a store guard's
    `transaction` does; what it yields is in `environ["holdfast.transaction"]`. `door=` in place of
    `guard=` only judges and records before the application runs: weaker, because a request that was
    let in may still write when a newer token has come. `fenced(environ)` says which requests need
    a token; by default those with an unsafe method, and those that show one.
    """

    def __init__(
        self,
        app: WSGIApplication,
        *,
        resource: Callable[[Environ], str],
        guard: Open | None = None,
        door: Open | None = None,
        fenced: Callable[[Environ], bool] | None = None,
    ) -> None:
        chosen = door if guard is None else guard
        if chosen is None or (guard is not None and door is not None):
            raise TypeError("FencedWSGI takes either guard= or door=.")
        self._app = app
        self._resource = resource
        self._open = chosen
        self._at_door = guard is None
        self._fenced = fenced or _needs_token

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        if not self._fenced(environ):
            return self._app(environ, start_response)
        method = environ["REQUEST_METHOD"]
        held = _Held(undone_from(method))
        try:
            resource = self._resource(environ)
            reads = method in SAFE_METHODS
            fence = read_fence(_headers(environ), resource, reads=reads)
            with self._open(resource, fence) as transaction:
                if not self._at_door:
                    environ["holdfast.transaction"] = transaction
                    held.run(self._app, environ)
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
                return self._app(environ, start_response)
        start_response(held.status, held.headers)
        return held.body


def _headers(environ: Environ) -> dict[str, list[str]]:
    """Return the headers that matter; a server joins one that stands twice, with a comma."""
    return {name.lower(): [environ[key]] for name, key in _HEADERS.items() if key in environ}


def _needs_token(environ: Environ) -> bool:
    return environ["REQUEST_METHOD"] not in SAFE_METHODS or _HEADERS[TOKEN] in environ


class _Held:
    """A response on its way."""

    def __init__(self, undone_from: int) -> None:
        self._undone_from = undone_from
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.body: list[bytes] = []

    def run(self, app: WSGIApplication, environ: Environ) -> None:
        """Take in the whole response of the application."""
        result = app(environ, self._start)
        try:
            self.body.extend(result)
        finally:
            if hasattr(result, "close"):
                result.close()

    def _start(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        self.status, self.headers = status, headers
        return self.body.append

    @property
    def done(self) -> bool:
        """Whether the request was done."""
        return int(self.status[:3]) < self._undone_from

    def replace(self, answer: Answer) -> None:
        self.status, self.headers, self.body = answer.status_line, answer.headers, [answer.body]
