"""What the virtual loop promises: rules 1 to 7 of holdfast.testing.loop, and asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextvars import Context
from typing import Any

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    Process,
    ProcessClock,
    RanAway,
    Stalled,
    VirtualLoop,
    current_loop,
    current_process,
)

Main = Callable[[], Coroutine[Any, Any, Any]]


def make(name: str = "p") -> Process:
    return Process(name, ProcessClock(current_loop()))


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if anything is logged, even by the garbage collector; warnings are errors anyway."""
    unraisable: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    yield
    gc.collect()
    sys.unraisablehook = before
    assert not unraisable
    assert [record.getMessage() for record in caplog.records] == []


# --- Rules 1 and 2: time and order ---


def test_time_jumps_and_nothing_sleeps() -> None:
    """A year of virtual time takes no real time and ends at the exact instant."""

    async def main() -> float:
        assert current_loop().time() == 50.0
        await asyncio.sleep(365 * 86400)
        return current_loop().time()

    began = time.monotonic()
    assert virtual.run(main(), start=50.0) == 50.0 + 365 * 86400
    assert time.monotonic() - began < 5


def test_it_opens_no_file() -> None:
    """A loop needs no file descriptor, unlike every loop with a selector."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = os.listdir("/proc/self/fd")
    loop = VirtualLoop()
    after = os.listdir("/proc/self/fd")
    loop.close()
    assert len(after) == len(before)


def test_ready_callbacks_run_first_come_first_served() -> None:
    """call_soon keeps its order, and what a callback adds comes after all that was there."""

    async def main() -> list[str]:
        loop, seen = current_loop(), list[str]()
        loop.call_soon(lambda: loop.call_soon(seen.append, "late"))
        for name in "abcd":
            loop.call_soon(seen.append, name)
        await asyncio.sleep(1)
        return seen

    assert virtual.run(main()) == ["a", "b", "c", "d", "late"]


def test_timers_of_one_instant_run_in_the_order_they_were_set() -> None:
    """Neither the kind of call nor the sweeping of cancelled timers changes that order."""

    async def main() -> list[int]:
        loop, seen, due = current_loop(), list[int](), current_loop().time() + 5.0
        for number in range(3000):
            if number % 2:
                loop.call_at(due, seen.append, number)
            else:
                loop.call_later(5.0, seen.append, number)
            loop.call_later(7.0, seen.append, -1).cancel()
        assert len(loop._scheduled) < 2 * 3000
        await asyncio.sleep(10)
        return seen

    assert virtual.run(main()) == list(range(3000))


def test_a_timer_in_the_past_runs_now() -> None:
    """Time never goes back, whatever a timer asks for."""

    async def main() -> list[float]:
        loop, seen = current_loop(), list[float]()
        loop.call_at(3.0, lambda: seen.append(loop.time()))
        loop.call_later(-1.0, lambda: seen.append(loop.time()))
        await asyncio.sleep(1)
        return seen

    assert virtual.run(main()) == [1000.0, 1000.0]


def test_a_cancelled_timer_does_not_move_time() -> None:
    """Time goes only to instants at which something happens."""

    async def main() -> None:
        current_loop().call_later(5, print).cancel()
        await current_loop().create_future()

    with pytest.raises(Stalled, match=r"from 1000\.0 to inf"):
        virtual.run(main())


def test_cancelled_timers_do_not_pile_up() -> None:
    """A hundred thousand time-outs that never fire keep the heap small."""

    async def main() -> int:
        for _ in range(100_000):
            current_loop().call_later(30, print).cancel()
        return len(current_loop()._scheduled)

    assert virtual.run(main()) <= 256


# --- Rule 7: it never hangs ---


def test_stalled_says_who_waits_where() -> None:
    """When nothing can happen any more, the error names every task, its process and its line."""

    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        loop, process = current_loop(), make("client-7")
        task = loop.spawn(process, waits_for_ever(), name="renewal")
        loop.call_later(2.5, loop.pause, process)
        await task

    with pytest.raises(Stalled) as caught:
        virtual.run(main())
    message = str(caught.value)
    first = waits_for_ever.__code__.co_firstlineno
    assert "nothing happens from 1002.5 to inf; 2 tasks wait:" in message
    assert f"{__file__}:{first + 1} in {waits_for_ever.__qualname__}" in message
    assert "renewal, <Process client-7 paused>, at" in message
    assert "main at" in message


def test_sleeping_for_ever_is_a_stall() -> None:
    """A timer at infinity is no event."""
    with pytest.raises(Stalled, match="main at"):
        virtual.run(asyncio.sleep(float("inf")))


def test_the_time_limit_stops_a_world_that_only_ticks() -> None:
    """A heartbeat cannot hide that the main task waits for ever."""

    async def main() -> None:
        beat = asyncio.create_task(_ticker([]), name="heartbeat")
        await asyncio.Event().wait()
        await beat

    with pytest.raises(Stalled, match=r"from 1060\.0 to 1060\.0; 2.*\n.*main.*\n.*heartbeat"):
        virtual.run(main(), time_limit=60)


def test_the_step_limit_stops_a_busy_loop() -> None:
    """Work that never lets time pass ends as well."""

    with pytest.raises(RanAway, match="500 steps were not enough; 1 tasks wait:\n  main at"):
        virtual.run(_ticker([], every=0), step_limit=500)


def test_a_loop_goes_on_after_a_stall() -> None:
    """Stalled leaves the loop whole: solve the cause and run it again."""
    loop = VirtualLoop()
    future: asyncio.Future[int] = loop.create_future()
    with pytest.raises(Stalled):
        loop.run_until_complete(future)
    loop.call_later(3, future.set_result, 7)
    assert loop.run_until_complete(future) == 7
    assert loop.time() == 1003.0
    loop.close()


@pytest.mark.parametrize("ending", ["result", "error", "stall"])
def test_hooks_are_restored(ending: str) -> None:
    """However a run ends, no loop is left running and the hooks are those from before."""

    async def main() -> None:
        if ending == "error":
            raise KeyError
        if ending == "stall":
            await asyncio.Event().wait()

    before = sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth()
    try:
        virtual.run(main())
    except (KeyError, Stalled):
        assert ending != "result"
    assert asyncio._get_running_loop() is None
    assert (sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth()) == before


# --- What it refuses ---


def test_threadsafe_calls_are_for_the_own_thread() -> None:
    """call_soon_threadsafe is call_soon at home, and an error from any other thread."""

    async def main() -> tuple[list[str], list[Exception]]:
        loop, seen, errors = current_loop(), list[str](), list[Exception]()

        def call(name: str) -> None:
            try:
                loop.call_soon_threadsafe(seen.append, name)
            except RuntimeError as error:
                errors.append(error)

        call("mine")
        thread = threading.Thread(target=call, args=["other"])
        thread.start()
        thread.join()
        await asyncio.sleep(1)
        return seen, errors

    seen, errors = virtual.run(main())
    assert seen == ["mine"]
    assert "other threads" in str(errors[0])


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        ("run_in_executor", lambda: asyncio.to_thread(print)),
        ("create_connection", lambda: asyncio.open_connection("127.0.0.1", 1)),
        ("create_server", lambda: asyncio.start_server(print, port=0)),
        ("subprocess_exec", lambda: asyncio.create_subprocess_exec("true")),
        ("subprocess_shell", lambda: asyncio.create_subprocess_shell("true")),
        ("getaddrinfo", lambda: current_loop().getaddrinfo("localhost", 1)),
        ("sock_recv", lambda: current_loop().sock_recv(None, 1)),  # type: ignore[arg-type]
        ("add_reader", lambda: current_loop().add_reader(0, print)),
        ("add_signal_handler", lambda: current_loop().add_signal_handler(2, print)),
    ],
)
def test_the_real_world_is_refused_by_name(name: str, attempt: Callable[[], Any]) -> None:
    """Threads, sockets, subprocesses and signals fail at once with the name of the call."""

    async def main() -> None:
        await attempt()

    with pytest.raises(NotImplementedError, match=f"{name}: a VirtualLoop has no threads"):
        virtual.run(main())


def test_a_closed_loop_takes_nothing() -> None:
    """After close every way to schedule something raises, as on any loop."""
    loop = VirtualLoop()
    loop.close()
    loop.close()
    coro = asyncio.sleep(0)
    for schedule in (
        lambda: loop.call_soon(print),
        lambda: loop.call_later(1, print),
        lambda: loop.create_task(coro),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            schedule()
    coro.close()


# --- asyncio works on it ---


async def _everything(trace: list[object]) -> None:
    """Use most of asyncio, in steps of 10 ms, and write down what happens in which order."""
    loop = asyncio.get_running_loop()

    async def step(name: object, ticks: float, result: object = None) -> object:
        try:
            trace.append((name, "in"))
            await asyncio.sleep(ticks / 100)
            trace.append((name, "out"))
        except asyncio.CancelledError:
            trace.append((name, "cancelled"))
            raise
        return result

    try:
        async with asyncio.timeout(0.015):
            await step("timeout", 5)
    except TimeoutError:
        trace.append("timed out")
    async with asyncio.timeout(9) as scope:
        await step("in time", 1)
    trace.append(scope.expired())
    try:
        async with asyncio.timeout_at(loop.time() - 1):
            await step("timeout_at", 5)
    except TimeoutError:
        trace.append("timed out at once")
    try:
        await asyncio.wait_for(step("wait_for", 5), 0.015)
    except TimeoutError:
        trace.append("wait_for timed out")
    trace.append(await asyncio.wait_for(step("wait_for 2", 1, "fine"), 9))
    trace.append(await asyncio.gather(step(1, 3, "x"), step(2, 1, "y"), step(3, 2, "z")))
    failed = await asyncio.gather(step(4, 1), asyncio.sleep(-1, 5), return_exceptions=True)
    trace.append(failed)

    async def fail() -> None:
        await asyncio.sleep(0.015)
        raise ValueError("child")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(step("sibling", 8))
            group.create_task(fail())
    except* ValueError as errors:
        trace.append(str(errors.exceptions))
    inner = asyncio.ensure_future(step("shielded", 3, "safe"))
    outer = asyncio.ensure_future(asyncio.shield(inner))
    await asyncio.sleep(0.015)
    outer.cancel()
    trace.append(await asyncio.gather(outer, return_exceptions=True))
    trace.append(await inner)

    event, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue[int](1)
    condition, semaphore = asyncio.Condition(), asyncio.Semaphore(2)

    async def enter(name: str) -> None:
        await event.wait()
        async with semaphore, lock:
            await step(name, 1)

    async def produce() -> None:
        for number in range(3):
            await queue.put(number)

    async def notify() -> None:
        await asyncio.sleep(0.015)
        async with condition:
            condition.notify_all()

    enterers = [asyncio.create_task(enter(name)) for name in "abc"]
    others = [asyncio.create_task(produce()), asyncio.create_task(notify())]
    loop.call_later(0.01, event.set)
    trace.extend([await queue.get() for _ in range(3)])
    async with condition:
        await condition.wait()
    enterers[1].cancel()
    done, pending = await asyncio.wait(enterers)
    trace.append((len(done), len(pending), [task.cancelled() for task in enterers]))
    await asyncio.gather(*others)
    slow = asyncio.create_task(step("slow", 9))
    trace.append([len(tasks) for tasks in await asyncio.wait([slow], timeout=0.02)])
    slow.cancel()
    await asyncio.sleep(0)


def test_asyncio_behaves_as_on_a_real_loop() -> None:
    """One program that uses most of asyncio leaves the same trace here and on the default loop."""
    real: list[object] = []
    simulated: list[object] = []
    asyncio.run(_everything(real))
    virtual.run(_everything(simulated))
    assert len(real) > 40
    assert repr(simulated) == repr(real)  # exceptions are equal only to themselves


def test_cancellation_reaches_a_sleeper_now() -> None:
    """A cancelled task runs its finally at the instant of the cancel, and its timer is gone."""

    async def main() -> tuple[float, bool]:
        ended = list[float]()

        async def sleeper() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                ended.append(current_loop().time())

        task = asyncio.create_task(sleeper())
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended[0], task.cancelled()

    assert virtual.run(main()) == (1002.0, True)


# --- run ---


def test_run_returns_the_result_or_the_error() -> None:
    """run hands on what main returns or raises, and nothing else."""

    async def main(error: bool) -> str:
        await asyncio.sleep(1)
        if error:
            raise LookupError("mine")
        return "result"

    assert virtual.run(main(False)) == "result"
    with pytest.raises(LookupError, match="mine"):
        virtual.run(main(True))


def test_run_cancels_leftovers_in_order_of_creation() -> None:
    """Tasks that main leaves behind are cancelled oldest first and may take time to end."""
    seen: list[tuple[int, float]] = []

    async def leftover(number: int) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(number)
            seen.append((number, current_loop().time()))

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(leftover(number)) for number in (1, 2, 2, 3)]
        await asyncio.sleep(5)
        return tasks

    tasks = virtual.run(main())
    assert seen == [(1, 1006.0), (2, 1007.0), (2, 1007.0), (3, 1008.0)]
    assert all(task.cancelled() for task in tasks)


def test_a_leftover_that_cannot_end_is_an_error() -> None:
    """A cancelled task that waits for ever in its finally is reported, not forgotten."""

    async def leftover() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.Event().wait()

    async def main() -> None:
        asyncio.create_task(leftover(), name="stubborn")  # noqa: RUF006
        await asyncio.sleep(5)

    with pytest.raises(Stalled, match="stubborn at"):
        virtual.run(main())


def test_the_first_error_wins(quiet: None) -> None:
    """If main fails and a leftover stalls too, the caller sees why main failed."""

    async def leftover() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.Event().wait()

    async def main() -> None:
        asyncio.create_task(leftover())  # noqa: RUF006
        await asyncio.sleep(5)
        raise LookupError

    with pytest.raises(LookupError):
        virtual.run(main())


def test_unfetched_errors_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody fetched is logged as asyncio does, at the latest at the end."""

    async def fail() -> None:
        raise LookupError("unfetched")

    async def main() -> None:
        current_loop().spawn(make(), fail())
        await asyncio.sleep(1)

    virtual.run(main())
    gc.collect()
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "unfetched"
    ]


