"""(Generated from _async/engines/redis.py by tools/unasync.py: do not edit.) redis://, rediss://, redis+unix://, valkey://: one server, all rules in its scripts.

Rule 1: a verb is one script, one round trip; each may be repeated by its owner.
Rule 2 (S6): a claim says until when, by the server's clock, it is wanted; a copy that comes later
        is refused.
Rule 3 (S10): a pushed grant counts from the server's own time, anchored where we queued; without
        an anchor it is confirmed first.
Rule 4: one channel per client. Whoever hears nothing on it any more looks for himself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any, ClassVar

from ..._concurrency import Reader, sleep
from ...clocks import Clock, boot_clock
from ...errors import EngineUnavailable, LockMismatch, OutcomeUnknown
from ...lock_table import mismatch
from ...model import (
    Claim,
    Family,
    Fault,
    Grant,
    Guarantees,
    Outcome,
    Queued,
    Reason,
    Renewal,
    Snapshot,
    yes_or_no,
)
from ...redis_link import Reply, Template, from_client, from_url
from ...redis_record import (
    TERMS,
    Releases,
    check_rules,
    claim_text,
    claim_words,
    key_in,
    keys_of,
    load_script,
    micros,
    path_text,
    read_holder,
    read_snapshot,
    scan_pattern,
    time_in,
)
from ...rules import pushed_validity, recheck_in, validity
from ..engine import Engine, Notice, Report
from ..inbox import Inbox
from ..redis_node import RedisNode, unavailable

CLAIM = load_script("claim")
RENEW = load_script("renew")
RELEASE = load_script("release")
INSPECT = load_script("inspect")
FORCE = load_script("force")

HELD_UNDER = frozenset(
    {
        Fault.CLIENT_PAUSE,
        Fault.CLIENT_CRASH,
        Fault.CLIENT_CLOCK_STEP,
        Fault.PARTITION,
        Fault.SERVER_PAUSE,
    }
)
POLL = 0.25  # seconds between looks while no message can reach us
NO_CHANNEL = "-"  # of a client that may not listen to any
SCAN = 500
REMEMBERED = 1000  # terms whose requests are kept packed

# The last words of a claim: owner, queue?, wanted until.
CLAIM_TAIL = b"$%d\r\n%b\r\n$1\r\n%d\r\n$16\r\n%016d\r\n"


class RedisEngine(Engine):
    """Locks on one Redis or Valkey. `held` is exclusive while that server keeps data and time."""

    family = "redis"
    shielded = False  # release.lua may be repeated, and the keeper does so
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {
        "replicas": int,
        "quarantine": yes_or_no,
        "on_clock_step": str,
    }

    def __init__(
        self,
        url: Any,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        replicas: int = 0,
        quarantine: bool = False,
        on_clock_step: str = "tell",
    ) -> None:
        check_rules(max_ttl, on_clock_step)
        self._settings = from_url(url) if isinstance(url, str) else from_client(url)
        self.location = self._settings.location
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER | ({Fault.SERVER_RESTART} if quarantine else set()),
            fair=True,
            push=True,
            crash_detection=False,
            expiry="lease",
            min_ttl=0.05,
            max_ttl=max_ttl,
            at_least=True,
        )
        self._clock = clock
        self.replicas = replicas
        # Whether replicas have it, and what the clock says now, only an answer tells.
        self._confirms = replicas > 0 or on_clock_step == "block"
        self._rules: dict[str, Any] = {
            "max_ttl": max_ttl,
            "quarantine": quarantine,
            "on_clock_step": on_clock_step,
        }
        self._notice: Notice | None = None
        self._report: Report | None = None
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet: no connections, no waiters."""
        self.node = RedisNode(self._settings, self._clock, **self._rules)
        self.node.report = self._report
        self._link = self.node.link
        self._inbox = Inbox()
        self._until: dict[str, float] = {}  # owner -> when what it was granted is over
        self._anchors: dict[str, tuple[float, float, float]] = {}  # owner -> ours, theirs, ttl
        self._channel = f"holdfast:{token_hex(8)}"
        self._reader: Reader | None = None
        self._packed: dict[tuple[object, ...], tuple[Template, Releases]] = {}
        self._closed = False

    # --- Verbs. ---

    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See Engine."""
        left = timeout
        if self._link.mail is None:
            sent = self._clock()
            self._listen(timeout / 2)
            left -= self._clock() - sent
        if claim.queue:
            self._inbox.slots[claim.owner] = None  # pushes may come from now on
        sent = self._clock()
        reply = self._claim_once(claim, sent, left)
        if type(reply) is not int and reply[0] == b"late":
            # By what we knew of the server's clock; we know better now.
            left -= self._clock() - sent
            sent = self._clock()
            reply = self._claim_once(claim, sent, left)
        if type(reply) is int or reply[0] == b"granted":
            if claim.queue:
                self._inbox.slots.pop(claim.owner, None)
                if self._anchors:
                    self._anchors.pop(claim.owner, None)
            token = reply if type(reply) is int else reply[2]
            until = self._until[claim.owner] = validity(sent, claim.ttl)
            return tuple.__new__(Grant, (token, until))
        kind = reply[0]
        if kind == b"busy":
            return self._busy(claim, sent, reply)
        if kind == b"mismatch":
            self._forget(claim.owner)
            text = mismatch(claim, Family(reply[2].decode()), reply[3])
            raise LockMismatch(text, name=claim.name, engine=self.location)
        if kind == b"barred":
            return Queued(0, math.inf)
        raise EngineUnavailable(
            f"{self.location} got the claim of {claim.name!r} later than it was wanted, twice: its "
            "clock jumps, or the way there is slower than the time-out.",
            name=claim.name,
            engine=self.location,
        )

    def _claim_once(self, claim: Claim, sent: float, timeout: float) -> Reply:
        node = self.node
        if sent < node.out_until:
            raise node.kept_out(sent)
        template = (self._packed.get(claim[:TERMS]) or self._pack(claim))[0]
        owner = claim.owner.encode()
        until = node.clock.latest(sent + timeout)
        tail = CLAIM_TAIL % (len(owner), owner, claim.queue, until)
        if not self.replicas:
            reply = node.ask(template, tail, timeout, sent, 1)
        else:
            # While the server waits for replicas, renewals wait behind it: not for long.
            patience = min(timeout / 2, claim.ttl / 6, 1.0)
            reply = node.ask_with_replicas(self.replicas, patience, template, tail, timeout)
            node.observe(sent, time_in(reply, 1), self._clock())
        if sent < node.out_until:  # since this very answer
            raise node.kept_out(sent)
        return reply

    def _pack(self, claim: Claim) -> tuple[Template, Releases]:
        """Return how claims and releases of the same terms begin, and keep it."""
        if len(self._packed) >= REMEMBERED:
            self._packed.clear()
        keys, text = keys_of(claim.key), claim_text(claim, self._channel)
        words = claim_words(claim, text, claim.mode.value, path_text(claim.path))
        packed = self._packed[claim[:TERMS]] = (
            Template(CLAIM, 3, 2, *keys, *words),
            Releases(RELEASE, keys, words),
        )
        return packed

    def _busy(self, claim: Claim, sent: float, reply: Reply) -> Queued:
        now, position = reply[1:3]
        if claim.queue:
            self._anchors[claim.owner] = (sent, now / 1e6, claim.ttl)
        holder = read_holder(now, *reply[3:]) if len(reply) > 3 else None
        retry = recheck_in(holder.expires_in if holder else 0.0, position)
        if not self.node.listening:
            retry = min(retry, POLL)
        return Queued(position, retry, holder)

    def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See Engine."""
        if not self.node.listening and not self._closed:
            sleep(min(timeout, POLL))
            return None
        grant = self._inbox.wait(claim.owner, timeout)
        if grant is not None:
            self._forget(claim.owner)
        return grant

    def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See Engine."""
        started = self._clock()
        if not self.node.listening:
            self._listen(timeout / 2)
        keys: list[str] = []
        values: list[str | int] = []
        for claim in claims:
            keys += keys_of(claim.key)
            values += (claim.owner, claim.revision, micros(claim.ttl))
        sent = self._clock()
        left = timeout - (sent - started)
        reply = self.node.run(RENEW, left, len(keys), *keys, *values)
        self.node.observe(sent, reply[0], self._clock())
        renewals: list[Renewal] = []
        for claim, found in zip(claims, reply[1:], strict=True):
            if found == 1:
                until = validity(sent, claim.ttl)
                if claim.owner in self._until:  # else it was let go while we asked
                    self._until[claim.owner] = until
                renewals.append(Renewal(Outcome.RENEWED, until))
            else:
                self._until.pop(claim.owner, None)
                reason = Reason.STOLEN if found == 2 else Reason.EXPIRED
                renewals.append(Renewal(Outcome.LOST, reason=reason))
        return renewals

    def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See Engine."""
        if self._inbox.slots:
            self._forget(claim.owner)
        releases = (self._packed.get(claim[:TERMS]) or self._pack(claim))[1]
        sure = self._until.pop(claim.owner, 0.0) > self._clock()
        template, tail = releases.of(claim.owner, linger, sure)
        answer = self.node.ask(template, tail, timeout)
        return type(answer) is int or bool(answer[0])

    def inspect(self, key: str, timeout: float) -> Snapshot:
        """See Engine."""
        return (self._look([key], timeout))[0]

    def _look(self, keys: Sequence[str], timeout: float) -> list[Snapshot]:
        both = [one for key in keys for one in keys_of(key)]
        try:
            reply = self.node.run(INSPECT, timeout, len(both), *both)
        except OutcomeUnknown as error:
            raise unavailable(error) from error
        now = int(reply[0])
        return [read_snapshot(key, now, shown) for key, shown in zip(keys, reply[1:], strict=True)]

    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See Engine."""
        end = self._clock() + timeout
        cursor, found = b"0", set[bytes]()
        while True:
            left = max(0.001, end - self._clock())
            pattern = scan_pattern(prefix)
            cursor, some = self.node.command(
                "SCAN", cursor, "MATCH", pattern, "COUNT", SCAN, timeout=left
            )
            found.update(some)
            if cursor == b"0":
                break
        keys = sorted(key_in(one) for one in found)
        shots: list[Snapshot] = []
        for start in range(0, len(keys), SCAN):
            left = max(0.001, end - self._clock())
            shots += self._look(keys[start : start + SCAN], left)
        return [shot for shot in shots if shot.kind is not None]

    def force(self, key: str, token: int | None, timeout: float) -> int:
        """See Engine."""
        wanted = "" if token is None else token
        return int((self.node.run(FORCE, timeout, 2, *keys_of(key), wanted))[0])

    def ping(self, timeout: float) -> None:
        """See Engine."""
        self.node.command("PING", timeout=timeout)

    # --- Messages. ---

    def _listen(self, timeout: float) -> None:
        if self._closed or self._channel == NO_CHANNEL:
            return
        if self._reader is None:
            self._reader = Reader("holdfast-mail")
        self.node.listen(self._reader, self._channel, self._hear, self._deaf, timeout)
        if not self.node.may_listen:  # say so in every claim: who cannot hear is not skipped
            self._channel = NO_CHANNEL
            self._packed.clear()

    def _hear(self, message: bytes) -> None:
        kind, owner, *rest = message.decode().split(" ")
        if kind == "grant":
            token, at = int(rest[0]), int(rest[1]) / 1e6
            received = self._clock()
            until = received  # without an anchor: to be confirmed
            anchor = self._anchors.get(owner)
            if anchor is not None and not self._confirms:
                ours, theirs, ttl = anchor
                until = pushed_validity(
                    anchor=ours,
                    anchor_server=theirs,
                    granted_server=at,
                    received=received,
                    ttl=ttl,
                )
            self._inbox.deliver(owner, Grant(token, until))
        elif kind == "lost" and self._notice is not None:
            self._until.pop(owner, None)
            self._notice(owner, Reason(rest[0]))

    def _deaf(self) -> None:
        """Let everybody look for himself: what was said meanwhile is lost."""
        for owner in list(self._inbox.slots):
            self._inbox.nudge(owner)

    def _forget(self, owner: str) -> None:
        self._inbox.forget(owner)
        self._anchors.pop(owner, None)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See Engine."""
        self._notice = callback

    def reports(self, callback: Report) -> None:
        """See Engine."""
        self._report = self.node.report = callback

    def stop_waiting(self) -> None:
        """See Engine."""
        self._closed = True
        self._inbox.close()

    def close(self) -> None:
        """See Engine."""
        self.stop_waiting()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self.node.close()

    def after_fork(self) -> None:
        """See Engine."""
        self.node.abandon()
        self._start_over()
