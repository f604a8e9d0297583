"""The chronicle of a run: all diaries and the register's log, put together on one clock.

The records are those of the simulation, so that the same checkers judge both worlds. They are
sound, not complete: a hold begins when its process had it in hand, and ends before it let go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..model import Mode
from ..testing.simulation.history import (
    Acquired,
    Answered,
    Awaited,
    Ended,
    Looked,
    Minted,
    Paused,
    Record,
    Recovered,
    Remains,
    Unexpected,
    Wrote,
)
from .assignment import REGISTER
from .diary import Line, read_diaries
from .register import GUARDED, Entry, read_log

ENGINE_SAYS = ("expired", "stolen")  # reasons; before the deadline only the engine can know them
LAB = "lab"  # whose diary is the lab's own


class Span(NamedTuple):
    """A fault, from its beginning to the end of its undoing."""

    start: float
    end: float
    name: str
    detail: str


class Belief(NamedTuple):
    """A forked child looked at a lease of its parent's, and it seemed held."""

    at: float
    child: str
    token: int


class Broken(NamedTuple):
    """The engine said that a lease was gone, while its holder could still rely on it."""

    at: float
    client: str
    token: int
    until: float


class Seen(NamedTuple):
    """The witness asked the engine, at this instant or later, and it said that this is held."""

    at: float
    lock: str
    token: int
    label: str


@dataclass
class Chronicle:
    """What happened in one run; every instant is counted from its start."""

    origin: float
    ttl: float
    healed: float = math.inf
    over: float = 0.0
    records: list[Record] = field(default_factory=list)
    faults: list[Span] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)  # of the register
    believers: list[Belief] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    given_back: dict[tuple[str, int], float] = field(default_factory=dict)  # when it was certain
    killed: set[str] = field(default_factory=set)  # clients, also those of which a part was killed
    missed: Counter[str] = field(default_factory=Counter)
    stalled: float = 0.0  # the longest time for which any worker did not run

    @property
    def acquired(self) -> list[Acquired]:
        """All leases."""
        return [record for record in self.records if isinstance(record, Acquired)]

    @property
    def clients(self) -> list[str]:
        """Everybody who took part, in order."""
        return sorted({lease.client for lease in self.acquired})


def read_chronicle(folder: Path) -> Chronicle:
    """Put the diaries of a folder together."""
    diaries = read_diaries(folder)
    own = diaries.pop(LAB)
    begin = next(line for line in own if line["what"] == "begin")
    chronicle = Chronicle(origin=begin["at"], ttl=begin["ttl"])
    reader = _Reader(chronicle)
    reader.read_lab(own)
    for client, lines in diaries.items():
        reader.read_worker(client, lines)
    reader.read_register(read_log(folder / REGISTER))
    reader.finish()
    return chronicle


