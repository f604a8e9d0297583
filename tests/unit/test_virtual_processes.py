"""Simulated processes on the virtual loop: what belongs to one, and pause."""

from __future__ import annotations

import asyncio
from contextvars import Context

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    Process,
    current_loop,
    current_process,
)
from tests.unit.virtual_world import make, ticker

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


def test_a_pause_holds_a_sleep_and_the_others_go_on() -> None:
    """A process paused in the middle of a sleep wakes at resume; another one notices nothing."""

    async def main() -> tuple[list[float], list[float]]:
        loop, paused, other = current_loop(), list[float](), list[float]()
        process = make()
        loop.spawn(process, ticker(paused))
        loop.spawn(make(), ticker(other))
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
        loop.spawn(process, ticker(seen, 10.0))
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
        loop.spawn(process, ticker(seen))
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
