"""HOLDFAST_OBSERVE: on by one word in the environment; when off, nothing is imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import holdfast
from holdfast import aio
from holdfast.observe import from_environ

HEAVY = ("prometheus_client", "opentelemetry", "holdfast.observe")


def run(script: str, **environment: str) -> str:
    """Run a script in a fresh interpreter; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_imported_when_off() -> None:
    """A process that locks without observing loads neither our observers nor their libraries."""
    script = f"""
import sys, holdfast, holdfast.guards
from holdfast import aio
with holdfast.connect("memory://").lock("x"):
    pass
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert run(script, HOLDFAST_OBSERVE="").strip() == "[]"


def test_logs_need_no_other_library() -> None:
    """Listening with logs loads no metrics library."""
    script = f"""
import sys, holdfast
from holdfast.observe import logs
with holdfast.connect("memory://") as client:
    client.listen(logs())
    with client.lock("x"):
        pass
print([name for name in {HEAVY[:2]!r} if name in sys.modules])
"""
    assert run(script).strip() == "[]"


SCRIPT = """
import asyncio, logging, holdfast
from holdfast import aio
from prometheus_client import REGISTRY
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
for _ in range(2):  # clients share what observes them
    with holdfast.connect("memory://") as client, client.lock("users/alice"):
        pass

async def main():
    async with aio.connect("memory://") as client:
        async with client.lock("users/bob"):
            pass

asyncio.run(main())
labels = {"resource": "users/*", "result": "success"}
print(REGISTRY.get_sample_value("distributed_lock_acquisitions_total", labels))
"""


def test_on_by_one_word() -> None:
    """Every client of both colours is observed, by the patterns of the environment."""
    observed = {"HOLDFAST_OBSERVE": "prometheus, logs", "HOLDFAST_OBSERVE_PATTERNS": "users/*"}
    assert run(SCRIPT, **observed).strip() == "3.0"


def test_unknown_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that names nothing is an error at connect, in one sentence."""
    monkeypatch.setenv("HOLDFAST_OBSERVE", "logs,grafana")
    with pytest.raises(ValueError, match=r"'grafana'"):
        holdfast.connect("memory://")
    with pytest.raises(ValueError, match=r"'grafana'"):
        aio.connect("memory://")


def test_observers_are_the_same_for_the_process() -> None:
    """Asked twice, the environment gives the same objects."""
    environ = {"HOLDFAST_OBSERVE": "logs"}
    assert from_environ(environ) == from_environ(environ)
    assert from_environ({}) == []


@pytest.mark.parametrize("word", ["prometheus", "opentelemetry"])
def test_missing_library_says_what_to_install(word: str) -> None:
    """Without the library, connect says which extra brings it."""
    script = f"""
import sys
sys.modules[{"prometheus_client" if word == "prometheus" else "opentelemetry"!r}] = None
import holdfast
try:
    holdfast.connect("memory://")
except holdfast.MissingDriver as error:
    print(error)
"""
    assert f'pip install "holdfast[{word}]"' in run(script, HOLDFAST_OBSERVE=word)
