"""FencedASGI: a request does its work inside a guard's transaction, or not at all (S24)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from holdfast._async.guards.store import AsyncStoreGuard
from holdfast.errors import DomainMismatch, InProgress, OutcomeUnknown, StaleToken
from holdfast.fencing import Fence
from holdfast.guards.asgi import FencedASGI, Receive, Scope, Send
from holdfast.guards.http import FenceAuth, fence_headers, raise_for_fence
from holdfast.model import Mode

DOMAIN = "tests"
URL = "http://service/orders/1"
NAME = "orders/1"


class Shop:
    """A service that keeps one text per path; what it does can be set."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, str | None, int]] = {}
        self.guard = AsyncStoreGuard(self.load, self.save)
        self.then: Callable[[], Awaitable[None]] = self.nothing
        self.status = 200
        self.ran = 0
        self.left: list[str] = []  # how transactions ended

    async def nothing(self) -> None:
        """Do nothing more."""

    async def load(self, resource: str) -> tuple[str, str | None, int]:
        return self.rows.get(resource, ("", None, 0))

    async def save(self, resource: str, data: str, fence: str, version: int) -> bool:
        if self.rows.get(resource, ("", None, 0))[2] != version:
            return False
        self.rows[resource] = (data, fence, version + 1)
        return True

    def data(self, resource: str = NAME) -> str:
        return self.rows.get(resource, ("", None, 0))[0]

    @asynccontextmanager
    async def transaction(self, resource: str, fence: Fence) -> AsyncIterator[Any]:
        try:
            async with self.guard.transaction(resource, fence) as item:
                yield item
        except BaseException as error:
            self.left.append(type(error).__name__)
            raise
        self.left.append("committed")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.ran += 1
        body = (await receive()).get("body", b"").decode()
        item = scope.get("holdfast")
        if item is not None and scope["method"] == "PUT":
            item.write(body)
        await self.then()
        start = {"type": "http.response.start", "status": self.status, "headers": []}
        await send(start)
        for piece in (b"do", b"ne"):
            await send({"type": "http.response.body", "body": piece, "more_body": piece == b"do"})

    def app(self, **options: Any) -> FencedASGI:
        options = {"guard": self.transaction, **options} if "door" not in options else options
        return FencedASGI(self, resource=lambda scope: scope["path"][1:], **options)


async def ask(
    app: Any, method: str = "PUT", token: int | None = 7, **options: Any
) -> httpx.Response:
    """Send one request and return the answer."""
    transport = httpx.ASGITransport(app)
    url = options.pop("url", URL)
    async with httpx.AsyncClient(transport=transport) as client:
        if token is not None:
            options["auth"] = FenceAuth(url.removeprefix("http://service/"), Fence(token, DOMAIN))
        return await client.request(method, url, **options)


def test_work_is_committed_before_the_answer() -> None:
    """The whole response is held back until the transaction is over."""
    shop = Shop()
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        assert shop.data() == "new", "told before it was true"
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"new", "more_body": False}

    asyncio.run(shop.app()(scope_of("PUT"), receive, send))
    assert [message["type"] for message in sent] == [
        *("http.response.start", "http.response.body", "http.response.body"),
    ]


def scope_of(method: str, token: int = 7) -> Scope:
    """Return what a server hands over."""
    headers = fence_headers(NAME, Fence(token, DOMAIN)).items()
    return {
        "type": "http",
        "method": method,
        "path": f"/{NAME}",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "extensions": {"http.response.pathsend": {}, "tls": {}},
    }


def test_a_new_token_writes_and_an_old_one_is_told() -> None:
    """412, with the tokens that were seen and offered; the application does not even run."""

    async def run() -> None:
        shop = Shop()
        assert (await ask(shop.app(), token=7, content="new")).text == "done"
        answer = await ask(shop.app(), token=6, content="old")
        assert answer.status_code == 412
        told = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (told["error"], told["seen"], told["offered"]) == ("StaleToken", "7", "6")
        assert "'orders/1' has seen token 7, yours is 6" in told["detail"]
        with pytest.raises(StaleToken) as caught:
            raise_for_fence(answer)
        assert (caught.value.seen, caught.value.offered) == (7, 6)
        assert shop.ran == 1
        assert shop.data() == "new"

    asyncio.run(run())


def test_a_request_that_was_overtaken_is_told_when_it_commits() -> None:
    """Who was let in and paused is refused at the end, and its answer is 412, not 200."""

    async def run() -> None:
        shop = Shop()

        async def overtaken() -> None:
            shop.then = shop.nothing
            assert (await ask(shop.app(), token=8, content="new")).status_code == 200

        shop.then = overtaken
        answer = await ask(shop.app(), token=7, content="old")
        assert answer.status_code == 412
        assert shop.data() == "new"

    asyncio.run(run())


