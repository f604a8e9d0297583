"""The headers of a fenced request, and the answers of a guard as a client hears them (S24)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import requests

import holdfast
from holdfast.errors import DomainMismatch, InProgress, OutcomeUnknown, StaleToken
from holdfast.fencing import MOST, Fence
from holdfast.guards.http import (
    BadRequest,
    FenceAuth,
    answer_to,
    fence_headers,
    raise_for_fence,
    read_fence,
)
from holdfast.model import Mode
from tests.guards.fences import BAD_FENCES

NAME = "orders/1"
GOOD = {"fencing-token": ["7"], "fencing-domain": ["redis:shop"]}


def given(headers: dict[str, str]) -> dict[str, list[str]]:
    """Return headers as a server hands them over."""
    return {name.lower(): [value] for name, value in headers.items()}


def problem(error: BadRequest) -> dict[str, Any]:
    """Return what the client is told."""
    read: dict[str, Any] = json.loads(error.answer.body)
    assert read["status"] == error.answer.status
    assert dict(error.answer.headers)["Content-Type"] == "application/problem+json"
    return read


@pytest.mark.parametrize("name", [NAME, "größe/☃", "a,b", "50%", "a b;c=d", "x" * 255])
@pytest.mark.parametrize("mode", list(Mode))
def test_what_a_client_sends_is_what_a_service_reads(name: str, mode: Mode) -> None:
    """Names with any character and the largest token arrive as they were."""
    fence = Fence(MOST, name, mode)
    headers = fence_headers(name, fence)
    assert all(value.isascii() and "," not in value for value in headers.values())
    assert read_fence(given(headers), name, reads=True) == fence


def test_what_stands_in_the_headers() -> None:
    """They are what the documents say; a lease does as well as a fence."""
    assert fence_headers(NAME, Fence(7, "redis:shop", Mode.SHARED)) == {
        "Fencing-Token": "7",
        "Fencing-Resource": "orders/1",
        "Fencing-Domain": "redis:shop",
        "Fencing-Mode": "shared",
    }
    with holdfast.connect("memory://headers") as client, client.lock("x") as lease:
        headers = fence_headers(NAME, lease)
        assert headers["Fencing-Token"] == str(lease.token)
        assert headers["Fencing-Domain"] == lease.domain
        assert headers["Fencing-Mode"] == "exclusive"


@pytest.mark.parametrize(("shown", "kind", "words"), BAD_FENCES)
def test_a_client_cannot_send_what_is_no_fence(
    shown: Any, kind: type[Exception], words: str
) -> None:
    """It is refused where it is made, not by the service."""
    with pytest.raises(kind, match=words):
        fence_headers(NAME, shown)


def test_resource_and_mode_may_be_left_out() -> None:
    """The service knows the resource, and exclusive is what most want."""
    assert read_fence(GOOD, NAME, reads=False) == Fence(7, "redis:shop")


@pytest.mark.parametrize("missing", ["fencing-token", "fencing-domain"])
def test_missing_header(missing: str) -> None:
    """Without a token, or without knowing where it comes from, nothing can be judged: 428."""
    headers = {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(BadRequest) as caught:
        read_fence(headers, NAME, reads=False)
    told = problem(caught.value)
    assert told["status"] == 428
    assert told["title"] == "Precondition Required"
    assert "needs the headers Fencing-Token and Fencing-Domain" in told["detail"]


MALFORMED: dict[str, tuple[dict[str, list[str]], str]] = {
    "negative": ({"fencing-token": ["-7"]}, "positive decimal number, not '-7'"),
    "zero": ({"fencing-token": ["0"]}, "positive number"),
    "too large": ({"fencing-token": [str(2**63)]}, "below 2**63"),
    "much too large": ({"fencing-token": ["9" * 5000]}, "positive decimal number"),
    "float": ({"fencing-token": ["7.0"]}, "not '7.0'"),
    "exponent": ({"fencing-token": ["7e3"]}, "not '7e3'"),
    "signed": ({"fencing-token": ["+7"]}, "not '+7'"),
    "underscore": ({"fencing-token": ["7_0"]}, "not '7_0'"),
    "other digits": ({"fencing-token": ["٧"]}, "positive decimal number"),
    "word": ({"fencing-token": ["seven"]}, "not 'seven'"),
    "empty": ({"fencing-token": [""]}, "not ''"),
    "joined": ({"fencing-token": ["7, 8"]}, "not '7, 8'"),
    "twice": ({"fencing-token": ["7", "7"]}, "Fencing-Token stands 2 times"),
    "domain twice": ({"fencing-domain": ["a", "b"]}, "Fencing-Domain stands 2 times"),
    "domain joined": ({"fencing-domain": ["a, b"]}, "one thing, percent-encoded"),
    "domain empty": ({"fencing-domain": [""]}, "A domain is 1 to 255"),
    "domain line": ({"fencing-domain": ["a%0Ab"]}, "A domain is 1 to 255"),
    "domain bytes": ({"fencing-domain": ["a%FFb"]}, "percent-encoded in UTF-8"),
    "domain raw": ({"fencing-domain": ["gr\xf6\xdfe"]}, "percent-encoded in UTF-8"),
    "resource": ({"fencing-resource": ["orders/2"]}, "'orders/1', but its Fencing-Resource is"),
    "mode": ({"fencing-mode": ["greedy"]}, "exclusive or shared, not 'greedy'"),
    "shared": ({"fencing-mode": ["shared"]}, "A shared lease may only read 'orders/1'"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_header(case: str) -> None:
    """What cannot be read, or is about something else, is 400 with one sentence."""
    headers, words = MALFORMED[case]
    with pytest.raises(BadRequest) as caught:
        read_fence({**GOOD, **headers}, NAME, reads=False)
    told = problem(caught.value)
    assert told["status"] == 400
    assert words in told["detail"]


# --- What a client makes of the answer. ---

ERRORS = [
    StaleToken("Too old.", resource=NAME, seen=MOST, offered=MOST - 1),
    DomainMismatch("From elsewhere.", resource=NAME, seen=8, offered=7),
    InProgress("Busy.", name=NAME),
    OutcomeUnknown("Who knows.", name=NAME),
]


def as_httpx(status: int, body: bytes, kind: str) -> Any:
    return httpx.Response(status, content=body, headers={"Content-Type": kind})


def as_requests(status: int, body: bytes, kind: str) -> Any:
    response = requests.Response()
    response.status_code, response._content = status, body
    response.headers["Content-Type"] = kind
    return response


libraries = pytest.mark.parametrize("make", [as_httpx, as_requests])


@libraries
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_travel(make: Any, error: holdfast.LockError) -> None:
    """What a guard raises in the service is raised at the client, with the same numbers."""
    answer = answer_to(error)
    with pytest.raises(type(error)) as caught:
        raise_for_fence(make(answer.status, answer.body, dict(answer.headers)["Content-Type"]))
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)


@libraries
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"{}", "application/json"),
        (412, b"no", "text/html"),
        (412, b'{"title": "of another service"}', "application/problem+json"),
        (412, b'["StaleToken"]', "application/problem+json"),
        (412, b'{"error": "StaleToken", "resource": "x"}', "application/problem+json"),
        (412, b"{", "application/problem+json"),
        (200, b'{"error": "InProgress", "resource": "x"}', "application/problem+json"),
    ],
)
def test_other_answers_are_left_alone(make: Any, status: int, body: bytes, kind: str) -> None:
    """What no guard has said is not our business."""
    response = make(status, body, kind)
    assert raise_for_fence(response) is response


def test_other_errors_are_no_clients_business() -> None:
    """An error without an answer stays an error of the service."""
    error = holdfast.EngineUnavailable("Gone.")
    with pytest.raises(holdfast.EngineUnavailable) as caught:
        answer_to(error)
    assert caught.value is error


def test_auth_adds_headers_to_requests_of_both_libraries() -> None:
    """The same object is `auth=` of httpx and of requests, and leaves other headers alone."""
    auth = FenceAuth(NAME, Fence(7, "redis:shop"))
    prepared = requests.Request(
        "POST", "http://localhost/", headers={"X-Mine": "1"}, auth=auth
    ).prepare()
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        client.post("http://localhost/", headers={"X-Mine": "1"}, auth=auth)
    for headers in (prepared.headers, sent[0].headers):
        assert headers["X-Mine"] == "1"
        assert headers["Fencing-Token"] == "7"
        assert headers["Fencing-Domain"] == "redis:shop"