def test_generators_are_closed_at_the_end() -> None:
    """An asynchronous generator that main leaves open runs its finally, oldest first."""
    seen: list[object] = []

    async def numbers(name: str) -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            seen.append((name, current_loop().time(), current_process()))

    async def first(generator: AsyncGenerator[int, None]) -> int:
        return await anext(generator)

    async def main() -> list[object]:
        process = make()
        kept = [numbers("a"), numbers("b")]
        await current_loop().spawn(process, first(kept[0]))
        await anext(kept[1])
        async for _ in numbers("dropped"):
            break
        await asyncio.sleep(2)
        seen.append("end")
        return [process, *kept]

    process = virtual.run(main())[0]
    dropped = ("dropped", 1001.0, None)
    assert seen == [dropped, "end", ("a", 1003.0, process), ("b", 1004.0, None)]


def test_run_refuses_to_nest(quiet: None) -> None:
    """Inside another loop run raises at once and leaves nothing behind."""

    async def outer() -> None:
        coro = asyncio.sleep(1)
        with pytest.raises(RuntimeError, match="another loop is running"):
            virtual.run(coro)
        with pytest.raises(AssertionError, match="needs a VirtualLoop"):
            current_loop()

    asyncio.run(outer())
    with pytest.raises(RuntimeError, match="no running event loop"):
        current_loop()