def test_another_domain_is_412_and_names_both() -> None:
    """Tokens that cannot be compared are refused."""

    async def run() -> None:
        shop = Shop()
        await ask(shop.app(), token=7, content="new")
        headers = fence_headers(NAME, Fence(9, "elsewhere"))
        answer = await ask(shop.app(), token=None, headers=headers, content="old")
        assert answer.status_code == 412
        assert "'tests'" in answer.json()["detail"]
        assert "'elsewhere'" in answer.json()["detail"]
        with pytest.raises(DomainMismatch):
            raise_for_fence(answer)
        assert shop.data() == "new"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 428),
        ([("Fencing-Token", "7")], 428),
        ([("Fencing-Token", "-7"), ("Fencing-Domain", "tests")], 400),
        ([("Fencing-Token", "7"), ("Fencing-Token", "8"), ("Fencing-Domain", "tests")], 400),
        ([*fence_headers("orders/2", Fence(7, DOMAIN)).items()], 400),
        ([*fence_headers(NAME, Fence(7, DOMAIN, Mode.SHARED)).items()], 400),
    ],
)
def test_bad_requests(headers: list[tuple[str, str]], status: int) -> None:
    """Missing is 428, unreadable and about something else is 400: the application does not run."""
    shop = Shop()
    answer = asyncio.run(ask(shop.app(), token=None, headers=headers, content="bad"))
    assert answer.status_code == answer.json()["status"] == status
    assert shop.ran == 0
    assert not shop.rows


def test_a_name_that_cannot_be_one() -> None:
    """A path that is too long to be a resource is the client's mistake."""
    shop = Shop()
    headers = {"Fencing-Token": "7", "Fencing-Domain": DOMAIN}
    url = f"http://service/{'x' * 300}"
    answer = asyncio.run(ask(shop.app(), token=None, headers=headers, url=url))
    assert answer.status_code == 400
    assert "1 to 255 printable bytes" in answer.json()["detail"]


def test_what_needs_a_token() -> None:
    """Unsafe methods do; safe ones are judged if they show one; a function can say otherwise."""

    async def run() -> None:
        shop = Shop()
        for method in ("GET", "HEAD", "OPTIONS"):
            assert (await ask(shop.app(), method, token=None)).status_code == 200
        for method in ("POST", "PUT", "PATCH", "DELETE", "PROPFIND"):
            assert (await ask(shop.app(), method, token=None)).status_code == 428
        assert not shop.rows
        assert (await ask(shop.app(), "GET", token=7)).status_code == 200
        assert (await ask(shop.app(), "PUT", token=6)).status_code == 412, "7 has read"
        open_app = shop.app(fenced=lambda scope: scope["path"] != "/orders/1")
        assert (await ask(open_app, token=None)).status_code == 200
        assert (await ask(open_app, token=None, url=f"{URL}1")).status_code == 428

    asyncio.run(run())


def test_shared_readers() -> None:
    """A shared token reads, and keeps older writers out."""

    async def run() -> None:
        shop = Shop()
        reading = fence_headers(NAME, Fence(9, DOMAIN, Mode.SHARED))
        assert (await ask(shop.app(), "GET", token=None, headers=reading)).status_code == 200
        assert (await ask(shop.app(), token=8)).status_code == 412
        assert (await ask(shop.app(), token=10)).status_code == 200
        assert (await ask(shop.app(), "GET", token=None, headers=reading)).status_code == 412

    asyncio.run(run())


@pytest.mark.parametrize("status", [400, 404, 409, 500, 503])
def test_a_response_that_says_no_rolls_back(status: int) -> None:
    """From 400 on the request was not done: the response goes out, the work does not stay."""

    async def run() -> None:
        shop = Shop()
        shop.status = status
        answer = await ask(shop.app(), content="half")
        assert (answer.status_code, answer.text) == (status, "done")
        assert shop.data() == ""
        assert shop.left == ["RolledBack"]

    asyncio.run(run())


def test_what_was_not_found_was_read() -> None:
    """404 to a GET is something its token has seen: an older one writes no more. 500 is nothing."""

    async def run() -> None:
        shop = Shop()
        shop.status = 404
        assert (await ask(shop.app(), "GET", token=8)).status_code == 404
        shop.status = 500
        assert (await ask(shop.app(), "GET", token=8)).status_code == 500
        assert shop.left == ["committed", "RolledBack"]
        assert (await ask(shop.app(), token=7)).status_code == 412

    asyncio.run(run())


def test_redirects_commit() -> None:
    """303 after a POST means done."""
    shop = Shop()
    shop.status = 303
    assert asyncio.run(ask(shop.app(), content="new")).status_code == 303
    assert shop.data() == "new"


