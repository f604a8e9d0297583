"""Spans and numbers for OpenTelemetry, through its API: the application chooses the SDK.

Rule 1: a listener runs in the context of whoever caused the event, so the current span is the one
        in which the lock was asked for: acquire and hold are its children.
Rule 2: release is a child of hold, whatever task or thread releases: one hold is one trace.
Rule 3: a hold's span ends when the lease does, also if it is lost, dropped or closed. None is left
        open behind a client.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from time import time
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider

from .. import events
from ..events import Event
from .catalogue import METRICS, Kind, Metric
from .meter import EXPIRIES, Change
from .patterns import Patterns

SCOPE = "holdfast"
NANO = 1_000_000_000


class OpenTelemetryInstruments:
    """The instruments of one meter; what exports them to Prometheus gives them the same names."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = metrics.get_meter(SCOPE, meter_provider=provider)
        makers: dict[Kind, Callable[..., Any]] = {
            Kind.COUNTER: meter.create_counter,
            Kind.GAUGE: meter.create_gauge,
            Kind.HISTOGRAM: meter.create_histogram,
            Kind.LEVEL: meter.create_observable_up_down_counter,
            Kind.RATIO: meter.create_observable_gauge,
        }
        self._instruments: dict[str, Any] = {}
        self._shown: dict[str, dict[tuple[str, ...], Callable[[], float]]] = {}
        for metric in METRICS:
            name, unit = otel_name(metric)
            options: dict[str, Any] = {"name": name, "unit": unit, "description": metric.help}
            if metric.kind in (Kind.LEVEL, Kind.RATIO):
                self._shown[metric.name] = {}
                options["callbacks"] = [partial(self._look, metric)]
            elif metric.buckets:
                options["explicit_bucket_boundaries_advisory"] = metric.buckets
            self._instruments[metric.name] = makers[metric.kind](**options)

    def instrument(self, metric: Metric, *labels: str) -> Change:
        """See Instruments."""
        attributes = dict(zip(metric.labels, labels, strict=True))
        change = getattr(self._instruments[metric.name], _VERBS[metric.kind])
        return lambda amount: change(amount, attributes)

    def show(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """See Instruments."""
        self._shown[metric.name][labels] = read
        return lambda: None

    def _look(self, metric: Metric, options: CallbackOptions) -> Iterable[Observation]:
        for labels, read in list(self._shown[metric.name].items()):
            yield Observation(read(), dict(zip(metric.labels, labels, strict=True)))


_VERBS = {
    Kind.COUNTER: "add",
    Kind.GAUGE: "set",
    Kind.HISTOGRAM: "record",
}


def otel_name(metric: Metric) -> tuple[str, str]:
    """Return name and unit, without what an exporter to Prometheus puts behind them."""
    name = metric.name.removesuffix("_total").replace("_lock_", "_lock.", 1)
    return (name.removesuffix("_seconds"), "s") if name.endswith("_seconds") else (name, "")


class Spans:
    """Makes the spans; keeps those of leases that are held."""

    def __init__(self, provider: TracerProvider | None, patterns: Patterns) -> None:
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=provider)
        self._patterns = patterns
        self._holds: dict[str, Span] = {}  # by owner
        self._handlers: dict[type[Event], Callable[[Any, int], None]] = {
            events.Acquired: self._acquired,
            events.Missed: self._missed,
            events.Suspended: self._suspended,
            events.Resumed: self._resumed,
            events.Lost: self._lost,
            events.Released: self._released,
            events.Leaked: self._leaked,
            events.Refused: self._refused,
        }
        _all.add(self)

    @property
    def open(self) -> int:
        """How many spans have not ended."""
        return len(self._holds)

    def __call__(self, event: Event) -> None:
        """Make of an event what there is to be made of it."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, int((event.at or time()) * NANO))

    def after_fork(self) -> None:
        """In the child: what is held is the parent's."""
        self._holds = {}

    # --- Attempts. ---

    def _acquired(self, event: events.Acquired, at: int) -> None:
        attributes = self._attributes(event) | {
            "lock.token": event.token,
            "lock.mode": event.mode.value,
            "lock.ttl": event.ttl,
            "lock.wait": event.waited,
            "lock.result": "success",
        }
        began = at - int(event.waited * NANO)
        pattern = attributes["lock.pattern"]
        span = self._tracer.start_span(
            f"acquire {pattern}", attributes=attributes, start_time=began
        )
        span.end(at)
        del attributes["lock.result"]
        self._holds[event.owner] = self._tracer.start_span(
            f"hold {pattern}", attributes=attributes, start_time=at
        )

    def _missed(self, event: events.Missed, at: int) -> None:
        attributes = self._attributes(event) | {
            "lock.mode": event.mode.value,
            "lock.wait": event.waited,
            "lock.result": event.result,
        }
        span = self._tracer.start_span(
            f"acquire {attributes['lock.pattern']}",
            attributes=attributes,
            start_time=at - int(event.waited * NANO),
        )
        if event.result == "error":
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(at)

    def _attributes(self, event: Event) -> dict[str, Any]:
        return {
            "lock.pattern": self._patterns(event.name),
            "lock.engine": event.engine,
            "lock.namespace": event.namespace,
        }

    # --- Leases. ---

    def _suspended(self, event: events.Suspended, at: int) -> None:
        hold = self._holds.get(event.owner)
        if hold is not None:
            hold.add_event("suspended", {"error": event.error}, at)

    def _resumed(self, event: events.Resumed, at: int) -> None:
        hold = self._holds.get(event.owner)
        if hold is not None:
            hold.add_event("resumed", timestamp=at)

    def _lost(self, event: events.Lost, at: int) -> None:
        hold = self._holds.pop(event.owner, None)
        if hold is not None:
            hold.set_attribute("lock.lost", event.reason.value)
            if event.reason in EXPIRIES:
                hold.set_status(Status(StatusCode.ERROR, f"lost: {event.reason.value}"))
            hold.end(at)

    def _released(self, event: events.Released, at: int) -> None:
        hold = self._holds.pop(event.owner, None)
        if hold is None:  # lost before, or taken before anybody listened
            return
        pattern = self._patterns(event.name)
        release = self._tracer.start_span(
            f"release {pattern}",
            context=trace.set_span_in_context(hold),
            attributes={
                "lock.pattern": pattern,
                "lock.token": event.token,
                "lock.outcome": _OUTCOMES[event.outcome],
            },
            start_time=at - int(event.took * NANO),
        )
        release.end(at)
        hold.end(at)

    def _leaked(self, event: events.Leaked, at: int) -> None:
        hold = self._holds.pop(event.owner, None)
        if hold is not None:
            hold.set_status(Status(StatusCode.ERROR, "dropped without release"))
            hold.end(at)

    # --- Guards. ---

    def _refused(self, event: events.Refused, at: int) -> None:
        """Note it in the span of whoever wanted to write: guards call in the writer's context."""
        trace.get_current_span().add_event(
            "fencing token refused",
            {
                "lock.pattern": self._patterns(event.name),
                "lock.token": event.offered,
                "lock.token_seen": event.seen,
                "lock.domain": event.domain,
            },
            at,
        )


_OUTCOMES = {True: "released", False: "gone", None: "unanswered"}

_all: weakref.WeakSet[Spans] = weakref.WeakSet()


def _after_fork() -> None:
    for spans in list(_all):
        spans.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
