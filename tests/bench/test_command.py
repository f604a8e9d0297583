"""`holdfast bench` and `holdfast bench compare`: options, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.bench.compare.document import Document, Settings
from holdfast.bench.compare.run import Tell
from holdfast.cli import bench as command
from holdfast.cli import main
from tests.bench.documents import document, ratio, row

RUN = document([row(), row(contestant="gone", problem="cannot run: it is gone")], [ratio(1.2)])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Let no run take place; give what was asked for."""
    settings: list[Settings] = []

    def compare(wanted: Settings, tell: Tell) -> Document:
        settings.append(wanted)
        tell(0.5, "redis: uncontended pair", 30.0)
        return RUN

    monkeypatch.setattr(command, "compare", compare)
    return settings


def test_files_are_written_and_the_ratios_shown(asked: list[Settings], tmp_path: Path) -> None:
    """JSON, page and tables; where ours is behind, and what could not run, is said."""
    files = [tmp_path / name for name in ("a.json", "a.html", "a.md")]
    options = [
        *("--json", str(files[0]), "--html", str(files[1]), "--markdown", str(files[2])),
        *("--engine", "redis", "--engine", "sqlite", "--peers", "--clients", "10,1"),
        *("--seconds", "30"),
    ]
    done = CliRunner().invoke(main, ["bench", *options])
    assert done.exit_code == 0, done.output
    assert json.loads(files[0].read_text()) == RUN
    assert files[1].read_text().startswith("<!doctype html>")
    assert files[2].read_text().startswith("# What locks cost")
    assert "behind kazoo Lock: 1.20×" in done.stdout
    assert "gone: cannot run: it is gone" in done.stderr
    assert asked == [
        {
            "engines": ["redis", "sqlite"],
            "peers": True,
            "clients": [1, 10],
            "seconds": 30.0,
            "quick": False,
        }
    ]


def test_json_on_standard_output_is_all_there_is(asked: list[Settings]) -> None:
    """A script can read it."""
    done = CliRunner().invoke(main, ["bench", "--quick", "--json", "-"])
    assert json.loads(done.stdout) == RUN
    assert asked[0]["quick"]
    assert asked[0]["seconds"] <= 90


@pytest.mark.parametrize(
    "options",
    [["--clients", "many"], ["--clients", "0"], ["--json", "-", "--html", "-"]],
)
def test_wrong_usage(asked: list[Settings], options: list[str]) -> None:
    """It ends with 64, and nothing is measured."""
    done = CliRunner().invoke(main, ["bench", *options])
    assert done.exit_code == 64, done.output
    assert not asked


def test_two_runs_are_compared(tmp_path: Path) -> None:
    """Code 0 while enough ratios agree, 1 if not; the others are listed."""
    runs = {"same": [ratio(1.0)], "near": [ratio(1.1)], "far": [ratio(2.0, stable=False)]}
    for name, ratios in runs.items():
        (tmp_path / name).write_text(json.dumps(document([], ratios)))

    def compared(other: str, *options: str) -> tuple[int, str]:
        files = [str(tmp_path / "same"), str(tmp_path / other)]
        done = CliRunner().invoke(main, ["bench", "compare", *files, *options])
        return done.exit_code, done.stdout

    assert compared("near") == (
        0,
        "1 of 1 common ratio agree within 15%: 100%, at least 80% must.\n",
    )
    code, text = compared("far")
    assert code == 1
    assert "marked unstable" in text
    assert json.loads(compared("far", "--json")[1])["within"] == 0


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """One sentence says which file, and what is wrong with it."""
    (tmp_path / "a").write_text("{}")
    done = CliRunner().invoke(main, ["bench", "compare", *[str(tmp_path / "a")] * 2])
    assert done.exit_code == 64
    assert "is no document of `holdfast bench`" in done.stderr
