"""`holdfast run`: whatever happens to us or to the lock, the command is stopped in time (S32)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.cli.conftest import Commands, eventually, gone, send

pytestmark = pytest.mark.slow

STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.2; done"
POLITE = "trap 'exit 0' TERM; echo $$; while :; do sleep 0.05; done"


def dead(pid: int) -> str:
    """Return a script that succeeds if a process has ended, be it reaped or not."""
    return f"! grep -qs '^State:.[^ZX]' /proc/{pid}/status"


def holder_of(child: int) -> int:
    """Return the parent of the command: the process that holds the lock."""
    with open(f"/proc/{child}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def test_broken_lock_stops_the_command(commands: Commands) -> None:
    """After `break` the command gets TERM at once, and the code is 76."""
    process = commands.start("run", "--ttl", "30", "job", "--", "sh", "-c", POLITE)
    child = commands.child_of(process)
    assert "1 holder" in commands.do("break", "job", "--yes")
    broken = time.monotonic()
    _, errors = commands.ended(process, 76)
    assert time.monotonic() - broken < 9  # its next renewal would be after 10 s
    assert gone(child)
    assert "broke the lock" in errors


def test_broken_lock_kills_who_does_not_stop(commands: Commands) -> None:
    """Who ignores TERM is killed when the grace is over, and not before."""
    process = commands.start("run", "--grace", "1.5", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    commands.do("break", "job", "--yes")
    broken = time.monotonic()
    assert not gone(child)
    commands.ended(process, 76)
    assert 0.3 < time.monotonic() - broken < 9
    assert gone(child)


def test_paused_run_loses_lock_and_child(commands: Commands) -> None:
    """While `holdfast run` is stopped for a TTL the command dies, before another gets the lock."""
    process = commands.start("run", "--ttl", "2", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    send(process, signal.SIGSTOP)
    commands.do("run", "job", "--", "sh", "-c", dead(child))
    assert gone(child)
    send(process, signal.SIGCONT)
    assert "stopped" in commands.ended(process, 76)[1]


def test_paused_for_less_than_a_ttl_is_harmless(commands: Commands) -> None:
    """A short stop is forgiven."""
    process = commands.start(
        "run",
        "--ttl",
        "4",
        "job",
        "--",
        "sh",
        "-c",
        "echo $$; read x; exit 4",
        stdin=subprocess.PIPE,
    )
    commands.child_of(process)
    send(process, signal.SIGSTOP)
    time.sleep(1)
    send(process, signal.SIGCONT)
    time.sleep(2)
    commands.ended(process, 4)


def test_paused_holder_process_is_noticed_by_the_front(commands: Commands) -> None:
    """If the process inside that renews is stopped, the other one kills the command in time."""
    process = commands.start("run", "--ttl", "2", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    os.kill(holder_of(child), signal.SIGSTOP)
    commands.do("run", "job", "--", "sh", "-c", dead(child))
    assert gone(child)
    commands.ended(process, 76)


def test_both_paused(commands: Commands) -> None:
    """After a pause of everything (a machine that slept) the command is killed at once."""
    process = commands.start("run", "--ttl", "1", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    holder = holder_of(child)
    for pid in (holder, process.pid):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    resumed = time.monotonic()
    for pid in (holder, process.pid):
        os.kill(pid, signal.SIGCONT)
    commands.ended(process, 76)
    assert gone(child)
    assert time.monotonic() - resumed < 10


def test_silent_engine(commands: Commands) -> None:
    """When renewal is not answered the command gets TERM, then KILL, before the deadline."""
    process = commands.start("run", "--ttl", "3", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    with closing(sqlite3.connect(f"{commands.folder}/locks.db", isolation_level=None)) as database:
        database.execute("PRAGMA busy_timeout = 5000")
        database.execute("BEGIN EXCLUSIVE")  # nobody can write meanwhile
        silent = time.monotonic()
        eventually(lambda: gone(child))
        assert 1.5 < time.monotonic() - silent < 6
        database.execute("ROLLBACK")
    assert "did not answer" in commands.ended(process, 76)[1]


@pytest.mark.parametrize("script", [STUBBORN, f'setsid sh -c "{STUBBORN}" & wait'])
def test_killed_run_takes_the_child_along(commands: Commands, script: str) -> None:
    """After kill -9 of `holdfast run` the command, also a grandchild that left its process group,
    is gone before another gets the lock; and that is soon."""
    process = commands.start("run", "--ttl", "30", "job", "--", "sh", "-c", script)
    child = commands.child_of(process)
    waiter = commands.start("run", "job", "--", "sh", "-c", dead(child))
    eventually(lambda: commands.looked_at("job")["waiters"])
    killed = time.monotonic()
    process.kill()
    commands.ended(waiter)
    assert time.monotonic() - killed < 15
    assert gone(child)


def test_killed_run_takes_a_stopped_child_along(commands: Commands) -> None:
    """A command that is stopped dies, too."""
    process = commands.start("run", "job", "--", "sh", "-c", "echo $$; exec sleep 60")
    child = commands.child_of(process)
    os.kill(child, signal.SIGSTOP)
    process.kill()
    eventually(lambda: gone(child))
    commands.do("run", "--timeout", "5", "job", "true")


def test_killed_waiter_leaves_the_queue(commands: Commands) -> None:
    """After kill -9 of a `holdfast run` that waits, nothing of it waits on."""
    holder = commands.start("run", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    waiter = commands.start("run", "job", "--", "touch", f"{commands.folder}/ran")
    eventually(lambda: commands.looked_at("job")["waiters"])
    waiter.kill()
    eventually(lambda: not commands.looked_at("job")["waiters"])
    commands.ended(holder, 1)
    assert not (commands.folder / "ran").exists()


def test_child_dies_with_the_holder_process(commands: Commands) -> None:
    """kill -9 of the process inside that holds the lock ends the command and `holdfast run`."""
    process = commands.start("run", "job", "--", "sh", "-c", STUBBORN)
    child = commands.child_of(process)
    os.kill(holder_of(child), signal.SIGKILL)
    assert "killed" in commands.ended(process, 137)[1]
    eventually(lambda: gone(child), 2)


def test_stop_is_final(commands: Commands) -> None:
    """A command that ends well after it was told to stop still counts as stopped: 76."""
    process = commands.start("run", "--ttl", "3", "job", "--", "sh", "-c", POLITE)
    child = commands.child_of(process)
    commands.do("break", "job", "--yes")
    commands.ended(process, 76)
    assert gone(child)


def test_waiter_that_is_stopped_starts_nothing(commands: Commands) -> None:
    """A `holdfast run` that is stopped when its turn comes gives the lock to the next: 76."""
    holder = commands.start("run", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    waiter = commands.start("run", "--ttl", "1", "job", "--", "touch", f"{commands.folder}/ran")
    eventually(lambda: commands.looked_at("job")["waiters"])
    send(waiter, signal.SIGSTOP)
    commands.ended(holder, 1)
    commands.do("run", "--timeout", "10", "job", "true")
    send(waiter, signal.SIGCONT)
    assert "given back" in commands.ended(waiter, 76)[1]
    assert not (commands.folder / "ran").exists()


def test_lock_that_was_gone_at_the_end_is_said(commands: Commands) -> None:
    """A command that ends before anybody notices the loss keeps its code, and a sentence warns."""
    code = f"import sqlite3; d = sqlite3.connect('{commands.folder}/locks.db')"
    code += "; d.execute('DELETE FROM record'); d.commit()"
    process = commands.start("run", "job", "--", sys.executable, "-c", code)
    assert "was no longer ours when the command ended" in commands.ended(process)[1]
