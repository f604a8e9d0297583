"""The link to an etcd cluster: grpcio in both colours, with message classes of our own.

Not generated: threads make blocking calls, tasks await those of grpc.aio, and that is all the
difference there is between the colours of the engine on top.
"""

from __future__ import annotations

from . import messages
from .blocking import Link, WatchStream
from .settings import Settings, from_channel, from_url
from .tasks import AsyncLink, AsyncWatchStream
from .wire import (
    ALARM,
    GRANT,
    KEEP_ALIVE,
    MEMBERS,
    RANGE,
    REVOKE,
    STATUS,
    TIME_TO_LIVE,
    TXN,
    LeaseGone,
    Method,
)

__all__ = [
    "ALARM",
    "AsyncLink",
    "AsyncWatchStream",
    "GRANT",
    "KEEP_ALIVE",
    "LeaseGone",
    "Link",
    "MEMBERS",
    "Method",
    "RANGE",
    "REVOKE",
    "STATUS",
    "Settings",
    "TIME_TO_LIVE",
    "TXN",
    "WatchStream",
    "from_channel",
    "from_url",
    "messages",
]
