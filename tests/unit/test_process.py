"""Forks, exits and signals: what a process leaves behind (S29, S30)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import holdfast
from holdfast import aio


def in_child(check: object) -> None:
    """Run `check` in a forked child; fail here if it failed there."""
    assert callable(check)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            check()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_can_work() -> None:
    """The child's leases are lost (forked), its client works with new threads, and what it does
    does not touch the parent's lease."""
    lost: list[object] = []
    with holdfast.connect("memory://fork", ttl=0.5) as client:
        lock = client.lock("x", on_lost=lambda lease, reason: lost.append(reason))
        with lock as lease:
            time.sleep(0.4)  # the clock and the worker run by now

            def check() -> None:
                assert not lease.held
                assert lease.lost_reason is holdfast.Reason.FORKED
                assert lease.lost.wait(0)
                assert lease.release() is False
                with pytest.raises(holdfast.LeaseLost, match="parent process"):
                    lease.ensure_held()
                assert client.inspect("x").holders == ()
                with client.lock("x", ttl=0.5) as own:
                    time.sleep(0.8)
                    assert own.held, "renewed by the child's own threads"
                client.close()

            in_child(check)
            assert lease.held
            assert not lost
        assert not lost


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_async_client_refuses_to_work_in_a_forked_child() -> None:
    """An event loop is not forked: the inherited client says so, its lease is lost."""

    async def main() -> None:
        async with aio.connect("memory://fork-async") as client, client.lock("x") as lease:

            def check() -> None:
                assert not lease.held
                assert lease.lost_reason is holdfast.Reason.FORKED

                async def use() -> None:
                    with pytest.raises(holdfast.ClientClosed, match="before a fork"):
                        await client.lock("y").acquire()

                asyncio._set_running_loop(None)
                asyncio.run(use())

            in_child(check)
            assert lease.held

    asyncio.run(main())


def test_an_async_client_belongs_to_one_loop() -> None:
    """A client used on a second event loop says so instead of hanging."""
    client = aio.connect("memory://two-loops")

    async def use() -> None:
        await client.ping()

    asyncio.run(use())
    with pytest.raises(holdfast.ClientClosed, match="another event loop"):
        asyncio.run(use())


def run_script(script: str, *, send: int | None = None) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if send is not None:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        process.send_signal(send)
    out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_a_lock_held_at_exit_is_given_back() -> None:
    """The interpreter's exit closes sync clients: the engine sees a release, not only a TTL."""
    done = run_script(
        """
        import holdfast
        client = holdfast.connect("memory://")
        release = client.engine.release
        client.engine.release = lambda *a: print("released", release(*a))
        lease = client.lock("x").acquire()
        """
    )
    assert done.stdout == "released True\n"
    assert done.returncode == 0, done.stderr


def test_sigterm_gives_locks_back_once_asked_to() -> None:
    """With release_on_sigterm() a TERM leaves the block, releases, and exits with 143."""
    done = run_script(
        """
        import holdfast, time
        assert holdfast.release_on_sigterm() and not holdfast.release_on_sigterm()
        client = holdfast.connect("memory://")
        release = client.engine.release
        client.engine.release = lambda *a: print("released", release(*a))
        with client.lock("x"):
            print("ready", flush=True)
            while True:  # a signal that comes just before a sleep is noticed after it
                time.sleep(0.01)
        """,
        send=signal.SIGTERM,
    )
    assert done.stdout == "released None\n" or done.stdout == "released True\n"
    assert done.returncode == 143, done.stderr


def test_a_dropped_lease_is_released_and_named() -> None:
    """A lease nobody keeps is given back at once, with a ResourceWarning that names it (S30)."""
    with holdfast.connect("memory://dropped") as client:
        lease = client.lock("y").acquire()
        assert lease is not None
        with pytest.warns(ResourceWarning, match="'y' with token"):
            del lease
        with client.lock("y", timeout=5):
            pass


def test_threads_start_when_needed_and_end_with_close() -> None:
    """A client that was only made runs no thread; a closed one leaves none."""

    def ours() -> int:
        return sum(thread.name.startswith("holdfast") for thread in threading.enumerate())

    before = ours()
    client = holdfast.connect("memory://threads")
    client.ping()
    assert ours() == before
    with client.lock("x", ttl=0.1):
        assert ours() == before + 1, "the clock"
        time.sleep(0.2)
        assert ours() == before + 2, "and the worker"
    client.close()
    assert ours() == before
