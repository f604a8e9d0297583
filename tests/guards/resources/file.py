"""A counter in a file that is replaced whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.guards import Fence, FileGuard
from tests.guards.contest import Resource


class GuardedFile(Resource):
    """A number in a file; the tokens it has seen are beside it."""

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """A file needs no server."""
        yield str(folder / "counter")

    def create(self) -> None:
        """See Resource."""
        Path(self.address).write_bytes(b"0")

    def value(self) -> int:
        """See Resource."""
        return int(Path(self.address).read_bytes())

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """See Resource."""
        if guarded:
            with FileGuard(self.address).transaction(fence) as file:
                seen = int(file.read() or b"0")
                pause()
                file.write(b"%d" % (seen + 1))
        else:
            seen = self.value()
            pause()
            beside = f"{self.address}.{os.getpid()}"
            Path(beside).write_bytes(b"%d" % (seen + 1))
            os.replace(beside, self.address)
