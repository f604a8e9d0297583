"""`holdfast run`: what the command gets: environment, input, output, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Commands, eventually, gone, send

# Says its pid when it is ready, then what comes.
TRAPS = """
for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "echo $s" $s; done
trap 'exit 9' ALRM
echo $$
while :; do sleep 0.05 & wait $!; done
"""


def test_environment(commands: Commands) -> None:
    """The command finds name, token, domain and URL, and the lock it is told of is the one held."""
    script = 'env | grep ^HOLDFAST_ | sort; python3 -m holdfast show "$HOLDFAST_NAME" --json'
    script = script.replace("python3", sys.executable)
    output = commands.do("run", "--namespace", "shop", "orders/1", "--", "sh", "-c", script)
    lines, _, shown = output.partition("{")
    found = dict(line.split("=", 1) for line in lines.splitlines())
    assert found.keys() == {
        *("HOLDFAST_NAME", "HOLDFAST_TOKEN", "HOLDFAST_DOMAIN", "HOLDFAST_URL"),
        *("HOLDFAST_MODE", "HOLDFAST_LIMIT", "HOLDFAST_NAMESPACE"),
    }
    assert (found["HOLDFAST_MODE"], found["HOLDFAST_LIMIT"]) == ("exclusive", "0")
    assert found["HOLDFAST_NAME"] == "orders/1"
    assert found["HOLDFAST_DOMAIN"] == "sqlite:shop"
    assert found["HOLDFAST_URL"] == commands.url
    holder = json.loads("{" + shown)["holders"][0]
    assert holder["token"] == int(found["HOLDFAST_TOKEN"])


def test_default_engine(commands: Commands) -> None:
    """Without a URL the file in the state directory is used, and the command is told its URL."""
    del commands.environment["HOLDFAST_URL"]
    commands.environment["XDG_STATE_HOME"] = f"{commands.folder}/state of mind%"
    url = commands.do("run", "job", "--", "sh", "-c", "echo $HOLDFAST_URL").strip()
    assert (commands.folder / "state of mind%/holdfast/locks.db").exists()
    assert "%25" in url
    commands.do("ls", "--url", url)


def test_tokens_rise(commands: Commands) -> None:
    """The next command under the same lock has a larger token."""
    first, second = (
        int(commands.do("run", "job", "--", "sh", "-c", "echo $HOLDFAST_TOKEN")) for _ in range(2)
    )
    assert second > first


def test_input_output_and_errors(commands: Commands) -> None:
    """Standard input, output and errors are the command's, byte by byte."""
    data = bytes(range(256)) * 400
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "holdfast",
            "run",
            "job",
            "sh",
            "-c",
            "cat; echo e >&2",
        ],
        input=data,
        capture_output=True,
        env=commands.environment,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"e\n")


def test_no_shell_is_involved(commands: Commands) -> None:
    """Arguments arrive as they are."""
    odd = ["$HOME", "a  b", "*", "'", "", "--", "ünïcode"]
    assert commands.do("run", "job", "--", "printf", "%s|", *odd) == "".join(f"{o}|" for o in odd)


def test_own_process_group_and_clean_signals(commands: Commands) -> None:
    """The command leads a process group, and no signal is blocked or ignored for it."""
    group = commands.do("run", "job", "--", "sh", "-c", "ps -o pid=,pgid= -p $$").split()
    assert group[0] == group[1]
    shown = commands.do("run", "job", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    # Above 31 are those that the C library keeps for itself.
    assert [int(mask, 16) & 0x7FFF_FFFF for mask in shown.split()[1::2]] == [0, 0]


def test_ignored_signals_stay_ignored(commands: Commands) -> None:
    """Under nohup the command survives a hang-up, and so does `holdfast run`."""
    process = commands.start(
        "run", "job", "--", "sh", "-c", "echo $$; read x; echo alive",
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    child = commands.child_of(process)
    send(process, signal.SIGHUP)
    os.kill(child, signal.SIGHUP)
    assert commands.ended(process)[0] == "alive\n"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH"])
def test_signals_reach_the_child_once(commands: Commands, name: str) -> None:
    """A signal sent to `holdfast run` arrives at the command, once; its answer is its own."""
    process = commands.start("run", "job", "--", "sh", "-c", TRAPS)
    child = commands.child_of(process)
    assert process.stdout
    send(process, getattr(signal, f"SIG{name}"))
    assert process.stdout.readline() == f"{name}\n"
    os.kill(child, signal.SIGALRM)
    assert commands.ended(process, 9)[0] == ""


def test_child_killed_by_a_signal_passed_on(commands: Commands) -> None:
    """A command that does not catch TERM ends by it, and the code says so."""
    process = commands.start("run", "job", "--", "sh", "-c", "echo $$; exec sleep 60")
    commands.child_of(process)
    send(process, signal.SIGTERM)
    commands.ended(process, 143)
    assert commands.looked_at("job")["kind"] is None


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_signal_while_waiting_leaves_the_queue(commands: Commands, name: str) -> None:
    """Who is told to end while waiting ends with 128 + n and waits no more; nothing was run."""
    holder = commands.start("run", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    waiter = commands.start("run", "job", "--", "touch", f"{commands.folder}/ran")
    eventually(lambda: commands.looked_at("job")["waiters"])
    number = getattr(signal, f"SIG{name}")
    send(waiter, number)
    commands.ended(waiter, 128 + number)
    assert commands.looked_at("job")["waiters"] == []
    commands.ended(holder, 1)
    assert not Path(commands.folder, "ran").exists()


def waiting_for_more_than(commands: Commands, number: int) -> bool:
    """Say whether more than so many wait."""
    return len(commands.looked_at("job")["waiters"]) > number


def test_first_come_first_served(commands: Commands) -> None:
    """Commands run one at a time, in the order in which they asked."""
    holder = commands.start("run", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    log = commands.folder / "log"
    waiters = []
    for number in range(3):
        script = (
            f"echo {number} >> {log}; test ! -e {log}.busy && touch {log}.busy && rm {log}.busy"
        )
        waiters.append(commands.start("run", "job", "--", "sh", "-c", script))
        eventually(partial(waiting_for_more_than, commands, number))
    commands.ended(holder, 1)
    for waiter in waiters:
        commands.ended(waiter)
    assert log.read_text() == "0\n1\n2\n"


def test_stopping_the_child_alone_keeps_the_lock(commands: Commands) -> None:
    """A command that somebody stops by hand still has the lock, and can be continued."""
    process = commands.start(
        "run",
        "--ttl",
        "1",
        "job",
        "--",
        "sh",
        "-c",
        "echo $$; read x; exit 5",
        stdin=subprocess.PIPE,
    )
    child = commands.child_of(process)
    os.kill(child, signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    assert commands.looked_at("job")["holders"]
    os.kill(child, signal.SIGCONT)
    commands.ended(process, 5)
    assert gone(child)


def test_a_command_may_leave_a_daemon(commands: Commands) -> None:
    """What a command leaves behind when it ends by itself is left alone, and the lock is free."""
    process = commands.start(
        "run", "job", "--", "sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"
    )
    daemon = int(commands.ended(process)[0])
    try:
        assert not gone(daemon)
        assert commands.looked_at("job")["kind"] is None
    finally:
        os.kill(daemon, signal.SIGKILL)
