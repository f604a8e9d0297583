"""A diary: one file per process, one JSON line per thing that happened, in the order it did.

Rule 1: a line is one write to the kernel: who is killed afterwards loses nothing.
Rule 2: `at` is the boot clock of the machine, the same for all processes, read before the write.
Rule 3: lines say what happened, never what it means.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..clocks import boot_clock

SUFFIX = ".jsonl"


class Diary:
    """Writes the diary of one process; any thread may."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(folder / f"{name}{SUFFIX}", flags, 0o600)

    def note(self, what: str, at: float | None = None, **more: object) -> float:
        """Write down what happens now, or happened at `at`; return when."""
        now = boot_clock() if at is None else at
        line = json.dumps({"at": now, "what": what, **more}, default=str)
        os.write(self._file, line.encode() + b"\n")
        return now

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


Line = dict[str, Any]


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of one diary; what was being written when the machine died is left out."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def read_diaries(folder: Path) -> dict[str, list[Line]]:
    """Return all diaries of a folder, by who wrote them."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return {path.name.removesuffix(SUFFIX): list(read_lines(path)) for path in files}
