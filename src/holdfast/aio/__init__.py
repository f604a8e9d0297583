"""The same names as `holdfast`, awaitable: `from holdfast import aio`."""

from .. import events
from .._async.client import AsyncClient as Client
from .._async.client import connect
from .._async.engine import AsyncEngine as Engine
from .._async.lease import AsyncLease as Lease
from .._async.recipes.election import AsyncElection as Election
from .._async.recipes.group import AsyncGroup as Group
from .._async.recipes.group_lease import AsyncLeaseGroup as LeaseGroup
from .._async.recipes.lock import AsyncLock as Lock
from .._async.recipes.rwlock import AsyncRWLock as RWLock
from .._async.recipes.rwlock import AsyncTree as Tree
from .._async.tenure import current_lease
from ..errors import (
    ClientClosed,
    DomainMismatch,
    EngineUnavailable,
    InProgress,
    InvalidName,
    LeaseLost,
    LockError,
    LockMismatch,
    MissingDriver,
    NotAcquired,
    NotSupported,
    OutcomeUnknown,
    StaleToken,
)
from ..model import SKIPPED, Entry, Fault, Guarantees, Leader, Mode, Reason, Snapshot
from ..names import shard
from ..signals import release_on_sigterm

__all__ = [
    "SKIPPED",
    "Client",
    "ClientClosed",
    "DomainMismatch",
    "Election",
    "Engine",
    "EngineUnavailable",
    "Entry",
    "Fault",
    "Group",
    "Guarantees",
    "InProgress",
    "InvalidName",
    "Leader",
    "Lease",
    "LeaseGroup",
    "LeaseLost",
    "Lock",
    "LockError",
    "LockMismatch",
    "MissingDriver",
    "Mode",
    "NotAcquired",
    "NotSupported",
    "OutcomeUnknown",
    "RWLock",
    "Reason",
    "Snapshot",
    "StaleToken",
    "Tree",
    "connect",
    "current_lease",
    "events",
    "release_on_sigterm",
    "shard",
]
