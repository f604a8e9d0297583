"""`holdfast advise`: a dialogue on a terminal, flags for scripts, JSON, wrong usage."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main

PATIENCE = 60.0
MACHINES = ("--simpler", "no", "--reach", "machines")
FIRST = "Pauses can break this without a guard"


def run(*flags: str) -> Result:
    """Run the command where nobody can be asked."""
    return CliRunner().invoke(main, ["advise", *flags])


def dialogue(folder: Path, typed: str, *flags: str) -> tuple[str, str, int]:
    """Run the command on a terminal where somebody types this; return answer, screen and code."""
    keyboard, terminal = pty.openpty()
    answer = folder / "answer"
    try:
        with answer.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "advise", *flags],
                stdin=terminal,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
            )
            os.write(keyboard, typed.encode())
            try:
                _, screen = process.communicate(timeout=PATIENCE)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.communicate()
    finally:
        os.close(keyboard)
        os.close(terminal)
    return answer.read_text(encoding="utf-8"), screen, process.returncode


def test_dialogue_asks_what_matters_and_answers(tmp_path: Path) -> None:
    """Seven answers and two Enters lead to an engine; what does not matter is not asked."""
    typed = "no\nmachines\ncorrectness\nkubernetes, redis\nno\n\n\n"
    answer, screen, code = dialogue(tmp_path, typed)
    assert code == 0, screen
    assert screen.index("simpler than a lock") < screen.index("Who must be kept apart?")
    assert "while one server is away" not in screen
    assert "another system" not in screen
    assert answer.startswith(FIRST)
    assert "Use etcd://" in answer
    assert "ttl=30" in answer


def test_dialogue_asks_again_after_nonsense(tmp_path: Path) -> None:
    """A word that is no answer is asked for once more; numbers too."""
    answer, screen, code = dialogue(tmp_path, "perhaps\nno\nhost\nyes\nsoon\n8\n")
    assert code == 0, screen
    assert screen.count("simpler than a lock") == 1
    assert "perhaps" in screen
    assert "'soon' is not a valid" in screen
    assert answer.startswith("Use sqlite:///")
    assert "ttl=25" in answer


def test_dialogue_ends_where_no_lock_is_needed(tmp_path: Path) -> None:
    """One answer is enough if it is an idempotency key."""
    answer, screen, code = dialogue(tmp_path, "key\n")
    assert code == 0, screen
    assert answer.startswith("No lock: use an idempotency key.")
    assert "Who must be kept apart?" not in screen


def test_flags_answer_in_advance_on_a_terminal(tmp_path: Path) -> None:
    """What a flag says is not asked; if flags say enough, nothing is."""
    answer, screen, code = dialogue(tmp_path, "yes\n\n\n", "--simpler", "no", "--reach", "host")
    assert code == 0, screen
    assert "Can what you write to" in screen
    assert "Who must be kept apart?" not in screen
    flags = ("--simpler", "no", "--reach", "host", "--guard", "no")
    answer, screen, code = dialogue(tmp_path, "", *flags)
    assert code == 0, screen
    assert not screen
    assert answer.startswith(FIRST)


def test_flags_alone() -> None:
    """A script gets the same answer without a question: all parts, in their order."""
    said = run(
        *(*MACHINES, "--need", "efficiency", "--single-server", "yes"),
        *("--have", "redis", "--guard", "no"),
    )
    assert said.exit_code == 0, said.output
    parts = ["Why", "What it promises", "What it costs", "Start with", "Watch"]
    places = [said.stdout.index(f"\n{part}") for part in parts]
    assert places == sorted(places)
    assert said.stdout.startswith(FIRST)
    assert "Use redis://" in said.stdout
    assert "Not under: server restart, server data loss, server clock step" in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= 100


def test_no_driver_is_needed() -> None:
    """Whoever has not chosen yet has installed no driver: none is imported."""
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from holdfast.cli import main\n"
        "flags = '--simpler no --reach machines --need election --have nothing --guard yes'\n"
        "done = CliRunner().invoke(main, ['advise', *flags.split()])\n"
        "assert done.exit_code == 0, done.output\n"
        "drivers = {'redis', 'hiredis', 'kazoo', 'grpc', 'psycopg', 'boto3', 'prometheus_client'}\n"
        "assert not drivers & sys.modules.keys(), drivers & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


def test_json() -> None:
    """The document has stable keys, with null where no lock is needed."""
    flags = (*MACHINES, "--need", "election", "--have", "kafka", "--guard", "yes", "--pause", "5")
    found: dict[str, Any] = json.loads(run(*flags, "--json").stdout)
    assert found["engine"] == "zookeeper"
    assert found["ttl"] == 20
    assert found["promise"]["expiry"] == "session"
    assert found["watch"][0]["alert"] == "FencingTokenRejected"
    none: dict[str, Any] = json.loads(run("--simpler", "version", "--json").stdout)
    assert none.keys() == found.keys()
    assert none["answer"] == "version"
    assert none["engine"] is none["url"] is none["ttl"] is none["promise"] is None


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "--simpler is missing"),
        (("--simpler", "no"), "--reach is missing"),
        (MACHINES, "--need is missing, and there is no terminal to ask on"),
        ((*MACHINES, "--need", "election"), "--have is missing"),
        (("--simpler", "perhaps"), "'perhaps' is not one of"),
        (("--have", "redis,mongodb"), "'redis,mongodb' is not any of redis"),
        (("--have", "nothing,redis"), "names something beside nothing"),
        (("--pause", "-1"), "-1"),
        (("--engine", "redis"), "No such option"),
    ],
)
def test_wrong_usage(flags: tuple[str, ...], sentence: str) -> None:
    """What is missing or wrong is named, and the code is 64."""
    refused = run(*flags)
    assert refused.exit_code == 64, refused.output
    assert sentence in refused.stderr
    assert not refused.stdout
