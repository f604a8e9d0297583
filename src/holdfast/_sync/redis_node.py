"""(Generated from _async/redis_node.py by tools/unasync.py: do not edit.) One Redis server as an engine sees it: scripts, its clock, its restarts, messages from it.

Rule 1: a script is called by its digest; its text is sent only where the server does not know it.
Rule 2: every answer that carries the server's time is compared with what we knew of its clock.
Rule 3: messages are heard on one channel per client; while they cannot be, timers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import time
from typing import Any

from .. import events
from .._concurrency import Reader
from ..clocks import Clock
from ..errors import EngineUnavailable, OutcomeUnknown
from ..redis_link import (
    Link,
    Greeting,
    Reply,
    Script,
    Settings,
    Template,
    check,
    demoted,
    forgotten,
    pack,
)
from ..redis_record import granted, time_in
from ..server_clock import ServerClock
from .engine import Report

LISTEN_AGAIN = 1.0  # seconds between attempts to hear messages
SIGN_AGAIN = 1.0  # seconds between signs of life that are reported


class RedisNode:
    """A server, and what is known of it."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        *,
        max_ttl: float,
        quarantine: bool,
        on_clock_step: str,
    ) -> None:
        self.settings = settings
        self.location = settings.location
        self.link = Link(settings, clock)
        self.link.on_greeting = self._greeted
        # WAIT holds up whatever comes behind it on a connection: not renewals, so it has its own.
        self._slow_link = Link(settings, clock)
        self._slow_link.on_greeting = self._greeted
        self.clock = ServerClock()
        self.report: Report | None = None
        self._clock = clock
        self._max_ttl = max_ttl
        self._quarantine = quarantine
        self._blocks = on_clock_step == "block"
        self.may_listen = True  # the server's rules let us hear messages
        self._listen_at = -math.inf
        self._sign_at = -math.inf
        self.out_until = -math.inf  # no claims before this: quarantine, or a clock that was set
        self._out_because = ""
        self._deaf: Callable[[], None] = lambda: None

    # --- Asking. ---

    def run(self, script: Script, timeout: float, keys: int, *values: Any) -> Reply:
        """Run a script and return its answer, which is a list."""
        return self.ask(Template(script, 0, keys, *values), b"", timeout)

    def ask(
        self, template: Template, tail: bytes, timeout: float, sent: float = 0.0, time_at: int = -1
    ) -> Reply:
        """Run a script that was packed before, finished by its last words.

        With `sent`, the server's time is compared: it is the answer, or in it, at `time_at`.
        """
        try:
            reply = self.link.call(template.head + tail, timeout)
            if type(reply) is not int and type(reply) is not list:
                if forgotten(reply):
                    reply = self.link.call(template.in_full() + tail, timeout)
                reply = self._checked(reply)
        except (EngineUnavailable, OutcomeUnknown) as error:
            self._failed(error)
            raise
        if time_at >= 0:
            received = self._clock()
            step = self.clock.observe(sent, received, time_in(reply, time_at))
            if step:
                self._stepped(step, received)
            if received >= self._sign_at:
                self._give_sign(received - sent, received)
        return reply

    def ask_with_replicas(
        self, replicas: int, patience: float, template: Template, tail: bytes, timeout: float
    ) -> Reply:
        """Run a script; let "granted" count only where that many replicas have it in time."""
        wait = pack(("WAIT", replicas, max(1, int(patience * 1000))))

        def follow(reply: Reply) -> bytes:
            # On the same connection: WAIT is about what was written there.
            return wait if granted(reply) else b""

        try:
            reply, count = self._slow_link.call(template.head + tail, timeout, follow)
            if forgotten(reply):
                full = template.in_full() + tail
                reply, count = self._slow_link.call(full, timeout, follow)
        except (EngineUnavailable, OutcomeUnknown) as error:
            self._failed(error)
            raise
        if count is not None and self._checked(count) < replicas:
            raise EngineUnavailable(
                f"{self.location} granted, but only {count} of {replicas} replicas have confirmed "
                "it in time; the grant is withdrawn. Check the replicas.",
                engine=self.location,
            )
        return self._checked(reply)

    def _checked(self, reply: Reply) -> Reply:
        if demoted(reply):
            self.link.leave()  # the next connection may find the new master
            self._slow_link.leave()
        return check(self.settings, reply)

    def command(self, *words: str | bytes | int, timeout: float) -> Reply:
        """Run a command that changes nothing: without an answer the server is unavailable."""
        try:
            reply = self.link.call(pack(words), timeout)
        except OutcomeUnknown as error:
            raise unavailable(error) from error
        return self._checked(reply)

    def close(self) -> None:
        """Close all connections."""
        self.link.close()
        self._slow_link.close()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's connections."""
        self.link.abandon()
        self._slow_link.abandon()

    # --- Its clock and life. ---

    @property
    def greeting(self) -> Greeting:
        """What the server said of itself when it was last connected to."""
        return self.link.greeting

    def _greeted(self, greeting: Greeting, sent: float, received: float) -> None:
        if greeting.micros:
            self.observe(sent, greeting.micros, received)
        young = self._max_ttl - greeting.uptime
        if self._quarantine and young > 0:
            since = f"it started about {greeting.uptime:g} s ago"
            if not greeting.run_id:
                since = "it does not say since when it runs (allow INFO to this user)"
            why = f"{since} and may have forgotten who held what (quarantine=True)"
            self._keep_out(received + young, why)

    def observe(self, sent: float, theirs: int, received: float) -> None:
        """Take note of the server's time in an answer; a clock that was set is an event."""
        step = self.clock.observe(sent, received, theirs)
        if step:
            self._stepped(step, received)
        if received >= self._sign_at:
            self._give_sign(received - sent, received)

    def _give_sign(self, latency: float, now: float) -> None:
        """Report that the server lives; seldom, so that nobody pays for it with every answer."""
        self._sign_at = now + SIGN_AGAIN
        if self.report is not None:
            self.report(
                events.NodeAnswered,
                node=self.location,
                latency=min(latency, self.link.latency),  # that of its own, of those asked together
                offset=self.clock.middle(now) - time(),
                uncertainty=self.clock.uncertainty,
            )

    def _failed(self, error: Exception) -> None:
        if self.report is not None:
            self.report(events.NodeFailed, node=self.location, error=str(error))

    def _stepped(self, step: float, now: float) -> None:
        if self.report is not None:
            self.report(events.ClockStep, node=self.location, step=step)
        if self._blocks:
            why = f"its clock was set by {step:+.3g} s (on_clock_step='block')"
            self._keep_out(now + self._max_ttl, why)

    def _keep_out(self, until: float, why: str) -> None:
        self.out_until, self._out_because = max(self.out_until, until), why

    def out(self, now: float) -> bool:
        """Say whether this server must not grant anything now."""
        return now < self.out_until

    def kept_out(self, now: float) -> EngineUnavailable:
        """Return the error for a claim while this server must not grant anything."""
        return EngineUnavailable(
            f"{self.location} grants nothing for {self.out_until - now:.3g} s: "
            f"{self._out_because}.",
            engine=self.location,
        )

    # --- Messages. ---

    @property
    def listening(self) -> bool:
        """Whether messages reach us."""
        return self.link.listening

    def listen(
        self,
        reader: Reader,
        channel: str,
        hear: Callable[[bytes], None],
        deaf: Callable[[], None],
        timeout: float,
    ) -> None:
        """Subscribe to our channel; where that fails, not again for a while."""
        if not self.may_listen or self._clock() < self._listen_at:
            return
        try:
            self.may_listen = self.link.listen(reader, channel.encode(), hear, deaf, timeout)
        except (EngineUnavailable, OutcomeUnknown):
            self._listen_at = self._clock() + LISTEN_AGAIN


def unavailable(error: OutcomeUnknown) -> EngineUnavailable:
    """Return the error for a question without answer: whether it was heard makes no difference."""
    return EngineUnavailable(str(error), engine=error.engine)
