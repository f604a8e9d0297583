"""`ls`, `show`, `break`, `watch`, `completion`: plain when piped, stable JSON, safe text."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner, Result

import holdfast
from holdfast.cli import main
from tests.cli.conftest import Commands, eventually, send

EVIL = "a\u202eb"  # a name may contain it: it is no control character, and turns text around
ESCAPE = "\x1b]0;owned\x07"

ENTRY_KEYS = {"label", "owner", "token", "mode", "path", "value", "since", "age", "expires_in"}
LOCK_KEYS = {"name", "kind", "limit", "holders", "waiters"}


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Iterator[holdfast.Client]:
    """A client of an engine that commands run inside this process see, too."""
    with holdfast.connect(f"memory://{request.node.name}", label="me") as client:
        yield client


def ask(client: holdfast.Client, *args: str, code: int = 0, **options: Any) -> Result:
    """Run a command inside this process."""
    result = CliRunner().invoke(main, ["--url", client.engine.location, *args], **options)
    assert result.exit_code == code, result.output
    return result


def test_ls_and_show_as_json(memory: holdfast.Client) -> None:
    """The keys are those that are documented, for every kind of lock."""
    with ExitStack() as held:
        held.enter_context(memory.lock("plain", ttl=5))
        held.enter_context(memory.rwlock("shared").read())
        held.enter_context(memory.semaphore("several", 3))
        held.enter_context(memory.tree("tree/branch").write())
        locks = json.loads(ask(memory, "ls", "--json").stdout)
        assert [lock["name"] for lock in locks] == ["plain", "several", "shared", "tree"]
        for lock in locks:
            assert lock.keys() == LOCK_KEYS
            assert lock["holders"][0].keys() == ENTRY_KEYS
        assert locks[1]["kind"] == "semaphore"
        assert locks[1]["limit"] == 3
        assert locks[2]["holders"][0]["mode"] == "shared"
        assert locks[3]["holders"][0]["path"] == "branch"
        assert 0 < locks[0]["holders"][0]["expires_in"] <= 5
        assert [lock["name"] for lock in json.loads(ask(memory, "ls", "s", "--json").stdout)] == [
            *("several", "shared")
        ]
        shown = json.loads(ask(memory, "show", "plain", "--json").stdout)
        assert shown["holders"][0]["label"] == "me"
        table = ask(memory, "ls").stdout
        assert table.splitlines()[0].split() == [
            *("NAME", "KIND", "HELD", "BY", "TOKEN", "SINCE", "LEFT", "WAITING")
        ]
        assert "semaphore 1/3" in table
        assert "lock, shared" in table
    assert json.loads(ask(memory, "show", "plain", "--json").stdout)["kind"] is None
    assert ask(memory, "show", "plain").stdout == (
        "'plain' is free: nobody holds it or waits for it.\n"
    )
    assert ask(memory, "ls").stdout == ""


def test_text_of_strangers_is_harmless(memory: holdfast.Client) -> None:
    """No control character, escape sequence or turned text of a name, label or value is printed."""
    lease = memory.lock(EVIL, label=ESCAPE).try_acquire()
    leadership = memory.election("e", value=ESCAPE).campaign()
    for args in (
        *(("ls",), ("ls", "--json"), ("show", EVIL), ("show", EVIL, "--json")),
        *(("watch", "--once"), ("watch", "--once", "--json"), ("break", EVIL, "--yes")),
    ):
        output = ask(memory, *args).output
        assert output.replace("\n", "").isprintable(), args
    assert ask(memory, "ls", "--json").output.isascii()
    assert lease
    assert leadership


def test_break(memory: holdfast.Client) -> None:
    """It says how many were removed and that they may still be working; the token chooses."""
    leases = [memory.semaphore("s", 3).try_acquire() for _ in range(3)]
    assert all(leases)
    assert leases[0]
    answer = ask(memory, "break", "s", "--yes", "--token", str(leases[0].token)).stdout
    assert "1 holder," in answer
    assert "may still be working" in answer
    assert leases[0].lost.wait(5)
    answer = ask(memory, "break", "s", "--yes", "--json").stdout
    assert json.loads(answer) == {"name": "s", "token": None, "removed": 2}
    assert "nothing was broken" in ask(memory, "break", "s", "--yes").stdout
    assert "No holder with token 7" in ask(memory, "break", "s", "--yes", "--token", "7").stdout


def test_break_asks_on_a_terminal(memory: holdfast.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --yes it shows the holder and asks; no is no."""
    monkeypatch.setattr("holdfast.cli.breaking._someone_is_there", lambda: True)
    lease = memory.lock("x", label="somebody").try_acquire()
    assert lease
    assert "somebody" in ask(memory, "break", "x", code=1, input="n\n").output
    assert lease.held
    ask(memory, "break", "x", input="y\n")
    assert lease.lost.wait(5)


