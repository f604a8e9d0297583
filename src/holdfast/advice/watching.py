"""What to watch, by need and engine: metrics of the catalogue, and the alerts made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model import Fault, Guarantees
from ..observe import catalogue
from ..observe.alert_rules import ALERTS
from ..observe.catalogue import Metric
from .needs import Needs


@dataclass(frozen=True, slots=True)
class Watch:
    """One metric, the alert that fires on it (empty: none), and what it means."""

    metric: str
    alert: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Row:
    """A metric with its alert, and for whom it matters."""

    metric: Metric
    alert: str = ""
    when: Callable[[Needs, Guarantees], bool] = lambda needs, promised: True


ROWS = (
    Row(
        catalogue.REJECTIONS,
        "FencingTokenRejected",
        lambda needs, promised: needs.guarded,
    ),
    Row(catalogue.EXPIRY, "LockExpiryBeforeRelease"),
    Row(catalogue.LATE_RENEWALS, "LockHoldNearTTL"),
    Row(catalogue.ACQUISITION, "LockAcquisitionSlow"),
    Row(
        catalogue.CONTENTION,
        "HighLockContention",
        lambda needs, promised: needs.need != "election",
    ),
    Row(
        catalogue.CLOCK_STEPS,
        "LockServerClock",
        lambda needs, promised: Fault.SERVER_CLOCK_STEP not in promised.exclusive,
    ),
    Row(
        catalogue.ENGINE_ERRORS,
        when=lambda needs, promised: needs.reach == "machines",
    ),
)


def watch(needs: Needs, promised: Guarantees) -> tuple[Watch, ...]:
    """Return what to watch, the most urgent first."""
    known = {alert.name for alert in ALERTS}
    assert all(row.alert in known for row in ROWS if row.alert)
    return tuple(
        Watch(row.metric.name, row.alert, row.metric.help)
        for row in ROWS
        if row.when(needs, promised)
    )
