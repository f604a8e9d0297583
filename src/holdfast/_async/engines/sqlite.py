"""sqlite:///, the embedded engine: all processes of one host, through one file.

Rule 1: a claim nobody disputes is one statement, and so is its release; the rest runs on the lock
        table inside one transaction (sqlite_store).
Rule 2: messages leave after the commit; a message that is lost costs a timer, nothing more.
Rule 3: the head of a queue watches the holders' sockets; who hangs up is dead and is removed (S33).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from ..._concurrency import asleep
from ...clocks import Clock, boot_clock, wall_micros
from ...filesystems import boot_identity
from ...host_sockets import SUPPORTED
from ...lock_table import LockTable
from ...model import Claim, Fault, Grant, Guarantees, Outcome, Queued, Reason, Renewal, Snapshot
from ...rules import validity
from ...sqlite_store import (
    CLAIM,
    RELEASE,
    RENEW,
    TERMS,
    Peer,
    RowRecords,
    forget_idle,
    terms_text,
)
from ..engine import AsyncEngine, Notice
from .sqlite_file import AsyncLockFile
from .sqlite_mail import AsyncHostMail

T = TypeVar("T")

HELD_UNDER = frozenset(Fault) - {Fault.PARTITION, Fault.SERVER_PAUSE, Fault.FAILOVER}
HELD_UNDER -= {Fault.SERVER_DATA_LOSS}  # a file rolled back to an older copy: only tokens hold

POLL = 0.25  # seconds between looks where there are no sockets
FORGET_EVERY = 1000  # claims
REMEMBERED = 1000  # texts of terms


class AsyncSqliteEngine(AsyncEngine):
    """Locks in a file. `held` is exclusive under pauses, crashes, reboots and clock steps."""

    family = "sqlite"
    instant = True

    def __init__(
        self,
        url: str,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        create: bool = True,
        any_filesystem: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.strip("/"):
            raise ValueError(
                f"{url!r} names no lock file; write sqlite:///path/to/file.db with three slashes."
            )
        self.path = os.path.realpath(unquote(parts.path).replace("//", "/"))
        self.location = f"sqlite://{quote(self.path)}"
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=True,
            push=SUPPORTED,
            crash_detection=SUPPORTED,
            expiry="lease",
            min_ttl=0.05,
            max_ttl=max_ttl,
            at_least=True,
        )
        self._clock = clock
        self._create = create
        self._any_filesystem = any_filesystem
        self._boot = boot_identity()
        self._notice: Notice | None = None
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet: no file, no sockets, no waiters."""
        self._file = AsyncLockFile(
            self.path,
            create=self._create,
            any_filesystem=self._any_filesystem,
            clock=self._clock,
            on_open=self._opened,
        )
        self._mail = AsyncHostMail(f"{self.path}.d", self._boot, self._clock, self._hear_loss)
        self._seen: dict[str, tuple[float, float]] = {}  # of other boots: owner -> stored, since
        self._texts: dict[tuple[object, ...], str] = {}
        self._records = RowRecords(self, self._boot)
        self._table = LockTable(clock=self._clock, micros=wall_micros, records=self._records)
        self._me = Peer(self, self._boot, "")
        self._claims = 0

    def _opened(self) -> None:
        self._mail.open()
        self._me.address = self._mail.address

    # --- Verbs. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        sent = self._clock()
        try:
            with self._file.mutex:
                token = self._claim_alone(self._file.database(sent), claim, sent)
        except (sqlite3.Error, OSError):  # busy, as a rule: now with patience
            token = await self._file.run(lambda base: self._claim_alone(base, claim), timeout)
        if token is not None:
            return tuple.__new__(Grant, (token, validity(sent, claim.ttl)))
        answer = await self._transact(
            claim.key, lambda: self._table.claim(claim, self._me), timeout
        )
        if isinstance(answer, int):
            return Grant(answer, validity(sent, claim.ttl))
        if not self._mail.works:
            return answer._replace(retry_in=min(answer.retry_in, POLL))
        return answer

    def _claim_alone(
        self, database: sqlite3.Connection, claim: Claim, now: float | None = None
    ) -> int | None:
        if claim.owner in self._table.tombstones:
            return None
        self._claims += 1
        if self._claims % FORGET_EVERY == 1:
            forget_idle(database, wall_micros())
        if now is None:
            now = self._clock()
        text = self._text(claim)
        row = (claim.key, wall_micros(), claim.owner, now, now + claim.ttl, text)
        for (token,) in database.execute(CLAIM, row).fetchall():
            return int(token)
        return None

    def _text(self, claim: Claim) -> str:
        terms = (*claim[:TERMS], claim.revision)
        text = self._texts.get(terms)
        if text is None:
            if len(self._texts) >= REMEMBERED:
                self._texts.clear()
            text = self._texts[terms] = terms_text(claim, self._me)
        return text

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine."""
        if not self._mail.works:
            await asleep(min(timeout, POLL))
            return None
        return await self._mail.wait(claim.owner, timeout)

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        sent = self._clock()
        self._mail.drain()
        reasons = await self._transact(None, lambda: self._renew_all(claims), timeout)
        return [
            Renewal(Outcome.RENEWED, validity(sent, claim.ttl))
            if reason is None
            else Renewal(Outcome.LOST, reason=reason)
            for claim, reason in zip(claims, reasons, strict=True)
        ]

    def _renew_all(self, claims: Sequence[Claim]) -> list[Reason | None]:
        now = self._clock()
        database = self._file.database(now)
        reasons: list[Reason | None] = []
        for claim in claims:
            row = (now + claim.ttl, claim.key, claim.owner, self._text(claim), now)
            if database.execute(RENEW, row).rowcount:
                reasons.append(None)
            else:
                self._raise_floor(claim.key)
                reasons.extend(self._table.renew([claim]))
        return reasons

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        if self._mail.inbox.slots:
            self._mail.forget(claim.owner)
        if linger <= 0:
            now = self._clock()
            row = (claim.key, claim.owner, now)
            try:
                with self._file.mutex:
                    done = self._file.database(now).execute(RELEASE, row).rowcount
            except (sqlite3.Error, OSError):
                done = await self._file.run(
                    lambda base: base.execute(RELEASE, row).rowcount, timeout
                )
            if done:
                return True
        return await self._transact(claim.key, lambda: self._table.release(claim, linger), timeout)

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine."""
        return await self._transact(key, lambda: self._table.inspect(key), timeout)

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""

        def look() -> list[Snapshot]:
            shots = []
            for key in self._records.keys_with(prefix):
                self._raise_floor(key)
                shots.append(self._table.inspect(key))
            return [shot for shot in shots if shot.kind is not None]

        return await self._transact(None, look, timeout)

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        return await self._transact(key, lambda: self._table.force(key, token), timeout)

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine."""
        await self._file.run(
            lambda db: db.execute("SELECT count(*) FROM record").fetchall(), timeout
        )

    # --- Running them. ---

    async def _transact(self, key: str | None, action: Callable[[], T], timeout: float) -> T:
        """Run an action on the lock table in one transaction, then send what it has to say."""

        def run(database: sqlite3.Connection) -> T:
            self._mail.outbox.clear()
            database.execute("BEGIN IMMEDIATE")
            try:
                self._records.begin(database)
                before = self._prepare(key)
                result = action()
                self._records.flush()
                if key is not None:
                    self._point_out_head(key, before)
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise
            self._mail.post()
            return result

        return await self._file.run(run, timeout)

    def _prepare(self, key: str | None) -> tuple[object, ...]:
        """Let dead holders be over before the table looks; return who stands where."""
        if key is None:
            return ()
        self._raise_floor(key)
        record = self._records.get(key)
        if record is None:
            return ()
        now = self._clock()
        for holding in record.holders.values():
            peer = holding.channel
            if not holding.lingering and isinstance(peer, Peer) and self._dead(peer):
                holding.expires = record.soonest = now
        return self._standing(key)

    def _raise_floor(self, key: str) -> None:
        """Let the table know the last token of a name, in case it lets a waiter in.

        Our own clock may be behind the one that numbered it.
        """
        self._table.floor = max(self._table.floor, self._records.floor(key))

    def _standing(self, key: str) -> tuple[object, ...]:
        record = self._records.get(key)
        if record is None or not record.waiters:
            return ()
        return (next(iter(record.waiters)), *record.holders)

    def _point_out_head(self, key: str, before: tuple[object, ...]) -> None:
        """Tell the first waiter, if it or what it waits for is new, whom to watch."""
        if not self._mail.works or self._standing(key) == before:
            return
        record = self._records.get(key)
        if record is None or not record.waiters:
            return
        owner, head = next(iter(record.waiters.items()))
        peers = [one.channel for one in record.holders.values()]
        addresses = [
            peer.address for peer in peers if isinstance(peer, Peer) and peer.boot == self._boot
        ]
        assert isinstance(head.channel, Peer)
        self._mail.outbox.append((head.channel.address, ["head", owner, addresses]))

    # --- The office: what the lock table wants of other clients. ---

    def peer(self, boot: str, address: str) -> Peer:
        """See Office."""
        return Peer(self, boot, address)

    def expires(self, peer: Peer, owner: str, stored: float, most: float) -> float:
        """See Office; of another boot, that long from our first look (S33)."""
        now = self._clock()
        if peer.boot == self._boot:
            return min(stored, now + most)
        if self._seen.get(owner, (None, 0.0))[0] != stored:
            self._seen[owner] = (stored, now)
        return self._seen[owner][1] + most

    def expect(self, claim: Claim) -> None:
        """See Office."""
        self._mail.expect(claim.owner)

    def push_grant(self, peer: Peer, claim: Claim, token: int, at: float) -> bool:
        """See Office."""
        if self._dead(peer):
            return False
        message = ["grant", claim.owner, token, at, claim.ttl, self._boot]
        self._mail.outbox.append((peer.address, message))
        return True

    def push_loss(self, peer: Peer, owner: str, reason: Reason) -> None:
        """See Office."""
        self._mail.outbox.append((peer.address, ["lost", owner, reason.value]))

    def _dead(self, peer: Peer) -> bool:
        return peer.boot == self._boot and self._mail.dead(peer.address)

    def _hear_loss(self, owner: str, reason: Reason) -> None:
        if self._notice is not None:
            self._notice(owner, reason)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine."""
        self._notice = callback

    def stop_waiting(self) -> None:
        """See AsyncEngine."""
        self._mail.stop_waiting()

    async def close(self) -> None:
        """See AsyncEngine."""
        self._mail.close()
        self._file.close()

    def after_fork(self) -> None:
        """See AsyncEngine."""
        self._file.abandon()
        self._mail.abandon()
        self._start_over()