def wait_in_circle(client: holdfast.Client, stack: ExitStack) -> None:
    """Let `one` hold x and wait for y, and `two` the other way round, until the stack unwinds."""
    for label, has in (("one", "x"), ("two", "y")):
        lease = client.lock(has, label=label).acquire()
        assert lease
        stack.callback(lease.release)
    for label, wants in (("one", "y"), ("two", "x")):
        lock = client.lock(wants, label=label)
        thread = threading.Thread(target=take_and_leave, args=(lock,))
        thread.start()
        stack.callback(thread.join)
    stack.callback(client.force_release, "x")
    stack.callback(client.force_release, "y")
    eventually(lambda: sum(len(shot.waiters) for shot in client.locks()) == 2)


def take_and_leave(lock: holdfast.Lock) -> None:
    """Wait for a lock, and give it back at once."""
    lease = lock.acquire(timeout=20)
    if lease:
        lease.release()


def test_cycle_of_waits_is_shown(memory: holdfast.Client) -> None:
    """`watch` names those who wait for each other, as text and as JSON; `doctor` warns."""
    with ExitStack() as stack:
        wait_in_circle(memory, stack)
        text = ask(memory, "watch", "--once").stdout
        assert "Cycle of waits: one waits for 'y' of two, two waits for 'x' of one." in text
        frame = json.loads(ask(memory, "watch", "--once", "--json").stdout)
        assert frame.keys() == {"at", "error", "locks", "cycles"}
        assert frame["cycles"] == [
            [
                {"label": "one", "name": "y", "blocker": "two"},
                {"label": "two", "name": "x", "blocker": "one"},
            ]
        ]
        findings = json.loads(ask(memory, "doctor", "--json", code=1).stdout)["findings"]
        assert [one["title"] for one in findings if one["level"] == "warning"] == ["cycle of waits"]


def test_watch_goes_on_until_interrupted(commands: Commands) -> None:
    """Piped, it prints one look after the other, in JSON one per line; Ctrl-C is a clean end."""
    for json_lines in (True, False):
        options = ["--json"] if json_lines else []
        process = commands.start("watch", "--interval", "0.05", *options)
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(5)]
        if json_lines:
            assert all(json.loads(line)["locks"] == [] for line in lines)
        send(process, signal.SIGINT)
        _, errors = commands.ended(process)
        assert errors == ""


def test_watch_survives_an_outage(commands: Commands) -> None:
    """An engine that does not answer is said, and looked for again."""
    (commands.folder / "locks.db").mkdir()
    process = commands.start("watch", "--interval", "0.05", "--json")
    assert process.stdout
    assert "cannot be used" in json.loads(process.stdout.readline())["error"]
    (commands.folder / "locks.db").rmdir()
    lines = iter(process.stdout)
    eventually(lambda: json.loads(next(lines))["error"] is None)
    send(process, signal.SIGINT)
    commands.ended(process)


def test_output_into_a_closed_pipe(commands: Commands) -> None:
    """`holdfast watch | head` ends quietly."""
    process = commands.start("watch", "--interval", "0.05", "--json")
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == ""
    assert process.wait(10) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    """Each shell gets its script."""
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert "_HOLDFAST_COMPLETE" in script.output


def test_completion_knows_names(commands: Commands) -> None:
    """The shell is offered commands, and the names of locks in use."""
    holder = commands.start("run", "nightly", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    commands.environment |= {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    commands.environment["COMP_WORDS"] = "holdfast show ni"
    done = subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main(prog_name='holdfast')"],
        env=commands.environment,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stdout.split() == ["plain,nightly"]
    commands.ended(holder, 1)


def test_help_of_every_command() -> None:
    """Every command explains itself; `run` with its exit codes and examples."""
    for name in ("run", "ls", "show", "break", "watch", "doctor", "completion", "bench"):
        text = CliRunner().invoke(main, [name, "--help"])
        assert text.exit_code == 0
        assert "Usage" in text.output
    text = CliRunner().invoke(main, ["run", "--help"])
    for word in ("75", "76", "69", "64", "126", "127", "HOLDFAST_TOKEN", "Examples"):
        assert word in text.output


def test_run_starts_fast(commands: Commands) -> None:
    """What draws tables is not even imported by `run`."""
    commands.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    process = commands.start("run", "job", "true")
    errors = process.communicate(timeout=20)[1]
    assert process.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
    assert "holdfast.cli.run.front" in imported
    assert not [name for name in imported if name.split(".")[0] == "rich"]
    assert "holdfast.doctor" not in imported


def test_long_durations_read_well() -> None:
    """Two units at most."""
    from holdfast.cli.text import duration

    times = (0, 3.21, 12.4, 75, 3600 * 5 + 61, 86400 * 3 + 7200)
    assert [duration(span) for span in times] == [
        *("0.0 s", "3.2 s", "12 s", "1 min 15 s", "5 h 1 min", "3 d 2 h")
    ]
