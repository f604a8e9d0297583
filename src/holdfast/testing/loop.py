"""Run asyncio code on virtual time, with any number of simulated processes in one thread.

Rule 1: time stands still while a callback is ready, then jumps to the next timer. Nothing sleeps.
Rule 2: callbacks run in the order they became ready, timers of one instant in the order they were
        set. A seed shuffles whole processes that are ready together, never the order within one.
Rule 3: a callback belongs to the process in its context; tasks, timers and callbacks inherit it.
        Without one it belongs to the world (servers, network, the test), which never pauses.
Rule 4: a paused process runs nothing; at resume all that came due runs, in the order it came due.
Rule 5: a killed process runs nothing any more, not even `finally`. Python cannot drop a suspended
        coroutine without running its `finally`, so tasks are kept until the loop closes and ended
        there, each in its own context: a simulated world must ignore callers whose
        `current_process().alive` is false. The garbage collector never decides what runs.
Rule 6: pause and kill act between callbacks; the one that is running gets to its next suspension.
Rule 7: a loop that cannot get on says who waits where: `Stalled`, `RanAway`. It never hangs.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import threading
from asyncio import AbstractEventLoop, Handle, Task, TimerHandle
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partialmethod
from typing import Any, NoReturn, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from .process import Process, ProcessClock, current_process, process_of

__all__ = [
    "Process",
    "ProcessClock",
    "RanAway",
    "Stalled",
    "VirtualLoop",
    "current_loop",
    "current_process",
    "run",
]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Coro = Coroutine[Any, Any, T]
Call = Callable[[*Ts], object]


class Stalled(RuntimeError):
    """Nothing can happen any more, or nothing before the limit of virtual time."""


class RanAway(RuntimeError):
    """More callbacks ran than the limit of steps allows."""


class _Task(Task[T]):
    """A task that hashes by its number: asyncio walks sets of tasks, and ids differ every run."""

    __slots__ = ("_number",)

    def __init__(self, number: int, coro: Any, loop: Any, name: Any, **options: Any) -> None:
        self._number = number  # first: asyncio registers, and so hashes, what it initialises
        super().__init__(coro, loop=loop, name=name or f"task-{number}", **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio loop on virtual time. Limits: virtual seconds from `start`, and callbacks run."""

    without_threads = True  # what else would be called in a thread of its own is called here

    _closed: bool
    _stopping: bool
    _ready: deque[Any]  # Handles: asyncio publishes their context only from 3.12 on

    def __init__(
        self,
        *,
        seed: int | None = None,
        start: float = 1000.0,
        time_limit: float = math.inf,
        step_limit: float = 10_000_000,
    ) -> None:
        super().__init__()
        self.steps, self.random = 0, random.Random(0 if seed is None else seed)  # for the world
        self._shuffler = None if seed is None else random.Random(f"order {seed}")
        self._now, self._end, self._step_limit = start, start + time_limit, step_limit
        self._home = threading.get_ident()
        self._scheduled: list[tuple[float, int, Any]] = []
        self._timers_made, self._timers_swept_at = 0, 256
        self._tasks: list[tuple[Task[Any], Context]] = []
        self._tasks_made, self._tasks_swept_at = 0, 64
        self._generators: WeakKeyDictionary[AsyncGenerator[Any, Any], Context] = WeakKeyDictionary()
        self._anyone_killed = self._burying = False

    # --- Simulated processes ---

    def spawn(self, process: Process, coro: Coro[T], *, name: str | None = None) -> Task[T]:
        """Start a task that, with all that it starts, belongs to `process`."""
        if not process.alive:
            coro.close()
            raise RuntimeError(f"process {process.name} was killed; start a new one in its place")
        context = copy_context()
        context.run(process_of.set, process)
        return self.create_task(coro, name=name, context=context)

    def pause(self, process: Process, seconds: float = math.inf) -> None:
        """Stop a process (SIGSTOP) for some time, or until `resume`; the longest pause counts."""
        if process.alive:
            process.paused = process._halted = True
            process._until = max(process._until, self._now + seconds)
            # In an empty context: the alarm that wakes it belongs to the world.
            self.call_at(self._now + seconds, self._wake, process, context=Context())

    def _wake(self, process: Process) -> None:
        if process._until <= self._now:
            self.resume(process)

    def resume(self, process: Process) -> None:
        """Let a paused process go on (SIGCONT)."""
        if process.paused:
            process.paused = process._halted = False
            process._until = -math.inf
            # In front of the queue: what it has in there already came due later (rule 4).
            self._ready.extendleft(reversed(process._held))
            process._held.clear()

    def kill(self, process: Process) -> None:
        """End a process (SIGKILL): nothing of it runs again, and none of its tasks ever ends.

        Who awaits one cannot even be cancelled: use `asyncio.wait([task], timeout=...)` or shield.
        """
        process.alive = process.paused = False
        process._halted = self._anyone_killed = True
        process._held.clear()

    def time(self) -> float:  # this and the next ones are what asyncio asks of a loop
        return self._now

    def call_soon(self, callback: Call[*Ts], *args: *Ts, context: Context | None = None) -> Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Call[*Ts], *args: *Ts, context: Context | None = None
    ) -> Handle:
        """Do as `call_soon`; refuse other threads than the loop's own, for they have no order."""
        if threading.get_ident() != self._home:
            raise RuntimeError("a VirtualLoop takes no calls from other threads")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Call[*Ts], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Call[*Ts], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if len(self._scheduled) >= self._timers_swept_at:
            self._scheduled = [timer for timer in self._scheduled if not _void(timer[2])]
            heapq.heapify(self._scheduled)
            self._timers_swept_at = 256 + 2 * len(self._scheduled)
        handle = TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._scheduled, (when, self._timers_made, handle))
        return handle

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coro[T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> Task[T]:
        """Start a task, keep it until it is done, and name it the same in every run."""
        if len(self._tasks) >= self._tasks_swept_at:
            self._drop_done_tasks()
            self._tasks_swept_at = 64 + 2 * len(self._tasks)
        if self._closed:
            raise RuntimeError("Event loop is closed")
        self._tasks_made = number = self._tasks_made + 1
        context = copy_context() if context is None else context
        task: Task[T] = _Task(number, coro, self, name, context=context, **options)
        self._tasks.append((task, context))
        return task

    def _drop_done_tasks(self) -> None:
        for task, context in self._tasks:
            if task.done() and not _alive(context):
                task._log_traceback = False  # nobody is left to fetch its exception
        self._tasks = [kept for kept in self._tasks if not kept[0].done()]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report as asyncio does, except errors that a killed process may have had to fetch."""
        future = context.get("future")
        if future is None or isinstance(future, Task) or not self._anyone_killed:
            super().call_exception_handler(context)

    def _run_once(self) -> None:  # called by run_forever until somebody stops it
        ready = self._ready
        if not ready and not self._stopping:
            self._jump()
        timers, now = self._scheduled, self._now
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        count = len(ready)
        self.steps += count
        if self.steps > self._step_limit:
            raise RanAway(f"{self._step_limit} steps were not enough; {self._who_waits()}")
        if self._shuffler is not None and count > 1:
            ready = self._ready = _shuffled(ready, self._shuffler)
        for _ in range(count):
            handle = ready.popleft()
            if not handle._cancelled:
                process = handle._context.get(process_of)
                if process is None or not process._halted:
                    handle._run()
                elif process.alive:
                    process._held.append(handle)

    def _jump(self) -> None:
        timers = self._scheduled
        while timers and _void(timers[0][2]):
            heapq.heappop(timers)
        when = timers[0][0] if timers else math.inf
        if when == math.inf or when > self._end:
            raise Stalled(f"nothing happens from {self._now} to {self._end}; {self._who_waits()}")
        self._now = max(self._now, when)

    def _living(self) -> Iterator[tuple[Task[Any], Process | None]]:
        for task, context in self._tasks:
            if not task.done() and _alive(context):
                yield task, context.get(process_of)

    def _who_waits(self) -> str:
        lines = [
            f"\n  {task.get_name()}{f', {process!r},' if process else ''} at {_place(task)}"
            for task, process in self._living()
        ]
        return f"{len(lines)} tasks wait:{''.join(lines)}"

    # --- The end ---

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._generators[agen] = copy_context()

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        if not self._closed and not self._burying:
            self.create_task(agen.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Close the generators of all who live, oldest first."""
        for agen, context in list(self._generators.items()):
            if _alive(context):
                await asyncio.wait([self.create_task(agen.aclose(), context=context)])

    def cancel_leftovers(self) -> None:
        """Cancel all tasks, oldest first, and let them end; who is paused cannot, and is killed."""
        for _, process in self._living():
            if process is not None and process.paused:
                self.kill(process)
        leftovers = [task for task, _ in self._living()]
        for task in leftovers:
            task.cancel()
        try:
            if leftovers:
                self.run_until_complete(asyncio.wait(leftovers))
        except Stalled:
            if not self._anyone_killed:  # else they may wait for the dead, see `kill`
                raise
        self.run_until_complete(self.shutdown_asyncgens())

    def close(self) -> None:
        """Close the loop and end what is still suspended, as rule 5 says."""
        before = asyncio._get_running_loop()
        if not self.is_running() and not self._closed:
            self._drop_done_tasks()  # while it is still known whose errors nobody could fetch
            self._burying = True
            # A `finally` may look for the running loop and start things: queued, never run.
            asyncio._set_running_loop(self)
            for task, context in self._tasks:  # grows while it is walked
                process = context.get(process_of)
                if process is not None:
                    process.alive = process.paused = False
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _end(task.get_coro(), context)
            self._tasks.clear()
            asyncio._set_running_loop(before)
        super().close()


def _alive(context: Context) -> bool:
    process = context.get(process_of)
    return process is None or process.alive


def _void(handle: Any) -> bool:
    return handle._cancelled or not _alive(handle._context)


def _place(task: Task[Any]) -> str:
    frame: Any = None  # the innermost outside asyncio, if there is one
    awaited: Any = task.get_coro()
    while awaited is not None:
        inner = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if inner and (frame is None or inner.f_globals.get("__package__") != "asyncio"):
            frame = inner
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    code = frame and frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}" if code else "no line"


