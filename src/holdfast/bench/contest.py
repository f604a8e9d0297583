"""Waiters of several processes on one key: how often it changes hands, and how fairly.

One crew per kind of lock, all alive from the start; they compete in turns, a round each, so that a
slow spell of the machine hits all of them.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any, NamedTuple

from .compare.sample import hand_overs
from .floor import Row
from .redis_servers import no_figure

PROCESSES = 4
GRACE = 60.0  # seconds that a process may take beyond its round
OURS = "holdfast"


class Rounds(NamedTuple):
    """How long to look: so many rounds, each so many seconds after the first `warm` ones."""

    number: int
    warm: float
    seconds: float


class CrewFailed(Exception):
    """A process of a crew has a problem, or is gone."""


class Crew:
    """Processes whose threads all want the same lock, of one kind."""

    def __init__(
        self, kind: str, waiters: int, addresses: Sequence[str], program: str = "contender"
    ) -> None:
        self.kind = kind
        self.rates: list[float] = []  # hand-overs per second, by round
        self.turns: list[float] = []  # turns per second, by round
        self.shares: list[float] = []  # most turns of a thread over fewest, by round
        self.problem = ""
        module = f"{__package__}.{program}"
        threads = [waiters // PROCESSES + (n < waiters % PROCESSES) for n in range(PROCESSES)]
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", module, kind, str(count), *addresses],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is ours; they end when we do
            )
            for count in threads
            if count
        ]

    def run(self, rounds: Rounds) -> None:
        """Compete for one round; after a problem, no more."""
        if self.problem:
            return
        try:
            if not self.rates:
                self._answers(0.0)  # each says that it is ready
            for process in self._processes:
                assert process.stdin is not None
                process.stdin.write(f"contest {rounds.warm} {rounds.seconds}\n")
                process.stdin.flush()
            answers = self._answers(rounds.warm + rounds.seconds)
        except (CrewFailed, OSError) as error:
            self.problem = str(error)
            return
        turns = [turns for answer in answers for turns in answer["turns"]]
        counts = [len(each) for each in turns]
        holds = sorted((at, who) for who, each in enumerate(turns) for at in each)
        handed, _ = hand_overs([(who, at, at) for at, who in holds])
        self.rates.append(len(handed) / rounds.seconds)
        self.turns.append(sum(counts) / rounds.seconds)
        self.shares.append(max(counts) / min(counts) if min(counts) else math.inf)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            if self.problem:
                process.kill()
            assert process.stdin is not None
            try:
                process.stdin.close()
            except OSError:
                pass  # it is gone, with something unread
        for process in self._processes:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def _answers(self, seconds: float) -> list[dict[str, Any]]:
        return [self._answer(process, seconds + GRACE) for process in self._processes]

    def _answer(self, process: subprocess.Popen[str], limit: float) -> dict[str, Any]:
        assert process.stdout is not None
        # A pipe has no time-out, but it has an end.
        watch = threading.Timer(limit, process.kill)
        watch.start()
        try:
            line = process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            code = process.wait()
            raise CrewFailed(f"a process of {self.kind} ended with code {code} (limit {limit:g} s)")
        answer: dict[str, Any] = json.loads(line)
        if "problem" in answer:
            raise CrewFailed(answer["problem"])
        return answer


def contest(
    waiters: int,
    addresses: Sequence[str],
    rounds: Rounds,
    *,
    peer: str,
    least_rate: float,
    most_share: float,
    program: str = "contender",
) -> list[Row]:
    """Return our hand-overs per second beside the peer's, and our fairness."""
    with ExitStack() as stack:
        ours, theirs = (Crew(kind, waiters, addresses, program) for kind in (OURS, peer))
        for crew in (ours, theirs):
            stack.callback(crew.close)
        for _ in range(rounds.number):
            for crew in (ours, theirs):
                crew.run(rounds)
    if ours.problem:
        raise RuntimeError(f"{waiters} waiters: {ours.problem}")
    rate, share = median(ours.rates), median(ours.shares)
    shape = f"{PROCESSES} processes, medians of {rounds.number} rounds of {rounds.seconds:g} s"
    note = f"{rate:,.0f}/s beside "
    what = f"hand-overs/s, {waiters} waiters / {peer}"
    fairness = Row(f"share max/min, {waiters} waiters", share, "×", most_share, shape)
    if theirs.problem:
        return [no_figure(what, f"{peer} {theirs.problem}; ours: {rate:,.0f}/s"), fairness]
    base = median(theirs.rates)
    turns, others = median(ours.turns), median(theirs.turns)
    note += f"{base:,.0f}/s (turns: {turns:,.0f} and {others:,.0f}/s), {shape}"
    fairness = fairness._replace(note=f"{peer}: {median(theirs.shares):.3g}×")
    speed = Row(what, rate / base if base else math.inf, "×", least_rate, note, at_least=True)
    return [speed, fairness]