# --- Rule 3: what belongs to a process ---


def test_all_that_a_process_starts_belongs_to_it() -> None:
    """Tasks, timers, callbacks and callbacks of others' futures see the process that made them."""
    seen: list[tuple[str, Process | None]] = []

    def note(what: str) -> None:
        seen.append((what, current_process()))

    async def child() -> None:
        note("child")

    async def client(future: asyncio.Future[None]) -> None:
        note("task")
        current_loop().call_soon(note, "soon")
        current_loop().call_later(1, note, "later")
        future.add_done_callback(lambda _: note("done callback"))
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
        await asyncio.gather(child(), asyncio.wait_for(child(), 1))
        await future
        note("woken by the world")

    async def main() -> Process:
        process = make()
        future: asyncio.Future[None] = current_loop().create_future()
        future.add_done_callback(lambda _: note("world"))
        task = current_loop().spawn(process, client(future), name="client")
        assert task.get_name() == "client"
        await asyncio.sleep(2)
        future.set_result(None)
        await task
        note("world")
        return process

    process = virtual.run(main())
    assert all(owner is (None if what == "world" else process) for what, owner in seen)
    assert len(seen) == 10


def test_an_empty_context_leads_back_to_the_world() -> None:
    """A process can start a task or a callback that is not its own."""

    async def owner() -> Process | None:
        return current_process()

    async def client() -> list[Process | None]:
        seen = [await current_loop().create_task(owner(), context=Context())]
        current_loop().call_soon(lambda: seen.append(current_process()), context=Context())
        await asyncio.sleep(1)
        return [*seen, current_process()]

    async def main() -> tuple[Process, list[Process | None]]:
        process = make()
        return process, await current_loop().spawn(process, client())

    process, seen = virtual.run(main())
    assert seen == [None, None, process]


