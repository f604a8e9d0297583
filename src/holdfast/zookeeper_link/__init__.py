"""The link to ZooKeeper: kazoo, run in one thread per session and watched closely.

The same for both colours: tasks and threads wait for answers by what `_concurrency` has for them.
"""

from __future__ import annotations

from .answers import Answer
from .errors import CERTAIN, MISSING, UNKNOWN, explain, unanswered
from .handler import Handler
from .settings import Acl, Settings, choose, from_client, from_url, whole_millis
from .wiretap import Wiretap

__all__ = [
    "CERTAIN",
    "MISSING",
    "UNKNOWN",
    "Acl",
    "Answer",
    "Handler",
    "Settings",
    "Wiretap",
    "choose",
    "explain",
    "from_client",
    "from_url",
    "unanswered",
    "whole_millis",
]
