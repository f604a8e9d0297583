"""etcd://, etcds://: locks in the log of an etcd cluster.

Rule 1: a claim is one transaction, and so is a release; each may be repeated by its owner.
Rule 2 (S18): the token is the create_revision of a claim's own key; renewing and releasing compare
        it.
Rule 3: who waits watches the last one that keeps it out, and looks again when that one is gone.
Rule 4 (S12): for how long a grant can be relied on, its session says and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ... import events
from ..._concurrency import Mutex
from ...clocks import Clock, boot_clock
from ...errors import EngineUnavailable, OutcomeUnknown
from ...etcd_link import GRANT, RANGE, TXN, AsyncLink, LeaseGone, from_channel, from_url
from ...etcd_link import messages as m
from ...etcd_record import (
    MOST_OPERATIONS,
    below,
    first_of,
    linger_request,
    look,
    reads,
)
from ...etcd_session import Session, Tenant
from ...model import (
    UNKNOWN,
    Claim,
    Fault,
    Grant,
    Guarantees,
    Outcome,
    Queued,
    Reason,
    Renewal,
    Snapshot,
)
from ...rules import validity
from ..engine import AsyncEngine, Notice, Report
from ..inbox import AsyncInbox
from .etcd_look import AsyncEtcdLook
from .etcd_queue import AsyncEtcdQueue
from .etcd_sessions import AsyncSessions
from .etcd_watches import FROM_NOW, AsyncWatches

HELD_UNDER = frozenset(Fault) - {Fault.SERVER_DATA_LOSS}
SHORTEST_TTL = 1.0  # etcd counts in seconds; a server may be set up for more, and says so
LEAST = 0.5  # seconds to answer a claim, however impatient its owner: better late than not at all
BURIED = 1_000  # owners remembered that let go before they were known
PING = b"holdfast"


class AsyncEtcdEngine(AsyncEngine):
    """Locks on etcd. `held` is exclusive as long as the cluster keeps its log."""

    family = "etcd"
    shielded = False  # a release may be repeated, and the keeper does so
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {}

    def __init__(self, url: Any, *, max_ttl: float, clock: Clock = boot_clock) -> None:
        self.settings = from_url(url) if isinstance(url, str) else from_channel(url)
        self.location = self.settings.location
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=True,
            push=True,
            crash_detection=False,
            expiry="session",
            min_ttl=SHORTEST_TTL,
            max_ttl=max_ttl,
            at_least=True,
        )
        self._clock = clock
        self._notice: Notice | None = None
        self._report: Report | None = None
        self.link = AsyncLink(self.settings)
        self.link.on_failure = self._hear_failure
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet: no sessions, no waiters."""
        self._mutex = Mutex()
        self._look = AsyncEtcdLook(self.link, self._clock)
        self._inbox = AsyncInbox()
        self._sessions: AsyncSessions | None = None
        self._watches: AsyncWatches
        self._queue: AsyncEtcdQueue
        self._buried: dict[str, None] = {}

    def _begin(self) -> AsyncSessions:
        """Make what needs a loop, or threads."""
        with self._mutex:
            if self._sessions is None:
                watches = self._watches = AsyncWatches(self.link)
                sessions = AsyncSessions(self.link, watches, self._clock, self._lost)
                self._queue = AsyncEtcdQueue(
                    self.link, self._look, sessions, watches, self._inbox, self._clock
                )
                self._sessions = sessions
            return self._sessions

    # --- Claiming. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        sessions = self._sessions or self._begin()
        if claim.owner in self._buried:
            return Queued(0, math.inf)
        end = self._clock() + max(timeout, LEAST)
        members = len(self.settings.endpoints)  # each has its share of the time
        problem: Exception | None = None
        while True:
            tenant = sessions.tenants.get(claim.owner)
            limit = max(0.0, end - self._clock()) / members
            try:
                if tenant is None:
                    session = await sessions.ready(claim, limit)
                    tenant = sessions.enter(claim, session)
                    if tenant is None:
                        continue  # it was given up meanwhile: the next one is ours
                elif not sessions.ask_again(tenant):
                    await sessions.free(tenant, limit)
                    continue  # it comes anew
                else:
                    await sessions.freshen(tenant, limit)
                answer = await self._queue.ask(tenant, limit)
                if answer is not None:
                    return answer
            except LeaseGone:
                if tenant is not None:
                    sessions.lose(tenant.session)
            except (EngineUnavailable, OutcomeUnknown) as error:
                problem = error
                members -= 1
            if members == 0 or self._clock() >= end:
                raise problem or EngineUnavailable(
                    f"{self.location} forgets leases as soon as it has granted them; is somebody "
                    "revoking them?",
                    name=claim.name,
                    engine=self.location,
                )

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine."""
        grant = await self._inbox.wait(claim.owner, timeout)
        if grant is not None:
            self._inbox.forget(claim.owner)
        return grant

    # --- Keeping and letting go. ---

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        sessions = self._sessions or self._begin()
        started = self._clock()
        groups: dict[Session, list[Tenant]] = {}
        for claim in claims:
            tenant = sessions.tenants.get(claim.owner)
            if tenant is not None and tenant.granted:
                groups.setdefault(tenant.session, []).append(tenant)
        answers: dict[str, Renewal] = {}
        problem: Exception | None = None
        for session, tenants in groups.items():
            left = timeout - (self._clock() - started)
            if len(self.settings.endpoints) > 1:
                left = min(left, session.seconds / 6)  # the next member may do better, in time
            try:
                answers |= await self._renew_some(sessions, session, tenants, left)
            except LeaseGone:
                pass
            except (EngineUnavailable, OutcomeUnknown) as error:
                problem = error
                answers |= {tenant.claim.owner: UNKNOWN for tenant in tenants}
        lost = [claim for claim in claims if claim.owner not in answers]
        if problem is not None and len(answers) == len(claims) and len(groups) == 1:
            raise problem
        if lost:
            answers |= await self._explain(lost, timeout - (self._clock() - started))
        return [answers[claim.owner] for claim in claims]

    async def _renew_some(
        self, sessions: AsyncSessions, session: Session, tenants: list[Tenant], timeout: float
    ) -> dict[str, Renewal]:
        """Return who of a session is renewed, and who is lost for a reason that is known."""
        sent = self._clock()
        own = [look(tenant.key, keys_only=True) for tenant in tenants]
        shown = await sessions.confirm(session, own, timeout)
        forced = shown[0].response_range.kvs[0].value
        answers = {}
        for tenant, one in zip(tenants, shown[1:], strict=True):
            owner, ttl = tenant.claim.owner, tenant.claim.ttl
            found = [kv.create_revision for kv in one.response_range.kvs]
            if found == [tenant.revision]:
                answers[owner] = (
                    Renewal(Outcome.RENEWED, validity(sent, ttl))
                    if sessions.renew(tenant, sent + ttl)
                    else Renewal(Outcome.LOST, reason=Reason.EXPIRED)
                )
                continue
            sessions.leave(tenant)
            if forced == b"%d" % tenant.revision:
                answers[owner] = Renewal(Outcome.LOST, reason=Reason.FORCED)
        return answers

    async def _explain(self, claims: Sequence[Claim], timeout: float) -> dict[str, Renewal]:
        """Return why claims are lost: somebody else is there, or nobody (S17)."""
        answers = {}
        for start in range(0, len(claims), MOST_OPERATIONS):
            some = claims[start : start + MOST_OPERATIONS]
            firsts = [first_of(claim.key, keys_only=True) for claim in some]
            reply = await self._look.read(TXN, reads(firsts), timeout)
            for claim, one in zip(some, reply.responses, strict=True):
                reason = Reason.STOLEN if one.response_range.kvs else Reason.EXPIRED
                answers[claim.owner] = Renewal(Outcome.LOST, reason=reason)
        return answers

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        sessions = self._sessions or self._begin()
        if self._inbox.slots:
            self._inbox.forget(claim.owner)
        tenant = sessions.tenants.get(claim.owner)
        if tenant is None:
            self._bury(claim.owner)
            return False
        if linger > 0 and tenant.granted and not tenant.session.gone:
            return await self._leave_marker(sessions, tenant, timeout, linger)
        return await sessions.free(tenant, timeout)

    async def _leave_marker(
        self, sessions: AsyncSessions, tenant: Tenant, timeout: float, linger: float
    ) -> bool:
        """Move a claim from its session to a lease that nobody keeps alive (S31)."""
        end = self._clock() + timeout
        request = m.LeaseGrantRequest(TTL=math.ceil(linger))
        lease = (await self.link.call(GRANT, request, timeout)).ID
        session, bar = tenant.session, tenant.doubts > 0
        request = linger_request(
            tenant.claim, tenant.key, tenant.revision, session.lease, lease, linger, bar=bar
        )
        try:
            held = (await self.link.call(TXN, request, end - self._clock())).succeeded
        except LeaseGone:
            sessions.lose(session)
            return False
        sessions.leave(tenant, marked=True)
        return bool(held)

    def _bury(self, owner: str) -> None:
        """Send no claim of this owner any more: it was withdrawn before it was known."""
        self._buried[owner] = None
        while len(self._buried) > BURIED:
            self._buried.pop(next(iter(self._buried)), None)

    # --- Looking. ---

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine."""
        return await self._look.inspect(key, timeout)

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""
        return await self._look.list(prefix, timeout)

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        return await self._look.force(key, token, timeout)

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine."""
        await self._look.read(RANGE, m.RangeRequest(key=PING, count_only=True), timeout)

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None] | None:
        """See AsyncEngine."""
        self._begin()
        watches = self._watches
        first, end = below(key)
        stops: dict[str, Callable[[], None]] = {}

        def hear(event: Any) -> None:
            if event is None and stops:
                stops["stop"] = watches.add(first, end, FROM_NOW, hear, puts=True)
            callback()

        def stop() -> None:
            stops.pop("stop")()

        stops["stop"] = watches.add(first, end, FROM_NOW, hear, puts=True)
        return stop

    # --- The rest. ---

    def _lost(self, tenant: Tenant, reason: Reason) -> None:
        """Hear from the sessions that a claim is gone."""
        owner = tenant.claim.owner
        if not tenant.granted:
            self._inbox.nudge(owner)
        elif self._notice is not None:
            self._notice(owner, reason)

    def _hear_failure(self, endpoint: str, error: str) -> None:
        if self._report is not None:
            self._report(events.NodeFailed, node=endpoint or self.location, error=error)

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine."""
        self._notice = callback

    def reports(self, callback: Report) -> None:
        """See AsyncEngine."""
        self._report = callback

    def stop_waiting(self) -> None:
        """See AsyncEngine."""
        self._inbox.close()

    async def close(self) -> None:
        """See AsyncEngine."""
        self.stop_waiting()
        if self._sessions is not None:
            await self._sessions.close()
            await self._watches.close()
        await self.link.close()

    def after_fork(self) -> None:
        """See AsyncEngine."""
        self.link.abandon()
        self._start_over()
