"""The holder: takes the lock, lets the child run, stops it in time, gives the lock back."""

from __future__ import annotations

import os
import select
import signal
import socket
from typing import TYPE_CHECKING, NoReturn

from ... import Client, Lease, events
from ...clocks import boot_clock
from ...fencing import WORDS
from ...model import Reason
from ..base import (
    EXPECTED,
    LOST,
    NOT_EXECUTABLE,
    NOT_FOUND,
    SOFTWARE,
    exit_code,
    say,
)
from ..text import safe
from .channel import Channel, WakePipe
from .child import PR_SET_CHILD_SUBREAPER, Child, control_process
from .family import Family
from .order import Order
from .waiting import Waiting

if TYPE_CHECKING:
    from .metrics_file import MetricsFile

LONGEST_NAP = 1.0  # select's clock stands still while the machine sleeps, ours does not
# What a terminal or a service manager sends to all of us: the front decides what it means.
DEAF_TO = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "TSTP", "TTIN", "TTOU", "PIPE")


def hold(order: Order, channel: Channel, terminal: int | None, mask: set[int]) -> NoReturn:
    """Be the holder, in a process of its own; the exit code is that of `holdfast run`.

    `mask` is the signal mask that the command gets; until we are deaf more is blocked.
    """
    code = SOFTWARE
    metrics: MetricsFile | None = None
    try:
        os.setpgid(0, 0)  # so that Ctrl-C reaches the front only, which passes it on once
        front = os.getppid()
        child = Child(order.command, terminal, mask)
        for name in DEAF_TO:
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if order.metrics_file is not None:
            from .metrics_file import MetricsFile  # here: it takes its time to import

            metrics = MetricsFile(order.metrics_file)
        code = Holder(order, channel, child, front, metrics).run()
    except EXPECTED as error:
        say(error)
        code = exit_code(error)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        if metrics is not None:
            metrics.write(order.name, code)
        os._exit(code)


