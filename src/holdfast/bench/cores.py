"""Servers and clients on different cores, as if on different machines, and cores that stay awake.

Else the scheduler puts them together or apart as it likes, from run to run, and a request costs
60 µs or 280 µs accordingly. And a core that falls asleep while it waits for an answer has to be
woken, on a virtual machine by its host: that takes as long as the request itself, another time
twice as long, and what runs then finds its caches empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

NOTE = ", servers on another core"

# Runs only where nobody else wants to, and not for longer than whoever has started it. Linux may
# share a core out by sessions first (autogroup): then it is the session that must not count.
_SPIN = """
import os, sys
core, parent = map(int, sys.argv[1:])
os.sched_setaffinity(0, [core])
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
try:
    with open("/proc/self/autogroup", "w") as file:
        file.write("19")
except OSError:
    pass
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def awake() -> Iterator[None]:
    """Let no core fall asleep while it lasts, where the system can do that."""
    with ExitStack() as stack:
        if hasattr(os, "SCHED_IDLE"):
            for core in sorted(os.sched_getaffinity(0)):
                words = [sys.executable, "-I", "-S", "-c", _SPIN, str(core), str(os.getpid())]
                spinner = stack.enter_context(subprocess.Popen(words, start_new_session=True))
                stack.callback(spinner.kill)
        yield


@contextmanager
def apart(servers: Iterable[int], clients: Iterable[int] = (0,)) -> Iterator[str]:
    """Keep these processes apart while it lasts (0: this one); give a note that says so."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    ours, theirs = list(clients), list(servers)
    if len(cores) < 2 or not theirs:
        yield ""
        return
    for process in theirs:
        _pin(process, cores[-1:])
    for process in ours:
        _pin(process, cores[:-1])
    try:
        yield NOTE
    finally:
        for process in (*ours, *theirs):
            _pin(process, cores)


def _pin(process: int, cores: Iterable[int]) -> None:
    """Let all threads of a process, and of those it has started, run on these cores only."""
    if process == 0:
        os.sched_setaffinity(0, cores)
        return
    for one in (process, *offspring(process)):
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                os.sched_setaffinity(int(thread), cores)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile


def offspring(process: int) -> list[int]:
    """Return all processes that a process has started, and those that they have."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in path.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *offspring(child)]
    return found
