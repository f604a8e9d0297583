"""Fencing over HTTP (S24): the headers of a request, the answers of a service, the client's side.

Rule 1: a request shows its token, its domain and its mode in headers; names are percent-encoded.
Rule 2: what a client names is compared with what the service says the request is about.
Rule 3: 412 the token is old or of another domain; 428 there is none; 400 it cannot be read; 409
        another is at work; 503 nobody knows. Each with one sentence, as application/problem+json.
Rule 4: numbers in an answer are strings: above 2**53 many readers would round them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from ..errors import DomainMismatch, InProgress, LockError, OutcomeUnknown, StaleToken
from ..fencing import WORDS, Fence, check_domain, check_resource, fence_of, read_mode, read_token
from ..model import Mode

TOKEN, RESOURCE, DOMAIN, MODE = (
    "Fencing-Token",
    "Fencing-Resource",
    "Fencing-Domain",
    "Fencing-Mode",
)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
PROBLEM = "application/problem+json"

_PLAIN = "/:@!$&'()*+;="  # beside letters and digits; a comma would look like a second header
_STATUS: Mapping[type[LockError], int] = {
    StaleToken: 412,
    DomainMismatch: 412,
    InProgress: 409,
    OutcomeUnknown: 503,
}


# --- The service's side. ---


class Answer(NamedTuple):
    """What a service says instead of doing the work."""

    status: int
    body: bytes

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Its headers."""
        return [("Content-Type", PROBLEM), ("Content-Length", str(len(self.body)))]

    @property
    def status_line(self) -> str:
        """Its status in words."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"


class BadRequest(Exception):
    """The request cannot be judged; `answer` says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.answer = _answer(status, sentence)


class RolledBack(Exception):
    """Thrown into a transaction whose request was not done, to undo it."""


def undone_from(method: str) -> int:
    """Return the status from which on the work of a request is undone.

    A safe method has nothing to undo, and "there is none" (404) is something that was read: the
    token that read it stays recorded.
    """
    return 500 if method in SAFE_METHODS else 400


def answer_to(error: LockError) -> Answer:
    """Return what to tell a client; what is no client's business is raised again."""
    status = _STATUS.get(type(error))
    if status is None:
        raise error
    members = {"error": type(error).__name__, "resource": error.name}
    if isinstance(error, StaleToken):
        members |= {"seen": str(error.seen), "offered": str(error.offered)}
    return _answer(status, str(error), **members)


def _answer(status: int, sentence: str, **members: str | None) -> Answer:
    about = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    return Answer(status, json.dumps({**about, "detail": sentence, **members}).encode())


def read_fence(headers: Mapping[str, Sequence[str]], resource: str, *, reads: bool) -> Fence:
    """Return the fence that a request shows for a resource; BadRequest if it shows none.

    `headers` has the values of each header under its name in small letters; `reads` says that the
    request only reads, which is all that a shared fence may do.
    """
    token, domain = _value(headers, TOKEN), _value(headers, DOMAIN)
    if token is None or domain is None:
        raise BadRequest(
            428,
            f"A request to {resource!r} needs the headers {TOKEN} and {DOMAIN}, from the lease of "
            "its lock: nothing was done.",
        )
    named, mode = _value(headers, RESOURCE), _value(headers, MODE)
    try:
        check_resource(resource)
        if named is not None and _decode(named) != resource:
            raise ValueError(
                f"This request is about {resource!r}, but its {RESOURCE} is {named[:300]!r}: "
                "nothing was done."
            )
        fence = Fence(
            read_token(token),
            check_domain(_decode(domain)),
            Mode.EXCLUSIVE if mode is None else read_mode(mode),
        )
    except ValueError as error:
        raise BadRequest(400, str(error)) from None
    if fence.mode is Mode.SHARED and not reads:
        raise BadRequest(
            400,
            f"A shared lease may only read {resource!r}: take the lock exclusively to write.",
        )
    return fence


def _value(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = headers.get(name.lower(), ())
    if len(values) > 1:
        raise BadRequest(400, f"The header {name} stands {len(values)} times in the request.")
    return values[0].strip() if values else None


def _decode(text: str) -> str:
    try:
        if "," in text or not text.isascii():
            raise ValueError
        return unquote(text, errors="strict")
    except ValueError:
        raise ValueError(
            f"A header names one thing, percent-encoded in UTF-8, not {text[:40]!r}."
        ) from None


# --- The client's side. ---


def fence_headers(resource: str, lease: Any) -> dict[str, str]:
    """Return the headers that show a lease, or a Fence, to a service; any client can send them."""
    fence = fence_of(lease)
    return {
        TOKEN: str(fence.token),
        RESOURCE: quote(check_resource(resource), safe=_PLAIN),
        DOMAIN: quote(fence.domain, safe=_PLAIN),
        MODE: WORDS[fence.mode],
    }


class FenceAuth:
    """Shows a lease to a service with every request: `auth=` of httpx (both colours) and requests.

    Where `auth` is taken, send `headers=fence_headers(resource, lease)` instead.
    """

    def __init__(self, resource: str, lease: Any) -> None:
        self._headers = fence_headers(resource, lease)

    def __call__(self, request: Any) -> Any:
        """Add the headers to a request of either library."""
        request.headers.update(self._headers)
        return request


Response = TypeVar("Response")

_ERRORS: Mapping[tuple[int, str], Callable[..., LockError]] = {
    (status, kind.__name__): kind for kind, status in _STATUS.items()
}


def raise_for_fence(response: Response) -> Response:
    """Raise what the service's guard has said, as if it stood here; else return the response.

    For responses of httpx (read, not streamed) and requests. Raises StaleToken, DomainMismatch,
    InProgress or OutcomeUnknown; other errors are left to `raise_for_status`.
    """
    answer: Any = response
    if not answer.headers.get("Content-Type", "").startswith(PROBLEM):
        return response
    try:
        problem = answer.json()
        kind = _ERRORS[answer.status_code, problem["error"]]
        more: dict[str, Any] = {"name": problem["resource"]}
        if kind in (StaleToken, DomainMismatch):
            numbers = {name: int(problem[name]) for name in ("seen", "offered")}
            more = {"resource": problem["resource"], **numbers}
    except (ValueError, KeyError, TypeError):
        return response  # a problem, but none that a guard has told
    raise kind(problem["detail"], **more)
