"""The process family of a command: signals, reaping, and an end that is waited for."""

from __future__ import annotations

import os
import signal

from holdfast.cli.run.family import Family, has_ended
from tests.cli.conftest import eventually


def start(script: str) -> int:
    """Start a shell as leader of a process group; Popen would reap it before we do."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ, setpgroup=0)


def test_end_is_waited_for() -> None:
    """Whatever a command does about TERM, afterwards it is gone and reaped."""
    family = Family(start("trap '' TERM; sleep 60"))
    family.end()
    assert family.status is not None
    assert os.WTERMSIG(family.status) == signal.SIGKILL
    assert has_ended(family.child)
    family.end()  # harmless when repeated


def test_a_stop_is_told_once() -> None:
    """A command that is stopped has not ended."""
    family = Family(start("exec sleep 60"))
    found: list[int] = []

    def reap() -> bool:
        stopped = family.reap()
        if stopped is not None:
            found.append(stopped)
        return bool(found)

    family.signal(signal.SIGSTOP)
    eventually(reap)
    assert found == [signal.SIGSTOP]
    assert family.reap() is None
    assert family.status is None
    family.end()


def test_nobody_is_signalled_after_the_end() -> None:
    """The number of a reaped process may belong to another by now."""
    family = Family(start("exit 3"))
    eventually(lambda: family.reap() is None and family.status is not None)
    assert family.status is not None
    assert os.WEXITSTATUS(family.status) == 3
    family.child = os.getpgrp()  # would be us
    family.signal(signal.SIGTERM)
