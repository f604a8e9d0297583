"""`holdfast run`: every exit code, each with one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Commands, eventually


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_code_is_the_childs(commands: Commands, script: str, code: int) -> None:
    """The exit code is the command's, 128 + n when signal n killed it; the lock is free then."""
    commands.do("run", "job", "--", "sh", "-c", script, code=code)
    assert commands.looked_at("job")["kind"] is None


WRONG = [
    ("run",),
    ("run", "job"),
    ("run", "job", "--"),
    ("run", "--bogus", "job", "true"),
    ("run", "--ttl", "soon", "job", "true"),
    ("run", "--ttl", "nan", "job", "true"),
    ("run", "--ttl", "0.1", "job", "true"),
    ("run", "--ttl", "99999", "job", "true"),
    ("run", "--timeout", "-2", "job", "true"),
    ("run", "--grace", "20", "job", "true"),
    ("run", "--grace", "-1", "job", "true"),
    ("run", "--limit", "0", "job", "true"),
    ("run", "--shared", "--limit", "2", "job", "true"),
    ("run", "\x1b[31mred", "true"),
    ("run", "", "true"),
    ("run", "--namespace", "\x07", "job", "true"),
    ("run", "--url", "nonsense", "job", "true"),
    ("run", "--url", "nonsense://", "job", "true"),
    ("--bogus", "run", "job", "true"),
    ("bogus",),
    ("ls", "--bogus"),
    ("show",),
    ("break", "job"),
]


@pytest.mark.parametrize("args", WRONG, ids=lambda args: " ".join(args).encode("unicode_escape"))
def test_wrong_usage(commands: Commands, args: tuple[str, ...]) -> None:
    """Wrong usage ends with 64 and a sentence, and no escape sequence comes back."""
    process = commands.start(*args)
    _, errors = commands.ended(process, 64)
    assert errors.strip().endswith(".")
    assert "\x1b" not in errors
    assert "\x07" not in errors


def test_a_password_is_never_shown(commands: Commands) -> None:
    """An engine that is not known is refused without the secret in its URL."""
    _, errors = commands.ended(commands.start("ls", "--url", "nonsense://me:secret@host/0"), 64)
    assert "secret" not in errors


def test_command_that_is_not_there(commands: Commands) -> None:
    """127, at once and with a sentence."""
    _, errors = commands.ended(commands.start("run", "job", "--", "no-such-command"), 127)
    assert errors == "holdfast: The command 'no-such-command' was not found.\n"


def test_command_that_is_no_program(commands: Commands, tmp_path: Path) -> None:
    """126 for a file that cannot be executed, also when only the kernel knows that."""
    script = tmp_path / "script"
    script.write_text("no program at all")
    _, errors = commands.ended(commands.start("run", "job", "--", str(script)), 126)
    assert "cannot be executed" in errors
    script.chmod(0o755)
    _, errors = commands.ended(commands.start("run", "job", "--", str(script)), 126)
    assert "Exec format error" in errors
    assert commands.looked_at("job")["kind"] is None


def test_not_acquired_in_time(commands: Commands) -> None:
    """75 when somebody else has the lock, at once or after the time-out, naming the holder."""
    holder = commands.start(
        "run", "--label", "night\x1bshift", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1
    )
    commands.child_of(holder)
    for timeout in ("0", "0.2"):
        process = commands.start("run", "--timeout", timeout, "job", "--", "true")
        _, errors = commands.ended(process, 75)
        assert r"night\x1bshift" in errors
        assert "\x1b" not in errors
    commands.ended(holder, 1)


def test_engine_cannot_be_reached(commands: Commands) -> None:
    """69 when there is no engine to ask."""
    os.close(os.open(commands.folder / "file", os.O_CREAT))
    url = f"sqlite://{commands.folder}/file/locks.db"
    for args in (("run", "job", "true"), ("ls",), ("show", "x"), ("watch", "--once")):
        _, errors = commands.ended(commands.start("--url", url, *args), 69)
        assert "The lock file" in errors


def test_another_kind_is_in_use(commands: Commands) -> None:
    """64 when the name is in use for another kind of lock."""
    holder = commands.start(
        "run", "--limit", "2", "job", "--", "sh", "-c", "echo $$; read x", stdin=-1
    )
    commands.child_of(holder)
    _, errors = commands.ended(commands.start("run", "job", "true"), 64)
    assert "semaphore" in errors or "kind" in errors
    commands.ended(holder, 1)


@pytest.mark.parametrize("option", [("--shared",), ("--limit", "2")])
def test_two_may_run_at_once(commands: Commands, option: tuple[str, ...]) -> None:
    """--shared and --limit let two commands run, and the third, exclusive or one too many, not."""
    script = ("sh", "-c", "echo $$; read x")
    holders = [commands.start("run", *option, "job", "--", *script, stdin=-1) for _ in range(2)]
    for holder in holders:
        commands.child_of(holder)
    third = option if option[0] == "--limit" else ()
    commands.do("run", *third, "--timeout", "0", "job", "true", code=75)
    for holder in holders:
        commands.ended(holder, 1)


def test_options_and_command_in_every_order(commands: Commands) -> None:
    """NAME -- CMD, NAME CMD, options after NAME, a -- of the command's own: all mean the same."""
    for args in (
        ("--ttl", "9", "job", "--", "echo", "-n", "--", "hi"),
        ("--ttl", "9", "job", "echo", "-n", "--", "hi"),
        ("job", "--ttl", "9", "--", "echo", "-n", "--", "hi"),
        ("--", "job", "echo", "-n", "--", "hi"),
    ):
        assert commands.do("run", *args) == "-- hi"


def test_url_and_namespace_before_the_command_or_after(commands: Commands) -> None:
    """The nearest one counts: after the command, before it, then the environment."""
    script = ("sh", "-c", "echo $HOLDFAST_NAMESPACE")
    assert commands.do("--namespace", "a", "run", "x", *script) == "a\n"
    assert commands.do("--namespace", "a", "run", "--namespace", "b", "x", *script) == "b\n"
    commands.environment["HOLDFAST_NAMESPACE"] = "c"
    assert commands.do("run", "x", *script) == "c\n"
    assert commands.do("--namespace", "a", "run", "x", *script) == "a\n"
    url = f"sqlite://{commands.folder}/other.db"
    commands.do("--url", url, "run", "x", "true")
    eventually((commands.folder / "other.db").exists)
