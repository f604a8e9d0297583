"""Orders: what the lab tells a running worker, as lines in a file that the worker looks at.

A file and not a signal: a worker obeys where it hurts, at its next failpoint, and one that was
stopped meanwhile misses nothing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FINISH = "finish"
STAND_STILL = "stand still"
BLOCK = "block"
FORK = "fork"

GRANTED, READ = "granted", "read"  # failpoints: before the work, and between read and write

Order = dict[str, Any]


def orders_path(folder: Path, name: str) -> Path:
    """Return the file of a worker's orders."""
    return folder / f"{name}.orders"


def give(folder: Path, name: str, do: str, **more: object) -> None:
    """Tell a worker something."""
    with orders_path(folder, name).open("a") as file:
        file.write(json.dumps({"do": do, **more}) + "\n")


class Orders:
    """The worker's side."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = orders_path(folder, name)
        self._read = 0
        self._parent = os.getppid()
        self.finish = False  # told to come to an end

    def poll(self) -> list[Order]:
        """Return what is new; a worker whose lab is gone ends here."""
        if os.getppid() != self._parent:
            os._exit(70)
        try:
            if self._path.stat().st_size <= self._read:
                return []
            with self._path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        found = [json.loads(line) for line in whole.splitlines()]
        self.finish = self.finish or any(order["do"] == FINISH for order in found)
        return [order for order in found if order["do"] != FINISH]