def _end(coro: Any, context: Context) -> None:
    for _ in range(100):  # once more for every `await` in a `finally`
        with suppress(BaseException):  # there is nobody left to hear it
            context.copy().run(coro.close)
            return


def _shuffled(handles: deque[Any], shuffler: random.Random) -> deque[Any]:
    rank = dict[Process | None, float]().setdefault  # drawn once for each process
    return deque(sorted(handles, key=lambda h: rank(h._context.get(process_of), shuffler.random())))


def _refuse(_: VirtualLoop, name: str, *args: object, **options: object) -> NoReturn:
    raise NotImplementedError(f"{name}: a VirtualLoop has no threads, no I/O, no signals")


_REAL = "add_ connect_ create_c create_d create_s create_u getaddr getname remove_ run_in_ send"
_REAL += " set_default_ set_task_ sock_ start_tls subprocess_"
for _name in dir(AbstractEventLoop):
    if _name.startswith(tuple(_REAL.split())):
        setattr(VirtualLoop, _name, partialmethod(_refuse, _name))


def current_loop() -> VirtualLoop:
    """Return the virtual loop that is running."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), f"this needs a VirtualLoop, and {loop!r} is running"
    return loop


def run(
    main: Coro[T],
    *,
    seed: int | None = None,
    start: float = 1000.0,
    time_limit: float = math.inf,
    step_limit: float = 10_000_000,
) -> T:
    """Run `main` on a new virtual loop, cancel what it leaves behind, and return its result."""
    if asyncio._get_running_loop() is not None:
        main.close()
        raise RuntimeError("virtual time cannot run while another loop is running")
    loop = VirtualLoop(seed=seed, start=start, time_limit=time_limit, step_limit=step_limit)
    try:
        task = loop.create_task(main, name="main")
        try:
            result = loop.run_until_complete(task)
        except BaseException:
            task._log_traceback = False  # whatever it is, it is on its way to the caller
            with suppress(Stalled, RanAway):  # the first error says more
                loop.cancel_leftovers()
            raise
        loop.cancel_leftovers()
        return result
    finally:
        loop.close()