def test_processes_can_start_processes() -> None:
    """spawn from inside one process starts code of the other."""

    async def name() -> str:
        process = current_process()
        assert process is not None
        return process.name

    async def parent(child: Process) -> tuple[str, str]:
        return await current_loop().spawn(child, name()), await name()

    async def main() -> tuple[str, str]:
        return await current_loop().spawn(make("parent"), parent(make("child")))

    assert virtual.run(main()) == ("child", "parent")


# --- Rule 4: pause ---


async def _ticker(seen: list[float], every: float = 1.0) -> None:
    while True:
        await asyncio.sleep(every)
        seen.append(current_loop().time() - 1000)


def test_a_pause_holds_a_sleep_and_the_others_go_on() -> None:
    """A process paused in the middle of a sleep wakes at resume; another one notices nothing."""

    async def main() -> tuple[list[float], list[float]]:
        loop, paused, other = current_loop(), list[float](), list[float]()
        process = make()
        loop.spawn(process, _ticker(paused))
        loop.spawn(make(), _ticker(other))
        loop.call_later(1.5, loop.pause, process, 3.0)
        await asyncio.sleep(6.7)
        return paused, other

    paused, other = virtual.run(main())
    assert paused == [1.0, 4.5, 5.5, 6.5]
    assert other == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_pause_that_ends_before_the_timer_changes_nothing() -> None:
    """A timer that did not come due in the pause keeps its instant."""

    async def main() -> list[float]:
        loop, seen, process = current_loop(), list[float](), make()
        loop.spawn(process, _ticker(seen, 10.0))
        loop.call_later(2, loop.pause, process, 3.0)
        await asyncio.sleep(11)
        return seen

    assert virtual.run(main()) == [10.0]


