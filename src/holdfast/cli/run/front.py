"""The front: the process that the user started. Signals, the terminal, the exit code."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from types import FrameType

from ...clocks import boot_clock
from ..base import LOST, say
from .channel import Channel, Message, WakePipe
from .family import LAST_WAIT, has_ended
from .holder import hold
from .order import Order
from .terminal import JOB_SIGNALS, Terminal

LONGEST_NAP = 1.0
PATIENCE = 0.1  # how much later than the holder we kill
STOP_SETTLES = 0.05  # seconds until a stop that was not ignored has stopped us

LEAVING = [getattr(signal, f"SIG{name}") for name in ("INT", "TERM", "HUP", "QUIT")]
PASSED_ON = [getattr(signal, f"SIG{name}") for name in ("USR1", "USR2", "WINCH", "TSTP", "CONT")]


def run_front(order: Order) -> int:
    """Fork the holder, be its front until it ends, and return the exit code."""
    terminal = Terminal()
    ours, theirs = Channel.pair()
    # Nothing may come between the fork and the handlers: it would end one of us alone.
    mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, LEAVING)}
    holder = os.fork()
    if holder == 0:
        ours.close()
        hold(order, theirs, terminal.file, mask)
    theirs.close()
    front = Front(holder, ours, terminal)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        return front.run()
    finally:
        ours.close()


class Front:
    """Passes signals on, gives signs of life, and watches the holder."""

    def __init__(self, holder: int, channel: Channel, terminal: Terminal) -> None:
        self._holder = holder
        self._channel = channel
        self._terminal = terminal
        self._wake = WakePipe()
        self._signals: list[int] = []
        self._beat: float | None = None  # seconds between signs of life, once the lock is held
        self._child: int | None = None  # its process group
        self._until: float | None = None  # when the child must be dead
        self._gave_up = False
        self._sent = 0.0  # when the last sign of life was
        self._catch(LEAVING)

    def run(self) -> int:
        """Serve until the holder is gone."""
        while not self._channel.closed:
            select.select([self._channel.fileno(), self._wake.fileno()], [], [], self._nap())
            self._wake.drain()
            for message in self._channel.receive():
                self._hear(message)
            while self._signals:
                self._pass_on(self._signals.pop(0))
            if self._beat is not None and boot_clock() >= self._sent + self._beat:
                self._sent = boot_clock()
                self._channel.send(beat=True)
            self._watch_the_holder()
        _, status = os.waitpid(self._holder, 0)
        self._end()
        if os.WIFSIGNALED(status):
            return self._without_holder(os.WTERMSIG(status))
        return os.WEXITSTATUS(status)

    def _catch(self, numbers: list[signal.Signals]) -> None:
        for number in numbers:
            # What was ignored when we came (nohup, a shell's background job) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)
        self._wake.wake()

    def _nap(self) -> float | None:
        if self._beat is None:
            return None
        until = boot_clock() + LONGEST_NAP if self._until is None else self._until + PATIENCE
        return min(max(0.01, until - boot_clock()), LONGEST_NAP, self._beat)

    # --- What the holder says. ---

    def _hear(self, message: Message) -> None:
        if "held" in message:
            self._beat = message["held"] / 10
            self._child, self._until = message["child"], message["until"]
            self._catch(PASSED_ON)
            # A job that stands in a pipe gets the terminal only when it asks for it.
            self._channel.send(go=os.isatty(0) and self._terminal.ours)
        elif "until" in message:
            self._until = message["until"]
        elif "stopped" in message:
            self._child_stopped(message["stopped"])
        elif "ended" in message:
            self._until = None
            self._end()
            if os.WIFSIGNALED(message["ended"]):
                self._terminal.restore()
            self._child = None

    def _end(self) -> None:
        if self._child is not None:
            self._terminal.take_back(self._child)

    # --- Signals and jobs. ---

    def _pass_on(self, number: int) -> None:
        if number == signal.SIGCONT:
            self._offer_terminal()
        self._channel.send(signal=number)

    def _offer_terminal(self) -> None:
        if self._child is not None and os.isatty(0) and self._terminal.ours:
            self._terminal.give(self._child)

    def _child_stopped(self, number: int) -> None:
        """Stop like the child did, so that the shell takes over; go on together with it."""
        assert self._child is not None
        asks = number in (signal.SIGTTIN, signal.SIGTTOU)
        if asks and self._terminal.ours:
            self._terminal.give(self._child)
            self._channel.send(signal=signal.SIGCONT)
            return
        in_front = self._terminal.foreground() == self._child
        if number not in JOB_SIGNALS and not in_front:
            return  # somebody stopped the command alone, and not as a job
        self._terminal.take_back(self._child)
        self._stop_ourselves(number if number in JOB_SIGNALS else signal.SIGTSTP)

    def _stop_ourselves(self, number: int) -> None:
        before = signal.getsignal(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # Stopped here, until a shell continues us. Where no shell could do that, the kernel
        # ignores the stop, and we go on at once.
        time.sleep(STOP_SETTLES)
        signal.signal(number, before)
        if self._terminal.ours and self._child is not None:
            self._terminal.give(self._child)
        if signal.SIGCONT not in self._signals:
            self._signals.append(signal.SIGCONT)

    # --- The holder may fail, too. ---

    def _watch_the_holder(self) -> None:
        """Kill the child when the holder should have and did not (it may be stopped)."""
        overdue = self._until is not None and boot_clock() >= self._until + PATIENCE
        if not overdue or self._channel.closed:
            return
        self._gave_up = True
        if self._child is not None:
            with suppress(OSError):
                os.killpg(self._child, signal.SIGKILL)
        # Its end may free the lock: not before the child has ended.
        if self._child is None or has_ended(self._child):
            with suppress(OSError):
                os.kill(self._holder, signal.SIGKILL)

    def _without_holder(self, number: int) -> int:
        if self._child is not None:
            with suppress(OSError):
                os.killpg(self._child, signal.SIGKILL)
            end = time.monotonic() + LAST_WAIT
            while not has_ended(self._child) and time.monotonic() < end:
                time.sleep(0.005)
        if self._gave_up:
            say("The lock could not be renewed in time: the command was killed.")
            return LOST
        say(f"The process that held the lock was killed by signal {number}, the command with it.")
        return 128 + number
