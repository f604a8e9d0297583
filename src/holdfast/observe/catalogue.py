"""Every metric there is: name, kind, labels, buckets. What exports them knows no others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a value changes, and so what its function does with a number."""

    COUNTER = "counter"  # adds it
    GAUGE = "gauge"  # becomes it
    HISTOGRAM = "histogram"  # counts it
    LEVEL = "level"  # how many there are: is asked for when it is exported
    RATIO = "ratio"  # likewise; those of several processes do not add up


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of series.

    `merge` says what becomes of a gauge where several processes export one (gunicorn).
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ("resource",)
    buckets: tuple[float, ...] = ()
    merge: str = ""


# With half of every usual TTL among them: there the alarm "p99 above half the TTL" is exact.
WAITS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 150.0, 300.0),
)
HOLDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)
PARTS = (0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LATENCIES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)

LATE = 0.8  # part of the TTL after which a renewal is late, and of max_hold after which a hold is

NODE = ("engine", "node")

ACQUISITIONS = Metric(
    "distributed_lock_acquisitions_total",
    Kind.COUNTER,
    "Attempts to get a lock, by how they ended: success, timeout, busy (did not want to wait), "
    "error.",
    ("resource", "result"),
)
ACQUISITION = Metric(
    "distributed_lock_acquisition_seconds",
    Kind.HISTOGRAM,
    "Time from asking for a lock to getting it.",
    buckets=WAITS,
)
HOLD = Metric(
    "distributed_lock_hold_seconds",
    Kind.HISTOGRAM,
    "Time from getting a lock to giving it back, or losing it.",
    buckets=HOLDS,
)
HOLD_RATIO = Metric(
    "distributed_lock_hold_ratio",
    Kind.HISTOGRAM,
    "Hold time as a part of max_hold, for locks that set one.",
    buckets=(0.1, 0.25, 0.5, 0.6, 0.7, LATE, 0.9, 1.0),
)
CONTENTION = Metric(
    "distributed_lock_contention_ratio",
    Kind.RATIO,
    "Attempts that ended timeout or busy, as a part of all in the last 5 minutes.",
    merge="livemax",
)
EXPIRY = Metric(
    "distributed_lock_expiry_before_release_total",
    Kind.COUNTER,
    "Leases that were over before their holder gave them back: expired, unreachable, stolen.",
)
LOSSES = Metric(
    "distributed_lock_losses_total",
    Kind.COUNTER,
    "Leases lost, by reason.",
    ("resource", "reason"),
)
TTL = Metric(
    "distributed_lock_ttl_seconds",
    Kind.GAUGE,
    "The shortest TTL in use.",
    merge="livemin",
)
HELD = Metric(
    "distributed_lock_held", Kind.LEVEL, "Leases held by this process now.", merge="livesum"
)
WAITERS = Metric(
    "distributed_lock_waiters", Kind.LEVEL, "Attempts of this process in a queue.", merge="livesum"
)
LONG_WAITS = Metric(
    "distributed_lock_long_waits_total",
    Kind.COUNTER,
    "Waits without time-out that lasted longer than ten TTL.",
)
RENEWAL = Metric(
    "distributed_lock_renewal_ratio",
    Kind.HISTOGRAM,
    "Part of the TTL that had passed when a renewal was confirmed: a third, if it was in time.",
    buckets=PARTS,
)
LATE_RENEWALS = Metric(
    "distributed_lock_late_renewals_total",
    Kind.COUNTER,
    "Renewals confirmed when more than 80 % of the TTL had passed.",
)
SUSPENSIONS = Metric(
    "distributed_lock_suspensions_total",
    Kind.COUNTER,
    "Leases whose renewal had no answer while they were still held.",
)
LEAKS = Metric(
    "distributed_lock_leaks_total", Kind.COUNTER, "Leases dropped without release: a bug."
)
RELEASE_FAILURES = Metric(
    "distributed_lock_release_failures_total",
    Kind.COUNTER,
    "Releases without an answer until the TTL was over.",
)
FORCED = Metric(
    "distributed_lock_forced_releases_total", Kind.COUNTER, "Holders removed by force_release."
)
SKIPPED = Metric(
    "distributed_lock_skipped_runs_total",
    Kind.COUNTER,
    "Singleton jobs not run here because another runs them; no alarm uses it.",
)
REJECTIONS = Metric(
    "distributed_lock_fencing_rejections_total",
    Kind.COUNTER,
    "Writers that a guard kept out: a double execution was about to happen.",
)
ACCEPTANCES = Metric(
    "distributed_lock_fencing_acceptances_total", Kind.COUNTER, "Writers that a guard let in."
)
ADOPTIONS = Metric(
    "distributed_lock_fencing_adoptions_total",
    Kind.COUNTER,
    "Resources moved to tokens of another domain.",
)
ENGINE_ERRORS = Metric(
    "distributed_lock_engine_errors_total",
    Kind.COUNTER,
    "Requests that a server did not answer.",
    NODE,
)
ENGINE_LATENCY = Metric(
    "distributed_lock_engine_latency_seconds",
    Kind.HISTOGRAM,
    "Time to a server's answer, one sample a second at most.",
    NODE,
    LATENCIES,
)
CLOCK_OFFSET = Metric(
    "distributed_lock_server_clock_offset_seconds",
    Kind.GAUGE,
    "What a server's clock is ahead of this machine's.",
    NODE,
    merge="livemostrecent",
)
CLOCK_UNCERTAINTY = Metric(
    "distributed_lock_server_clock_uncertainty_seconds",
    Kind.GAUGE,
    "By how much the clock offset may be wrong.",
    NODE,
    merge="livemostrecent",
)
CLOCK_STEPS = Metric(
    "distributed_lock_server_clock_steps_total",
    Kind.COUNTER,
    "Times a server's clock was set by more than 100 ms.",
    NODE,
)

METRICS = (
    *(ACQUISITIONS, ACQUISITION, CONTENTION, WAITERS, LONG_WAITS, SKIPPED),
    *(HELD, HOLD, HOLD_RATIO, TTL, RENEWAL, LATE_RENEWALS, SUSPENSIONS),
    *(EXPIRY, LOSSES, FORCED, LEAKS, RELEASE_FAILURES),
    *(ACCEPTANCES, REJECTIONS, ADOPTIONS),
    *(ENGINE_ERRORS, ENGINE_LATENCY, CLOCK_OFFSET, CLOCK_UNCERTAINTY, CLOCK_STEPS),
)
