"""The command line as far as it goes: help, version, bench floor."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import holdfast
from holdfast.bench import memory_floor
from holdfast.cli import main


def test_help_and_version() -> None:
    """A newcomer finds the commands and the version."""
    runner = CliRunner()
    assert "bench" in runner.invoke(main, ["--help"]).output
    assert holdfast.__version__ in runner.invoke(main, ["--version"]).output


def test_module_is_the_same_command() -> None:
    """`python -m holdfast` runs the command."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, timeout=30
    )
    assert holdfast.__version__ in done.stdout


def test_bench_floor_prints_ratios_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table and the JSON document have the same rows; an unknown engine is a usage error."""
    monkeypatch.setattr(memory_floor, "PAIRS", 50)
    monkeypatch.setattr(memory_floor, "LEASES", 20)
    monkeypatch.setattr(
        memory_floor,
        "steps",
        lambda quick: [
            lambda: memory_floor.sync_pair(3),
            lambda: memory_floor.async_pair(3),
            lambda: memory_floor.held_leases(0.1),
        ],
    )
    runner = CliRunner()
    plain = runner.invoke(main, ["bench", "floor", "memory"])
    assert plain.exit_code == 0, plain.output
    assert "pair, sync / hand-written" in plain.output
    rows = json.loads(runner.invoke(main, ["bench", "floor", "memory", "--json"]).stdout)
    assert [row["unit"] for row in rows] == ["×", "×", " % of a core"]
    assert all(row["value"] > 0 for row in rows)
    refused = runner.invoke(main, ["bench", "floor", "nonsense"])
    assert refused.exit_code == 2
    assert "known: memory" in refused.output
