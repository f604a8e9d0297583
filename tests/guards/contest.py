"""Several processes add to one counter under a lock; one of them is stopped past its TTL.

Rule 1: a contender reads, comes to the failpoint, writes one more than it read, and says "added".
Rule 2: at the failpoint of its turn it stops itself (SIGSTOP). It is woken only when another has
        added with a newer token, so what it then writes is stale: in every run, not by chance.
Rule 3: with the guard that write is refused, and the counter says what was added. Without it the
        counter says less, or the contest itself proves nothing.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from holdfast.guards import Fence

TTL = 0.6
CONTENDERS = 3
SLOWEST = 0.15  # seconds per addition, on a machine that has much else to do
CONTENDER = Path(__file__).with_name("contender.py")


class Resource:
    """A counter in some kind of store; a subclass per kind, made again in every process."""

    def __init__(self, address: str) -> None:
        self.address = address

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """Start what serves it and give its address; `folder` is empty, and removed later."""
        raise NotImplementedError
        yield

    def create(self) -> None:
        """Make the counter, at 0."""
        raise NotImplementedError

    def value(self) -> int:
        """Return what it says."""
        raise NotImplementedError

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """Read, call `pause` before writing, write one more; through the guard if `guarded`."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing open."""


@dataclass
class Verdict:
    """What was said to be added, what was refused, and what the counter says."""

    added: int = 0
    refused: int = 0
    value: int = 0
    stopped: int = 0

    @property
    def lost(self) -> int:
        """How many additions are gone."""
        return self.added - self.value


@dataclass
class Contender:
    """One process; what it says arrives in the contest's queue."""

    process: subprocess.Popen[str]
    stopped_with: int = 0  # the token with which it stands still; 0 = it runs
    reader: threading.Thread = field(init=False)

    def read_into(self, heard: queue.SimpleQueue[tuple[Contender, list[str]]]) -> None:
        """Put every line it says, as words, into the queue; an empty one when it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            heard.put((self, line.split()))
        heard.put((self, []))

    def wake(self) -> None:
        """Let it go on, once it really stands still."""
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.process.send_signal(signal.SIGCONT)
        self.stopped_with = 0


class Contest:
    """A with statement around the processes: none survives it."""

    def __init__(self, resource: type[Resource], address: str, folder: Path, guarded: bool) -> None:
        self._heard: queue.SimpleQueue[tuple[Contender, list[str]]] = queue.SimpleQueue()
        self._contenders: list[Contender] = []
        self._arguments = [
            f"{resource.__module__}:{resource.__qualname__}",
            address,
            f"sqlite://{folder / 'locks.db'}",
            "guarded" if guarded else "unguarded",
        ]
        self.verdict = Verdict()

    def __enter__(self) -> Contest:
        for number in range(CONTENDERS):
            turn = 3 + 5 * number  # the addition at which it stops
            process = subprocess.Popen(
                [sys.executable, str(CONTENDER), *self._arguments, str(turn)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "HOLDFAST_CONTEST_TTL": str(TTL)},
            )
            contender = Contender(process)
            contender.reader = threading.Thread(target=contender.read_into, args=(self._heard,))
            contender.reader.start()
            self._contenders.append(contender)
        return self

    def run(self, additions: int) -> None:
        """Go on until so many were added, and every one was stopped and woken."""
        end = time.monotonic() + 60 + SLOWEST * additions
        verdict = self.verdict
        while verdict.added < additions or verdict.stopped < CONTENDERS or self._anyone_stopped():
            self._hear(end)
        for contender in self._contenders:
            assert contender.process.stdin is not None
            contender.process.stdin.close()  # the sign to end
        running = len(self._contenders)
        while running:
            running -= self._hear(end)
        codes = [contender.process.wait(30) for contender in self._contenders]
        assert codes == [0] * CONTENDERS, codes

    def _hear(self, end: float) -> bool:
        """Take in one line; say whether it was the end of a contender."""
        who, words = self._heard.get(timeout=max(0.1, end - time.monotonic()))
        match words:
            case []:
                return True
            case ["added", token]:
                self.verdict.added += 1
                for other in self._contenders:
                    if 0 < other.stopped_with < int(token):
                        other.wake()
            case ["refused", _]:
                self.verdict.refused += 1
            case ["stopping", token]:
                self.verdict.stopped += 1
                who.stopped_with = int(token)
            case _:
                raise AssertionError(words)
        return False

    def _anyone_stopped(self) -> bool:
        return any(contender.stopped_with for contender in self._contenders)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for contender in self._contenders:
            if contender.process.poll() is None:
                contender.process.send_signal(signal.SIGCONT)
                contender.process.kill()
            contender.process.wait(30)
            contender.reader.join(30)
            for pipe in (contender.process.stdin, contender.process.stdout):
                assert pipe is not None
                pipe.close()


def hold(resource: type[Resource], folder: Path, additions: int, *, guarded: bool) -> Verdict:
    """Hold a contest on a new counter and return how it ended."""
    served, locks = folder / "served", folder / "locks"
    served.mkdir()
    locks.mkdir()
    with resource.served(served) as address:
        counter = resource(address)
        try:
            counter.create()
            with Contest(resource, address, locks, guarded) as contest:
                contest.run(additions)
            contest.verdict.value = counter.value()
        finally:
            counter.close()
    return contest.verdict
