"""Numbers of short-lived processes in a file, as node-exporter's textfile collector reads it.

Rule 1: counters go on where the file's end: a job that counts from zero each time never rises.
Rule 2: the file is replaced as a whole, and one process at a time reads and replaces it: runs of
        the same job may end together. The lock for that is one on the directory.
Rule 3: levels (held, waiting) are not written: whoever ends holds nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from .catalogue import CONTENTION, HELD, WAITERS

LEFT_OUT = frozenset({CONTENTION.name, HELD.name, WAITERS.name})
ADDED_UP = frozenset({"counter", "histogram"})

Key = tuple[str, tuple[tuple[str, str], ...]]


def add_to_textfile(path: Path, registry: CollectorRegistry, more: Iterable[Metric] = ()) -> None:
    """Add what was counted, and further gauges, to what the file says."""
    with _alone(path.parent):
        families = _Families()
        with suppress(FileNotFoundError, ValueError):  # another's file, or a broken one: begin anew
            text = path.read_text(encoding="utf-8")
            families.take(list(text_string_to_metric_families(text)))
        families.take(registry.collect())
        families.take(more)
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(f"{path} cannot be written")
        fresh = path.with_name(f".{path.name}.{os.getpid()}")  # which no collector reads
        try:
            fresh.write_bytes(generate_latest(families.registry()))
            fresh.chmod(0o644)  # the collector is another user
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def gauge(name: str, text: str, labels: Mapping[str, str], value: float) -> Metric:
    """Return a gauge with one series."""
    metric = Metric(name, text, "gauge")
    metric.add_sample(name, dict(labels), value)
    return metric


class _Families(Collector):
    """What goes into the file: the newest word on everything, and sums of what adds up."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[str, str]] = {}  # name -> help, type
        self._samples: dict[str, dict[Key, float]] = {}

    def take(self, metrics: Iterable[Metric]) -> None:
        """Take these in, over or on top of what is there."""
        for metric in metrics:
            if metric.name in LEFT_OUT or not metric.samples:
                continue
            self._heads[metric.name] = (metric.documentation, metric.type)
            samples = self._samples.setdefault(metric.name, {})
            for sample in metric.samples:
                if sample.name.endswith("_created"):
                    continue
                key = (sample.name, tuple(sorted(sample.labels.items())))
                before = samples.get(key, 0.0) if metric.type in ADDED_UP else 0.0
                samples[key] = before + sample.value

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        for name, (text, kind) in self._heads.items():
            metric = Metric(name, text, kind)
            for (sample, labels), value in self._samples[name].items():
                metric.add_sample(sample, dict(labels), value)
            yield metric

    def registry(self) -> CollectorRegistry:
        """Return a registry of just this."""
        registry = CollectorRegistry()
        registry.register(self)
        return registry


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Let one process in at a time."""
    import fcntl  # here: not every platform has it

    file = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