def test_an_error_of_the_application_rolls_back() -> None:
    """It goes on to the server, which says 500 and logs it."""
    shop = Shop()

    async def fail() -> None:
        raise KeyError("mine")

    shop.then = fail
    with pytest.raises(KeyError, match="mine"):
        asyncio.run(ask(shop.app(), content="half"))
    assert shop.data() == ""
    assert shop.left == ["KeyError"]


def test_an_application_that_says_nothing_rolls_back() -> None:
    """Half a response is none: the server is left to say that something went wrong."""

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        scope["holdfast"].write("half")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ha", "more_body": True})

    async def run() -> None:
        shop = Shop()

        async def send(message: Any) -> None:
            raise AssertionError(message)

        app = FencedASGI(silent, resource=lambda scope: NAME, guard=shop.transaction)
        await app(scope_of("PUT"), nobody, send)
        assert shop.left == ["RolledBack"]
        assert shop.data() == ""

    asyncio.run(run())


async def nobody() -> Any:
    """Be a client that has gone away."""
    return {"type": "http.disconnect"}


def test_a_client_that_went_away_rolls_back() -> None:
    """If the application hears of it, nothing is committed and nothing is said."""

    async def run() -> None:
        shop = Shop()

        async def send(message: Any) -> None:
            raise AssertionError(message)

        await shop.app()(scope_of("PUT"), nobody, send)
        assert shop.ran == 1
        assert shop.left == ["RolledBack"]

    asyncio.run(run())


def test_a_cancelled_request_rolls_back() -> None:
    """Shutting down in the middle of a request leaves nothing half done."""

    async def run() -> None:
        shop = Shop()
        inside = asyncio.Event()

        async def hang() -> None:
            inside.set()
            await asyncio.sleep(60)

        shop.then = hang
        task = asyncio.ensure_future(ask(shop.app(), content="half"))
        await asyncio.wait_for(inside.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert shop.left == ["CancelledError"]
        assert shop.data() == ""

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InProgress("Another is at work.", name=NAME), 409),
        (OutcomeUnknown("It may have happened.", name=NAME), 503),
    ],
)
def test_what_happens_at_the_commit_is_told(error: Exception, status: int) -> None:
    """The answer of the application is dropped: the client hears how it really ended."""

    @asynccontextmanager
    async def failing(resource: str, fence: Fence) -> AsyncIterator[None]:
        yield
        raise error

    answer = asyncio.run(ask(Shop().app(guard=failing)))
    assert answer.status_code == status
    with pytest.raises(type(error), match=str(error)):
        raise_for_fence(answer)


def test_a_commit_that_fails_is_no_success() -> None:
    """The driver's own error goes on to the server: 500, and in its log."""

    @asynccontextmanager
    async def failing(resource: str, fence: Fence) -> AsyncIterator[None]:
        yield
        raise ConnectionError("no answer to COMMIT")

    with pytest.raises(ConnectionError, match="COMMIT"):
        asyncio.run(ask(Shop().app(guard=failing)))


def test_door() -> None:
    """A door judges and records, and then lets the application answer as it likes."""

    async def run() -> None:
        shop = Shop()
        app = shop.app(door=shop.transaction)
        shop.status = 404
        assert (await ask(app, token=7)).status_code == 404
        assert shop.left == ["committed"], "recorded, whatever the application says"
        assert (await ask(app, token=6)).status_code == 412
        assert shop.ran == 1

    asyncio.run(run())


def test_either_a_guard_or_a_door() -> None:
    """Nobody is to believe in a transaction that is none."""
    shop = Shop()
    with pytest.raises(TypeError, match="either guard= or door="):
        FencedASGI(shop, resource=str)
    with pytest.raises(TypeError, match="either guard= or door="):
        FencedASGI(shop, resource=str, guard=shop.transaction, door=shop.transaction)


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_other_scopes_pass_untouched(kind: str) -> None:
    """Only requests are fenced."""
    seen: list[tuple[Any, ...]] = []

    async def app(*given: Any) -> None:
        seen.append(given)

    scope: Scope = {"type": kind}
    shop = Shop()
    fenced = FencedASGI(app, resource=str, guard=shop.transaction)
    asyncio.run(fenced(scope, nobody, shop.app()))  # type: ignore[arg-type]
    assert seen[0][0] is scope
    assert seen[0][1] is nobody


def test_extensions_that_go_past_the_middleware_are_not_offered() -> None:
    """An application cannot answer in a way that could not be held back."""
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)

    async def run() -> None:
        shop = Shop()
        fenced = FencedASGI(app, resource=lambda scope: NAME, guard=shop.transaction)

        async def send(message: Any) -> None:
            raise AssertionError(message)

        await fenced(scope_of("PUT"), nobody, send)

    asyncio.run(run())
    assert scopes[0]["extensions"] == {"tls": {}}