class Holder:
    """One run under the lock."""

    def __init__(
        self,
        order: Order,
        channel: Channel,
        child: Child,
        front: int,
        metrics: MetricsFile | None = None,
    ) -> None:
        self._order = order
        self._metrics = metrics
        self._channel = channel
        self._child = child
        self._front = front
        self._family = Family(child.pid)
        self._wake = WakePipe()
        self._times = order.times
        self._heard = boot_clock()  # the last sign of life of the front
        self._go: bool | None = None  # the front's word, and whether it has the terminal to give
        self._stopping = self._killed = False
        self._kill_at = 0.0
        self._why = ""
        self._told = 0.0

    def run(self) -> int:
        """Wait for the lock, run the command, give the lock back; return the exit code."""
        order = self._order
        label = order.label or f"{socket.gethostname()}:{self._front}"
        client = order.where.connect(label=label, ttl=order.ttl)
        if self._metrics is not None:
            client.listen(self._metrics.listener)
        try:
            lock = order.lock(client)
            lease = Waiting(self._channel).acquire(client, lock, order.timeout)
            if isinstance(lease, int):
                self._child.forget()
                return lease
            client.listen(self._notice)
            lease.watch_loss(self._wake.wake)
            try:
                return self._keep(client, lease)
            finally:
                self._family.end()  # also if we failed: never free what it works under
                self._give_back(lease)
        finally:
            client.close(timeout=2)

    # --- Holding it. ---

    def _keep(self, client: Client, lease: Lease) -> int:
        """Let the child run while the lease lasts; return when it is reaped."""
        signal.signal(signal.SIGCHLD, self._wake.wake)
        control_process(PR_SET_CHILD_SUBREAPER, 1)
        self._heard = boot_clock()
        self._told = self._deadline(lease)
        # All that the front needs to kill the child without us, before there is anything to kill.
        until = self._times.kill_at(self._told)
        self._channel.send(held=lease.ttl, child=self._family.child, until=until)
        while self._go is None:  # a front that was stopped meanwhile does not start anything
            self._listen(lease)
            if self._channel.closed or boot_clock() >= self._times.term_at(self._deadline(lease)):
                self._child.forget()
                say(f"{self._order.name!r} was given back: holdfast run was stopped when it came.")
                return LOST
        problem = self._child.start(self._environment(client, lease), self._go)
        if problem is not None:
            return _not_started(self._order.command[0], problem)
        while True:
            stopped = self._family.reap()
            if self._family.status is not None:
                break
            if stopped is not None:
                self._channel.send(stopped=stopped)
            self._stop_in_time(lease)
            self._listen(lease)
        self._channel.send(until=None)
        self._stopping = self._stopping or self._killed_by_front()
        if self._stopping:
            self._family.kill_descendants()
        self._channel.send(ended=self._family.status)
        return self._verdict()

    def _environment(self, client: Client, lease: Lease) -> dict[str, str]:
        where = self._order.where
        return {
            "HOLDFAST_NAME": lease.name,
            "HOLDFAST_TOKEN": str(lease.token),
            "HOLDFAST_DOMAIN": lease.domain,
            "HOLDFAST_MODE": WORDS[lease.mode],
            "HOLDFAST_LIMIT": str(lease.limit),
            "HOLDFAST_URL": where.url or client.engine.location,
            "HOLDFAST_NAMESPACE": client.namespace,
        }

    def _deadline(self, lease: Lease) -> float:
        """Return until when the child may run: the lease's, or the front's."""
        return min(boot_clock() + lease.remaining(), self._heard + lease.ttl)

    def _listen(self, lease: Lease) -> None:
        """Sleep until there is something to do, and hear the front."""
        if self._killed:
            until = boot_clock() + LONGEST_NAP
        elif self._stopping:
            until = self._kill_at
        else:
            until = self._times.term_at(self._deadline(lease))
        nap = min(max(0.0, until - boot_clock()), LONGEST_NAP)
        news: list[Channel | WakePipe] = [self._wake]
        if not self._channel.closed:
            news.append(self._channel)
        select.select(news, [], [], nap)
        self._wake.drain()
        messages = self._channel.receive()
        if messages:
            self._heard = boot_clock()
        for message in messages:
            if "go" in message:
                self._go = message["go"]
            elif "signal" in message:
                self._family.signal(message["signal"])

    def _stop_in_time(self, lease: Lease) -> None:
        now = boot_clock()
        if self._channel.closed and not self._killed:
            self._why = "holdfast run itself was killed"
            self._kill()
        elif not self._stopping:
            deadline = self._deadline(lease)
            if not lease.held:
                self._stop(now, self._after_loss(lease, now), _reason(lease))
            elif now >= self._times.term_at(deadline):
                paused = self._heard + lease.ttl <= deadline
                why = "holdfast run was stopped" if paused else "the engine did not answer"
                self._stop(now, self._times.kill_at(deadline), why)
            elif abs(deadline - self._told) > 0.001:
                self._told = deadline
                self._channel.send(until=self._times.kill_at(deadline))
        if self._stopping and not self._killed and now >= self._kill_at:
            self._kill()

    def _after_loss(self, lease: Lease, now: float) -> float:
        """Return when to kill: forced, after the grace; else no later than was planned."""
        kill_at = now + self._times.grace
        if lease.lost_reason is Reason.FORCED:
            return kill_at
        return min(kill_at, self._times.kill_at(self._told or now))

    def _stop(self, now: float, kill_at: float, why: str) -> None:
        self._stopping, self._why = True, why
        self._kill_at = max(now, kill_at)
        self._channel.send(until=self._kill_at)
        self._family.signal(signal.SIGTERM)
        self._family.signal(signal.SIGCONT)  # who is stopped cannot end
        say(f"{self._order.name!r} is being lost, because {why}: the command is stopped.")

    def _kill(self) -> None:
        self._stopping = self._killed = True
        self._family.signal(signal.SIGKILL)

    def _killed_by_front(self) -> bool:
        """Say whether the child was killed in time by the front, because we were stopped."""
        late = boot_clock() >= self._times.kill_at(self._told)
        status = self._family.status or 0
        return late and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

    def _verdict(self) -> int:
        status = self._family.status
        assert status is not None
        if self._stopping:
            return LOST
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _give_back(self, lease: Lease) -> None:
        if lease.release() is False and not self._stopping:
            say(
                f"{self._order.name!r} was no longer ours when the command ended: another may "
                f"have worked at the same time ({lease.error()})"
            )

    def _notice(self, event: events.Event) -> None:
        if isinstance(event, events.Renewed):
            self._wake.wake()


def _reason(lease: Lease) -> str:
    text = str(lease.error())
    return text.partition(" is over: ")[2].partition(";")[0].rstrip(".") or text


def _not_started(program: str, problem: OSError) -> int:
    shown = safe(program)
    if isinstance(problem, FileNotFoundError):
        say(f"The command {shown!r} was not found.")
        return NOT_FOUND
    say(f"The command {shown!r} cannot be executed: {problem.strerror}.")
    return NOT_EXECUTABLE
