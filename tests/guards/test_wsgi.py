"""FencedWSGI under a real server: the rules of `test_asgi`, in the blocking colour (S24)."""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.validate import validator

import pytest
import requests

from holdfast.errors import DomainMismatch, InProgress, StaleToken
from holdfast.guards import (
    Fence,
    FenceAuth,
    FencedWSGI,
    FileGuard,
    fence_headers,
    raise_for_fence,
)
from holdfast.model import Mode

DOMAIN = "tests"
NAME = "report"
TIMEOUT = 60.0


class Service:
    """Keeps one file; what it does beside that can be set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.status = "200 OK"
        self.then: Callable[[], object] = lambda: None
        self.ran = 0
        self.closed = 0
        self.guard = FileGuard(path)

    def transaction(self, resource: str, fence: Fence) -> Any:
        return self.guard.transaction(fence)

    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.ran += 1
        file = environ.get("holdfast.transaction")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if file is not None and environ["REQUEST_METHOD"] == "PUT":
            file.write(body)
        self.then()
        write = start_response(self.status, [("Content-Type", "text/plain")])
        write(b"do")
        return Body(self)


class Body:
    """The rest of a response, which must be closed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __iter__(self) -> Iterator[bytes]:
        yield b"ne"

    def close(self) -> None:
        self._service.closed += 1


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, *_: Any) -> None:
        pass

    def get_stderr(self) -> Any:
        return io.StringIO()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free port of the loopback interface."""
    with make_server("127.0.0.1", 0, app, WSGIServer, Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{NAME}"
        finally:
            server.shutdown()
            thread.join(30)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path / "report")


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    guard = service.transaction
    with serving(FencedWSGI(service, resource=name_of, guard=guard)) as address:
        yield address


def name_of(environ: dict[str, Any]) -> str:
    return str(environ["PATH_INFO"])[1:]


def ask(url: str, method: str = "PUT", token: int | None = 7, **options: Any) -> Any:
    """Send one request and return the answer."""
    if token is not None:
        options["auth"] = FenceAuth(NAME, Fence(token, DOMAIN))
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, timeout=TIMEOUT, **options)


def test_a_new_token_writes_and_an_old_one_is_told(service: Service, url: str) -> None:
    """200 once it is stored; 412 with both tokens, and the application does not even run."""
    assert ask(url, token=7, data=b"new").text == "done"
    assert service.content() == b"new"
    answer = ask(url, token=6, data=b"old")
    assert answer.status_code == 412
    assert answer.headers["Content-Type"] == "application/problem+json"
    with pytest.raises(StaleToken) as caught:
        raise_for_fence(answer)
    assert (caught.value.seen, caught.value.offered) == (7, 6)
    assert (service.ran, service.closed) == (1, 1)
    assert service.content() == b"new"


def test_a_request_that_was_overtaken_is_told_when_it_commits(service: Service, url: str) -> None:
    """A newer token that comes while the application is at work turns its 200 into 412."""

    def overtaken() -> None:
        with FileGuard(service.path).transaction(Fence(8, DOMAIN)) as file:
            file.write(b"new")

    service.then = overtaken
    answer = ask(url, token=7, data=b"old")
    assert answer.status_code == 412
    assert service.content() == b"new"


def test_another_domain_is_412(service: Service, url: str) -> None:
    """Tokens that cannot be compared are refused."""
    ask(url, token=7, data=b"new")
    answer = ask(url, token=None, data=b"old", headers=fence_headers(NAME, Fence(9, "elsewhere")))
    assert answer.status_code == 412
    with pytest.raises(DomainMismatch, match=r"'tests'.*'elsewhere'"):
        raise_for_fence(answer)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 428),
        ({"Fencing-Token": "7"}, 428),
        ({"Fencing-Token": "7.0", "Fencing-Domain": DOMAIN}, 400),
        (fence_headers("another", Fence(7, DOMAIN)), 400),
        (fence_headers(NAME, Fence(7, DOMAIN, Mode.SHARED)), 400),
    ],
)
def test_bad_requests(service: Service, url: str, headers: dict[str, str], status: int) -> None:
    """Missing is 428, unreadable and about something else is 400: the application does not run."""
    answer = ask(url, token=None, headers=headers, data=b"bad")
    assert answer.status_code == answer.json()["status"] == status
    assert service.ran == 0
    assert service.content() is None


def test_a_header_that_stands_twice(service: Service, url: str) -> None:
    """The server joins them with a comma, and that is no token."""
    address = url.split("/")[2]
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT)
    try:
        connection.putrequest("PUT", f"/{NAME}")
        for name, value in (("Token", "7"), ("Token", "8"), ("Domain", DOMAIN)):
            connection.putheader(f"Fencing-{name}", value)
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        assert connection.getresponse().status == 400
    finally:
        connection.close()
    assert service.ran == 0


def test_safe_methods(service: Service, url: str) -> None:
    """They need no token; one that is shown is judged and recorded, shared ones too."""
    assert ask(url, "GET", token=None).status_code == 200
    reading = fence_headers(NAME, Fence(9, DOMAIN, Mode.SHARED))
    assert ask(url, "GET", token=None, headers=reading).status_code == 200
    assert ask(url, "PUT", token=8, data=b"old").status_code == 412
    assert service.content() is None


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error"])
def test_a_response_that_says_no_rolls_back(service: Service, url: str, status: str) -> None:
    """From 400 on the request was not done: the response goes out, the work does not stay."""
    service.status = status
    answer = ask(url, data=b"half")
    assert (f"{answer.status_code} {answer.reason}", answer.text) == (status, "done")
    assert service.content() is None


def test_an_error_of_the_application_rolls_back(service: Service, url: str) -> None:
    """The server says 500, and the work does not stay."""

    def fail() -> None:
        raise KeyError("mine")

    service.then = fail
    assert ask(url, data=b"half").status_code == 500
    assert service.content() is None


def test_in_progress_is_409(service: Service, url: str) -> None:
    """Two requests of one holder at once: the second to commit is told to do it again."""

    def meanwhile() -> None:
        service.then = lambda: None
        with FileGuard(service.path).transaction(Fence(7, DOMAIN)) as file:
            file.write(b"quick")

    service.then = meanwhile
    answer = ask(url, token=7, data=b"slow")
    assert answer.status_code == 409
    with pytest.raises(InProgress):
        raise_for_fence(answer)
    assert service.content() == b"quick"


def test_door_and_predicate(service: Service) -> None:
    """A door only judges; a function can say which requests are fenced at all."""
    app = FencedWSGI(
        service,
        resource=name_of,
        door=service.transaction,
        fenced=lambda environ: environ.get("QUERY_STRING") != "open",
    )
    with serving(app) as url:
        service.status = "404 Not Found"
        assert ask(url, token=7).status_code == 404
        assert ask(url, token=6).status_code == 412
        assert ask(url, token=None).status_code == 428
        assert ask(f"{url}?open", token=None).status_code == 404
    assert service.content() is None


def test_the_protocol_is_kept(service: Service) -> None:
    """The standard library's validator has nothing to say, on either side of the middleware."""
    inner = validator(service)
    app = validator(FencedWSGI(inner, resource=name_of, guard=service.transaction))
    with serving(app) as url:
        assert ask(url, data=b"new").text == "done"
        assert ask(url, token=6).status_code == 412
        assert ask(url, "GET", token=None).text == "done"


def test_either_a_guard_or_a_door(service: Service) -> None:
    """Nobody is to believe in a transaction that is none."""
    with pytest.raises(TypeError, match="either guard= or door="):
        FencedWSGI(service, resource=name_of)
