"""Runs seeds: one world each, judged when it is over."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._concurrency import logger
from ..loop import RanAway, Stalled, current_loop
from ..loop import run as run_virtually
from .aftermath import check
from .checkers import Violation
from .history import History, Unexpected
from .plan import make_plan
from .world import World

MOST_STEPS = 400_000
MOST_TIME = 400.0


@dataclass(frozen=True, slots=True)
class Report:
    """What one seed came to."""

    seed: int
    history: History
    violations: list[Violation]

    @property
    def calls(self) -> Counter[str]:
        """How often the workload called which public method."""
        return self.history.calls

    @property
    def verbs(self) -> Counter[str]:
        """How often the clients called which verb of the engine."""
        return self.history.verbs

    @property
    def faults(self) -> Counter[str]:
        """How often which fault was injected."""
        return self.history.faults

    @property
    def operations(self) -> int:
        """Public calls and engine verbs together."""
        return self.calls.total() + self.verbs.total()

    @property
    def replay(self) -> str:
        """The command that shows this run again."""
        return f"python -m holdfast.testing.simulation --seed {self.seed} --verbose"


def run_seed(seed: int) -> Report:
    """Run the world of one seed, and judge it."""
    history = History()
    try:
        with _surprises(history):
            run_virtually(
                _live(seed, history), seed=seed, time_limit=MOST_TIME, step_limit=MOST_STEPS
            )
    except (Stalled, RanAway) as error:
        history.records.append(Unexpected(MOST_TIME, f"{type(error).__name__}: {error}"))
    return Report(seed, history, check(history.records))


async def _live(seed: int, history: History) -> None:
    loop = current_loop()

    def surprised(_: object, context: dict[str, Any]) -> None:
        history.add(Unexpected(loop.time(), f"{context['message']}: {context.get('exception')!r}"))

    loop.set_exception_handler(surprised)
    await World(make_plan(seed), history).run()


class _Listener(logging.Handler):
    """Takes what the client logs: an unforeseen error is a finding, the rest is expected here."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.ERROR)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            what = f"{record.getMessage()} {record.exc_info[1]!r}"
            self._history.add(Unexpected(current_loop().time(), what))


@contextmanager
def _surprises(history: History) -> Iterator[None]:
    """Listen to the client's logger, which else would fill the terminal with expected trouble."""
    listener = _Listener(history)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = before
