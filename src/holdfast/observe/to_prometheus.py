"""Numbers for Prometheus, by prometheus_client: also of many processes (gunicorn), also in a file.

Rule 1: the families of one registry are made once, however many listeners use it.
Rule 2: where PROMETHEUS_MULTIPROC_DIR is set, all is kept in the files there, and every gauge says
        how those of several processes become one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from .catalogue import METRICS, Kind, Metric
from .meter import Change

Families = dict[str, Any]

_made: WeakKeyDictionary[CollectorRegistry, Families] = WeakKeyDictionary()


class PrometheusInstruments:
    """The series of one registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = REGISTRY if registry is None else registry
        found = _made.get(registry)
        if found is None:
            found = {metric.name: _family(metric, registry) for metric in METRICS}
            found = _made.setdefault(registry, found)
        self._families = found
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ

    def instrument(self, metric: Metric, *labels: str) -> Change:
        """See Instruments."""
        child = self._families[metric.name].labels(*labels)
        change: Change = getattr(child, _VERBS[metric.kind])
        return change

    def show(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """See Instruments."""
        child = self._families[metric.name].labels(*labels)
        if self._shared:  # what is exported is what was last written
            return lambda: child.set(read())
        child.set_function(read)
        return _nothing


def _nothing() -> None:
    """Do nothing: it is asked for when it is exported."""


_VERBS = {
    Kind.COUNTER: "inc",
    Kind.GAUGE: "set",
    Kind.HISTOGRAM: "observe",
}


def _family(metric: Metric, registry: CollectorRegistry) -> Any:
    make: Callable[..., Any]
    if metric.kind is Kind.COUNTER:
        make = Counter
    elif metric.kind is Kind.HISTOGRAM:
        make = partial(Histogram, buckets=metric.buckets)
    else:
        make = partial(Gauge, multiprocess_mode=cast("Any", metric.merge))
    return make(metric.name, metric.help, metric.labels, registry=registry)
