"""A tenure: one stay inside `with`, from entering a lease to leaving it (S26).

Rule 1: only the task that entered is cancelled, only by a loop callback, only until leaving begins.
Rule 2: a CancelledError becomes LeaseLost only if nobody else cancelled; another exception of the
        body wins; a body that ended well under a lost lease raises LeaseLost.
Rule 3: releasing never hides the body's error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Protocol
from weakref import ref

from .._concurrency import AsyncCancelScope, logger
from ..errors import LeaseLost, LockError
from ..model import Reason

if TYPE_CHECKING:
    from .lease import AsyncLease

# Weak: contexts are copied into tasks that may live on, and a lease must not live on with them.
current: ContextVar[ref[AsyncLease]] = ContextVar("current lease")


class AsyncHoldable(Protocol):
    """A lease, or a group of them, as far as staying in it goes."""

    @property
    def name(self) -> str: ...
    @property
    def held(self) -> bool: ...
    @property
    def released(self) -> bool: ...
    @property
    def nested(self) -> bool: ...
    @property
    def leaf(self) -> AsyncLease | None: ...
    @property
    def lost_reason(self) -> Reason | None: ...
    def error(self) -> LeaseLost: ...
    def watch_loss(self, callback: Callable[[], None]) -> None: ...
    async def release(self) -> bool | None: ...


class AsyncTenure:
    """One task's stay in a lease."""

    __slots__ = ("_context", "_lease", "_scope")

    def __init__(self, lease: AsyncHoldable, cancel: bool) -> None:
        self._lease = lease
        self._scope: AsyncCancelScope | None = None
        if cancel and not lease.nested:
            self._scope = AsyncCancelScope()
            lease.watch_loss(self._scope.cancel)
        leaf = lease.leaf
        self._context = None if leaf is None else current.set(ref(leaf))

    async def leave(self, error: BaseException | None) -> None:
        """Release, and raise LeaseLost if that is what the stay came to."""
        lease = self._lease
        only_us = self._scope is not None and self._scope.leave(error)
        over = not lease.released and not lease.held  # looks at the clock before it lets go
        if self._context is not None:
            _reset(self._context)
        try:
            await lease.release()
        except Exception:
            if error is None:
                raise
            logger.exception("Releasing %r failed after its body had raised.", lease.name)
        if only_us or (error is None and (over or lease.lost_reason is not None)):
            raise lease.error() from error


def _reset(context: Token[ref[AsyncLease]]) -> None:
    try:
        current.reset(context)
    except ValueError:
        pass  # left in another context than entered: that one never saw the lease


def current_lease() -> AsyncLease:
    """Return the lease of the innermost `with lock` or decorated function around the caller."""
    found = current.get(None)
    lease = None if found is None else found()
    if lease is None:
        raise LockError(
            "No lease is held here: current_lease() works inside 'with lock' and in functions "
            "that a lock or singleton decorates."
        )
    return lease
