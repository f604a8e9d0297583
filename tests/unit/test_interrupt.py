"""The sweeps find what they are made for: leaks that one interruption in one place leaves."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.interrupt import (
    Interruption,
    cancel_at_every_await,
    raise_at_every_line,
)

HERE = [Path(__file__)]


class Resource:
    """Something that must be given back."""

    def __init__(self) -> None:
        self.taken = False

    async def take(self) -> None:
        self.taken = True
        await asyncio.sleep(0)

    async def give(self) -> None:
        await asyncio.sleep(0)
        self.taken = False


async def careless(resource: Resource) -> None:
    """Lose the resource when cancelled while taking it."""
    await resource.take()
    try:
        await asyncio.sleep(0)
    finally:
        resource.taken = False


async def careful(resource: Resource) -> None:
    """Give it back whatever happens."""
    try:
        await resource.take()
        await asyncio.sleep(0)
    finally:
        resource.taken = False


async def half_hearted(resource: Resource) -> None:
    """Give it back by a coroutine that can be cancelled as well."""
    try:
        await resource.take()
    finally:
        await resource.give()


def cancelled(
    work: Callable[[Resource], Coroutine[Any, Any, None]],
) -> tuple[int, list[Interruption]]:
    """Return how many places were tried, and where the resource stayed taken."""
    leaks: list[Interruption] = []
    resources: list[Resource] = []

    async def main() -> int:
        async def prepare() -> Coroutine[Any, Any, None]:
            resources[:] = [Resource()]
            return work(resources[0])

        async def check(outcome: Interruption) -> None:
            if outcome.thrown:
                assert isinstance(outcome.error, asyncio.CancelledError)
            if resources[0].taken:
                leaks.append(outcome)

        return await cancel_at_every_await(prepare, check)

    return asyncio.run(main()), leaks


def test_a_leak_at_one_suspension_is_found() -> None:
    """Cancelled at its first of two suspensions, the careless one keeps what it took."""
    tried, leaks = cancelled(careless)
    assert tried == 2 * 2
    assert [leak.point for leak in leaks] == [1, 1]


def test_a_leak_in_the_clean_up_is_found() -> None:
    """The second suspension is inside `finally`."""
    _, leaks = cancelled(half_hearted)
    assert {leak.point for leak in leaks} == {2}


def test_care_is_seen() -> None:
    """What cannot leak is not reported."""
    assert cancelled(careful) == (4, [])


def test_a_result_that_comes_with_the_cancel_is_lost() -> None:
    """The late cancel hits a task whose future is done: what it was handed goes nowhere."""

    async def main() -> list[tuple[int, bool, bool]]:
        seen = []
        futures: list[asyncio.Future[str]] = []

        async def prepare() -> Coroutine[Any, Any, str]:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[str] = loop.create_future()
            futures[:] = [future]

            def answer() -> None:
                if not future.cancelled():
                    future.set_result("token")

            async def wait() -> str:
                loop.call_soon(answer)
                return await future

            return wait()

        async def check(outcome: Interruption) -> None:
            seen.append((outcome.point, outcome.thrown, futures[0].cancelled()))

        await cancel_at_every_await(prepare, check)
        return seen

    early, late = [(1, True, True), (2, False, False)], [(1, True, False), (2, False, False)]
    assert asyncio.run(main()) == early + late


def test_a_call_that_swallows_the_cancel_is_seen() -> None:
    """It is up to the check to insist that the cancel comes out."""

    async def main() -> list[BaseException | None]:
        errors = []

        async def stubborn() -> None:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                pass

        async def prepare() -> Coroutine[Any, Any, None]:
            return stubborn()

        async def check(outcome: Interruption) -> None:
            if outcome.thrown:
                errors.append(outcome.error)

        await cancel_at_every_await(prepare, check)
        return errors

    assert asyncio.run(main()) == [None, None]


# --- Threads. ---


def interrupted(
    call: Callable[[], object], everywhere: bool = False
) -> tuple[int, list[Interruption]]:
    """Return how many places were tried, and all outcomes."""
    outcomes: list[Interruption] = []
    tried = raise_at_every_line(lambda: call, outcomes.append, files=HERE, everywhere=everywhere)
    return tried, outcomes


def test_every_line_is_hit_once() -> None:
    """A call of four lines is run five times; the last time to its end."""
    done: list[str] = []

    def call() -> None:
        done.append("a")
        done.append("b")
        for _ in range(1):
            done.append("c")

    tried, outcomes = interrupted(call, everywhere=True)
    assert tried in (4, 5)  # whether the end of a loop is a line again depends on the Python
    assert [outcome.thrown for outcome in outcomes] == [True] * tried + [False]
    assert [type(outcome.error) for outcome in outcomes] == [KeyboardInterrupt] * tried + [
        type(None)
    ]
    assert done[-3:] == ["a", "b", "c"]
    assert outcomes[1].where.endswith(".call")


def test_places_are_those_of_signals() -> None:
    """At the start of functions and after calls into C, but not between plain statements."""
    seen: list[list[str]] = []
    steps: list[str] = []

    def inner() -> None:
        steps.append("inner")

    def call() -> None:
        a = 1
        b = a + 1
        steps.append("first")
        c = b
        inner()
        assert c

    def check(outcome: Interruption) -> None:
        seen.append(steps.copy())
        steps.clear()

    tried = raise_at_every_line(lambda: call, check, files=HERE)
    # Before anything; after the first append; at the start of inner(); after its append.
    assert seen == [[], ["first"], ["first"], ["first", "inner"], ["first", "inner"]]
    assert tried == 4


def test_a_leak_between_two_calls_is_found() -> None:
    """What is taken before the `try` is lost when the interrupt comes in between."""
    lock = threading.Lock()
    leaks = []

    def careless() -> None:
        lock.acquire()
        assert lock.locked()
        try:
            assert lock.locked()
        finally:
            lock.release()

    def check(outcome: Interruption) -> None:
        if lock.locked():
            leaks.append(outcome.point)
            lock.release()

    raise_at_every_line(lambda: careless, check, files=HERE)
    assert leaks == [2, 3]  # after acquire() and after the first locked(), not inside the `try`


def test_finally_is_never_cut_off() -> None:
    """No signal comes between a body and its `finally` or `__exit__`."""
    lock = threading.Lock()

    def call() -> int:
        with lock:
            squares = [number * number for number in range(3)]
        lock.acquire()
        try:
            squares.append(1)
        finally:
            lock.release()
        with lock:
            return len(squares)

    leaks = []

    def check(outcome: Interruption) -> None:
        if lock.locked():
            leaks.append(outcome.where)
            lock.release()

    tried = raise_at_every_line(lambda: call, check, files=HERE)
    assert tried >= 5
    assert len(leaks) <= 1, leaks  # only after acquire() itself, before the `try`


def test_a_with_is_never_cut_from_its_exit() -> None:
    """Not even when every line is tried, for nothing could be done about that."""
    lock = threading.Lock()

    def call() -> int:
        with lock:
            squares = [number * number for number in range(3)]
        with lock:
            return len(squares)

    def check(outcome: Interruption) -> None:
        assert not lock.locked(), outcome

    assert raise_at_every_line(lambda: call, check, files=HERE, everywhere=True) >= 4


def test_a_generator_is_interrupted_where_it_goes_on() -> None:
    """Its own `finally` runs, as with a signal."""
    ended: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("generator")

    def call() -> None:
        for _ in numbers():
            pass

    def check(outcome: Interruption) -> None:
        gc.collect()
        if outcome.point > 2:
            assert ended == ["generator"]
        ended.clear()

    assert raise_at_every_line(lambda: call, check, files=HERE) >= 4


def test_finalizers_are_spared() -> None:
    """An exception in `__del__` or in the callback of a weak reference reaches nobody."""

    class Dying:
        def __del__(self) -> None:
            self.last = 1

    def call() -> None:
        thing = Dying()
        weakref.finalize(thing, lambda: None)
        reference = weakref.ref(thing, lambda _: None)
        del thing
        assert reference() is None

    _, outcomes = interrupted(call, everywhere=True)
    for outcome in outcomes:
        assert "__del__" not in outcome.where
        assert outcome.swallowed or isinstance(outcome.error, KeyboardInterrupt | None)


def test_nothing_of_a_run_stays_alive() -> None:
    """When the check looks, what the call had in its hands is gone."""

    class Thing:
        pass

    things: list[weakref.ref[Thing]] = []

    def call() -> None:
        thing = Thing()
        thing.itself = thing  # type: ignore[attr-defined]
        things.append(weakref.ref(thing))
        assert things

    def check(outcome: Interruption) -> None:
        assert [reference() for reference in things] == [None] * len(things)

    raise_at_every_line(lambda: call, check, files=HERE)
    assert things


def test_tracing_is_given_back() -> None:
    """Whoever traced before (a debugger, coverage) goes on, and the collector is as it was."""
    before = sys.gettrace()
    frozen = gc.get_freeze_count()
    with pytest.raises(ZeroDivisionError):
        raise_at_every_line(lambda: lambda: None, lambda _: 1 // 0, files=HERE)
    assert sys.gettrace() is before
    assert gc.get_freeze_count() == frozen
