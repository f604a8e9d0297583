"""What the examples with a hazard share: a process that is stopped in the middle of its work.

`overtaken(work, ...)` runs work twice, in two processes. The first is stopped (SIGSTOP) where it
calls `pause()`, as a long garbage collection, a full swap or a closed lid would stop it. It goes on
only when the second one, which got the lock after the TTL, is done.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

TTL = 0.5

_fork = multiprocessing.get_context("fork")


def overtaken(work: Callable[..., None], *arguments: Any) -> None:
    """Run `work(*arguments, pause)` in two processes, the first of them overtaken."""
    first = _fork.Process(target=work, args=(*arguments, _stop))
    first.start()
    assert first.pid is not None
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    second = _fork.Process(target=work, args=(*arguments, _go_on))
    second.start()
    second.join()
    os.kill(first.pid, signal.SIGCONT)
    first.join()
    assert first.exitcode == second.exitcode == 0


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _go_on() -> None:
    pass
