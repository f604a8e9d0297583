"""What a registry says, in the words of a test."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from holdfast.observe.catalogue import METRICS

_PREFIX = "distributed_lock_"


class Scrape:
    """The numbers of one registry; names without their common beginning."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def __call__(self, name: str, resource: str = "x", **labels: str) -> float | None:
        """Return one series of a resource."""
        return self.registry.get_sample_value(f"{_PREFIX}{name}", {"resource": resource, **labels})

    def results(self, resource: str = "x") -> dict[str, int]:
        """Return how attempts ended, but for what never happened."""
        found = {
            result: int(self("acquisitions_total", resource, result=result) or 0)
            for result in ("success", "timeout", "busy", "error")
        }
        return {result: count for result, count in found.items() if count}

    def names(self) -> set[str]:
        """Return the names of all families that have a series."""
        return {metric.name for metric in self.registry.collect() if metric.samples}


assert all(metric.name.startswith(_PREFIX) for metric in METRICS)
