"""holdfast: distributed locks that stay safe when things go wrong.

    with holdfast.connect("memory://").lock("orders/99999", timeout=5) as lease:
        ...  # lease.token goes with every write

`holdfast.aio` has the same names, awaitable.
"""

from . import events
from ._sync.client import Client, connect
from ._sync.engine import Engine
from ._sync.lease import Lease
from ._sync.recipes.election import Election
from ._sync.recipes.group import Group
from ._sync.recipes.group_lease import LeaseGroup
from ._sync.recipes.lock import Lock
from ._sync.recipes.rwlock import RWLock, Tree
from ._sync.tenure import current_lease
from .errors import (
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
from .model import SKIPPED, Entry, Fault, Guarantees, Leader, Mode, Reason, Snapshot
from .names import shard
from .signals import release_on_sigterm

__version__ = "0.1.0"

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
    "__version__",
    "connect",
    "current_lease",
    "events",
    "release_on_sigterm",
    "shard",
]
