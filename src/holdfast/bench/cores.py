"""Servers and clients on different cores, as if on different machines.

Else the scheduler puts them together or apart as it likes, from run to run, and a request costs
60 µs or 280 µs accordingly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOTE = ", servers on another core"


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
