"""Every script in examples/ runs as its first lines say, and shows what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "stopped.py")
WITH_HAZARD = ("stock.py", "payment.py", "leader.py", "card_and_sms.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs(script: Path) -> None:
    """It ends well; its own assertions say what must have happened."""
    # Not measured: what measures coverage in forked processes changes how they end.
    environment = {name: value for name, value in os.environ.items() if "COV" not in name}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if script.name in WITH_HAZARD:
        assert "With" in done.stdout.partition("Without")[2], "first the damage, then none"
        assert "StaleToken" in done.stdout or "LeaseLost" in done.stdout


@pytest.mark.parametrize("name", WITH_HAZARD)
def test_hazard_is_real(name: str) -> None:
    """The damage is done by a process that really was stopped."""
    assert "overtaken(" in (EXAMPLES / name).read_text(encoding="utf-8")
    assert re.search(r"SIGSTOP\)$", (EXAMPLES / "stopped.py").read_text("utf-8"), re.MULTILINE)
    assert hasattr(os, "waitid")
