"""The two clocks: one that decides (it runs in suspend and never steps), one that only numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

Clock = Callable[[], float]

if sys.platform == "linux":
    # CLOCK_MONOTONIC stands still while the machine sleeps; a lease does not (S8).
    boot_clock: Clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
elif sys.platform == "darwin":
    # There it is the other way round: this one counts sleep, time.monotonic() does not.
    boot_clock = partial(time.clock_gettime, time.CLOCK_MONOTONIC)
else:
    boot_clock = time.monotonic


def wall_micros() -> int:
    """Return microseconds since 1970: what tokens are numbered by, never what decides."""
    return time.time_ns() // 1000
