"""The virtual loop is deterministic and leaves nothing behind: clocks, seeds, memory."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import os
import random
import subprocess
import sys
import weakref

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    Process,
    ProcessClock,
    VirtualLoop,
    current_loop,
    current_process,
)
from tests.unit.virtual_world import make, ticker

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
            await asyncio.gather(ticker([]), asyncio.sleep(1000))
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
