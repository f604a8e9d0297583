"""A counter in a file that is guarded by hand: what a guard must do, in its barest form."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.fencing import Fence, Floors, judge

from ..contest import Resource


class PlainFile(Resource):
    """Value and floors are one JSON document; a file lock makes each step one."""

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        yield str(folder / "counter")

    def create(self) -> None:
        Path(self.address).write_text(json.dumps([0, None]))

    def value(self) -> int:
        value: int = json.loads(Path(self.address).read_text())[0]
        return value

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        read = self._step(fence if guarded else None, None)
        pause()
        self._step(fence if guarded else None, read + 1)

    def _step(self, fence: Fence | None, new: int | None) -> int:
        with open(self.address, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            value, stored = json.load(file)
            if fence is not None:
                stored = judge("counter", stored and Floors(*stored), fence)
            file.seek(0)
            file.truncate()
            json.dump([value if new is None else new, stored], file)
            return int(value)
