"""What the virtual loop promises: rules 1 to 7 of holdfast.testing.loop, and asyncio's own."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.testing import loop as virtual
from holdfast.testing.loop import (
    RanAway,
    Stalled,
    VirtualLoop,
    current_loop,
)
from tests.unit.virtual_world import make, ticker

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
        beat = asyncio.create_task(ticker([]), name="heartbeat")
        await asyncio.Event().wait()
        await beat

    with pytest.raises(Stalled, match=r"from 1060\.0 to 1060\.0; 2.*\n.*main.*\n.*heartbeat"):
        virtual.run(main(), time_limit=60)


def test_the_step_limit_stops_a_busy_loop() -> None:
    """Work that never lets time pass ends as well."""

    with pytest.raises(RanAway, match="500 steps were not enough; 1 tasks wait:\n  main at"):
        virtual.run(ticker([], every=0), step_limit=500)


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
