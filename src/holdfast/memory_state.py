"""What memory:// clients of both colours share: one lock table per URL and process."""

from __future__ import annotations

import os

from .lock_table import LockTable

State = LockTable

_states: dict[tuple[int, str], LockTable] = {}


def shared_state(url: str) -> LockTable:
    """Return the table of a memory URL in this process; a forked child has its own."""
    return _states.setdefault((os.getpid(), url), LockTable())
