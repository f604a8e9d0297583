"""A wall clock that the lab can set, for the Python code of one process.

Preloaded libraries that set the clock of a whole process break `time.sleep` of Python 3.11 and
later, so the clock is set where Python reads it: an offset in a file that both sides have in
memory. Clocks that do not step are left alone.
"""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path

_OFFSET = struct.Struct("d")


def clock_path(folder: Path, name: str) -> Path:
    """Return the file of a worker's clock."""
    return folder / f"{name}.clock"


def make_clock(folder: Path, name: str) -> None:
    """Make the clock of a worker, before it starts; it goes right."""
    clock_path(folder, name).write_bytes(_OFFSET.pack(0.0))


def set_clock(folder: Path, name: str, seconds: float) -> None:
    """Set the clock of a worker that far from the real one, at once; 0 sets it right."""
    with clock_path(folder, name).open("r+b") as file:
        file.write(_OFFSET.pack(seconds))


class WallClock:
    """Stands in for the functions of `time` that tell the date."""

    def __init__(self, folder: Path, name: str) -> None:
        with clock_path(folder, name).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _OFFSET.size)
        self._time, self._time_ns, self._gettime = time.time, time.time_ns, time.clock_gettime

    def install(self) -> None:
        """Let this process read the date here from now on."""
        time.time = self._now
        time.time_ns = self._now_ns
        time.clock_gettime = self._clock_gettime

    @property
    def _offset(self) -> float:
        return float(_OFFSET.unpack_from(self._memory)[0])

    def _now(self) -> float:
        return self._time() + self._offset

    def _now_ns(self) -> int:
        return self._time_ns() + int(self._offset * 1e9)

    def _clock_gettime(self, clock: int) -> float:
        now = self._gettime(clock)
        return now + self._offset if clock == time.CLOCK_REALTIME else now
