"""What the tests of the command line share: real processes, each ended by the test it is of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 20.0  # seconds; a shared machine is slow, a bug is slower


class Commands:
    """Starts `holdfast` as a user would, on a lock file of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite://{folder}/locks.db"
        self.environment = {**os.environ, "HOLDFAST_URL": self.url, "PYTHONWARNINGS": "error"}
        self.environment.pop("HOLDFAST_NAMESPACE", None)
        self.started: list[subprocess.Popen[str]] = []
        self.children: list[int] = []

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command and return it."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *args], env=self.environment, text=True, **options
        )
        self.started.append(process)
        return process

    def do(self, *args: str, code: int | None = 0, **options: Any) -> str:
        """Run a command to its end and return its standard output."""
        return self.ended(self.start(*args, **options), code)[0]

    def ended(self, process: subprocess.Popen[str], code: int | None = 0) -> tuple[str, str]:
        """Wait for a command's end; return its output and errors."""
        output, errors = process.communicate(timeout=PATIENCE)
        assert code is None or process.returncode == code, (process.returncode, output, errors)
        assert "Traceback" not in (errors or ""), errors
        return output or "", errors or ""

    def looked_at(self, name: str) -> dict[str, Any]:
        """Return what `show` knows of a lock."""
        found = json.loads(self.do("show", "--json", name))
        assert isinstance(found, dict)
        return found

    def child_of(self, process: subprocess.Popen[str]) -> int:
        """Read the pid that a command under test prints as its first line."""
        assert process.stdout
        pid = int(process.stdout.readline())
        self.children.append(pid)
        return pid

    def end(self) -> None:
        """End all that was started here and still runs."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        for pid in self.children:
            eventually(partial(gone, pid), 5)


def gone(pid: int) -> bool:
    """Say whether a process has ended (a zombie has)."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def eventually(what: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until something is so."""
    end = time.monotonic() + patience
    while not what():
        assert time.monotonic() < end, "this has not happened in time"
        time.sleep(0.005)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Give a test its own commands, and end what it leaves."""
    them = Commands(tmp_path)
    yield them
    them.end()


def send(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to what we have started."""
    os.kill(process.pid, number)
