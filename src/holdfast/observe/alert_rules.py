"""Recording and alerting rules as data: every row of the alarm table, and what to do about it.

Rule 1: rates are taken before sums, over counters that never fall but by a restart.
Rule 2: a counter that has just appeared has not risen, for Prometheus. Where one event is one too
        many (a rejected token, a clock that was set), what was not there five minutes ago counts.
Rule 3: a threshold that depends on the TTL is computed from the TTL that the processes export.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

RECORDING = "distributed_lock_recordings"
ALERTING = "distributed_lock_alerts"


@dataclass(frozen=True, slots=True)
class Record:
    """A series that Prometheus computes and keeps; `{by}` stands for the labels that are kept."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alarm. `runbook` is what the one on duty reads first."""

    name: str
    expression: str
    severity: str
    summary: str
    runbook: str
    wait: str = ""  # how long it must be so


_NEW = "sum by ({by}) ({metric} unless {metric} offset 5m) > 0"


def _just_now(metric: str, by: str) -> str:
    new = _NEW.replace("{metric}", metric).replace("{by}", by)
    return f"sum by ({by}) (increase({metric}[5m])) > 0\nor\n{new}"


RECORDS = (
    Record(
        "lock_acquisition_time_p99",
        "histogram_quantile(0.99,\n"
        "  sum by ({by}, le) (rate(distributed_lock_acquisition_seconds_bucket[5m])))",
    ),
    Record(
        "lock_hold_duration_p99",
        "histogram_quantile(0.99,\n"
        "  sum by ({by}, le) (rate(distributed_lock_hold_seconds_bucket[5m])))",
    ),
    Record(
        "lock_hold_ratio_p99",
        "histogram_quantile(0.99,\n"
        "  sum by ({by}, le) (rate(distributed_lock_hold_ratio_bucket[5m])))",
    ),
    Record(
        "lock_contention_rate",
        'sum by ({by}) (rate(distributed_lock_acquisitions_total{result=~"timeout|busy"}[5m]))\n'
        "/ sum by ({by}) (rate(distributed_lock_acquisitions_total[5m]))",
    ),
    Record(
        "lock_timeout_rate",
        'sum by ({by}) (rate(distributed_lock_acquisitions_total{result="timeout"}[5m]))\n'
        "/ sum by ({by}) (rate(distributed_lock_acquisitions_total[5m]))",
    ),
    Record(
        "fencing_token_reject_rate",
        "sum by ({by}) (rate(distributed_lock_fencing_rejections_total[5m]))",
    ),
    # A gauge is zero for an instant before it is set.
    Record("lock_ttl_seconds", "min by ({by}) (distributed_lock_ttl_seconds > 0)"),
)

