"""The lock table: who holds and who waits, by the rules to the letter; engines store it somewhere.

memory:// keeps one in the process, SQLite keeps its records in rows, the simulation's server hosts
one, and model tests compare engines with it.

Rule 1: who enters is decided by `rules.admit` and nothing else.
Rule 2: a verb first settles the record: holders whose time is over go, waiters that may enter do.
Rule 3: a token is minted with the grant, above every token this state ever gave.
Rule 4: a waiter that cannot be reached is skipped; a withdrawn owner never enters again (S6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from itertools import chain
from typing import Protocol

from ._concurrency import Mutex
from .clocks import Clock, boot_clock, wall_micros
from .errors import LockMismatch
from .model import Claim, Entry, Family, Holder, Queued, Reason, Snapshot
from .names import decode
from .rules import admit, next_token, recheck_in


class Channel(Protocol):
    """How the state reaches the client that made a claim; must not block or call back."""

    def queued(self, claim: Claim) -> None:
        """Hear that a claim gets a place in the queue: a grant may be pushed from now on."""

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """Take a pushed grant; False = that waiter is gone."""

    def revoked(self, owner: str, reason: Reason) -> None:
        """Hear that a holder was removed."""


class Holding:
    """One holder in a record."""

    __slots__ = ("channel", "claim", "expires", "lingering", "since", "token")

    def __init__(self, claim: Claim, token: int, now: float, channel: Channel) -> None:
        self.claim = claim
        self.token = token
        self.since = now
        self.expires = now + claim.ttl
        self.channel = channel
        self.lingering = False  # released, but kept taken for a while (S31)


class Waiting:
    """One waiter in a record."""

    __slots__ = ("channel", "claim", "since")

    def __init__(self, claim: Claim, now: float, channel: Channel) -> None:
        self.claim = claim
        self.since = now
        self.channel = channel


class Record:
    """Who holds and who waits under one key; gone when neither."""

    __slots__ = ("first", "holders", "soonest", "waiters")

    def __init__(self, claim: Claim) -> None:
        self.first = claim  # its family and limit are everybody's (S2)
        self.holders: dict[str, Holding] = {}
        self.waiters: dict[str, Waiting] = {}
        self.soonest = math.inf  # no holder's time is over before this

    @property
    def empty(self) -> bool:
        return not self.holders and not self.waiters

    def admitted(self, newcomer: Claim | None = None) -> list[Claim]:
        waiting: Iterator[Claim] = (one.claim for one in self.waiters.values())
        if newcomer is not None:
            waiting = chain(waiting, (newcomer,))
        holding = (one.claim for one in self.holders.values())
        return admit(holding, waiting, self.first.limit)


class LockTable:
    """All records of one place; `records` says where they are kept."""

    def __init__(
        self,
        clock: Clock = boot_clock,
        micros: Callable[[], int] = wall_micros,
        tombstone_life: float = 300.0,
        records: MutableMapping[str, Record] | None = None,
    ) -> None:
        self.mutex = Mutex()
        self.clock = clock
        self.micros = micros
        self._tombstone_life = tombstone_life
        self._records: MutableMapping[str, Record] = {} if records is None else records
        self.tombstones: dict[str, float] = {}  # owners that must not enter any more (S6)
        self.floor = 0  # the highest token given so far
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    def claim(self, claim: Claim, channel: Channel) -> int | Queued:
        """Return the token if the claim enters (again), else its place in the queue."""
        with self.mutex:
            now = self.clock()
            owner = claim.owner
            if owner in self.tombstones:
                return Queued(0, math.inf)
            record = self._records.get(claim.key)
            if record is None:
                token = next_token(self.floor, self.micros())
                return self._enter(Record(claim), claim, token, now, channel)
            self._settle(claim.key, record, now)
            holding = record.holders.get(owner)
            if holding is not None:
                if holding.lingering:
                    return Queued(0, math.inf)
                holding.expires = max(holding.expires, now + claim.ttl)
                return holding.token
            if record.empty:  # settled until nobody was left: as good as new
                return self._enter(Record(claim), claim, self._mint(), now, channel)
            self._refuse_mismatch(record, claim)
            if owner in record.waiters:
                self._move_up(claim.key, record, now)  # should somebody have been interrupted in it
                if owner in record.holders:
                    return record.holders[owner].token
            else:
                admitted = record.admitted(claim)
                if admitted and admitted[-1] is claim:
                    return self._enter(record, claim, self._mint(), now, channel)
                if claim.queue:
                    channel.queued(claim)
                    record.waiters[owner] = Waiting(claim, now, channel)
                    self._changed(claim.key)
            return self._queued(record, owner, now)

    def renew(self, claims: Sequence[Claim]) -> list[Reason | None]:
        """Give each holder its full TTL again; None = renewed, else why it is not ours."""
        with self.mutex:
            now = self.clock()
            return [self._renew(claim, now) for claim in claims]

    def release(self, claim: Claim, linger: float = 0.0) -> bool:
        """End a claim, granted, queued or unknown; say whether it held."""
        with self.mutex:
            now = self.clock()
            record = self._records.get(claim.key)
            owner = claim.owner
            held = False
            if record is not None and owner in record.holders:
                holding = record.holders[owner]
                if holding.lingering:
                    return False  # the repeat of a release: its marker stays
                held = holding.expires > now
                if linger > 0 and held:
                    holding.lingering = True
                    holding.expires = now + linger
                    record.soonest = min(record.soonest, holding.expires)
                else:
                    del record.holders[owner]
                if record.holders or record.waiters or self._watchers:
                    self._move_up(claim.key, record, now)
                else:
                    del self._records[claim.key]
            elif record is not None and owner in record.waiters:
                del record.waiters[owner]
                self._move_up(claim.key, record, now)
            else:
                self._bury(owner, now)
                if record is not None and record.waiters:
                    self._move_up(claim.key, record, now)  # the first try may have been interrupted
            return held

    def force(self, key: str, token: int | None) -> int:
        """Remove all holders, or the one with that token, and tell them; return how many."""
        with self.mutex:
            record = self._records.get(key)
            if record is None:
                return 0
            now = self.clock()
            self._settle(key, record, now)
            broken = [one for one in record.holders.values() if token in (None, one.token)]
            try:
                for holding in broken:
                    del record.holders[holding.claim.owner]
                    holding.channel.revoked(holding.claim.owner, Reason.FORCED)
            finally:
                self._move_up(key, record, now)
            return len(broken)

    def inspect(self, key: str) -> Snapshot:
        """Show one record, empty if unknown."""
        with self.mutex:
            return self._snapshot(key, self.clock())

    def list(self, prefix: str) -> list[Snapshot]:
        """Show all records in use whose key starts with `prefix`, in order of their keys."""
        with self.mutex:
            now = self.clock()
            keys = sorted(key for key in self._records if key.startswith(prefix))
            return [shot for key in keys if (shot := self._snapshot(key, now)).kind is not None]

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each change of a record, until the returned function is called."""
        with self.mutex:
            self._watchers.setdefault(key, []).append(callback)

        def stop() -> None:
            with self.mutex:
                callbacks = self._watchers.get(key, [])
                if callback in callbacks:
                    callbacks.remove(callback)
                if not callbacks:
                    self._watchers.pop(key, None)

        return stop

    # Everything below runs under the mutex.

    def _mint(self) -> int:
        return next_token(self.floor, self.micros())

    def _enter(self, record: Record, claim: Claim, token: int, now: float, channel: Channel) -> int:
        self.floor = token
        self._records[claim.key] = record
        holding = record.holders[claim.owner] = Holding(claim, token, now, channel)
        if holding.expires < record.soonest:
            record.soonest = holding.expires
        if self._watchers:
            self._changed(claim.key)
        return token

    def _settle(self, key: str, record: Record, now: float) -> None:
        if now < record.soonest:
            return
        over = [owner for owner, one in record.holders.items() if one.expires <= now]
        for owner in over:
            del record.holders[owner]
        record.soonest = min((one.expires for one in record.holders.values()), default=math.inf)
        if over:
            self._move_up(key, record, now)

    def _move_up(self, key: str, record: Record, now: float) -> None:
        """Somebody left: let in who may enter now, or drop the record."""
        while record.waiters and (entering := record.admitted()):
            for claim in entering:
                channel = record.waiters.pop(claim.owner).channel
                token = self._mint()
                # Seated before it is told: an interrupt between the two costs the waiter its timer.
                # The other way round it would believe to hold what the next one could get.
                self._enter(record, claim, token, now, channel)
                if not channel.granted(claim, token, now):
                    del record.holders[claim.owner]  # that waiter is gone: the next turn sees it
        if not record.holders and not record.waiters:
            self._records.pop(key, None)
        if self._watchers:
            self._changed(key)

    def _renew(self, claim: Claim, now: float) -> Reason | None:
        record = self._records.get(claim.key)
        if record is None:
            return Reason.EXPIRED
        self._settle(claim.key, record, now)
        holding = record.holders.get(claim.owner)
        if holding is None or holding.lingering:
            return Reason.STOLEN if record.holders else Reason.EXPIRED
        if claim.revision < holding.claim.revision:  # sent before an extend, come after it
            holding.expires = max(holding.expires, now + claim.ttl)
            return None
        holding.claim = claim  # its TTL may be another now (S14)
        holding.expires = now + claim.ttl
        record.soonest = min(record.soonest, holding.expires)
        return None

    def _refuse_mismatch(self, record: Record, claim: Claim) -> None:
        first = record.first
        if (first.family, first.limit) != (claim.family, claim.limit):
            raise LockMismatch(mismatch(claim, first.family, first.limit), name=claim.name)

    def _queued(self, record: Record, owner: str, now: float) -> Queued:
        position = 0
        for waiter in record.waiters:
            if waiter == owner:
                break
            position += 1
        if not record.holders:
            return Queued(position, recheck_in(0.0, position))
        first = min(record.holders.values(), key=lambda one: one.expires)
        left = first.expires - now
        who = Holder(first.claim.label, first.token, left)
        return Queued(position, recheck_in(left, position), who)

    def _bury(self, owner: str, now: float) -> None:
        tombstones = self.tombstones
        while tombstones:
            oldest = next(iter(tombstones))
            if tombstones[oldest] > now:
                break
            del tombstones[oldest]
        tombstones[owner] = now + self._tombstone_life

    def _changed(self, key: str) -> None:
        for callback in self._watchers.get(key, ()):
            callback()

    def _snapshot(self, key: str, now: float) -> Snapshot:
        name = decode(key.rsplit("/", 1)[-1])
        record = self._records.get(key)
        if record is not None:
            self._settle(key, record, now)
        if record is None or record.empty:
            return Snapshot(name, None, 0, (), ())
        wall = self.micros() / 1e6
        return Snapshot(
            name,
            record.first.family,
            record.first.limit,
            tuple(
                _entry(one.claim, one.token, wall - (now - one.since), one.expires - now)
                for one in record.holders.values()
            ),
            tuple(
                _entry(one.claim, None, wall - (now - one.since), math.inf)
                for one in record.waiters.values()
            ),
        )


def _entry(claim: Claim, token: int | None, since: float, expires_in: float) -> Entry:
    return Entry(
        name=claim.name,
        token=token,
        owner=claim.owner,
        label=claim.label,
        mode=claim.mode,
        since=since,
        expires_in=expires_in,
        value=claim.value,
        path=claim.path,
    )


def mismatch(claim: Claim, family: Family, limit: int) -> str:
    """Say in one sentence why a claim does not fit what is in use under its name."""

    def kind(family: Family, limit: int) -> str:
        return f"a semaphore with limit={limit}" if limit else f"a {family}"

    return (
        f"{claim.name!r} is in use as {kind(family, limit)}, so it cannot be taken as "
        f"{kind(claim.family, claim.limit)}; use another name, or wait until nobody holds or "
        "waits for it."
    )
