"""The suite's own rules: what a harness gets to run, and that failing tests do fail."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.testing import (
    AsyncConformance,
    BothColours,
    Conformance,
    Harness,
    MemoryHarness,
)


class TestMemoryInBothColours(BothColours):
    """Threads and tasks on one memory engine."""

    harness = MemoryHarness()


class Bare(Harness):
    """A harness of the least an author must write."""

    url = "memory://bare"
    shortest_ttl = 0.3


class BareSuite(Conformance):
    """Everything that needs no hook."""

    harness = Bare()


class MemorySuite(Conformance):
    """Everything."""

    harness = MemoryHarness()


class AsyncMemorySuite(AsyncConformance):
    """Everything, awaitable, with an author's own test and one left out."""

    harness = MemoryHarness()
    test_plain_cycle = None  # type: ignore[assignment]  # left out

    async def test_of_the_author(self) -> None:
        """Fail inside the loop."""
        async with self.client.lock("x") as lease:
            assert lease.token == -1


def collected(suite: type) -> set[str]:
    """Return the names of what pytest would collect."""
    return {name for name in dir(suite) if name.startswith("test_") and getattr(suite, name)}


def test_tests_that_need_a_missing_hook_do_not_exist() -> None:
    """They are not skipped: there is nothing to collect."""
    missing = collected(MemorySuite) - collected(BareSuite)
    assert "test_long_cut_is_a_loss" in missing
    assert len(missing) == 8
    assert collected(BareSuite) < collected(MemorySuite)


@pytest.mark.parametrize("hook", ["cut", "heal", "pause", "resume"])
def test_missing_hook_says_so(hook: str) -> None:
    """Calling it all the same raises NotSupported and names the harness."""
    assert not Bare().supports(hook)
    with pytest.raises(holdfast.NotSupported, match="Bare"):
        getattr(Bare(), hook)()


def test_both_colours_have_the_same_tests() -> None:
    """What one colour must do, the other must."""
    author = {"test_of_the_author", "test_plain_cycle"}
    assert collected(AsyncMemorySuite) - author == collected(MemorySuite) - author


def test_an_author_leaves_a_test_out_by_none() -> None:
    """A test that is None in the subclass is not collected."""
    assert "test_plain_cycle" not in collected(AsyncMemorySuite)


def test_every_test_says_what_it_proves() -> None:
    """One sentence each, and a plain function that any runner can call."""
    for suite in (MemorySuite, AsyncMemorySuite):
        for name in collected(suite):
            test = getattr(suite, name)
            assert (test.__doc__ or "").strip().endswith("."), name
            assert not inspect.iscoroutinefunction(test), name


def test_failure_inside_a_coroutine_is_a_failure() -> None:
    """The wrapper of async tests swallows nothing, and closes the clients."""
    suite: Any = AsyncMemorySuite()
    with pytest.raises(AssertionError):
        suite.test_of_the_author()
    client: aio.Client = suite.client
    assert client._runtime.closed


def test_every_memory_harness_has_its_own_state() -> None:
    """Two suites on memory do not see each other's locks."""
    one, two = MemoryHarness(), MemoryHarness()
    with holdfast.connect(one.url) as here, holdfast.connect(two.url) as there:
        with here.lock("x"), there.lock("x", timeout=0):
            pass


def test_cut_and_heal_reach_every_client_of_the_harness() -> None:
    """While cut nothing is answered; after heal everything is."""
    harness = MemoryHarness()
    with holdfast.connect(harness.url) as client:
        harness.cut()
        with pytest.raises(holdfast.EngineUnavailable, match="cut the link"):
            client.inspect("x")
        harness.heal()
        harness.heal()
        assert client.inspect("x").kind is None
