"""postgresql://, postgres://: one server, or a primary with its standbys; all rules in functions.

Rule 1: a verb is one statement, one round trip, one transaction; each may be repeated by its owner.
Rule 2 (S6): a claim says until when, by the server's clock, it is wanted; a copy that comes later
        is refused.
Rule 3 (S10): a pushed grant counts from the server's own time, anchored where we queued; without
        an anchor it is confirmed first.
Rule 4: one channel per client. Whoever hears nothing on it looks for himself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..._concurrency import AsyncReader, asleep
from ...clocks import Clock, boot_clock
from ...errors import EngineUnavailable, LockMismatch
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
from ...postgres_link import Word, from_driver, from_url
from ...postgres_record import (
    TERMS,
    TOMBSTONE,
    check_schema,
    claim_words,
    micros,
    nothing,
    number,
    read_holder,
    read_renewals,
    read_snapshots,
    renewal_words,
    whole,
)
from ...rules import pushed_validity, recheck_in, validity
from ..engine import AsyncEngine, Notice, Report
from ..inbox import AsyncInbox
from ..postgres_node import AsyncPostgresNode

HELD_UNDER = frozenset(
    {
        Fault.CLIENT_PAUSE,
        Fault.CLIENT_CRASH,
        Fault.CLIENT_CLOCK_STEP,
        Fault.PARTITION,
        Fault.SERVER_PAUSE,
        Fault.SERVER_RESTART,  # what it has committed is on its disk
    }
)
POLL = 0.25  # seconds between looks while no message can reach us
LISTEN_MOST = 1.0  # seconds that a renewal may take longer because messages do not reach us
LISTEN = ("auto", "yes", "no")
REMEMBERED = 1000  # terms whose words are kept

Words = tuple[Word, ...]


class AsyncPostgresEngine(AsyncEngine):
    """Locks in PostgreSQL. `held` is exclusive while the server keeps its data and its time."""

    family = "postgresql"
    shielded = False  # a release may be repeated, and the keeper does so
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {
        "schema": str,
        "create": yes_or_no,
        "listen": str,
        "connections": int,
    }

    def __init__(
        self,
        url: Any,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        schema: str = "holdfast",
        create: bool = True,
        listen: str = "auto",
        connections: int = 4,
    ) -> None:
        if listen not in LISTEN:
            raise ValueError(f"listen must be one of {', '.join(LISTEN)}, not {listen!r}.")
        if connections < 1:
            raise ValueError(f"connections must be 1 or more, not {connections}.")
        self._settings = from_url(url) if isinstance(url, str) else from_driver(url)
        self.location = self._settings.location
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=True,
            push=listen != "no",
            crash_detection=False,
            expiry="lease",
            min_ttl=0.05,
            max_ttl=max_ttl,
            at_least=True,
        )
        self.creates, self.listen = create, listen
        self._clock = clock
        self._options: dict[str, Any] = {
            "schema": check_schema(schema),
            "create": create,
            "listen": listen,
            "connections": connections,
        }
        self._notice: Notice | None = None
        self._report: Report | None = None
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet: no connections, no waiters."""
        self.node = AsyncPostgresNode(self._settings, self._clock, **self._options)
        self.node.report = self._tell
        self._inbox = AsyncInbox()
        self._anchors: dict[str, tuple[float, float, float]] = {}  # owner -> ours, theirs, ttl
        self._reader: AsyncReader | None = None
        self._words: dict[tuple[object, ...], tuple[Words, Words]] = {}
        self._words_of = 0  # the client that they name
        self._closed = False

    # --- Verbs. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        left = timeout
        if self.node.mail is None and self.node.may_listen:
            started = self._clock()
            await self._listen(timeout / 2)
            left -= self._clock() - started
        if claim.queue:
            self._inbox.slots[claim.owner] = None  # pushes may come from now on
        asked = self._clock()
        sent, row = await self._claim_once(claim, asked, left)
        if row[0] == b"late":  # by what we knew of the server's clock; we know better now
            now = self._clock()
            sent, row = await self._claim_once(claim, now, left - (now - asked))
        answer = row[0]
        if answer == b"granted":
            if claim.queue:
                self._forget(claim.owner)
            return tuple.__new__(Grant, (whole(row[2]), validity(sent, claim.ttl)))
        if answer == b"busy":
            return self._busy(claim, sent, row)
        if answer == b"mismatch":
            self._forget(claim.owner)
            text = mismatch(claim, Family((row[5] or b"").decode()), whole(row[2]))
            raise LockMismatch(text, name=claim.name, engine=self.location)
        if answer == b"barred":
            return Queued(0, math.inf)
        raise EngineUnavailable(
            f"{self.location} got the claim of {claim.name!r} later than it was wanted, twice: its "
            "clock jumps, or the way there is slower than the time-out.",
            name=claim.name,
            engine=self.location,
        )

    async def _claim_once(
        self, claim: Claim, now: float, timeout: float
    ) -> tuple[float, Sequence[Word]]:
        node = self.node
        if self._words_of != node.client:
            self._words.clear()
            self._words_of = node.client
        before, after = self._words.get(claim[:TERMS]) or self._pack(claim)
        queue = b"t" if claim.queue else b"f"
        until = number(node.clock.latest(now + timeout))
        words = (*before, claim.owner.encode(), *after, queue, until)
        sent, (row,) = await node.ask(node.statements.claim, words, timeout)
        node.observe(sent, whole(row[1]))
        return sent, row

    def _pack(self, claim: Claim) -> tuple[Words, Words]:
        """Return what all claims of the same terms say, and keep it."""
        if len(self._words) >= REMEMBERED:
            self._words.clear()
        words = self._words[claim[:TERMS]] = claim_words(claim, self._words_of)
        return words

    def _busy(self, claim: Claim, sent: float, row: Sequence[Word]) -> Queued:
        at, position = whole(row[1]), whole(row[2])
        holder = read_holder(at, *row[3:])
        if holder is None:  # a transaction has it, and will tell nobody when it ends
            return Queued(position, POLL)
        if claim.queue:
            self._anchors[claim.owner] = (sent, at / 1e6, claim.ttl)
        retry = recheck_in(holder.expires_in, position)
        return Queued(position, retry if self.node.listening else min(retry, POLL), holder)

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine."""
        if not self.node.listening and not self._closed:
            await asleep(min(timeout, POLL))
            return None
        grant = await self._inbox.wait(claim.owner, timeout)
        if grant is not None:
            self._forget(claim.owner)
        return grant

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        node = self.node
        words = renewal_words(claims, node.client)
        sent, rows = await node.ask(node.statements.renew, words, timeout, urgent=True)
        ((at, answers),) = rows
        node.observe(sent, whole(at))
        if node.mail is None and node.may_listen:
            await self._listen(min(timeout / 2, LISTEN_MOST))
        return [
            Renewal(Outcome.RENEWED, validity(sent, claim.ttl))
            if answer == 1
            else Renewal(Outcome.LOST, reason=Reason.STOLEN if answer == 2 else Reason.EXPIRED)
            for claim, answer in zip(claims, read_renewals(answers), strict=True)
        ]

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        if self._inbox.slots:
            self._forget(claim.owner)
        node = self.node
        words = (
            claim.key.encode(),
            claim.owner.encode(),
            number(micros(linger)) if linger else b"0",
            TOMBSTONE,
        )
        sent, ((held, at),) = await node.ask(node.statements.release, words, timeout)
        node.observe(sent, whole(at))
        return held == b"t"

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine."""
        rows = await self.node.look(self.node.statements.look, (key.encode(), b"t"), timeout)
        return next(iter(read_snapshots(rows)), nothing(key))

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""
        rows = await self.node.look(self.node.statements.look, (prefix.encode(), b"f"), timeout)
        return read_snapshots(rows)

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        words = (key.encode(), None if token is None else number(token))
        answer = await self.node.ask(self.node.statements.force, words, timeout)
        return whole(answer.rows[0][0])

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine."""
        statements = self.node.statements
        await self.node.look(statements.greet, (b"pg_class",), timeout)

    # --- Messages. ---

    async def _listen(self, timeout: float) -> None:
        if self._closed:
            return
        if self._reader is None:
            self._reader = AsyncReader("holdfast-mail")
        await self.node.listen(self._reader, self._hear, self._deaf, timeout)

    def _hear(self, message: bytes) -> None:
        kind, owner, *rest = message.decode().split(" ")
        if kind == "grant":
            token, at = int(rest[0]), int(rest[1]) / 1e6
            received = self._clock()
            until = received  # without an anchor: to be confirmed
            anchor = self._anchors.get(owner)
            if anchor is not None:
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
            self._notice(owner, Reason(rest[0]))

    def _deaf(self) -> None:
        """Let everybody look for himself: what was said meanwhile is lost."""
        for owner in list(self._inbox.slots):
            self._inbox.nudge(owner)

    def _forget(self, owner: str) -> None:
        self._inbox.forget(owner)
        self._anchors.pop(owner, None)

    def _tell(self, kind: type[Any], /, **details: Any) -> None:
        """Pass on what the node reports; a pooler takes a promise away."""
        if not self.node.may_listen and self.guarantees.push:
            self.guarantees = replace(self.guarantees, push=False)
        if self._report is not None:
            self._report(kind, **details)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine."""
        self._notice = callback

    def reports(self, callback: Report) -> None:
        """See AsyncEngine."""
        self._report = callback

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
        await self.node.close()

    def after_fork(self) -> None:
        """See AsyncEngine."""
        self.node.abandon()
        self._start_over()
