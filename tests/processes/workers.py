"""Worker processes, as the tests of this folder see them: they talk in lines on their pipes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

WORKER = str(Path(__file__).with_name("worker.py"))
Start = Callable[..., "Worker"]


class Worker:
    """One worker process, stopped at the end by its pid."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, WORKER, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self, word: str) -> list[str]:
        """Return what stands after `word` on the next line, which must begin with it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        assert line, "the worker ended"
        assert line[0] == word, line
        return line[1:]

    def tell(self) -> None:
        """Give the sign it waits for."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> float:
        """Kill it at once; return when."""
        self.process.kill()
        return time.monotonic()

    def end(self) -> None:
        """Leave nothing of it behind."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate(timeout=30)
