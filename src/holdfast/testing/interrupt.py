"""Interrupt a call at every place where it can be interrupted, one per run, and look what is left.

Rule 1: a run is prepared afresh, interrupted once, and checked after everything it left on the
        Python side is dropped and collected; the last run is the one that was not interrupted.
Rule 2: a task is cancelled as asyncio does it, at each suspension twice: as it begins to wait, and
        when what it waits for has just happened.
Rule 3: a thread is interrupted before each line, except where Python cannot be: on the way from
        the body of a `with` into `__exit__`; and in finalizers, where Python swallows the error.
"""

from __future__ import annotations

import asyncio
import dis
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
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
            place = _describe(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return place


def raise_at_every_line(
    prepare: Callable[[], Callable[[], object]],
    check: Callable[[Interruption], object],
    *,
    files: Sequence[Path] = (PACKAGE,),
    error: type[BaseException] = KeyboardInterrupt,
) -> int:
    """Raise in a call before its first, second, … line, until it gets to its end.

    `prepare` is called before each run and returns the call; `check` after it. Only lines below
    `files` count, those of holdfast.testing aside, and only in the calling thread. Returns how
    many lines were tried.
    """
    lines = _Lines(files)
    with _cheap_collection():
        for point in count(1):
            outcome = lines.run(prepare(), point, error)
            gc.collect()
            check(outcome)
            if not outcome.thrown:
                break
    return point - 1


class _Lines:
    """Counts the lines that a call runs, and raises before one of them."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(str(path.resolve()) for path in files)
        self._known: dict[CodeType, frozenset[int] | None] = {}  # where not to raise; None: nowhere
        self._left = 0
        self._error: type[BaseException] = KeyboardInterrupt
        self._finalizers = 0
        self._where = ""

    def run(
        self, call: Callable[[], object], point: int, error: type[BaseException]
    ) -> Interruption:
        self._left, self._error, self._finalizers, self._where = point, error, 0, ""
        problem: BaseException | None = None
        swallowed = False
        before, hook = sys.gettrace(), sys.unraisablehook

        def take_note(unraisable: sys.UnraisableHookArgs) -> None:
            nonlocal swallowed
            if isinstance(unraisable.exc_value, error) and self._left == 0:
                swallowed = True
            else:
                hook(unraisable)

        sys.unraisablehook = take_note
        sys.settrace(self._enter)
        try:
            call()
        except BaseException as raised:
            problem = raised
        finally:
            sys.settrace(before)
            sys.unraisablehook = hook
        if problem is not None:
            _without_tracebacks(problem)
        return Interruption(point, self._where, self._left == 0, problem, swallowed)

    def _enter(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._spared(code)
        if self._finalizers or self._left == 0 or self._known[code] is None:
            return None
        if code.co_name == "__del__":
            self._finalizers += 1
            return self._finalize
        return self._line

    def _finalize(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        self._finalizers -= event == "return"
        return self._finalize

    def _line(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        spared = self._known[frame.f_code]
        if event == "line" and self._left and spared is not None and frame.f_lasti not in spared:
            self._left -= 1
            if self._left == 0:
                self._where = _describe(frame)
                raise self._error("raised at a line")
        return self._line

    def _spared(self, code: CodeType) -> frozenset[int] | None:
        file = code.co_filename
        if not file.startswith(self._files) or file.startswith(str(PACKAGE / "testing")):
            return None
        spared = frozenset(_ways_into_exit(code))
        if sys.version_info >= (3, 12):
            # What is raised on a jump back inside a comprehension leaves a `with` around it without
            # __exit__ there; a signal does not (tried), so this is about tracing only.
            spared |= {*range(0, len(code.co_code), 2)} - {at for at, _ in dis.findlinestarts(code)}
        return spared


def _ways_into_exit(code: CodeType) -> Iterator[int]:
    """Yield the offsets from which a `with` goes to call `__exit__`.

    An exception there would leave the lock behind the `with` locked. CPython delivers signals only
    at calls, at the start of functions and at backward jumps, and there is none on that way.
    """
    steps = list(dis.get_instructions(code))
    for number, step in enumerate(steps):
        if step.opname == "WITH_EXCEPT_START" or _calls_exit(steps[number : number + 5]):
            yield step.offset
            while number and steps[number - 1].opname in ("NOP", "SWAP", "PUSH_EXC_INFO"):
                number -= 1
                yield steps[number].offset


def _calls_exit(steps: Sequence[dis.Instruction]) -> bool:
    """Recognise __exit__(None, None, None)."""
    nothing = [one for one in steps[:3] if one.opname == "LOAD_CONST" and one.argval is None]
    return len(nothing) == 3 and any(one.opname == "CALL" for one in steps[3:])


def _describe(frame: FrameType) -> str:
    code = frame.f_code
    file = code.co_filename.removeprefix(f"{PACKAGE}/")
    return f"{file}:{frame.f_lineno} in {code.co_qualname}"


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
