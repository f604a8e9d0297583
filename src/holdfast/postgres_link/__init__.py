"""The link to a PostgreSQL server: psycopg's libpq, driven by our own waiting, in both colours.

Not generated. What is said on a connection is written once, as steps that say what they wait for;
only who waits for sockets, and how, differs between threads and tasks.
"""

from __future__ import annotations

from .refusals import MISSING, outdated, refused, silent, suspect, unreachable
from .session import Notification, Refusal, Rows, Session, Statement, Steps, Word
from .settings import Settings, addresses, from_driver, from_url
from .waiting import AsyncTurns, Turns, adrive, aresolve, drive, resolve

__all__ = [
    "AsyncTurns",
    "MISSING",
    "Notification",
    "Refusal",
    "Rows",
    "Session",
    "Settings",
    "Statement",
    "Steps",
    "Turns",
    "Word",
    "addresses",
    "adrive",
    "aresolve",
    "drive",
    "from_driver",
    "from_url",
    "outdated",
    "refused",
    "resolve",
    "silent",
    "suspect",
    "unreachable",
]
