"""asyncio on the virtual loop: it behaves as on a real one, and `run` ends what it began."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    Stalled,
    current_loop,
    current_process,
)
from tests.unit.virtual_world import make

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