def test_what_came_due_in_a_pause_runs_in_that_order() -> None:
    """Timers and replies of the world run at resume as they came due, before anything newer."""
    seen: list[tuple[str, float]] = []

    def note(what: str) -> None:
        seen.append((what, current_loop().time() - 1000))

    async def client(reply: asyncio.Future[None]) -> None:
        loop = current_loop()
        for due in (5, 3, 1):
            loop.call_later(due, note, f"timer {due}")
        reply.add_done_callback(lambda _: note("reply"))

    async def main() -> None:
        loop, process = current_loop(), make()
        reply: asyncio.Future[None] = loop.create_future()
        newer: asyncio.Future[None] = loop.create_future()
        await loop.spawn(process, client(reply))
        loop.pause(process)
        await asyncio.sleep(4)
        reply.set_result(None)
        await asyncio.sleep(4)

        async def wait_for_newer() -> None:
            newer.add_done_callback(lambda _: note("newer"))

        other = make("impatient")
        await loop.spawn(other, wait_for_newer())
        loop.spawn(process, asyncio.sleep(0)).add_done_callback(lambda _: note("world"))
        assert seen == []
        newer.set_result(None)  # queued already when the others are let go
        loop.resume(process)
        await asyncio.sleep(1)

    virtual.run(main())
    mine = [what for what, _ in seen if what not in ("newer", "world")]
    assert mine == ["timer 1", "timer 3", "reply", "timer 5"]
    assert {at for _, at in seen} == {8.0}


def test_resume_keeps_the_order_within_the_process() -> None:
    """What is already queued for it when it resumes came due later, and so it runs later."""
    seen: list[int] = []

    async def client() -> None:
        loop = current_loop()
        loop.call_later(1, seen.append, 1)
        loop.call_later(2, seen.append, 2)

    async def main() -> None:
        loop, process = current_loop(), make()
        loop.call_later(2, loop.resume, process)  # at the same instant, and before the timer
        await loop.spawn(process, client())
        loop.pause(process)
        await asyncio.sleep(3)

    virtual.run(main())
    assert seen == [1, 2]


def test_the_longest_pause_counts_and_resume_ends_all() -> None:
    """A shorter pause does not cut a longer one, and old alarms do not wake a new pause."""

    async def main() -> list[float]:
        loop, process, seen = current_loop(), make(), list[float]()
        loop.spawn(process, _ticker(seen))
        loop.call_later(0.5, loop.pause, process, 4.0)  # until 4.5
        loop.call_later(1.5, loop.pause, process, 1.0)
        loop.call_later(6.1, loop.pause, process, 5.0)  # until 11.1, ended at 6.7
        loop.call_later(6.7, loop.resume, process)
        loop.call_later(10.8, loop.pause, process, 2.0)  # until 12.8
        await asyncio.sleep(13)
        return seen

    assert virtual.run(main()) == pytest.approx([4.5, 5.5, 6.7, 7.7, 8.7, 9.7, 10.7, 12.8])


def test_a_process_that_pauses_itself_is_woken() -> None:
    """The alarm belongs to the world, and the running step gets to its next suspension."""

    async def client() -> list[float]:
        loop, process = current_loop(), current_process()
        assert process is not None
        loop.pause(process, 2.0)
        before = loop.time()
        await asyncio.sleep(0)
        return [before, loop.time()]

    async def main() -> list[float]:
        return await current_loop().spawn(make(), client())

    assert virtual.run(main()) == [1000.0, 1002.0]


def test_a_task_spawned_into_a_pause_starts_at_resume() -> None:
    """A paused process does not even begin anything."""

    async def now() -> float:
        return current_loop().time()

    async def main() -> float:
        loop, process = current_loop(), make()
        loop.pause(process, 3.0)
        return await loop.spawn(process, now())

    assert virtual.run(main()) == 1003.0


def test_the_clock_of_a_paused_process_goes_on() -> None:
    """After a pause a process sees on its own clock that it was away."""

    async def client() -> float:
        process = current_process()
        assert process is not None
        before = process.clock()
        await asyncio.sleep(1)
        return process.clock() - before

    async def main() -> float:
        loop, process = current_loop(), make()
        loop.call_later(0.5, loop.pause, process, 9.5)
        return await loop.spawn(process, client())

    assert virtual.run(main()) == 10.0


# --- Rule 5: kill ---


