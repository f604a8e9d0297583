"""Bad input gets one clear sentence and changes nothing."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import holdfast
from holdfast import registry
from holdfast.registry import EngineEntry


@pytest.fixture
def client() -> Iterator[holdfast.Client]:
    with holdfast.connect(f"memory://bad-input-{id(object())}") as client:
        yield client


def one_sentence(error: BaseException) -> str:
    """Return the message after checking that it is a sentence a person can act on."""
    text = str(error)
    assert text[0] == text[0].upper() or text.split("=")[0].islower() or text[0] == "'"
    assert text.endswith("."), text
    assert "\n" not in text
    assert len(text) > 20
    return text


BAD_NAMES: list[tuple[Any, str]] = [
    ("", "must not be empty"),
    ("x" * 256, "256 bytes"),
    ("ü" * 200, "400 bytes"),
    ("a\nb", "control characters"),
    ("a\x00b", "control characters"),
    ("\ud800", "surrogates"),
    (7, "must be a string"),
]


@pytest.mark.parametrize(("name", "why"), BAD_NAMES)
def test_a_bad_name_is_refused_before_anything_happens(
    client: holdfast.Client, name: Any, why: str
) -> None:
    with pytest.raises(holdfast.InvalidName, match=why) as caught:
        client.lock(name)
    one_sentence(caught.value)
    assert isinstance(caught.value, ValueError)
    assert list(client.locks()) == []


BAD_CALLS: list[tuple[str, Callable[[holdfast.Client], object], type[Exception], str]] = [
    ("zero ttl", lambda c: c.lock("x", ttl=0), ValueError, "at least"),
    ("negative ttl", lambda c: c.lock("x", ttl=-1), ValueError, "at least"),
    ("nan ttl", lambda c: c.lock("x", ttl=math.nan), ValueError, "finite"),
    ("infinite ttl", lambda c: c.lock("x", ttl=math.inf), ValueError, "finite"),
    ("ttl over max", lambda c: c.lock("x", ttl=301), ValueError, "at most 300 s"),
    ("long timedelta", lambda c: c.lock("x", ttl=timedelta(hours=1)), ValueError, "at most"),
    ("text ttl", lambda c: c.lock("x", ttl="5"), TypeError, "number or a timedelta"),  # type: ignore[call-overload]
    ("bool ttl", lambda c: c.lock("x", ttl=True), TypeError, "number or a timedelta"),
    ("bad timeout", lambda c: c.lock("x", timeout=-2), ValueError, "-1 for ever"),
    ("nan timeout", lambda c: c.lock("x").acquire(timeout=math.nan), ValueError, "finite"),
    (
        "timeout without blocking",
        lambda c: c.lock("x").acquire(blocking=False, timeout=1),
        ValueError,
        "together with blocking=False",
    ),
    ("limit 0", lambda c: c.semaphore("x", 0), ValueError, "between 1 and"),
    ("limit 1.5", lambda c: c.semaphore("x", 1.5), TypeError, "whole number"),  # type: ignore[arg-type]
    ("max_hold 0", lambda c: c.lock("x", max_hold=0), ValueError, "more than 0"),
    ("huge label", lambda c: c.lock("x", label="l" * 600), ValueError, "512 is the most"),
    ("number as value", lambda c: c.election("x", 5), TypeError, "must be a string"),  # type: ignore[arg-type]
    ("empty segment", lambda c: c.tree("a//b"), holdfast.InvalidName, "empty segment"),
    ("leading slash", lambda c: c.tree("/a"), holdfast.InvalidName, "empty segment"),
    ("no lock in all_of", lambda c: c.all_of(), ValueError, "at least one lock"),
    ("twice in all_of", lambda c: c.all_of(c.lock("x"), c.lock("x")), ValueError, "twice"),
    (
        "parent and child in all_of",
        lambda c: c.all_of(c.tree("a").read(), c.tree("a/b").read(), c.tree("a/c").write()),
        ValueError,
        "wait for itself",
    ),
    ("negative at_least", lambda c: c.singleton("x", at_least=-1), ValueError, "0 or more"),
    (
        "re-entrant semaphore",
        lambda c: c.semaphore("x", 2, reentrant=True),
        holdfast.NotSupported,
        "cannot be re-entered",
    ),
    ("listen to nothing", lambda c: c.listen(None), TypeError, "must be a function"),  # type: ignore[arg-type]
    ("token as text", lambda c: c.force_release("x", "7"), TypeError, "whole number"),  # type: ignore[arg-type]
    ("unknown guarantee", lambda c: c.guarantees.require("magic"), ValueError, "known are"),
    (
        "unknown fault",
        lambda c: c.guarantees.require("failover"),
        holdfast.NotSupported,
        "failover",
    ),
    ("shard by 0", lambda c: holdfast.shard("x", "k", 0), ValueError, "from 1 up"),
]


@pytest.mark.parametrize(
    ("call", "kind", "why"), [row[1:] for row in BAD_CALLS], ids=[row[0] for row in BAD_CALLS]
)
def test_a_bad_argument_is_refused_in_one_sentence(
    client: holdfast.Client,
    call: Callable[[holdfast.Client], object],
    kind: type[Exception],
    why: str,
) -> None:
    with pytest.raises(kind, match=re.escape(why)) as caught:
        call(client)
    one_sentence(caught.value)
    assert list(client.locks()) == []


def test_unknown_options_fail_when_the_lock_is_made_not_when_it_is_taken(
    client: holdfast.Client,
) -> None:
    with pytest.raises(TypeError, match="tll"):
        client.lock(lambda x: x, tll=5)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost:6379/0", "No engine is called 'localhost'"),
        ("nonsense://x", "known schemes are"),
        ("no-colon", "not an engine URL"),
    ],
)
def test_an_unknown_url_names_what_is_known(
    url: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        holdfast.connect(url)
    one_sentence(caught.value)


def test_a_password_in_a_broken_url_is_not_shown() -> None:
    with pytest.raises(ValueError, match="not an engine URL") as caught:
        holdfast.connect("user;secret@host")
    assert "secret" not in str(caught.value)


def test_the_environment_names_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "memory://from-environment")
    with holdfast.connect() as client:
        assert client.engine.location == "memory://from-environment"


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EngineEntry("surely.not.installed", "Engine", "memory", extra="redis")
    monkeypatch.setitem(registry.ENGINES, "redis", entry)
    with pytest.raises(holdfast.MissingDriver, match=r'pip install "holdfast\[redis\]"') as caught:
        holdfast.connect("redis://localhost")
    one_sentence(caught.value)
    assert isinstance(caught.value, ImportError)


def test_another_kind_or_limit_under_a_name_in_use_changes_nothing(client: holdfast.Client) -> None:
    with client.semaphore("x", 3):
        before = client.inspect("x")
        for other in (client.lock("x"), client.semaphore("x", 4), client.tree("x").read()):
            with pytest.raises(holdfast.LockMismatch) as caught:
                other.try_acquire()
            assert "limit=3" in one_sentence(caught.value)
        after = client.inspect("x")
        assert [entry.token for entry in after.holders] == [before.holders[0].token]
        assert after.waiters == ()
    with client.lock("x"):
        pass


def test_releasing_twice_is_harmless(client: holdfast.Client) -> None:
    lease = client.lock("x").acquire()
    assert lease is not None
    assert lease.release() is True
    assert lease.release() is False
    with pytest.raises(holdfast.LeaseLost, match="you released it") as caught:
        lease.ensure_held()
    one_sentence(caught.value)


def test_use_after_close_is_refused() -> None:
    client = holdfast.connect("memory://closed")
    lock = client.lock("x")
    with lock:
        pass
    client.close()
    client.close()
    for call in (lock.acquire, lambda: client.inspect("x"), client.ping, lambda: client.locks()):
        with pytest.raises(holdfast.ClientClosed, match="is closed; make a new one") as caught:
            call()
        one_sentence(caught.value)


def test_leaving_in_a_thread_that_did_not_enter_names_the_way_out(client: holdfast.Client) -> None:
    lock = client.semaphore("x", 2)
    errors: list[BaseException] = []
    with lock, lock:

        def leave() -> None:
            try:
                lock.__exit__(None, None, None)
            except holdfast.LockError as error:
                errors.append(error)

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        assert len(client.inspect("x").holders) == 2
    assert "with lock.acquire() as lease" in one_sentence(errors[0])


def test_decorating_the_wrong_colour_is_refused(client: holdfast.Client) -> None:
    async def job() -> None: ...

    with pytest.raises(TypeError, match=r"holdfast\.aio\.connect"):
        client.lock("x")(job)
    with pytest.raises(TypeError, match=r"holdfast\.aio\.connect"):
        client.singleton("x")(job)
