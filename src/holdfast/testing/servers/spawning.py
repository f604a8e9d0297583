"""Starting child processes that die with this one, however it ends.

Rule 1: Linux ends a child when the *thread* that started it ends (PR_SET_PDEATHSIG). So all are
        started by one thread that lives as long as the process.
Rule 2: what a killed process cannot do, an ending one does itself: see `process`.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

_Job = tuple[Sequence[str], Mapping[str, str], Path, Future["subprocess.Popen[bytes]"]]


def spawn(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, where no Ctrl-C reaches it; it writes to `log`."""
    started: Future[subprocess.Popen[bytes]] = Future()
    _jobs().put((command, environment, log, started))
    return started.result()


def _popen(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [*_death_signal(), *command],
            cwd=log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _death_signal() -> list[str]:
    """Return the prefix that makes a command die with its parent, empty where there is none."""
    program = shutil.which("setpriv") if sys.platform == "linux" else None
    if program is None or Path(program).resolve().name == "busybox":  # which has no --pdeathsig
        return []
    return [program, "--pdeathsig", "KILL"]


class _Spawner:
    """The thread and its jobs; a forked process has none of its parent's threads."""

    def __init__(self) -> None:
        self.home = os.getpid()
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        # A daemon: it must outlive the end of the main thread, atexit functions included.
        threading.Thread(target=self._run, name="holdfast-spawner", daemon=True).start()

    def _run(self) -> None:
        while True:
            command, environment, log, started = self.jobs.get()
            try:
                started.set_result(_popen(command, environment, log))
            except BaseException as error:
                started.set_exception(error)


_spawner: _Spawner | None = None
_mutex = threading.Lock()


def _jobs() -> queue.SimpleQueue[_Job]:
    global _spawner
    with _mutex:
        if _spawner is None or _spawner.home != os.getpid():
            _spawner = _Spawner()
        return _spawner.jobs
