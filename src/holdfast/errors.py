"""The whole tree of errors on one page: each is named by what the caller must do next.

Every error is one full sentence and carries `name` (the lock) and `engine` (where, without
secrets). Busy is a value (None), never an exception.
"""

from __future__ import annotations


class LockError(Exception):
    """Base of everything holdfast raises about a lock."""

    def __init__(self, message: str, *, name: str | None = None, engine: str | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.engine = engine


class NotAcquired(LockError, TimeoutError):
    """Somebody else still had the lock when the time to wait was over: try later."""


class LeaseLost(LockError):
    """The lease can no longer be relied on: stop the work now.

    `token` and `reason` say which hold and why; without a reason you released it yourself.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str | None = None,
        engine: str | None = None,
        token: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message, name=name, engine=engine)
        self.token = token
        self.reason = reason


class StaleToken(LockError):
    """The resource has seen a newer token: you are the old holder, nothing was written.

    `resource` refused, which had `seen` a token when yours was `offered`.
    """

    def __init__(self, message: str, *, resource: str, seen: int, offered: int) -> None:
        super().__init__(message, name=resource)
        self.resource = resource
        self.seen = seen
        self.offered = offered


class DomainMismatch(StaleToken):
    """The resource is fenced by tokens of another origin, which cannot be compared with yours."""


class InProgress(LockError):
    """Another caller is at work on the same key right now: ask again for its result."""


class OutcomeUnknown(LockError):
    """The request may or may not have happened: look before you repeat it."""


class EngineUnavailable(LockError, ConnectionError):
    """The engine gave no answer in time: nothing is held."""


class NotSupported(LockError):
    """This engine or kind of lock cannot do what was asked, by design."""


class InvalidName(LockError, ValueError):
    """The name cannot be used for a lock."""


class LockMismatch(LockError, ValueError):
    """Another kind of lock, or another limit, is in use under that name."""


class ClientClosed(LockError):
    """The client was closed, or belongs to another process or event loop: make a new one."""


class MissingDriver(LockError, ImportError):
    """The engine's driver is not installed; the message says which extra brings it."""
