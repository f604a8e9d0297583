"""A killed process on the virtual loop runs nothing any more, and makes no noise."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    Process,
    ProcessClock,
    Stalled,
    VirtualLoop,
    current_loop,
    current_process,
)
from tests.unit.virtual_world import make, ticker

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
        loop.spawn(process, ticker(seen))
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
