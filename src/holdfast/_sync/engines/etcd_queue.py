"""(Generated from _async/engines/etcd_queue.py by tools/unasync.py: do not edit.) Claims on etcd: entering at once, or waiting for whoever stands before.

Rule 1: a claim is one transaction, in which it is seen who is there and, if it must be, queued.
Rule 2: a claim that has no answer is in doubt until its owner lets go: then it is barred (S6).
Rule 3: a waiter watches the last one that keeps it out, from the revision at which it looked; with
        a limit, all who came before it. When enough of them have left it looks again, once: also
        whether its own key is still there.
Rule 4: after one that did not leave by itself, whose session ended under it, the next one enters a
        moment later. Leases are not over before their holders know; but some servers have revoked
        one too early, and then its holder hears of it first.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...clocks import Clock
from ...errors import EngineUnavailable, LockMismatch
from ...etcd_form import pack_claim
from ...etcd_link import TXN, Link, LeaseGone
from ...etcd_record import (
    DELETED,
    Departure,
    Wait,
    join_request,
    look_request,
    read_ahead,
    read_holder,
    refuse_mismatch,
)
from ...etcd_session import Tenant
from ...model import Claim, Grant, Queued
from ...rules import recheck_in
from ..inbox import Inbox
from .etcd_look import EtcdLook
from .etcd_sessions import Sessions
from .etcd_watches import Watches

GRACE = 0.2  # seconds
LOOK_AGAIN = 5.0  # seconds at least between looks of a waiter whom nobody has told anything
CROWDED = 4  # times to try again to enter beside others, while more of them come


class EtcdQueue:
    """Puts claims into records, and calls those whose turn may have come, through the inbox."""

    def __init__(
        self,
        link: Link,
        look: EtcdLook,
        sessions: Sessions,
        watches: Watches,
        inbox: Inbox,
        clock: Clock,
    ) -> None:
        self.inbox = inbox
        self._clock = clock
        self._link = link
        self._look = look
        self._sessions = sessions
        self._watches = watches

    def ask(self, tenant: Tenant, timeout: float) -> Grant | Queued | None:
        """Send a claim, or look where it stands; None = it is gone from the server, or about to."""
        if tenant.revision:
            return self._stand(tenant, timeout)
        claim, mine, lease = tenant.claim, tenant.key, tenant.session.lease
        for _ in range(CROWDED):
            reply = self._send(tenant, pack_claim(claim, tenant.seat, lease), timeout)
            revision = reply.header.revision
            if reply.succeeded:
                tenant.revision = revision
                return self._sessions.grant(tenant)
            shown = reply.responses
            if claim.queue:
                inner = shown[0].response_txn
                shown = inner.responses
                if inner.succeeded:
                    tenant.revision = revision
                    first, ahead = (one.response_range for one in shown[1:])
                    wait = read_ahead(claim, mine, ahead, joined=True)
                    return self._settle(tenant, wait, first, revision)
            own, gone, first = (one.response_range for one in shown[:3])
            if own.kvs:  # the answer to an earlier copy was lost
                tenant.revision = own.kvs[0].create_revision
                return self._stand(tenant, timeout)
            mismatch = refuse_mismatch(claim, first)
            wait = None
            if not claim.queue and not gone.kvs:
                wait = read_ahead(claim, mine, shown[3].response_range)
            if gone.kvs or mismatch or wait is not None:
                self._sessions.free(tenant, timeout)
                if mismatch and not gone.kvs:
                    raise LockMismatch(
                        mismatch, name=claim.name, engine=self._link.settings.location
                    )
                return self._busy(claim, wait, first)
            reply = self._send(tenant, join_request(claim, mine, lease, revision), timeout)
            if reply.succeeded:
                tenant.revision = reply.header.revision
                return self._sessions.grant(tenant)
        self._sessions.free(tenant, timeout)
        return self._busy(claim, None, first)

    def _send(self, tenant: Tenant, request: Any, timeout: float) -> Any:
        """Send what may put the claim into the record; without an answer it is in doubt."""
        tenant.doubts += 1
        try:
            reply = self._link.call(TXN, request, timeout)
        except (EngineUnavailable, LeaseGone):
            tenant.doubts -= 1  # nothing has happened
            raise
        tenant.doubts -= 1
        return reply

    def _stand(self, tenant: Tenant, timeout: float) -> Grant | Queued | None:
        """Look where a claim stands; None = it is gone, and is to be made anew."""
        claim, mine, revision = tenant.claim, tenant.key, tenant.revision
        departure, tenant.departure = tenant.departure, None
        request = look_request(claim, mine, revision, departure)
        reply = self._look.read(TXN, request, timeout)
        own, first, ahead, *session = (one.response_range for one in reply.responses)
        if [kv.create_revision for kv in own.kvs] != [revision]:
            tenant.start_over()
            return None
        wait, now = read_ahead(claim, mine, ahead, before=revision), self._clock()
        if session and not session[0].kvs and not tenant.granted:
            tenant.grace = now + GRACE
        if wait is None and now < tenant.grace:
            return Queued(0, tenant.grace - now)
        return self._settle(tenant, wait, first, reply.header.revision)

    def _settle(
        self, tenant: Tenant, wait: Wait | None, first: Any, revision: int
    ) -> Grant | Queued | None:
        """Let it in, or let it watch whom it waits for, as of a revision."""
        owner = tenant.claim.owner
        tenant.unwatch()
        if wait is None:
            self.inbox.forget(owner)
            return self._sessions.grant(tenant)
        tenant.wait = wait
        if owner not in self.inbox.slots:  # else somebody may have called it meanwhile
            self.inbox.expect(owner)
        tenant.surplus = wait.surplus
        hear = partial(self._moved, tenant, wait, revision)
        tenant.stop = self._watches.add(wait.key, wait.end, revision, hear)
        return self._busy(tenant.claim, wait, first)

    def _busy(self, claim: Claim, wait: Wait | None, first: Any) -> Queued:
        """Say who is in the way. Who leaves is told of: looking by the clock is for accidents."""
        position = wait.position if wait is not None else 0
        retry = recheck_in(max(claim.ttl, LOOK_AGAIN), position)
        return Queued(position, retry if wait is not None else math.inf, read_holder(first))

    def _moved(self, tenant: Tenant, wait: Wait, revision: int, event: Any) -> None:
        """Hear that somebody before it has left; from whatever thread."""
        if tenant.wait is not wait:
            return  # it has looked again since
        if event is not None:
            if event.type != DELETED or event.kv.mod_revision <= revision:
                return
            if event.HasField("prev_kv"):
                if event.prev_kv.create_revision > tenant.revision:
                    return  # it was behind
                tenant.departure = Departure(event.kv.mod_revision, event.prev_kv.lease)
            tenant.surplus -= 1
            if tenant.surplus > 0:
                return
        self.inbox.nudge(tenant.claim.owner)