class _Reader:
    """Turns lines into records."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle
        self._records = chronicle.records
        self._kills: dict[str, float] = {}

    def _at(self, instant: float) -> float:
        return instant - self._chronicle.origin

    # --- The lab's own diary. ---

    def read_lab(self, lines: list[Line]) -> None:
        chronicle = self._chronicle
        open_: dict[str, list[Line]] = {}
        for line in lines:
            what, at = line["what"], self._at(line["at"])
            chronicle.over = max(chronicle.over, at)
            if what == "fault":
                open_.setdefault(line["name"], []).append(line)
            elif what == "fault over":
                begun = open_[line["name"]].pop()
                start = self._at(begun["at"])
                chronicle.faults.append(Span(start, at, begun["name"], begun["detail"]))
            elif what == "killed":
                chronicle.killed.add(line["client"])
                if line["whole"]:
                    self._kills[line["client"]] = at
            elif what == "healed":
                chronicle.healed = at
            elif what == "seen":
                chronicle.seen.append(Seen(at, line["lock"], line["token"], line["label"]))
            elif what == "due":
                self._records.append(Awaited(at, line["whose"], self._at(line["by"])))
            elif what == "remains":
                self._records.append(Remains(at, line["text"]))
            elif what == "unexpected":
                self._records.append(Unexpected(at, line["error"]))
        chronicle.faults.sort()

    # --- The diary of a worker, of an errand, of a forked child. ---

    def read_worker(self, client: str, lines: list[Line]) -> None:
        """Add what one process has written down."""
        if client.endswith("-errand"):
            self._records.extend(self._errands(client.removesuffix("-errand"), lines))
            return
        if "-fork-" in client:
            held = [line for line in lines if line["held"]]
            for line in held[:1]:
                belief = Belief(self._at(line["at"]), client, line["token"])
                self._chronicle.believers.append(belief)
            return
        deadlines: dict[str, float] = {}
        for line in lines:
            what, at = line["what"], self._at(line["at"])
            self._compare(client, at, line, deadlines)
            if "deadline" in line:
                deadlines[line["owner"]] = self._at(line["deadline"])
            if what == "got":
                self._records.append(_acquired(at, self._at(line["asked"]), client, line))
                if at > self._chronicle.healed:
                    self._records.append(Recovered(at, f"{client} gets {line['key']}"))
            elif what == "lost":
                deadline = deadlines[line["owner"]]
                self._records.append(Ended(at, line["owner"], "lost", deadline, line["reason"]))
            elif what == "leaving":
                deadline = deadlines[line["owner"]]
                self._records.append(Ended(at, line["owner"], "released", deadline))
            elif what == "look":
                self._records.append(Looked(at, line["owner"], line["held"], line["lost"]))
            elif what == "wrote" and line["taken"]:
                self._records.append(Answered(at, line["key"], line["token"], True))
            elif what == "kept" and line["held"]:
                self._records.append(Recovered(at, f"{client} is renewed"))
            else:
                self._read_trouble(client, at, line)
        if client in self._kills and lines:
            # That is written down before it is done: who has written something since lived on.
            killed = max(self._kills[client], self._at(lines[-1]["at"]))
            for owner, deadline in deadlines.items():
                self._records.append(Ended(killed, owner, "killed", deadline))

    def _compare(self, client: str, at: float, line: Line, deadlines: dict[str, float]) -> None:
        """Compare what the engine says about a lease with what its holder relies on."""
        gone = line["what"] == "lost" and line["reason"] in ENGINE_SAYS
        if gone or (line["what"] == "left" and line["answer"] is False and not line["lost"]):
            until = deadlines[line["owner"]]
            if at < until:
                broken = Broken(at, client, line["token"], until)
                self._chronicle.broken.append(broken)

    def _read_trouble(self, client: str, at: float, line: Line) -> None:
        what = line["what"]
        if what == "missed":
            self._chronicle.missed[line["why"]] += 1
        elif what == "left" and line["answer"] is True:
            self._chronicle.given_back[line["key"], line["token"]] = at
        elif what == "stalled":
            start, end = self._at(line["since"]), self._at(line["until"])
            self._records.append(Paused(start, client, end))
            self._chronicle.stalled = max(self._chronicle.stalled, end - start)
        elif what == "closed":
            self._records.extend(Remains(at, f"{one} of {client}") for one in line["remains"])
        elif what == "unexpected":
            self._records.append(Unexpected(at, f"{client}: {line['error']}"))

    def _errands(self, client: str, lines: list[Line]) -> Iterator[Record]:
        """Yield the holds of commands: from their first sign of life to their last.

        Tokens are told apart by their locks: those of two locks may be the same."""
        last: dict[str, float] = {}
        for line in lines:
            at, token = self._at(line["at"]), line["token"]
            owner = f"{client}/{line['key']}/{token}"
            last[owner] = at
            if line["what"] == "began":
                yield _acquired(at, self._at(line["asked"]), client, {**line, "owner": owner})
                if at > self._chronicle.healed:
                    yield Recovered(at, f"{client} gets {line['key']}")
            elif line["what"] == "wrote" and line["taken"]:
                yield Answered(at, line["key"], token, True)
        for owner, at in last.items():
            yield Ended(at, owner, "killed", at)

    # --- The register. ---

    def read_register(self, entries: list[Entry]) -> None:
        """Add what was written."""
        for entry in entries:
            found = entry._replace(at=self._at(entry.at))
            self._chronicle.entries.append(found)
            if not found.refused and found.based_on is not None:
                guarded = found.kind == GUARDED
                name = found.name if guarded else f"{found.name} ({found.kind})"
                self._records.append(
                    Wrote(found.at, name, found.token, found.based_on, found.found, guarded)
                )

    def finish(self) -> None:
        """Sort, and let every lease have been given by somebody: nobody saw the server do it."""
        given = [
            Minted(lease.at, lease.lock, lease.owner, lease.token, 0, math.inf)
            for lease in sorted(self._chronicle.acquired, key=lambda one: one.token)
        ]
        self._records.sort(key=lambda record: record.at)
        self._records.extend(given)


def _acquired(at: float, asked: float, client: str, line: Line) -> Acquired:
    return Acquired(
        at, asked, client, line["key"], (), Mode.EXCLUSIVE, 0, line["owner"], line["token"]
    )