def test_a_killed_process_runs_nothing_any_more(quiet: None) -> None:
    """Neither its timers, tasks, callbacks nor finally blocks run while the world goes on."""
    seen: list[object] = []

    async def client(reply: asyncio.Future[None]) -> None:
        current_loop().call_later(2, seen.append, "timer")
        reply.add_done_callback(lambda _: seen.append("callback"))
        try:
            await asyncio.sleep(2)
        finally:
            process = current_process()
            assert process is not None
            if process.alive:  # as a simulated world has to ask
                seen.append("finally")

    async def main() -> list[object]:
        loop, process = current_loop(), make()
        reply: asyncio.Future[None] = loop.create_future()
        reference = weakref.ref(loop.spawn(process, client(reply)))
        await asyncio.sleep(1)
        assert (process.alive, process.paused) == (True, False)
        loop.kill(process)
        loop.kill(process)
        loop.pause(process, 1)
        loop.resume(process)
        assert (process.alive, process.paused) == (False, False)
        reply.set_result(None)
        await asyncio.sleep(5)
        gc.collect()
        assert reference() is not None
        coro = asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="process p was killed"):
            loop.spawn(process, coro)
        return list(seen)

    assert virtual.run(main()) == []
    assert seen == []


def test_a_killed_process_may_have_been_paused(quiet: None) -> None:
    """SIGKILL ends a stopped process as well, with all that waited for its resume."""

    async def main() -> list[float]:
        loop, process, seen = current_loop(), make(), list[float]()
        loop.spawn(process, _ticker(seen))
        await asyncio.sleep(1.5)
        loop.pause(process, 5.0)
        await asyncio.sleep(2)
        loop.kill(process)
        await asyncio.sleep(10)
        return seen

    assert virtual.run(main()) == [1.0]


def test_who_waits_for_the_dead_waits_for_ever(quiet: None) -> None:
    """Futures and tasks of a killed process never resolve; a time-out around a wait still works."""

    async def promise(future: asyncio.Future[int]) -> None:
        await asyncio.sleep(2)
        future.set_result(1)

    async def main() -> tuple[bool, ...]:
        loop, process = current_loop(), make()
        future: asyncio.Future[int] = loop.create_future()
        task = loop.spawn(process, promise(future))
        await asyncio.sleep(1)
        loop.kill(process)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 5)
        assert loop.time() == 1006.0
        waited: list[asyncio.Future[Any]] = [task, future]
        done, _ = await asyncio.wait(waited, timeout=5)
        waiter = asyncio.create_task(asyncio.wait([task]), name="orphan")
        hopeless = asyncio.ensure_future(_await(task))  # it cannot be cancelled, and run() ends
        await asyncio.sleep(1)
        return bool(done), waiter.done(), hopeless.done()

    async def _await(task: asyncio.Task[None]) -> None:
        await task

    assert virtual.run(main()) == (False, False, False)


def test_a_stall_does_not_list_the_dead() -> None:
    """Only who could still do something is named when nothing happens."""

    async def main() -> None:
        loop, process = current_loop(), make()
        task = loop.spawn(process, asyncio.sleep(9), name="dead task")
        await asyncio.sleep(1)
        loop.kill(process)
        await task

    with pytest.raises(Stalled, match="1 tasks wait:\n  main at") as caught:
        virtual.run(main())
    assert "from 1001.0 to" in str(caught.value)
    assert "dead task" not in str(caught.value)


def test_a_process_can_die_at_any_line(quiet: None) -> None:
    """A process that kills itself gets no further than its next suspension."""
    seen: list[str] = []

    async def client() -> None:
        process = current_process()
        assert process is not None
        current_loop().kill(process)
        seen.append("same step")
        await asyncio.sleep(0)
        seen.append("never")

    async def main() -> None:
        current_loop().spawn(make(), client())
        await asyncio.sleep(1)

    virtual.run(main())
    assert seen == ["same step"]


def test_the_dead_are_ended_quietly_and_in_their_own_context(quiet: None) -> None:
    """At close each finally sees its dead process, may do anything, and nothing comes of it."""
    seen: list[object] = []

    async def effect() -> None:
        seen.append("effect")

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            seen.append("generator")

    async def stubborn() -> None:
        try:
            async for _ in numbers():
                await asyncio.sleep(1000)
        finally:
            process = current_process()
            seen.append((process and process.name, process and process.alive))
            asyncio.create_task(effect())  # noqa: RUF006
            current_loop().call_soon(seen.append, "effect")
            current_loop().call_later(0, seen.append, "effect")
            try:
                await asyncio.shield(effect())
            finally:
                async with asyncio.timeout(1):
                    await asyncio.sleep(0)
                raise LookupError

    async def unstarted() -> None:
        seen.append("started")

    async def main() -> None:
        loop, names = current_loop(), ("a", "b")
        processes = [make(name) for name in names]
        for process in processes:
            loop.spawn(process, stubborn())
        await asyncio.sleep(1)
        for process in processes:
            loop.spawn(process, unstarted())
            loop.kill(process)
        await asyncio.sleep(5)

    virtual.run(main())
    gc.collect()
    assert seen == [("a", False), ("b", False)]
    assert asyncio._get_running_loop() is None


