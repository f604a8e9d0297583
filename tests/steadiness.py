"""Whether this machine kept time during a test; where it did not, a failure proves nothing.

Leases of a few tenths of a second, nodes that have 50 ms: a machine with more to do than it has
cores stands still for longer now and then, and then the promises of a clock cannot be tested on it.

Rule 1: a small process does nothing but wake up, and notes how late it was. It needs no lock of
        ours, so what makes it late is the machine.
Rule 2: a test that failed while it was late is run again, at most TIMES; one that failed on a
        machine that kept time has failed.
Rule 3: one that took LONG is not run again: all attempts have one time-out together, and what has
        used it up would run without any.
Rule 4: what checks safety by its result, not by a clock, is never run again.
Rule 5: whatever was run again is listed at the end.
Rule 6: thousands of collected tests are a heap that takes Python's collector a second to look
        through, in which no lease is renewed. So what is there before the first test is out of its
        sight, and what tests leave is collected between two of them.
"""

from __future__ import annotations

import gc
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TIMES = 2
LATE = 0.04  # seconds
LONG = 50.0  # seconds
TIDY = 5.0  # seconds of tests, after which their garbage is collected
NEVER = ("simulation", "lab", "guards")  # folders of tests
NEVER_NAMED = ("test_model", "test_redis_model", "test_redis_lazy_model", "test_postgres_model")
PROPERTY = "machine stood still"
HERE = Path(__file__).resolve().parent

WATCH = """
import mmap, os, struct, sys, time
with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), 8)
    parent = int(sys.argv[2])
    while os.getppid() == parent:
        before = time.monotonic()
        time.sleep(0.005)
        late = time.monotonic() - before - 0.005
        if late > struct.unpack("d", page[:8])[0]:
            page[:8] = struct.pack("d", late)
"""


class Watch:
    """The small process, and what it has noted since it was last asked."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="holdfast-watch-")  # noqa: SIM115
        self._file.write(bytes(8))
        self._file.flush()
        self._page = mmap.mmap(self._file.fileno(), 8)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCH, self._file.name, str(os.getpid())]
        )

    def begin(self) -> None:
        """Forget what was."""
        self._page[:8] = bytes(8)

    @property
    def latest(self) -> float:
        """How many seconds it was late at most, since `begin`."""
        found: float = struct.unpack("d", self._page[:8])[0]
        return found

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._page.close()
        self._file.close()


class Steadiness:
    """The plugin: one per process that runs tests."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._tidied = time.monotonic()

    def pytest_collection_finish(self) -> None:
        """Let Python's collector not look again at what is here to stay."""
        gc.collect()
        gc.freeze()
        self._tidy()

    def _tidy(self) -> None:
        gc.collect()
        self._tidied = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test, again if it failed while the machine stood still."""
        if time.monotonic() - self._tidied > TIDY:
            self._tidy()
        if not judged_by_the_clock(item.path):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        began = time.monotonic()
        for attempt in range(TIMES + 1):
            self._watch.begin()
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            late = self._watch.latest
            if not any(report.failed for report in reports):
                break
            if attempt == TIMES or late < LATE or time.monotonic() - began > LONG:
                break
            item.user_properties.append((PROPERTY, round(late, 3)))
            item._initrequest()  # type: ignore[attr-defined]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_unconfigure(self) -> None:
        """Leave nothing running."""
        self._watch.stop()


def judged_by_the_clock(path: Path) -> bool:
    """Say whether what is in this file may fail because of the machine."""
    inside = path.is_relative_to(HERE)
    return path.stem not in NEVER_NAMED and not (
        inside and path.relative_to(HERE).parts[0] in NEVER
    )


def summary(reporter: pytest.TerminalReporter) -> None:
    """List what was run again."""
    lines = [
        f"{report.nodeid} (the machine stood still for {late * 1000:.0f} ms)"
        for kind in ("passed", "failed")
        for report in reporter.stats.get(kind, [])
        for name, late in report.user_properties
        if report.when == "call" and name == PROPERTY
    ]
    if lines:
        reporter.section("run again, because this machine did not keep time")
        for line in lines:
            reporter.line(line)
