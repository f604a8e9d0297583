"""(Generated from _async/engines/etcd_sessions.py by tools/unasync.py: do not edit.) Sessions: the leases that a client's claims hang on, shared by all of the same TTL, kept alive.

Rule 1 (S12): a keep-alive counts only if a linearizable read that was sent after its answer shows
        the session's own key, in the same term: an old leader that was cut off may still answer
        keep-alives. Validity counts from the sending of the keep-alive.
Rule 2: a new claim inherits the validity of its session, which is confirmed first if that is older
        than a third of the TTL.
Rule 3: sessions are confirmed every sixth of their TTL, whoever holds or waits; one that nobody has
        used for a while is given up.
Rule 4: nothing expires while its session lives (S34), so we remove who was not renewed for a TTL.
        That is never done to one that asks again, and one to which it may be done is never granted
        again, whatever a look has shown before.
Rule 5 (S6): a session on which a claim had no answer takes no more claims, and ends with the last
        of those it has: tombstones go with it, and nothing that comes late finds its lease.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._concurrency import Bell, Event, Worker, Mutex, logger
from ...clocks import Clock
from ...errors import EngineUnavailable, LockError, NotSupported
from ...etcd_link import GRANT, KEEP_ALIVE, REVOKE, TXN, Link, LeaseGone
from ...etcd_link import messages as m
from ...etcd_record import (
    DELETED,
    MOST_OPERATIONS,
    look,
    put,
    reads,
    release_request,
    root_of,
    withdraw_request,
)
from ...etcd_session import Session, Tenant
from ...model import Claim, Grant, Reason
from .etcd_watches import Watches

CONFIRM_EVERY = 1 / 6  # of the TTL
STALE_AFTER = 1 / 3  # of the TTL
IDLE = 60.0  # seconds after which a session without claims is given up
REVOKE_TIMEOUT = 0.5
JOIN_PATIENCE = 2.0


class Sessions:
    """All sessions of a client; `lost` hears of claims that are gone without a release."""

    def __init__(
        self,
        link: Link,
        watches: Watches,
        clock: Clock,
        lost: Callable[[Tenant, Reason], None],
    ) -> None:
        self.tenants: dict[str, Tenant] = {}  # by owner
        self._link = link
        self._watches = watches
        self._clock = clock
        self._lost = lost
        self._mutex = Mutex()
        self._open: dict[tuple[str, int], Session] = {}  # for new claims, by namespace and TTL
        self._all: set[Session] = set()
        self._making: dict[tuple[str, int], Event] = {}  # somebody is at it
        self._stopped = False
        self._bell = Bell()
        self._worker = Worker(self._work, "holdfast-etcd-sessions")

    # --- For claims. ---

    def ready(self, claim: Claim, timeout: float) -> Session:
        """Return a session for a new claim, with at least two thirds of the TTL left."""
        key = (root_of(claim.key), math.ceil(claim.ttl))
        now = self._clock()
        session = self._open.get(key)
        if session is not None and now - session.sent <= claim.ttl * STALE_AFTER:
            session.used = now
            return session
        end = now + timeout
        while True:
            with self._mutex:
                session, turn = self._open.get(key), self._making.get(key)
                if turn is None:
                    self._making[key] = mine = Event()
            if turn is None:
                try:
                    if session is not None:
                        self._freshen(session, claim.ttl, end - self._clock())
                    else:
                        self._make(key, claim.ttl, end - self._clock())
                except LeaseGone:
                    pass  # while nobody looked: the next turn makes a new one
                finally:
                    del self._making[key]
                    mine.set()
            else:
                turn.wait(end - self._clock())
            now = self._clock()
            session = self._open.get(key)
            if session is not None and now - session.sent <= claim.ttl * STALE_AFTER:
                session.used = now
                return session
            if now >= end:
                where = self._link.settings.location
                raise EngineUnavailable(
                    f"{where} gave no lease of {key[1]} s within {timeout:.3g} s.", engine=where
                )

    def freshen(self, tenant: Tenant, timeout: float) -> None:
        """Confirm a claim's session if that was done too long ago."""
        self._freshen(tenant.session, tenant.claim.ttl, timeout)

    def _freshen(self, session: Session, ttl: float, timeout: float) -> None:
        if self._clock() - session.sent > ttl * STALE_AFTER:
            self.confirm(session, (), timeout)

    def _make(self, key: tuple[str, int], ttl: float, timeout: float) -> None:
        root, seconds = key
        where = self._link.settings.location
        sent = self._clock()
        granted = self._link.call(GRANT, m.LeaseGrantRequest(TTL=seconds), timeout)
        if seconds < granted.TTL:
            raise NotSupported(
                f"ttl={ttl:g} s is shorter than {where} can keep: its shortest lease is "
                f"{granted.TTL} s, one and a half times its election timeout in whole seconds; use "
                f"a ttl of at least {granted.TTL} s.",
                engine=where,
            )
        session = Session(root, seconds, granted.ID, sent)
        session.due = sent + seconds * CONFIRM_EVERY
        write = reads([put(session.key, b"", granted.ID)])
        reply = self._link.call(TXN, write, timeout - (self._clock() - sent))
        self._watch(session, reply.header.revision)
        with self._mutex:
            self._open[key] = session
            self._all.add(session)
        self._worker.start()
        self._bell.ring()

    def enter(self, claim: Claim, session: Session) -> Tenant | None:
        """Take note of a claim that is about to be sent; None if the session has been given up."""
        with self._mutex:  # or the session ends between a look at its tenants and this
            if session.retired or session.gone:
                return None
            tenant = self.tenants[claim.owner] = session.seat(claim)
        return tenant

    def leave(self, tenant: Tenant, *, marked: bool = False) -> None:
        """Forget a claim that is over; `marked`: something was left in its seat."""
        owner, session = tenant.claim.owner, tenant.session
        tenant.unwatch()
        if tenant.doubts:
            self.retire(session)  # nobody is to sit where a late copy may come
        with self._mutex:
            if self.tenants.get(owner) is tenant:
                del self.tenants[owner]
            if session.tenants.get(owner) is tenant:
                del session.tenants[owner]
                if not marked:
                    session.unseat(tenant)
        if session.retired and not session.tenants:
            session.due = 0.0
            self._bell.ring()

    def ask_again(self, tenant: Tenant) -> bool:
        """Let a claim that asks once more not be over meanwhile; False if it is being removed."""
        with self._mutex:
            if not tenant.leaving:
                tenant.granted, tenant.expires = False, math.inf
            return not tenant.leaving

    def grant(self, tenant: Tenant) -> Grant | None:
        """Let a claim be inside; None if it is being removed."""
        with self._mutex:
            return None if tenant.leaving else tenant.grant()

    def renew(self, tenant: Tenant, expires: float) -> bool:
        """Let one that is inside stay there; False if it is being removed."""
        with self._mutex:
            if not tenant.leaving:
                tenant.expires = expires
            return not tenant.leaving

    def free(self, tenant: Tenant, timeout: float) -> bool:
        """Remove a claim from the server, and bar its late copies; say whether it held."""
        session, claim = tenant.session, tenant.claim
        with self._mutex:
            tenant.leaving = True
        held = False
        if not session.gone:
            if tenant.revision and not tenant.doubts:
                request = release_request(tenant.key, tenant.revision)
                held = (self._link.call(TXN, request, timeout)).succeeded
            elif tenant.doubts:
                self.retire(session)
                try:
                    request = withdraw_request(claim, tenant.key, session.lease)
                    reply = self._link.call(TXN, request, timeout)
                    held = reply.responses[0].response_delete_range.deleted > 0
                except LeaseGone:
                    self.lose(session)
        self.leave(tenant)
        return held and tenant.granted

    def retire(self, session: Session) -> None:
        """Let a session take no more claims."""
        with self._mutex:
            session.retired = True
            if self._open.get(session.place) is session:
                del self._open[session.place]

    # --- Keeping alive. ---

    def confirm(
        self, session: Session, operations: Sequence[Any], timeout: float
    ) -> list[Any]:
        """Keep a session alive, and read: return what its own key and the operations show."""
        sent = self._clock()
        beat = self._link.call(KEEP_ALIVE, m.LeaseKeepAliveRequest(ID=session.lease), timeout)
        if beat.TTL <= 0:
            self.lose(session)
            raise LeaseGone("its keep-alive was answered so")
        shown: list[Any] = []
        step = MOST_OPERATIONS - 1
        for start in range(0, max(1, len(operations)), step):
            some = [look(session.key), *operations[start : start + step]]
            left = timeout - (self._clock() - sent)
            reply = self._link.call(TXN, reads(some), left)
            if reply.header.raft_term != beat.header.raft_term:
                where = self._link.settings.location
                raise EngineUnavailable(
                    f"{where} changed its leader while a lease was confirmed; try again.",
                    engine=where,
                )
            if not reply.responses[0].response_range.kvs:
                self.lose(session)
                raise LeaseGone("its own key is gone")
            shown += reply.responses[bool(shown) :]
        if sent > session.sent:
            session.sent = sent
            session.due = sent + session.seconds * CONFIRM_EVERY
        if session.stop is None and not session.gone:
            self._watch(session, reply.header.revision)
        return shown

    def _work(self) -> None:
        while not self._stopped:
            self._bell.wait(self._nap())
            for session in list(self._all):
                if session.due <= self._clock() and not self._stopped:
                    try:
                        self._tend(session)
                    except Exception:  # the others must not go with it
                        logger.exception("A lease could not be kept alive; that is tried again.")

    def _nap(self) -> float:
        due = min((session.due for session in list(self._all)), default=math.inf)
        return max(0.0, due - self._clock())

    def _tend(self, session: Session) -> None:
        """Confirm a session that is due, remove who is over, or give it up."""
        now = self._clock()
        if not session.tenants and (session.retired or now - session.used > IDLE):
            self.retire(session)
            self._give_up(session)
            return
        session.due = now + session.seconds * CONFIRM_EVERY / 4
        share = CONFIRM_EVERY if len(self._link.settings.endpoints) > 1 else STALE_AFTER
        # It may have been lost this very moment, and taken off the list.
        limit = min(one.seconds for one in (session, *self._all.copy())) * share
        try:
            self.confirm(session, (), limit)
            for tenant in list(session.tenants.values()):
                if self._is_over(tenant):
                    self.free(tenant, limit)
        except (LockError, LeaseGone):
            pass  # again soon; only time decides

    def _is_over(self, tenant: Tenant) -> bool:
        """Say whether a claim was not renewed in time; then it never will be."""
        with self._mutex:
            over = tenant.granted and tenant.expires < self._clock()
            tenant.leaving = tenant.leaving or over
            return over

    def _give_up(self, session: Session) -> None:
        """End a session that has no tenants."""
        with self._mutex:
            if session.tenants:
                return
            self._strike_off(session)
        if session.stop is not None:
            session.stop()
        try:
            request = m.LeaseRevokeRequest(ID=session.lease)
            self._link.call(REVOKE, request, REVOKE_TIMEOUT)
        except (LockError, LeaseGone):
            pass  # it expires by itself

    # --- Loss. ---

    def _watch(self, session: Session, revision: int) -> None:
        hear = partial(self._hear, session)
        session.stop = self._watches.add(session.key, b"", revision, hear, puts=True)

    def _hear(self, session: Session, event: Any) -> None:
        """Hear of a session's own key: gone with its lease, or told who was forced out."""
        if event is None:  # what has happened meanwhile, a look tells
            session.stop = None
            session.due = 0.0
            self._bell.ring()
        elif event.type == DELETED:
            self.lose(session)
        else:
            for tenant in list(session.tenants.values()):
                if event.kv.value == b"%d" % tenant.revision:
                    self.leave(tenant)
                    self._lost(tenant, Reason.FORCED)

    def _strike_off(self, session: Session) -> None:
        """Count a session no longer; the caller has the mutex."""
        session.gone = True
        self._all.discard(session)
        if self._open.get(session.place) is session:
            del self._open[session.place]

    def lose(self, session: Session) -> None:
        """Take a session for over, and tell all whose claims hung on it."""
        with self._mutex:
            if session.gone:
                return
            self._strike_off(session)
        if session.stop is not None:
            session.stop()
        for tenant in list(session.tenants.values()):
            self.leave(tenant)
            self._lost(tenant, Reason.EXPIRED)

    # --- The end. ---

    def close(self) -> None:
        """Keep nothing alive any more; sessions without claims end at once."""
        self._stopped = True
        self._bell.ring()
        self._worker.join(JOIN_PATIENCE)
        for session in list(self._all):
            self._give_up(session)