def test_errors_that_the_dead_had_to_fetch_are_not_noise(quiet: None) -> None:
    """Replies and children that failed after their owner was killed leave nothing in the log."""

    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError

    async def client(reply: asyncio.Future[None]) -> None:
        await asyncio.gather(fail(), fail(), reply)

    async def main() -> None:
        loop, process = current_loop(), make()
        reply: asyncio.Future[None] = loop.create_future()
        loop.spawn(process, client(reply))
        loop.spawn(process, fail()).add_done_callback(lambda _: loop.kill(process))
        await asyncio.sleep(3)
        reply.set_exception(LookupError())
        await asyncio.sleep(1)

    virtual.run(main())


def test_live_processes_are_cancelled_at_the_end_and_paused_ones_killed(quiet: None) -> None:
    """When main is over, who runs may clean up; who is stopped cannot."""
    seen: list[str] = []

    async def client() -> None:
        process = current_process()
        assert process is not None
        try:
            await asyncio.sleep(100)
        finally:
            if process.alive:
                await asyncio.sleep(1)
                seen.append(process.name)

    async def main() -> None:
        loop = current_loop()
        running, paused = make("running"), make("paused")
        loop.spawn(running, client())
        loop.spawn(paused, client())
        await asyncio.sleep(1)
        loop.pause(paused)

    virtual.run(main())
    assert seen == ["running"]


def test_close_alone_is_enough(quiet: None) -> None:
    """A loop that is closed without any cleaning leaves no noise either."""
    loop = VirtualLoop()
    process = Process("p", ProcessClock(loop))
    loop.spawn(process, asyncio.sleep(100))
    loop.create_task(asyncio.sleep(100))
    loop.run_until_complete(asyncio.sleep(1))
    loop.close()
    assert not process.alive


# --- Clocks ---


def test_clocks_have_an_offset_a_rate_and_steps() -> None:
    """A clock reads offset plus rate times elapsed time, and a step moves it at once."""

    async def main() -> None:
        loop = current_loop()
        fast, slow, wall = (
            ProcessClock(loop, offset=7.0, rate=1.005),
            ProcessClock(loop, offset=-900.0, rate=0.995),
            ProcessClock(loop, offset=1.7e9),
        )
        assert (fast(), slow()) == (1007.0, 100.0)
        await asyncio.sleep(200)
        assert (fast(), slow()) == pytest.approx((1208.0, 299.0))
        before = wall()
        wall.step(-3600.0)
        assert wall() == before - 3600.0
        wall.step(7200.0)
        await asyncio.sleep(1)
        assert wall() == before + 3601.0

    virtual.run(main())
    loop = VirtualLoop()
    with pytest.raises(ValueError, match="rate above 0"):
        ProcessClock(loop, rate=0)
    loop.close()


# --- Determinism ---


def _trace(seed: int) -> list[tuple[float, str, str]]:
    """Run a world of processes, faults and queues, all of it drawn from one seed."""
    events: list[tuple[float, str, str]] = []

    def note(what: str) -> None:
        process, task = current_process(), asyncio.current_task()
        where = task.get_name() if task else "callback"
        events.append((current_loop().time(), f"{process and process.name}/{where}", what))

    async def request(server: asyncio.Queue[asyncio.Future[int]], dice: random.Random) -> int:
        reply: asyncio.Future[int] = current_loop().create_future()
        current_loop().call_later(dice.choice([0, 0.1, 0.2]), server.put_nowait, reply)
        async with asyncio.timeout(dice.choice([0.2, 0.5, 3])):
            return await reply

    async def client(server: asyncio.Queue[asyncio.Future[int]], dice: random.Random) -> None:
        while True:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(dice.randrange(1, 5)):
                        group.create_task(request(server, dice))
                note("answered")
            except* TimeoutError as errors:
                note(f"{len(errors.exceptions)} late")
            await asyncio.sleep(dice.choice([0, 0, 0.1, 1]))

    async def main() -> None:
        loop, server = current_loop(), asyncio.Queue[asyncio.Future[int]]()
        dice, number = loop.random, 0
        processes: list[Process] = []
        while len(events) < 10_000:
            number += 1
            if len(processes) < 5:
                processes.append(make(f"p{number}"))
                loop.spawn(processes[-1], client(server, random.Random(dice.random())))
            fault = dice.randrange(40)
            if fault == 0:
                loop.kill(processes.pop(dice.randrange(len(processes))))
            elif fault == 1:
                loop.pause(dice.choice(processes), dice.choice([0.1, 0.3, 2]))
            while not server.empty():
                reply = server.get_nowait()
                note("gone" if reply.done() else "served")
                if not reply.done():
                    loop.call_later(dice.choice([0, 0.1]), _set, reply, number)
            await asyncio.sleep(0.1)

    def _set(reply: asyncio.Future[int], value: int) -> None:
        note(f"reply {value}")
        if not reply.done():
            reply.set_result(value)

    virtual.run(main(), seed=seed)
    return events


