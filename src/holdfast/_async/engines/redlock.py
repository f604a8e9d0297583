"""redlock://: a majority of independent Redis servers, with a fencing token (S20, S21).

Rule 1: every verb goes to all nodes at once, and a majority of all of them decides.
Rule 2: nodes give hints and no grants: when a majority says that it is our turn, we ask again.
Rule 3: a renewal that a majority confirms seats us on nodes that came back or had refused us; it
        comes early where one that refused us is free now, or will be in a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from secrets import token_hex
from typing import Any, ClassVar

from ..._concurrency import AsyncReader
from ...clocks import Clock, boot_clock
from ...errors import EngineUnavailable
from ...model import (
    UNKNOWN,
    Claim,
    Fault,
    Grant,
    Guarantees,
    Mode,
    Outcome,
    Queued,
    Reason,
    Renewal,
    Snapshot,
)
from ...redis_link import Settings, Template
from ...redis_record import check_rules, keys_of, load_script, micros
from ...redlock_settings import read_nodes
from ...redlock_tally import undisputed
from ...rules import validity
from ..engine import AsyncEngine, Haste, Notice, Report
from ..inbox import AsyncInbox
from .redlock_look import SCAN, look, names
from .redlock_node import AsyncRedlockNode
from .redlock_nodes import AsyncRedlockNodes, is_answer
from .redlock_question import DEADLINE, Question, question
from .redlock_roster import roster_key
from .redlock_voting import AsyncVoting, seat

RENEW = load_script("renew", "hinting")
RESTORE = load_script("restore", "hinting")
FORCE = load_script("force", "hinting")

HELD_UNDER = frozenset(Fault) - {Fault.SERVER_CLOCK_STEP, Fault.FAILOVER}


class AsyncRedlockEngine(AsyncEngine):
    """Locks on a majority of Redis servers. Exclusive while a minority of them fails or forgets."""

    family = "redlock"
    shielded = False  # release.lua may be repeated, and the keeper does so
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {
        "quorum": int,
        "node_timeout": float,
        "on_clock_step": str,
    }

    def __init__(
        self,
        url: Any,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        quorum: int | None = None,
        node_timeout: float = 0.05,
        on_clock_step: str = "tell",
    ) -> None:
        self._settings: list[Settings] = read_nodes(url)
        count = len(self._settings)
        majority = count // 2 + 1
        if quorum is not None and not majority <= quorum <= count:
            raise ValueError(f"quorum must be {majority} to {count} of {count}, not {quorum}.")
        check_rules(max_ttl, on_clock_step)
        if node_timeout <= 0:
            raise ValueError(f"node_timeout must be more than 0 seconds, not {node_timeout:g}.")
        self.quorum = quorum or majority
        self._node_timeout = node_timeout
        self._max_ttl = max_ttl
        self._rules = {"max_ttl": max_ttl, "on_clock_step": on_clock_step}
        self.location = "redlock://" + ",".join(
            one.location.split("://", 1)[1] for one in self._settings
        )
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=False,
            push=True,
            crash_detection=False,
            expiry="lease",
            min_ttl=0.1,
            max_ttl=max_ttl,
            at_least=True,
        )
        self._clock = clock
        self._notice: Notice | None = None
        self._haste: Haste | None = None
        self._report: Report | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._nodes = AsyncRedlockNodes(self._settings, self._clock, self.quorum, **self._rules)
        self._nodes.location = self.location
        self._nodes.node_timeout = self._node_timeout
        for node in self._nodes.all:
            node.report = self._report
        self._inbox = AsyncInbox()
        self._hints: dict[str, set[int]] = {}  # owner -> nodes that say it is its turn
        self._channel = f"holdfast:{token_hex(8)}"
        self._reader: AsyncReader | None = None
        self._voting = AsyncVoting(
            self._nodes, self._clock, self._channel, self._max_ttl, self._node_timeout
        )
        self._voting.on_refusal = self._seat_soon
        self._greeted = False
        self._ready = False  # all nodes are known, and heard
        self._closed = False

    @property
    def nodes(self) -> Sequence[AsyncRedlockNode]:
        """The nodes, with what is known of each: latency, errors, clock."""
        return self._nodes.all

    # --- Claiming. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        if not self._ready:
            await self._get_ready(self._voting.patience(claim.ttl, timeout))
        if claim.queue:
            self._inbox.slots[claim.owner] = None  # pushes may come from now on
            self._hints[claim.owner] = set()
        answer = await self._voting.claim(claim, timeout)
        if isinstance(answer, Grant):
            self._stop_waiting_for(claim.owner)
        return answer

    async def _get_ready(self, patience: float) -> None:
        """Know the nodes, and hear them, before anything is asked."""
        if not self._greeted:
            await self._nodes.greet(patience)
            self._greeted = True
        now = self._clock()
        self._ready = True
        for node in self._nodes.all:
            if node.listening or self._closed:
                continue
            self._ready = False
            if node.error is None and not node.away(now):
                if self._reader is None:
                    self._reader = AsyncReader("holdfast-mail")
                hear = partial(self._hear, node.number)
                await node.listen(self._reader, self._channel, hear, self._deaf, patience)

    # --- Waiting. ---

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine; a hint is never a grant."""
        await self._inbox.wait(claim.owner, timeout)
        return None

    def _hear(self, number: int, message: bytes) -> None:
        kind, owner, *rest = message.decode().split(" ")
        if kind == "free":
            hints = self._hints.get(owner)
            if hints is None:
                self._seat_soon(owner)
                return
            hints.add(number)
            if len(hints) >= self.quorum:
                self._inbox.nudge(owner)
        elif kind == "lost" and self._notice is not None:
            self._notice(owner, Reason(rest[0]))

    def _seat_soon(self, owner: str) -> None:
        """Let a holder be renewed in a moment: a node that refused it may seat it then.

        Not at once: then late answers are in, and most leases over.
        """
        if self._haste is not None and owner in self._voting.attempts:
            self._haste(owner, self._clock() + self._node_timeout)

    def _deaf(self) -> None:
        self._ready = False
        for owner in list(self._inbox.slots):
            self._inbox.nudge(owner)

    def _stop_waiting_for(self, owner: str) -> None:
        self._inbox.forget(owner)
        self._hints.pop(owner, None)

    # --- Holding. ---

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        patience = self._voting.patience(min(claim.ttl for claim in claims), timeout)
        if not self._ready:
            await self._get_ready(patience)
        keys: list[str] = []
        values: list[str | int] = []
        for claim in claims:
            attempt = self._voting.attempts.get(claim.owner)
            keys += keys_of(claim.key)
            values += (claim.owner, claim.revision, micros(claim.ttl))
            values.append("" if attempt is None else seat(claim, attempt.slot)[1])
        sent = self._clock()
        renewing = question(RENEW, len(keys), *keys, *values, time_at=0)
        answers = await self._nodes.ask(renewing, patience)
        heard = [answer for answer in answers if is_answer(answer)]
        if len(heard) < self.quorum and len(heard) < self._nodes.blocking:
            raise self._nodes.missing(answers)
        renewals: list[Renewal] = []
        for number, claim in enumerate(claims, 1):
            found = Counter(answer[number] for answer in heard)
            if found[1] >= self.quorum:
                renewed = Renewal(Outcome.RENEWED, validity(sent, claim.ttl))
                renewals.append(renewed)
                attempt = self._voting.attempts.get(claim.owner)
                if attempt is not None:
                    attempt.until = renewed.not_after
            elif found[0] + found[2] >= self._nodes.blocking:
                reason = Reason.STOLEN if found[2] >= self._nodes.blocking else Reason.EXPIRED
                renewals.append(Renewal(Outcome.LOST, reason=reason))
            else:
                renewals.append(UNKNOWN)
        await self._restore(claims, renewals, answers, patience)
        return renewals

    async def _restore(
        self,
        claims: Sequence[Claim],
        renewals: Sequence[Renewal],
        answers: Sequence[Any],
        patience: float,
    ) -> None:
        """Seat what a majority confirmed on the nodes that do not know it (any more)."""
        for node, answer in zip(self._nodes.all, answers, strict=True):
            if not is_answer(answer):
                continue
            keys: list[str] = []
            values: list[str | int] = []
            end = self._clock() + patience  # or when the first of them may be over
            for claim, renewal, found in zip(claims, renewals, answer[1:], strict=True):
                attempt = self._voting.attempts.get(claim.owner)
                if found == 1 or renewal.outcome is not Outcome.RENEWED or attempt is None:
                    continue
                if found == 2 and claim.mode is Mode.EXCLUSIVE and not claim.path:
                    continue  # whoever is there excludes us
                attempt.spared = (attempt.spared or frozenset()) - {node.number}
                end = min(end, renewal.not_after)
                mode, path = seat(claim, attempt.slot)
                keys += keys_of(claim.key)
                values += (claim.owner, micros(claim.ttl), claim.family.value, claim.limit)
                values += (mode, path, self._voting.text(claim), claim.revision, attempt.token)
            if keys:
                roster = roster_key(claims[0].key)
                template = Template(RESTORE, 1, 1 + len(keys), roster, *keys, *values)
                restoring = Question(template, DEADLINE % node.clock.latest(end))
                await self._nodes.ask(restoring, patience, [node], few=True)

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        if self._hints:
            self._stop_waiting_for(claim.owner)
        attempt = self._voting.attempts.pop(claim.owner, None)  # whatever the nodes say, it is over
        spared = attempt.spared or () if attempt is not None else ()
        patience = self._voting.patience(claim.ttl, timeout)
        sure = attempt is not None and attempt.until > self._clock()
        ending = self._voting.release_question(claim, linger, sure)
        answers = await self._nodes.ask(ending, patience, owed=claim.ttl, spared=spared)
        if undisputed(answers, self.quorum):
            return True
        heard = [type(one) is int or bool(one[0]) for one in answers if is_answer(one)]
        if sum(heard) >= self.quorum:
            return True
        if len(heard) - sum(heard) >= self._nodes.blocking:
            return False
        raise self._nodes.missing(answers)

    # --- Looking and breaking. ---

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine: what a majority agrees on."""
        return (await look(self._nodes, [key], self._leisure(timeout)))[0]

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""
        patience = self._leisure(timeout)
        keys = await names(self._nodes, prefix, patience)
        shots: list[Snapshot] = []
        for start in range(0, len(keys), SCAN):
            shots += await look(self._nodes, keys[start : start + SCAN], patience)
        return [shot for shot in shots if shot.kind is not None]

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        wanted = "" if token is None else token
        forcing = question(FORCE, 2, *keys_of(key), wanted)
        answers = await self._nodes.ask(forcing, self._leisure(timeout))
        heard = [answer for answer in answers if is_answer(answer)]
        if len(heard) < self.quorum:
            raise self._nodes.missing(answers)
        found = {owner for answer in heard for owner in answer[2:]}
        return len(found)  # a majority has let go of them, whoever else has not

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine: a majority is there."""
        await self._nodes.greet(self._leisure(timeout))
        self._greeted = True
        answers: list[Any] = [[] if node.error is None else None for node in self._nodes.all]
        if sum(map(is_answer, answers)) < self.quorum:
            raise EngineUnavailable(str(self._nodes.missing(answers)), engine=self.location)

    def _leisure(self, timeout: float) -> float:
        """Return how long one node may take for what costs no lease any time."""
        return min(timeout, 20 * self._node_timeout)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine."""
        self._notice = callback

    def hastens(self, callback: Haste) -> None:
        """See AsyncEngine."""
        self._haste = callback

    def reports(self, callback: Report) -> None:
        """See AsyncEngine."""
        self._report = callback
        for node in self._nodes.all:
            node.report = callback

    def stop_waiting(self) -> None:
        """See AsyncEngine."""
        self._closed = True
        self._inbox.close()

    async def close(self) -> None:
        """See AsyncEngine."""
        self.stop_waiting()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        await self._nodes.close()

    def after_fork(self) -> None:
        """See AsyncEngine."""
        self._nodes.abandon()
        self._start_over()
