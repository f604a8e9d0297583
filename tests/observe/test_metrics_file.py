"""`holdfast run --metrics-file`: runs of a cron job add up in the file that node-exporter reads."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.testing.servers import need, promtool_program
from tests.cli.conftest import Commands


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """The command, on a lock file of this test's own."""
    made = Commands(tmp_path)
    yield made
    made.end()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the numbers go."""
    return tmp_path / "jobs.prom"


def numbers(file: Path) -> dict[str, float]:
    """Return what the file says, without buckets: `name{value of the last label}`."""
    return {
        f"{sample.name.removeprefix('distributed_lock_')}{{{','.join(sample.labels.values())}}}": (
            sample.value
        )
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def run(commands: Commands, file: Path, *words: str, code: int = 0) -> None:
    """Run a job to its end."""
    commands.do("run", "--metrics-file", str(file), *words, code=code)


def test_runs_add_up(commands: Commands, file: Path) -> None:
    """Counters go on over runs, gauges are those of the last, and promtool finds nothing wrong."""
    run(commands, file, "backup", "--", "true")
    run(commands, file, "backup", "--", "sh", "-c", "exit 3", code=3)
    inner = f"{commands_line(file)} --timeout 0 backup -- true"
    run(commands, file, "--ttl", "10", "backup", "--", "sh", "-c", inner, code=75)
    found = numbers(file)
    assert found["acquisitions_total{backup,success}"] == 3
    assert found["acquisitions_total{backup,busy}"] == 1
    assert found["hold_seconds_count{backup}"] == 3
    assert found["ttl_seconds{backup}"] == 10
    assert found["expiry_before_release_total{backup}"] == 0
    assert found["run_exit_code{backup}"] == 75  # of the command
    assert found["run_end_timestamp_seconds{backup}"] > 1.7e9
    assert not any(name.startswith(("held", "waiters", "contention")) for name in found)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    done = subprocess.run(
        [need(promtool_program), "check", "metrics"],
        input=file.read_text(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def commands_line(file: Path) -> str:
    """Return the same command for a shell."""
    import sys

    return f"{sys.executable} -m holdfast run --metrics-file {file}"


def test_runs_that_end_together_lose_nothing(commands: Commands, file: Path) -> None:
    """Jobs of several names that share a file, all at once: each is counted."""
    jobs = [
        commands.start("run", "--metrics-file", str(file), f"job/{number % 2}", "--", "true")
        for number in range(6)
    ]
    for job in jobs:
        commands.ended(job)
    found = numbers(file)
    assert found["acquisitions_total{job/*,success}"] == 6
    assert [path.name for path in file.parent.glob(".jobs*")] == []


def test_names_by_the_patterns_of_the_environment(commands: Commands, file: Path) -> None:
    """HOLDFAST_OBSERVE_PATTERNS holds here too."""
    commands.environment["HOLDFAST_OBSERVE_PATTERNS"] = "users/*"
    run(commands, file, "users/alice", "--", "true")
    assert numbers(file)["run_exit_code{users/*}"] == 0


def test_engine_that_cannot_be_reached(commands: Commands, file: Path) -> None:
    """A run that never began is in the file, with its code."""
    words = ("--url", "redis://127.0.0.1:1", "--timeout", "0.1", "backup", "--", "true")
    run(commands, file, *words, code=69)
    found = numbers(file)
    assert found["acquisitions_total{backup,error}"] == 1
    assert found["run_exit_code{backup}"] == 69


def test_broken_file_is_replaced(commands: Commands, file: Path) -> None:
    """What cannot be read is begun anew."""
    file.write_text("this is } no metric\n")
    run(commands, file, "backup", "--", "true")
    assert numbers(file)["acquisitions_total{backup,success}"] == 1


def test_file_that_cannot_be_written_harms_no_job(commands: Commands, file: Path) -> None:
    """The job runs, its code stays, and one sentence says what is wrong."""
    file.mkdir()
    process = commands.start("run", "--metrics-file", f"{file}/", "x", "--", "true")
    commands.ended(process, 64)  # a directory is noticed before anything runs
    file.rmdir()
    remove = f"mkdir {file}"
    process = commands.start(
        "run", "--metrics-file", str(file), "x", "--", "sh", "-c", f"{remove}; exit 5"
    )
    _, errors = commands.ended(process, 5)
    assert "--metrics-file was not written" in errors


@pytest.mark.parametrize("name", ["jobs.txt", "missing/jobs.prom"])
def test_wrong_file_is_refused(name: str, commands: Commands, tmp_path: Path) -> None:
    """A file that node-exporter would not read, or nobody could write, is wrong usage."""
    process = commands.start("run", "--metrics-file", str(tmp_path / name), "x", "--", "true")
    _, errors = commands.ended(process, 64)
    assert "--metrics-file" in errors
