"""A real Prometheus scrapes real processes: the alert fires, and counts are those of history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.testing.servers import PrometheusServer, RedisServer, need, prometheus_program
from holdfast.testing.servers.ports import port_of, reserve
from tests.observe import tree

PATIENCE = 60.0
RESULTS = ("success", "timeout", "busy", "error")
EXPIRIES = ("expired", "unreachable", "stolen")


class Tree:
    """The processes, and what they have written down."""

    def __init__(self, url: str, folder: Path) -> None:
        self._place = reserve()
        self.port = port_of(self._place)
        self._history = folder / "history"
        self._history.mkdir()
        (folder / "metrics").mkdir()
        environment = {
            **os.environ,
            "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
            "HOLDFAST_OBSERVE": "prometheus",
        }
        words = [url, str(folder / "data.db"), str(self._history), str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", tree.__file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._said: dict[str, list[str]] = {}

    def line(self, word: str) -> list[str]:
        """Return the words behind this one, when they come."""
        assert self._process.stdout is not None
        while word not in self._said:
            first, *rest = self._process.stdout.readline().split() or [""]
            assert first, f"the tree has ended before it said {word!r}"
            self._said[first] = rest
        return self._said[word]

    def tell(self) -> None:
        """Send a line: stop, and then end."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def history(self) -> list[dict[str, Any]]:
        """Return all that has been written down so far."""
        found = []
        for path in self._history.glob("*.jsonl"):
            lines = path.read_text().splitlines(keepends=True)
            found += [json.loads(line) for line in lines if line.endswith("\n")]
        return found

    def wait(self) -> None:
        """Wait for the end, which must be a good one."""
        assert self._process.wait(PATIENCE) == 0

    def end(self, child: int) -> None:
        """End whatever is left, without mercy."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for stream in (self._place, self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The rules, as a user gets them."""
    path = tmp_path / "locks.yml"
    path.write_text(CliRunner().invoke(main, ["alerts"]).output)
    return path


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A server for the locks."""
    with RedisServer() as server:
        yield server


def until(met: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def total(prometheus: PrometheusServer, expression: str) -> dict[str, int]:
    """Return what is summed up, by its one label."""
    found = prometheus.query(expression)
    return {
        (labels[0][1] if labels else ""): int(value) for labels, value in found.items() if value
    }


@pytest.mark.slow
def test_rejection_alert_fires_and_counts_are_exact(
    redis: RedisServer, rules: Path, tmp_path: Path
) -> None:
    """Workers contend, one holder is stopped past its TTL, the guard refuses it: all is seen."""
    need(prometheus_program)
    processes = Tree(redis.url, tmp_path)
    child = 0
    try:
        child = int(processes.line("pid")[0])
        with PrometheusServer([processes.port], [rules]) as prometheus:
            name, token = processes.line("stopped")

            def somebody_came_after() -> bool:
                return any(
                    one["what"] == "accepted" and one["name"] == name and one["token"] > int(token)
                    for one in processes.history()
                )

            until(somebody_came_after)
            os.kill(child, signal.SIGCONT)

            def fired() -> bool:
                return any(
                    one["alertname"] == "FencingTokenRejected" for one in prometheus.firing()
                )

            prometheus.until(fired)
            (alert,) = (
                one for one in prometheus.firing() if one["alertname"] == "FencingTokenRejected"
            )
            assert alert["resource"] == "orders/*"
            assert alert["severity"] == "critical"
            processes.tell()
            processes.line("done")
            refused = [one for one in processes.history() if one["what"] == "refused"]
            assert int(token) in [one["token"] for one in refused]
            check_counts(prometheus, processes.history())
        processes.tell()
        processes.wait()
    finally:
        processes.end(child)


def check_counts(prometheus: PrometheusServer, history: list[dict[str, Any]]) -> None:
    """Compare what was scraped with what was written down, to the unit."""
    counts = Counter(one["what"] for one in history)
    lost = Counter(one["reason"] for one in history if one["what"] == "lost")
    assert counts["accepted"] > 1
    assert counts["success"] == counts["ended"]
    expected = {
        "sum by (result) (distributed_lock_acquisitions_total)": {
            result: counts[result] for result in RESULTS if counts[result]
        },
        "sum(distributed_lock_acquisition_seconds_count)": {"": counts["success"]},
        "sum(distributed_lock_hold_seconds_count)": {"": counts["ended"]},
        "sum(distributed_lock_fencing_acceptances_total)": {"": counts["accepted"]},
        "sum(distributed_lock_fencing_rejections_total)": {"": counts["refused"]},
        "sum by (reason) (distributed_lock_losses_total)": dict(lost),
        "sum(distributed_lock_expiry_before_release_total)": {
            "": sum(lost[reason] for reason in EXPIRIES)
        },
        "sum(distributed_lock_held)": {},  # zero
        "sum(distributed_lock_waiters)": {},
        "count(distributed_lock_ttl_seconds)": {},  # the processes are gone
    }

    def scraped() -> dict[str, dict[str, int]]:
        return {expression: total(prometheus, expression) for expression in expected}

    end = time.monotonic() + PATIENCE / 2
    while scraped() != expected and time.monotonic() < end:
        time.sleep(0.2)
    assert scraped() == expected
    assert total(prometheus, "sum(distributed_lock_engine_latency_seconds_count)")[""] > 0
