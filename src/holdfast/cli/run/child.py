"""The child: forked early, waits for the word, then becomes the command.

It is alone in its process (no threads), so that the Python code before exec is safe.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# Python ignores these for itself; a program expects them as they are by default.
RESTORED = [
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ") if hasattr(signal, name)
]


def control_process(option: int, value: int) -> bool:
    """Call prctl(2); False where there is none."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


class Child:
    """The command-to-be, seen from the holder."""

    def __init__(self, command: Sequence[str], terminal: int | None, mask: set[int]) -> None:
        word, self._word = os.pipe()
        self._report, report = os.pipe()
        holder = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._word)
                os.close(self._report)
                environment = _wait_for_word(word, terminal, holder)
                _become(command, environment, mask, report)
            finally:
                os._exit(70)
        os.close(word)
        os.close(report)
        with suppress(OSError):  # the child does the same; whoever comes first
            os.setpgid(self.pid, self.pid)

    def start(self, environment: dict[str, str], foreground: bool) -> OSError | None:
        """Give the word; return why the command could not be started."""
        with suppress(BrokenPipeError):  # killed while it waited: waiting for it tells
            message = json.dumps({"environment": environment, "foreground": foreground})
            os.write(self._word, message.encode() + b"\n")
        os.close(self._word)
        with os.fdopen(self._report, "rb") as report:
            answer = report.read()
        if not answer:
            return None  # closed by exec
        number = int(answer)
        return OSError(number, os.strerror(number))

    def forget(self) -> None:
        """Let it go without a word: it ends by itself."""
        os.close(self._word)


def _wait_for_word(word: int, terminal: int | None, holder: int) -> dict[str, str]:
    """Return what the command finds in its environment, when it is its turn."""
    os.setpgid(0, 0)  # so that the terminal's signals do not come before the command does
    control_process(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != holder:  # it died before we asked to die with it
        os._exit(70)
    with os.fdopen(word, "rb") as lines:
        line = lines.readline()
    if not line.endswith(b"\n"):
        os._exit(0)  # there is nothing to do
    message = json.loads(line)
    if message["foreground"] and terminal is not None:
        with suppress(OSError):
            # From the background this raises SIGTTOU, unless it is blocked.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
            os.tcsetpgrp(terminal, os.getpgrp())
    return {**os.environ, **message["environment"]}


def _become(
    command: Sequence[str], environment: dict[str, str], mask: set[int], report: int
) -> NoReturn:
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)
    # What was sent to the command before it was there reaches it now; Python must not react.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        os.write(report, str(error.errno).encode())
    os._exit(127)
