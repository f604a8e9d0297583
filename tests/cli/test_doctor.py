"""`holdfast doctor`: every finding has a remedy, and engines add checks of their own."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import holdfast
from holdfast.cli import main
from holdfast.doctor import Finding, Level, Patient, examine, sqlite
from tests.cli.conftest import Commands


def by_level(findings: Iterator[Finding]) -> dict[Level, list[Finding]]:
    """Sort findings, each of which must be complete."""
    found: dict[Level, list[Finding]] = {level: [] for level in Level}
    for finding in findings:
        assert finding.title
        assert finding.detail.endswith((".", ")"))
        assert finding.remedy or not finding.level.bad
        found[finding.level].append(finding)
    return found


def test_healthy_engine(commands: Commands) -> None:
    """A fresh lock file is in order: 0, and nothing is left of the probe."""
    text = commands.do("doctor")
    assert "warning" not in text
    assert "critical" not in text
    report = json.loads(commands.do("doctor", "--json"))
    assert report.keys() == {"engine", "namespace", "ok", "findings"}
    assert report["ok"] is True
    for finding in report["findings"]:
        assert finding.keys() == {"level", "title", "detail", "remedy", "fixable", "fixed"}
    assert {"lock", "tokens", "answers", "sockets", "filesystem"} <= {
        finding["title"] for finding in report["findings"]
    }
    assert commands.do("ls") == ""


def test_what_can_be_fixed_is_fixed(commands: Commands) -> None:
    """A file that others can read is a warning, 1; --fix sets its mode, and then all is well."""
    commands.do("ls")
    file = commands.folder / "locks.db"
    file.chmod(0o644)
    text = commands.do("doctor", code=1)
    assert "warning   lock file:" in text
    assert "chmod 600" in text
    assert "Fixed." in commands.do("doctor", "--fix")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    commands.do("doctor")


def test_engine_that_does_not_answer(commands: Commands) -> None:
    """It is one critical finding, not a traceback, and the rest is left out."""
    (commands.folder / "locks.db").mkdir()
    report = json.loads(commands.do("doctor", "--json", code=1))
    levels = [finding["level"] for finding in report["findings"]]
    assert "critical" in levels
    assert "tokens" not in {finding["title"] for finding in report["findings"]}


def test_where_the_url_came_from(commands: Commands) -> None:
    """The first finding says what is examined, and why."""
    assert "from HOLDFAST_URL" in commands.do("doctor").splitlines()[0]
    assert "from --url" in commands.do("doctor", "--url", commands.url + "2").splitlines()[0]


def test_engine_of_a_third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine names its own checks by module and function; a check that raises is a finding."""

    def broken(shots: object) -> None:
        raise OSError("the disk is on fire.")

    monkeypatch.setattr("holdfast.doctor.locks.find_cycles", broken)
    with holdfast.connect("memory://third-party") as client:
        engine: Any = client.engine
        engine.doctor_checks = "tests.cli.test_doctor:own_check"
        found = by_level(examine(Patient(client)))
    assert [finding.title for finding in found[Level.WARNING]] == ["paint"]
    assert ["on fire" in finding.detail for finding in found[Level.CRITICAL]] == [True]


def own_check(patient: Patient) -> Iterator[Finding]:
    """Find something to complain about."""
    yield Finding(Level.WARNING, "paint", "The paint is coming off.", "Paint it.")


def test_plain_engine_without_checks_of_its_own() -> None:
    """Only the general checks are made then."""
    runner = CliRunner()
    result = runner.invoke(main, ["--url", "memory://", "doctor"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("mode", "level"), [(0o700, Level.OK), (0o777, Level.CRITICAL), (0o1777, Level.WARNING)]
)
def test_folder_that_others_may_write_to(tmp_path: Path, mode: int, level: Level) -> None:
    """Whoever may write there may exchange the file."""
    tmp_path.chmod(mode)
    found = by_level(sqlite.check_folder(str(tmp_path)))
    assert found[level]
    for finding in found[Level.CRITICAL]:
        assert finding.fix
        finding.fix()
        assert by_level(sqlite.check_folder(str(tmp_path)))[Level.OK]


def test_lock_file_that_is_a_link(tmp_path: Path) -> None:
    """A symbolic link is not followed."""
    (tmp_path / "link").symlink_to("elsewhere")
    assert by_level(sqlite.check_file(str(tmp_path / "link")))[Level.CRITICAL]
    assert by_level(sqlite.check_file(str(tmp_path / "nothing")))[Level.INFO]


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", Level.OK), ("nfs4", Level.CRITICAL), ("fuse.sshfs", Level.CRITICAL)],
)
def test_filesystems_by_allow_list(kind: str, level: Level) -> None:
    """Network filesystems, and what nobody knows, are refused."""
    assert by_level(sqlite.check_filesystem("/somewhere", kind))[level]


def test_folder_of_sockets(tmp_path: Path) -> None:
    """A socket can be made there however long the path is; where it cannot, that is said."""
    folder = tmp_path / ("long" * 30) / ("longer" * 30)
    folder.mkdir(parents=True, mode=0o700)
    assert by_level(sqlite.check_sockets(str(folder)))[Level.OK]
    assert os.listdir(folder) == []
    assert by_level(sqlite.check_sockets(str(tmp_path / "none")))[Level.INFO]
