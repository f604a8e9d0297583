"""From events to numbers: what every kind of event does to which metric.

Rule 1: one event is counted once. A lease that is lost and then given back was held once.
Rule 2: what alarms look at exists from the first event of a resource on, at zero: a series that
        appears with a one in it has not risen, for Prometheus.
Rule 3: no lock is taken here, and functions are looked up once per pattern: what exports the
        numbers does the locking, once per number.
Rule 4: levels (held, waiting) go by owner, so that who listens late sees none below zero, and a
        forked child none of its parent's.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from time import time
from typing import Any, Protocol

from .. import events
from ..events import Event
from ..model import Reason
from . import catalogue as metrics
from .catalogue import LATE, Metric
from .patterns import Patterns
from .window import Window

Change = Callable[[float], None]

IN_VAIN = ("timeout", "busy")
EXPIRIES = frozenset({Reason.EXPIRED, Reason.UNREACHABLE, Reason.STOLEN})
REMEMBERED = 4096  # names whose rows are found without their pattern


class Instruments(Protocol):
    """Where the numbers go: a registry of Prometheus, a meter of OpenTelemetry."""

    def instrument(self, metric: Metric, *labels: str) -> Change:
        """Return the function that changes one series by, or to, a number."""

    def show(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """Let one series be what `read` says when asked; return what to call after a change."""


class Row:
    """The series of one pattern: those of every attempt at hand, the others made when needed."""

    __slots__ = (
        *("_instruments", "_parts", "attempted", "error", "expiry", "held", "hold", "holders"),
        *("in_vain", "late", "pattern", "queue", "shortest", "success", "waited", "waiting"),
        "window",
    )

    def __init__(self, instruments: Instruments, pattern: str) -> None:
        def make(metric: Metric, *labels: str) -> Change:
            return instruments.instrument(metric, pattern, *labels)

        self.pattern = pattern
        self._instruments = instruments
        self._parts: dict[tuple[object, ...], Change] = {}
        self.success = make(metrics.ACQUISITIONS, "success")
        self.error = make(metrics.ACQUISITIONS, "error")
        self.in_vain = {result: make(metrics.ACQUISITIONS, result) for result in IN_VAIN}
        self.waited = make(metrics.ACQUISITION)
        self.hold = make(metrics.HOLD)
        self.late = make(metrics.LATE_RENEWALS)
        self.expiry = make(metrics.EXPIRY)
        self.shortest = float("inf")
        self.window = Window(time())
        self.holders: set[str] = set()  # owners
        self.queue: set[str] = set()
        self.attempted = self.held = self.waiting = _nothing

    def show(self) -> None:
        """Export the levels and the ratio."""
        instruments, pattern = self._instruments, self.pattern
        self.held = instruments.show(metrics.HELD, lambda: len(self.holders), pattern)
        self.waiting = instruments.show(metrics.WAITERS, lambda: len(self.queue), pattern)
        self.attempted = instruments.show(
            metrics.CONTENTION, lambda: self.window.ratio(time()), pattern
        )

    def other(self, metric: Metric, *labels: str) -> Change:
        """Return the function of a series that not every resource has."""
        found = self._parts.get((metric.name, *labels))
        if found is None:
            found = self._instruments.instrument(metric, self.pattern, *labels)
            self._parts[(metric.name, *labels)] = found
        return found


def _nothing() -> None:
    """Do nothing."""


class Guarded:
    """The series of one guarded resource."""

    __slots__ = ("acceptances", "adoptions", "rejections")

    def __init__(self, instruments: Instruments, pattern: str) -> None:
        self.acceptances = instruments.instrument(metrics.ACCEPTANCES, pattern)
        self.rejections = instruments.instrument(metrics.REJECTIONS, pattern)
        self.adoptions = instruments.instrument(metrics.ADOPTIONS, pattern)


class Node:
    """The series of one server."""

    __slots__ = ("_clock", "_instruments", "_labels", "errors", "latency", "steps")

    def __init__(self, instruments: Instruments, engine: str, node: str) -> None:
        self._instruments, self._labels = instruments, (engine, node)
        self.errors = instruments.instrument(metrics.ENGINE_ERRORS, engine, node)
        self.latency = instruments.instrument(metrics.ENGINE_LATENCY, engine, node)
        self.steps = instruments.instrument(metrics.CLOCK_STEPS, engine, node)
        self._clock: tuple[Change, Change] | None = None

    def clock(self, offset: float, uncertainty: float) -> None:
        """Show its clock: not before it has told its time, for zero would be a time too."""
        if self._clock is None:
            self._clock = (
                self._instruments.instrument(metrics.CLOCK_OFFSET, *self._labels),
                self._instruments.instrument(metrics.CLOCK_UNCERTAINTY, *self._labels),
            )
        for change, value in zip(self._clock, (offset, uncertainty), strict=True):
            change(value)


class Meter:
    """Listens to clients and guards, any number of them, and counts."""

    def __init__(self, instruments: Instruments, patterns: Patterns) -> None:
        self._instruments = instruments
        self._patterns = patterns
        self._rows: dict[str, Row] = {}  # by name
        self._by_pattern: dict[str, Row] = {}
        self._guarded: dict[str, Guarded] = {}
        self._nodes: dict[tuple[str, str], Node] = {}
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            events.Acquired: self._acquired,
            events.Missed: self._missed,
            events.Waiting: self._queued,
            events.Renewed: self._renewed,
            events.Lost: self._lost,
            events.Released: self._released,
            events.Leaked: self._leaked,
            events.Forced: self._forced,
            events.Suspended: self._counted(metrics.SUSPENSIONS),
            events.LongWait: self._counted(metrics.LONG_WAITS),
            events.ReleaseGaveUp: self._counted(metrics.RELEASE_FAILURES),
            events.Skipped: self._counted(metrics.SKIPPED),
            events.Accepted: self._accepted,
            events.Refused: self._refused,
            events.Adopted: self._adopted,
            events.NodeAnswered: self._answered,
            events.NodeFailed: self._failed,
            events.ClockStep: self._stepped,
        }
        _meters.add(self)

    def __call__(self, event: Event) -> None:
        """Count an event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    # --- Finding the row. ---

    def _row(self, name: str) -> Row:
        pattern = self._patterns(name)
        row = self._by_pattern.get(pattern)
        if row is None:
            made = Row(self._instruments, pattern)
            row = self._by_pattern.setdefault(pattern, made)
            if row is made:  # else another thread was quicker
                row.show()
        if len(self._rows) >= REMEMBERED:
            self._rows.clear()
        self._rows[name] = row
        return row

    def _counted(self, metric: Metric) -> Callable[[Event], None]:
        def count(event: Event) -> None:
            row = self._rows.get(event.name) or self._row(event.name)
            row.other(metric)(1)

        return count

    # --- Attempts. ---

    def _acquired(self, event: events.Acquired) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        if row.queue:
            row.queue.discard(event.owner)
            row.waiting()
        row.holders.add(event.owner)
        row.held()
        row.success(1)
        row.waited(event.waited)
        row.window.attempts += 1
        row.attempted()
        if event.ttl < row.shortest:
            row.shortest = event.ttl
            row.other(metrics.TTL)(event.ttl)

    def _missed(self, event: events.Missed) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        row.queue.discard(event.owner)
        row.waiting()
        if event.result == "skipped":  # which has a counter of its own
            return
        change = row.in_vain.get(event.result)
        row.window.attempts += 1
        if change is not None:
            row.window.in_vain += 1
        (change or row.error)(1)
        row.attempted()

    def _queued(self, event: events.Waiting) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        row.queue.add(event.owner)
        row.waiting()

    # --- Leases. ---

    def _renewed(self, event: events.Renewed) -> None:
        if event.scheduled:
            row = self._rows.get(event.name) or self._row(event.name)
            passed = 1 - event.remaining / event.ttl
            row.other(metrics.RENEWAL)(passed)
            if passed > LATE:
                row.late(1)

    def _lost(self, event: events.Lost) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        row.other(metrics.LOSSES, event.reason.value)(1)
        if event.reason in EXPIRIES:
            row.expiry(1)
        self._ended(row, event)

    def _released(self, event: events.Released) -> None:
        if event.reason is None:
            self._ended(self._rows.get(event.name) or self._row(event.name), event)

    def _ended(self, row: Row, event: events.Lost | events.Released) -> None:
        row.hold(event.held_for)
        if event.max_hold:
            row.other(metrics.HOLD_RATIO)(event.held_for / event.max_hold)
        row.holders.discard(event.owner)
        row.held()

    def _leaked(self, event: events.Leaked) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        row.other(metrics.LEAKS)(1)
        row.holders.discard(event.owner)
        row.held()

    def _forced(self, event: events.Forced) -> None:
        row = self._rows.get(event.name) or self._row(event.name)
        row.other(metrics.FORCED)(event.count)

    # --- Guards. ---

    def _guard(self, event: Event) -> Guarded:
        pattern = self._patterns(event.name)
        found = self._guarded.get(pattern)
        if found is None:
            found = self._guarded.setdefault(pattern, Guarded(self._instruments, pattern))
        return found

    def _accepted(self, event: events.Accepted) -> None:
        self._guard(event).acceptances(1)

    def _refused(self, event: events.Refused) -> None:
        self._guard(event).rejections(1)

    def _adopted(self, event: events.Adopted) -> None:
        self._guard(event).adoptions(1)

    # --- Servers. ---

    def _node(self, event: events.NodeEvent) -> Node:
        key = (event.engine, event.node)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes.setdefault(key, Node(self._instruments, *key))
        return found

    def _answered(self, event: events.NodeAnswered) -> None:
        node = self._node(event)
        node.latency(event.latency)
        node.clock(event.offset, event.uncertainty)

    def _failed(self, event: events.NodeFailed) -> None:
        self._node(event).errors(1)

    def _stepped(self, event: events.ClockStep) -> None:
        self._node(event).steps(1)

    # --- Forks. ---

    def after_fork(self) -> None:
        """In the child: what is held and waited for is the parent's. Takes no lock."""
        for row in self._by_pattern.values():
            row.holders, row.queue = set(), set()


_meters: weakref.WeakSet[Meter] = weakref.WeakSet()


def _after_fork() -> None:
    for meter in list(_meters):
        meter.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
