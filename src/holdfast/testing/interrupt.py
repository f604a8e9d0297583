"""Interrupt a call at every place where it can be interrupted, one per run, and look what is left.

Rule 1: a run is prepared afresh, interrupted once, and checked after everything it left on the
        Python side is dropped and collected; the last run is the one that was not interrupted.
Rule 2: a task is cancelled as asyncio does it, at each suspension twice: as it begins to wait, and
        when what it waits for has just happened.
Rule 3: a thread is interrupted where CPython delivers signals (see `places`), but not in
        finalizers, where it would swallow the error.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from .places import PACKAGE, Places, describe, find_places

INNERMOST = (str(PACKAGE / "testing"), str(PACKAGE / "_concurrency"))  # say less than the caller
HANGS_AFTER = 30.0


@dataclass(frozen=True, slots=True)
class Interruption:
    """How one run went. Its result is dropped, and the error comes without a traceback: both
    would keep things alive."""

    point: int  # the place, counted from 1
    where: str  # the same for people
    thrown: bool  # False: the run was over before that place was reached
    error: BaseException | None  # what came out
    swallowed: bool = False  # Python did so itself: the place was in a callback of the collector


async def cancel_at_every_await(
    prepare: Callable[[], Awaitable[Coroutine[Any, Any, Any]]],
    check: Callable[[Interruption], Awaitable[object]],
) -> int:
    """Cancel a coroutine at its first, second, … suspension, until it gets to its end.

    `prepare` is awaited before each run and returns the coroutine; `check` after it. Returns how
    many places were tried.
    """
    tried = 0
    with _cheap_collection():
        for late in (False, True):
            for point in count(1):
                outcome = await _run_cancelled(await prepare(), point, late)
                gc.collect()
                await check(outcome)
                if not outcome.thrown:
                    break
                tried += 1
    return tried


async def _run_cancelled(
    coroutine: Coroutine[Any, Any, Any], point: int, late: bool
) -> Interruption:
    steps = _Steps(coroutine, point, late)
    task = asyncio.get_running_loop().create_task(steps.run(), name="interrupted")
    _, unfinished = await asyncio.wait([task], timeout=HANGS_AFTER)
    if unfinished:
        raise AssertionError(f"cancelled at suspension {point}, {steps.where}, the call hangs")
    error: BaseException | None = None
    try:
        task.result()  # dropped, as the rest: a lease that was returned is nobody's
    except BaseException as problem:
        error = _without_tracebacks(problem)
    return Interruption(point, steps.where, steps.thrown, error)


class _Steps:
    """Runs a coroutine inside a task and cancels that at one suspension."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], point: int, late: bool) -> None:
        self._coroutine = coroutine
        self._point = point
        self._late = late
        self.thrown = False
        self.where = ""

    async def run(self) -> Any:
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine = self._coroutine
        send: Callable[[Any], Any] = coroutine.send
        value: Any = None
        for suspension in count(1):
            try:
                awaited = send(value)
            except StopIteration as stop:
                return stop.value
            if suspension == self._point:
                self._cancel(awaited)
            send = coroutine.send
            try:
                value = yield awaited
            except BaseException as error:
                send, value = coroutine.throw, error

    def _cancel(self, awaited: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.thrown = True
        self.where = f"{_place(self._coroutine)}{', late' if self._late else ''}"
        if not self._late:
            task.cancel()
        elif awaited is None:  # sleep(0): comes before the task's own next step
            asyncio.get_running_loop().call_soon(task.cancel)
        else:  # comes before the callback by which the task hears of it
            awaited.add_done_callback(lambda _: task.cancel())


def _place(coroutine: Any) -> str:
    """Name the innermost line of holdfast proper that a coroutine is suspended in."""
    place = "outside holdfast"
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and frame.f_code.co_filename.startswith(str(PACKAGE)):
            if frame.f_code.co_filename.startswith(INNERMOST):
                break
            place = describe(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return place


def raise_at_every_line(
    prepare: Callable[[], Callable[[], object]],
    check: Callable[[Interruption], object],
    *,
    files: Sequence[Path] = (PACKAGE,),
    error: type[BaseException] = KeyboardInterrupt,
    everywhere: bool = False,
) -> int:
    """Raise in a call at its first, second, … place, until it gets to its end.

    A place is where CPython may deliver a signal: at the start of a function, after a call into C,
    after a turn of a loop. With `everywhere` it is each line, also those between which no signal
    can come. Only code below `files` counts, holdfast.testing aside, and only in the calling
    thread. `prepare` is called before each run and returns the call; `check` after it. Returns how
    many places were tried.
    """
    places = find_places(files, everywhere)
    with _cheap_collection():
        for point in count(1):
            outcome = _run_raising(prepare(), point, places, error)
            gc.collect()
            check(outcome)
            if not outcome.thrown:
                break
    return point - 1


def _run_raising(
    call: Callable[[], object], point: int, places: Places, error: type[BaseException]
) -> Interruption:
    problem: BaseException | None = None
    swallowed = False
    hook = sys.unraisablehook

    def take_note(unraisable: sys.UnraisableHookArgs) -> None:
        nonlocal swallowed
        if isinstance(unraisable.exc_value, error) and places.where:
            swallowed = True
        else:
            hook(unraisable)

    sys.unraisablehook = take_note
    places.start(point, error)
    try:
        call()
    except BaseException as raised:
        problem = _without_tracebacks(raised)
    finally:
        places.stop()
        sys.unraisablehook = hook
    return Interruption(point, places.where, bool(places.where), problem, swallowed)


def _without_tracebacks(error: BaseException) -> BaseException:
    """Take the frames off an exception and all it came from."""
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        one = chain.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            chain += [one.__cause__, one.__context__]
    return error


@contextmanager
def _cheap_collection() -> Iterator[None]:
    """Leave what exists already out of the many garbage collections to come."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
