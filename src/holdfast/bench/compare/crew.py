"""Worker processes that run loads; one that fails or hangs is replaced, and the run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from ..async_contestant import AsyncContestant
from ..contestant import TTL, Contestant, Place
from ..handle import PATIENCE
from .load import Load
from .sample import Sample, joined

GRACE = 10.0  # seconds that a process may take beyond what it was asked for
SHORTLY = 2.0  # seconds in which who has nothing to do ends
SOON = 0.01  # seconds from an order to its start, so that all begin together

AnyContestant = type[Contestant] | type[AsyncContestant]


class CrewFailed(Exception):
    """A contestant or a process of the crew has a problem; the message is for its row.

    `clean`: the contestant has raised, and its process has said so and goes on.
    """

    def __init__(self, why: str, *, clean: bool = False) -> None:
        super().__init__(why)
        self.clean = clean


def name_of(kind: AnyContestant) -> str:
    """Return how workers find a contestant."""
    return f"{kind.__module__}:{kind.__qualname__}"


def order_for(kind: AnyContestant, place: Place, ttl: float = TTL, **more: Any) -> dict[str, Any]:
    """Return the beginning of an order."""
    return {"who": name_of(kind), "place": list(place), "ttl": ttl, **more}


class Member:
    """One worker process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; they end when we do
        )

    def tell(self, line: str) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except OSError:
            raise CrewFailed(f"failed: its process ended with code {self._code()}") from None

    def order(self, order: dict[str, Any]) -> None:
        """Give an order."""
        self.tell(json.dumps(order))

    def answer(self, limit: float) -> dict[str, Any]:
        """Return what it says within so many seconds."""
        assert self.process.stdout is not None
        # A pipe has no time-out, but it has an end.
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.process.kill()

        watch = threading.Timer(limit, stop)
        watch.start()
        try:
            line = self.process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            if late.is_set():
                raise CrewFailed(f"failed: it did not answer within {limit:.0f} s")
            raise CrewFailed(f"failed: its process ended with code {self._code()}")
        said: dict[str, Any] = json.loads(line)
        if "problem" in said:
            raise CrewFailed(said["problem"], clean=True)
        return said

    def end(self, patience: float = SHORTLY) -> None:
        """Let it end by itself, which it does at once unless it is busy; else kill it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it is gone, with something unread
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.end()

    def _code(self) -> int:
        return self.process.wait()


class Crew:
    """So many processes, started when they are first needed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.end()
        self._members = []

    @property
    def members(self) -> list[Member]:
        """All of them, alive."""
        missing = self.size - len(self._members)
        self._members += [Member() for _ in range(missing)]
        return self._members

    @property
    def first(self) -> Member:
        """The one that has threads and tasks."""
        return self.members[0]

    def run(
        self,
        kind: AnyContestant,
        place: Place,
        load: Load,
        seconds: float,
        warm: float = 0.0,
        patience: float = PATIENCE + GRACE,
    ) -> Sample:
        """Return what a contestant did under a load; `CrewFailed` says why it did not.

        `patience` is how long it may take beyond what it was asked for.
        """
        shares = load.shares(self.size)
        crew = self.members[: len(shares)]
        try:
            for member, share in zip(crew, shares, strict=True):
                order = order_for(kind, place, do="load", load=share.document())
                member.order({**order, "warm": warm, "seconds": seconds})
            _hear_all(crew, patience)
            start = time.monotonic_ns() + int(SOON * 1e9)
            for member in crew:
                member.tell(str(start))
            limit = warm + seconds * 2 + patience
            return joined([Sample.read(answer) for answer in _hear_all(crew, limit)])
        except CrewFailed as failed:
            if failed.clean and len(crew) == 1:
                self.forget()
            else:
                self.dismiss()
            raise

    def forget(self) -> None:
        """Let the first member close all contestants: one of them may be in any state."""
        self.first.order({"do": "close"})
        try:
            self.first.answer(GRACE)
        except CrewFailed:
            self.dismiss()

    def kill(self, member: Member) -> None:
        """End one of them at once."""
        self._members.remove(member)
        member.kill()

    def dismiss(self) -> None:
        """End all at once; new ones come when they are needed.

        Nothing is worth being closed in order: servers and files are thrown away as well.
        """
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.kill()
        self._members = []


def _hear_all(crew: Sequence[Member], limit: float) -> list[dict[str, Any]]:
    return [member.answer(limit) for member in crew]