ALERTS = (
    Alert(
        "LockAcquisitionSlow",
        "lock_acquisition_time_p99 > 0.5 * lock_ttl_seconds",
        "warning",
        "Getting {{ $labels.resource }} takes {{ $value | humanizeDuration }} (p99), more than "
        "half of its TTL.",
        "Means: holders hold for long, many wait, or the engine is slow. Check: "
        "lock_hold_duration_p99, distributed_lock_waiters and "
        "distributed_lock_engine_latency_seconds. Do: shorten the work under the lock, narrow the "
        "name (orders/99999, not orders), or give the engine more room. A longer TTL is no cure: "
        "it only moves the threshold.",
    ),
    Alert(
        "HighLockContention",
        "lock_contention_rate > 0.3",
        "warning",
        "{{ $value | humanizePercentage }} of the attempts to get {{ $labels.resource }} end "
        "without the lock.",
        "Means: many want the same name at the same time. Check: who holds it (holdfast ls), for "
        "how long (lock_hold_duration_p99), and whether the name covers more than it must. Do: "
        "narrow the name, shard a hot one (holdfast.shard), do less under the lock, or wait longer "
        "(timeout=) where giving up costs more than waiting.",
        wait="5m",
    ),
    Alert(
        "LockHoldNearTTL",
        "lock_hold_ratio_p99 > 0.8\n"
        "or\n"
        "sum by ({by}) (increase(distributed_lock_late_renewals_total[5m])) > 0",
        "warning",
        "{{ $labels.resource }} is held until shortly before it would be lost.",
        "Means: work under max_hold takes more than 80 % of it, or a renewal was confirmed when "
        "more than 80 % of the TTL had passed. Check: distributed_lock_hold_ratio for the first, "
        "distributed_lock_renewal_ratio, distributed_lock_suspensions_total, pauses of the process "
        "(GC, CPU limits, a blocked event loop) and engine latency for the second. Do: split the "
        "work, raise max_hold, take away what pauses the process, or raise the TTL to at least "
        "three times the longest pause.",
    ),
    Alert(
        "LockTimeouts",
        "lock_timeout_rate > 0.05",
        "warning",
        "{{ $value | humanizePercentage }} of the attempts to get {{ $labels.resource }} time out.",
        "Means: callers wait their whole timeout and go without. Check: is one holder stuck "
        "(holdfast show NAME: how old is the lease?), or is it load (lock_hold_duration_p99, "
        "distributed_lock_waiters)? Do: a stuck holder is stopped, or its lock broken (holdfast "
        "break NAME --token T); under load shorten the hold, narrow the name or wait longer.",
    ),
    Alert(
        "FencingTokenRejected",
        _just_now("distributed_lock_fencing_rejections_total", "{by}"),
        "critical",
        "A guard has refused an old token for {{ $labels.resource }}: two have worked under one "
        "lock.",
        "Means: a holder went on after it had lost the lock, and another was in. The guard kept "
        "its write out; what it did elsewhere, without a guard, is done. Check at once: the log "
        "line 'write refused' (which token, which process), then what that process did between "
        "the two tokens. Do: the checklist 'After a double execution' in docs/operations.md. Then "
        "find why it went on: a pause longer than the TTL, a lost connection, a missing "
        "ensure_held().",
    ),
    Alert(
        "LockExpiryBeforeRelease",
        "sum by ({by}) (rate(distributed_lock_expiry_before_release_total[5m])) > 0.1",
        "critical",
        "Leases of {{ $labels.resource }} end before their holders give them back "
        "({{ $value | humanize }} per second).",
        "Means: holders lose the lock while they work; another may be in at the same time. Check: "
        "distributed_lock_losses_total by reason. expired: pauses longer than the TTL, or a TTL "
        "too short; unreachable: the engine or the way to it; stolen: somebody deletes keys, or "
        "the engine lost data. Do: stop the work if it has no guard, raise the TTL or repair the "
        "engine, then the checklist 'After a double execution'.",
        wait="2m",
    ),
    Alert(
        "LockServerClock",
        "max by (engine) (\n"
        "  max by (job, instance, engine) (distributed_lock_server_clock_offset_seconds\n"
        "    - distributed_lock_server_clock_uncertainty_seconds)\n"
        "  - min by (job, instance, engine) (distributed_lock_server_clock_offset_seconds\n"
        "    + distributed_lock_server_clock_uncertainty_seconds)\n"
        ") > 0.01",
        "warning",
        "The clocks of the servers of {{ $labels.engine }} are {{ $value | humanizeDuration }} "
        "apart.",
        "Means: the servers that vote on locks disagree about the time by more than 10 ms. Tokens "
        "stay in order, but leases end earlier on one than on another. Check: "
        "distributed_lock_server_clock_offset_seconds by node, then chrony or ntpd there. Do: "
        "repair time synchronisation on the node that stands apart.",
    ),
    Alert(
        "LockServerClock",
        _just_now("distributed_lock_server_clock_steps_total", "engine, node"),
        "critical",
        "The clock of {{ $labels.node }} was set by more than 100 ms.",
        "Means: locks there may have ended early, or last longer than they should. Check: what set "
        "it (an administrator, a resumed machine, ntpd without slewing). Do: look for "
        "LockExpiryBeforeRelease and FencingTokenRejected at the same time; let clocks be slewed, "
        "not stepped; consider on_clock_step='block', which makes that server grant nothing for "
        "one max_ttl.",
    ),
)


def rules_by(*labels: str) -> tuple[list[Record], list[Alert]]:
    """Return all rules, keeping `resource` and these further labels of the user's."""
    by = ", ".join(("resource", *labels))
    put: Callable[[str], str] = lambda text: text.replace("{by}", by)  # noqa: E731
    return (
        [replace(record, expression=put(record.expression)) for record in RECORDS],
        [replace(alert, expression=put(alert.expression)) for alert in ALERTS],
    )