def test_one_seed_is_one_schedule() -> None:
    """The same seed gives the same ten thousand events, another seed gives others."""
    first = _trace(7)
    litter = [object() for _ in range(12345)]  # other addresses, thus other ids
    assert len(first) >= 10_000
    assert {what for _, _, what in first} >= {"answered", "1 late", "2 late", "gone", "served"}
    assert _trace(7) == first
    assert _trace(8) != first
    del litter


def test_no_schedule_depends_on_hashes() -> None:
    """Interpreters with different hash seeds and different memory layouts see the same events."""
    digests = {_digest(7)}
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        done = subprocess.run(
            [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def _digest(seed: int) -> str:
    return hashlib.sha256(repr(_trace(seed)).encode()).hexdigest()


def test_a_task_group_cancels_in_the_same_order_in_every_run() -> None:
    """asyncio walks a set of tasks here: their order in it must not come from their addresses."""

    async def child(number: int, seen: list[int]) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            seen.append(number)

    async def fail() -> None:
        raise LookupError

    async def main() -> list[int]:
        seen: list[int] = []
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(100):
                    group.create_task(child(number, seen))
                await asyncio.sleep(1)
                group.create_task(fail())
        except* LookupError:
            pass
        return seen

    orders = set()
    for size in range(5):
        litter = [[object() for _ in range(size * 17)] for _ in range(size * 31)]
        orders.add(tuple(virtual.run(main())))
        del litter
    assert len(orders) == 1


def test_a_seed_shuffles_processes_and_never_within_one() -> None:
    """Processes ready together run in an order drawn from the seed, each in its own order."""

    async def note(seen: list[tuple[str, int]], name: str) -> None:
        for number in range(3):
            current_loop().call_later(1, seen.append, (name, number))

    async def main() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []
        for name in "abcd":
            await current_loop().spawn(make(name), note(seen, name))
        await asyncio.sleep(2)
        return seen

    plain = [(name, number) for name in "abcd" for number in range(3)]
    assert virtual.run(main()) == plain
    orders = [virtual.run(main(), seed=seed) for seed in range(20)]
    assert orders == [virtual.run(main(), seed=seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) > 10
    for order in orders:
        assert sorted(order) == plain
        for name in "abcd":
            assert [number for who, number in order if who == name] == [0, 1, 2]


def test_tasks_are_kept_and_named_by_the_loop() -> None:
    """A task that nobody holds is not collected, and its name is the same in every run."""

    async def lost(seen: list[str]) -> None:
        await asyncio.get_running_loop().create_future()
        seen.append("woken")

    async def main() -> list[str]:
        seen: list[str] = []
        asyncio.create_task(lost(seen))  # noqa: RUF006
        await asyncio.sleep(0)
        gc.collect()
        return sorted(task.get_name() for task in asyncio.all_tasks())

    assert virtual.run(main()) == ["main", "task-2"]
    assert virtual.run(main()) == ["main", "task-2"]


# --- Memory ---


def test_done_tasks_do_not_pile_up() -> None:
    """The loop forgets tasks that are done while it runs, not only at its end."""

    async def main() -> int:
        for _ in range(10_000):
            await asyncio.create_task(asyncio.sleep(0))
        return len(current_loop()._tasks)

    assert virtual.run(main()) <= 128


def test_memory_does_not_grow_over_many_runs(quiet: None) -> None:
    """Five hundred runs with kills, pauses and leftovers leave not one object behind."""
    loops: weakref.WeakSet[VirtualLoop] = weakref.WeakSet()

    async def client() -> None:
        try:
            await asyncio.gather(_ticker([]), asyncio.sleep(1000))
        finally:
            await asyncio.sleep(1)

    async def main() -> None:
        loop = current_loop()
        loops.add(loop)
        processes = [make(str(number)) for number in range(4)]
        for process in processes:
            loop.spawn(process, client())
        await asyncio.sleep(1.5)
        loop.pause(processes[0], 2)
        loop.pause(processes[1])
        loop.kill(processes[2])
        await asyncio.sleep(3)

    counts = []
    for number in range(501):
        virtual.run(main(), seed=number)
        if number in (20, 500):
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert len(loops) == 0
    assert counts[1] - counts[0] < 100


def test_debug_mode_works(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio's debug mode adds its tracebacks and changes nothing else."""
    with caplog.at_level(logging.WARNING):
        loop = VirtualLoop()
        loop.set_debug(True)
        loop.run_until_complete(asyncio.wait_for(asyncio.sleep(5), 10))
        assert loop.time() == 1005.0
        loop.close()
    assert caplog.records == []


if __name__ == "__main__":
    sys.stdout.write(_digest(7))
