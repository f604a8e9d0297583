"""Waiting, in tests, for what another process or thread must do."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 10.0


def until(condition: Callable[[], object]) -> None:
    """Return when the condition is true; it must become so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
