"""A dashboard for Grafana: the signals of the alarm table first, then what explains them."""

from __future__ import annotations

from typing import Any, NamedTuple

WIDTH, HEIGHT = 8, 8  # three panels in a row of 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
PICKED = '{resource=~"$resource"}'


class Panel(NamedTuple):
    """One graph: a title, a unit, and what is drawn, each with its legend."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    text: str = ""


def _rate(metric: str, by: str = "resource", picked: str = PICKED) -> str:
    return f"sum by ({by}) (rate({metric}{picked}[$__rate_interval]))"


SECTIONS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Is anybody in danger?",
        (
            Panel(
                "Fencing tokens rejected",
                "short",
                (
                    (
                        "sum by (resource) (increase("
                        f"distributed_lock_fencing_rejections_total{PICKED}[5m]))",
                        "{{resource}}",
                    ),
                ),
                "Anything above zero is a double execution that a guard has stopped.",
            ),
            Panel(
                "Leases lost before release",
                "ops",
                ((_rate("distributed_lock_expiry_before_release_total"), "{{resource}}"),),
            ),
            Panel(
                "Losses by reason",
                "ops",
                ((_rate("distributed_lock_losses_total", "reason"), "{{reason}}"),),
            ),
        ),
    ),
    (
        "Getting locks",
        (
            Panel(
                "Attempts by result",
                "ops",
                ((_rate("distributed_lock_acquisitions_total", "result"), "{{result}}"),),
            ),
            Panel(
                "Time to get a lock, p99, and half the TTL",
                "s",
                (
                    (f"lock_acquisition_time_p99{PICKED}", "{{resource}}"),
                    (f"0.5 * lock_ttl_seconds{PICKED}", "half the TTL of {{resource}}"),
                ),
            ),
            Panel(
                "In vain",
                "percentunit",
                (
                    (f"lock_contention_rate{PICKED}", "contention {{resource}}"),
                    (f"lock_timeout_rate{PICKED}", "time-outs {{resource}}"),
                ),
            ),
            Panel(
                "Waiting",
                "short",
                ((f"sum by (resource) (distributed_lock_waiters{PICKED})", "{{resource}}"),),
            ),
            Panel(
                "Long waits, skipped runs",
                "ops",
                (
                    (_rate("distributed_lock_long_waits_total"), "long waits {{resource}}"),
                    (_rate("distributed_lock_skipped_runs_total"), "skipped {{resource}}"),
                ),
            ),
        ),
    ),
    (
        "Holding locks",
        (
            Panel(
                "Held",
                "short",
                ((f"sum by (resource) (distributed_lock_held{PICKED})", "{{resource}}"),),
            ),
            Panel(
                "Hold time, p99",
                "s",
                ((f"lock_hold_duration_p99{PICKED}", "{{resource}}"),),
            ),
            Panel(
                "Hold time as a part of max_hold, p99",
                "percentunit",
                ((f"lock_hold_ratio_p99{PICKED}", "{{resource}}"),),
            ),
            Panel(
                "Renewals: part of the TTL that had passed, p99",
                "percentunit",
                (
                    (
                        "histogram_quantile(0.99, sum by (resource, le) (rate("
                        f"distributed_lock_renewal_ratio_bucket{PICKED}[$__rate_interval])))",
                        "{{resource}}",
                    ),
                ),
                "A third is in time; above 80 % is late.",
            ),
            Panel(
                "Renewals without answer, and late",
                "ops",
                (
                    (_rate("distributed_lock_suspensions_total"), "no answer {{resource}}"),
                    (_rate("distributed_lock_late_renewals_total"), "late {{resource}}"),
                ),
            ),
            Panel(
                "Broken, dropped, not released",
                "ops",
                (
                    (_rate("distributed_lock_forced_releases_total"), "forced {{resource}}"),
                    (_rate("distributed_lock_leaks_total"), "dropped {{resource}}"),
                    (_rate("distributed_lock_release_failures_total"), "failed {{resource}}"),
                ),
            ),
        ),
    ),
    (
        "Guards and servers",
        (
            Panel(
                "Guarded writes",
                "ops",
                (
                    (_rate("distributed_lock_fencing_acceptances_total"), "let in {{resource}}"),
                    (_rate("distributed_lock_fencing_rejections_total"), "kept out {{resource}}"),
                ),
            ),
            Panel(
                "Server latency, p99, and errors",
                "s",
                (
                    (
                        "histogram_quantile(0.99, sum by (node, le) (rate("
                        "distributed_lock_engine_latency_seconds_bucket[$__rate_interval])))",
                        "{{node}}",
                    ),
                    (
                        _rate("distributed_lock_engine_errors_total", "node", ""),
                        "errors/s {{node}}",
                    ),
                ),
            ),
            Panel(
                "Server clocks",
                "s",
                (
                    ("avg by (node) (distributed_lock_server_clock_offset_seconds)", "{{node}}"),
                    (
                        "sum by (node) (increase(distributed_lock_server_clock_steps_total[5m]))",
                        "set {{node}}",
                    ),
                ),
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard, to be imported as it is."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, members in SECTIONS:
        panels.append(
            {
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "id": len(panels) + 1,
                "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
            }
        )
        y += 1
        for number, panel in enumerate(members):
            place = {
                "x": number % 3 * WIDTH,
                "y": y + number // 3 * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            panels.append(_panel(panel, len(panels) + 1, place))
        y += -(-len(members) // 3) * HEIGHT
    return {
        "title": "Distributed locks",
        "uid": "holdfast-locks",
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "id": number,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for at, (expression, legend) in enumerate(panel.lines)
        ],
    }


def _variables() -> list[dict[str, Any]]:
    query = "label_values(distributed_lock_acquisitions_total, resource)"
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
        },
        {
            "name": "resource",
            "label": "Resource",
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": "resources"},
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]
