"""A few seeds, and the command that replays them, in the covered part of the tests."""

from __future__ import annotations

import pytest

from holdfast.testing.simulation import run_seed
from holdfast.testing.simulation.command import main


def test_some_seeds_keep_every_promise() -> None:
    """The simulation's own test run has thousands; these are for the coverage of its code."""
    for seed in range(40):
        report = run_seed(seed)
        assert not report.violations, f"python -m holdfast.testing.simulation --seed {seed}"


def test_a_seed_can_be_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends well for a good seed and says what happened in it."""
    assert main(["--seed", "3", "--verbose"]) == 0
    assert "3" in capsys.readouterr().out


def test_a_range_of_seeds_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes share the work."""
    assert main(["--seeds", "0:6", "--jobs", "2"]) == 0
    assert capsys.readouterr().out
