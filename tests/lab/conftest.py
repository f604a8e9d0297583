"""What the tests of the lab share: folders of their own, and a word on what was caught."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder that servers with a user of their own can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-lab-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let whatever a run keeps be kept below the folder of its test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which planted bug was caught, and how much was done; also with xdist."""
    lines = [
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "lab"
    ]
    if lines:
        terminalreporter.section("lab")
        for line in sorted(lines):
            terminalreporter.write_line(line)
