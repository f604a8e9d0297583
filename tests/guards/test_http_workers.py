"""An ASGI service under uvicorn with two workers: each knows what the other has seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.errors import StaleToken
from holdfast.fencing import Fence
from holdfast.guards.http import FenceAuth, raise_for_fence
from tests.guards.resources.http import BARE, GUARDED, TIMEOUT, GuardedService

DOMAIN = "tests"
MOST_REQUESTS = 500


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("service")
    with GuardedService.served(folder) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    limits = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(base_url=url, timeout=TIMEOUT, trust_env=False, limits=limits) as made:
        yield made


def test_every_worker_refuses_what_any_has_seen(client: httpx.Client) -> None:
    """Tokens rise over both workers, and after each an older one is 412, whoever answers."""
    workers: set[str] = set()
    token = 1
    while len(workers) < 2 and token < MOST_REQUESTS:
        token += 1
        auth = FenceAuth(GUARDED, Fence(token, DOMAIN))
        workers.add(client.put(GUARDED, content=str(token), auth=auth).raise_for_status().text)
        stale = client.put(
            GUARDED, content="old", auth=FenceAuth(GUARDED, Fence(token - 1, DOMAIN))
        )
        assert stale.status_code == 412
        with pytest.raises(StaleToken, match=f"has seen token {token}, yours is {token - 1}"):
            raise_for_fence(stale)
        assert client.get(BARE).text == str(token)
    assert len(workers) == 2, "both workers have written"


def test_without_a_token(client: httpx.Client) -> None:
    """428 from a real server, as application/problem+json; reading below /bare is free."""
    answer = client.put(GUARDED, content="bad")
    assert answer.status_code == 428
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.get(BARE).status_code == 200
