"""The lock: an immutable description that tasks and threads share; taking it gives a lease."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ..._concurrency import current_task_key
from ...errors import EngineUnavailable, NotAcquired, NotSupported, OutcomeUnknown
from ...model import Seconds, Snapshot, Terms, check_patience
from ...rules import Entrant, admit
from ..acquire import acquire
from ..lease import AsyncLease, LeaseOptions
from .entrance import AsyncEntrance

if TYPE_CHECKING:
    from ..runtime import AsyncRuntime


class AsyncLock(AsyncEntrance[AsyncLease]):
    """A lock by name: exclusive, shared, one of several permits, or a node of a tree.

    May be held by two clients at once only under faults that `client.guarantees.exclusive` does
    not name; `lease.token` lets the resource refuse the older of the two even then.
    """

    def __init__(
        self, runtime: AsyncRuntime, terms: Terms, options: LeaseOptions, timeout: float
    ) -> None:
        super().__init__(options.cancel_on_loss)
        self._runtime = runtime
        self._terms = terms
        self._options = options
        self._timeout = timeout

    @property
    def name(self) -> str:
        """The name, as it was asked for."""
        return self._terms.name

    @property
    def order(self) -> tuple[str, str, tuple[str, ...]]:
        """Where this lock stands in the one order in which several are taken (S28)."""
        return self._runtime.engine.location, self._terms.key, self._terms.path

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> AsyncLease | None:
        """Return a lease, or None when somebody else still has the lock after `timeout` seconds.

        `timeout`: None = the lock's own, then the client's; -1 = for ever; 0 = at once. Raises
        EngineUnavailable when the engine gives no answer; nothing is held then.
        """
        wait = check_patience(self._timeout, blocking, timeout)
        if self._options.reentrant:
            return await self._reenter(wait)
        return await acquire(self._runtime, self._terms, self._options, wait)

    async def _reenter(self, wait: float) -> AsyncLease | None:
        """Give the same task its own lease again; only the last exit releases it (S27)."""
        self._runtime.ready()
        key = (current_task_key(), self._terms.key, self._terms.path)
        reference = self._runtime.entered.get(key)
        outer: AsyncLease | None = None if reference is None else reference()
        if outer is not None and not outer.left:
            if outer.mode is not self._terms.mode:
                raise NotSupported(
                    f"{self.name!r} is already held by this task in mode {outer.mode}, and would "
                    f"wait for itself in mode {self._terms.mode}: take the stronger one first.",
                    name=self.name,
                )
            if not outer.held:
                raise outer.error()
            outer.nest()
            return outer
        lease = await acquire(self._runtime, self._terms, self._options, wait)
        if lease is not None:
            entered = self._runtime.entered  # not self: the lock would keep its own lease alive
            entered[key] = weakref.ref(lease, lambda _: entered.pop(key, None))
        return lease

    async def locked(self) -> bool:
        """Say whether `try_acquire` would fail now; by the time you read it, it may not be so."""
        shot = await self._snapshot()
        terms = self._terms
        if shot.kind is None:
            return False
        if (shot.kind, shot.limit) != (terms.family, terms.limit):
            return True
        queue: list[Entrant] = [*shot.waiters, terms]
        admitted = admit(shot.holders, queue, terms.limit)
        return not admitted or admitted[-1] is not terms

    async def _snapshot(self) -> Snapshot:
        self._runtime.ready()
        return await self._runtime.engine.inspect(self._terms.key, self._runtime.connect_timeout)

    async def _refusal(self) -> NotAcquired:
        where = self._runtime.engine.location
        text = f"{self.name!r} on {where} was not acquired in time"
        try:
            holders = (await self._snapshot()).holders
        except (EngineUnavailable, OutcomeUnknown):
            holders = ()
        if holders:
            first = holders[0]
            text += (
                f": it is held by {first.label} with token {first.token}, whose lease lasts "
                f"{first.expires_in:.3g} s more unless renewed"
            )
        return NotAcquired(f"{text}; try later or wait longer.", name=self.name, engine=where)

    def __repr__(self) -> str:
        terms = self._terms
        limit = f" limit={terms.limit}" if terms.limit else ""
        return f"<{type(self).__name__} {terms.name!r} {terms.mode}{limit} ttl={terms.ttl:g}>"
