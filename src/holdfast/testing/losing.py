"""Lose a lease on purpose: how users test what their own code does then.

with client.lock("report") as lease:
    lose(lease, "stolen")
    write_report(lease)  # must refuse
"""

from __future__ import annotations

from typing import Any

from .._async.lease import AsyncLease
from .._sync.lease import Lease
from ..model import Reason


def lose(lease: Lease | AsyncLease, reason: Reason | str = Reason.EXPIRED) -> None:
    """Make a held lease lost, as if the engine had said so: at once, and for good.

    `lost` is set, callbacks and listeners are told, an async body is cancelled, and whoever waits
    for the lock gets it soon, as the engine has forgotten us; only with "max_hold" it keeps the
    lock until the body leaves. A lease that is over stays as it is. An AsyncLease is lost where it
    lives: on its own event loop.
    """
    why = Reason(reason)
    if not lease.held:
        return
    runtime: Any = lease._runtime
    runtime.keeper.lose(lease, why)
    if why is not Reason.MAX_HOLD:
        lease._returned = True
        runtime.renewer.give_back(lease._claim, lease.token)
