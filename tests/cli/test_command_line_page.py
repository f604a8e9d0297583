"""Every console example of docs/command-line.md prints what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Commands

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
STEPS = [
    step
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for step in STEP.findall(block)
]


@pytest.mark.parametrize(("command", "shown"), STEPS, ids=[command for command, _ in STEPS])
def test_example(commands: Commands, command: str, shown: str) -> None:
    """A reader who types the line sees these lines; of numbers only how many there are."""
    bin_folder = commands.folder / "bin"
    bin_folder.mkdir()
    script = bin_folder / "holdfast"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m holdfast "$@"\n')
    script.chmod(0o755)
    commands.environment["PATH"] = f"{bin_folder}:{commands.environment['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        env=commands.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert re.sub(r"\d{4,}", "N", done.stdout) == re.sub(r"\d{4,}", "N", shown), done.stderr


def test_exit_codes_of_the_page_are_those_of_the_help() -> None:
    """The page and `run --help` name the same codes."""
    from click.testing import CliRunner

    from holdfast.cli import main

    text = CliRunner().invoke(main, ["run", "--help"]).output
    for code in re.findall(r"^\| (\d+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        assert code in text
