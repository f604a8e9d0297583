"""The terminal: who is in the foreground, and in which state it was before the command."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

JOB_SIGNALS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class Terminal:
    """The controlling terminal of this process; without one, every answer is no."""

    def __init__(self) -> None:
        self.file: int | None = None
        self._state: Any = None
        with suppress(OSError):
            self.file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            self._state = _read_state(self.file)

    def foreground(self) -> int | None:
        """Return the process group in the foreground."""
        if self.file is not None:
            with suppress(OSError):
                return os.tcgetpgrp(self.file)
        return None

    @property
    def ours(self) -> bool:
        """Whether this process is in the foreground."""
        return self.foreground() == os.getpgrp()

    def give(self, group: int) -> None:
        """Put a process group into the foreground."""
        if self.file is None:
            return
        # From the background this raises SIGTTOU, unless it is blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        try:
            os.tcsetpgrp(self.file, group)
        except OSError:
            pass  # the group has ended meanwhile
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take_back(self, group: int) -> None:
        """Come to the foreground again if that group, or nobody, is there."""
        current = self.foreground()
        if current is not None and current != os.getpgrp() and (current == group):
            self.give(os.getpgrp())

    def restore(self) -> None:
        """Set the state it had at first: a killed editor leaves it without echo."""
        if self.file is not None and self._state is not None and self.ours:
            import termios

            with suppress(termios.error):
                termios.tcsetattr(self.file, termios.TCSADRAIN, self._state)


def _read_state(file: int) -> Any:
    import termios

    try:
        return termios.tcgetattr(file)
    except termios.error:
        return None
