"""A failure on a machine that stood still is tried again; any other failure is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import os, pathlib, struct
import pytest
from tests import steadiness

class Late(steadiness.Watch):
    latest = {late}

steadiness.Watch = Late
count = pathlib.Path(__file__).with_name("count")

@pytest.fixture
def fresh():
    yield "fresh"

class TestIt:
    def test_it(self, fresh):
        tries = len(count.read_text()) + 1 if count.exists() else 1
        count.write_text("x" * tries)
        assert tries > {fails}
"""


@pytest.mark.parametrize(
    ("late", "fails", "tries", "passes"),
    [(0.0, 1, 1, False), (0.2, 1, 2, True), (0.2, 9, 3, False), (0.2, 0, 1, True)],
)
def test_run_again(tmp_path: Path, late: float, fails: int, tries: int, passes: bool) -> None:
    """Only while the machine was late, twice at most, and it is said at the end."""
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests import steadiness\n"
        f"class Late(steadiness.Watch):\n    latest = {late}\n"
        "def pytest_configure(config):\n"
        "    steadiness.Watch = Late\n"
        "    config.pluginmanager.register(steadiness.Steadiness())\n"
        "def pytest_terminal_summary(terminalreporter):\n"
        "    steadiness.summary(terminalreporter)\n"
    )
    (tmp_path / "test_it.py").write_text(TEST.format(late=late, fails=fails))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
         "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert (done.returncode == 0) is passes, done.stdout + done.stderr
    assert len((tmp_path / "count").read_text()) == tries
    assert ("stood still" in done.stdout) is (tries > 1)
    if not passes:
        assert f"assert {tries} > {fails}" in done.stdout


def test_what_judges_safety_is_not_run_again() -> None:
    """Simulation, lab, guards and models are judged by what was found, whatever the machine."""
    from tests.steadiness import judged_by_the_clock

    for name in ("simulation/test_seeds.py", "lab/test_run.py", "guards/test_contest.py"):
        assert not judged_by_the_clock(ROOT / "tests" / name)
    assert not judged_by_the_clock(ROOT / "tests" / "unit" / "test_redis_model.py")
    assert judged_by_the_clock(ROOT / "tests" / "_sync" / "test_redis_conformance.py")
