"""`holdfast alerts`: every alarm fires when it should and is silent when it should be."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.observe.alert_rules import ALERTING, ALERTS, RECORDING, RECORDS
from holdfast.observe.catalogue import METRICS
from holdfast.testing.servers import need, promtool_program

ROOT = Path(__file__).resolve().parents[2]
ORDERS = 'resource="orders/*"'
MINUTES = 30


def holdfast(*words: str, code: int = 0) -> str:
    """Run the command and return what it printed."""
    done = CliRunner().invoke(main, ["alerts", *words])
    assert done.exit_code == code, done.output
    return done.output


def promtool(*words: str, folder: Path) -> str:
    """Run promtool, which must be content."""
    done = subprocess.run(
        [need(promtool_program), *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- Series. ---

Series = dict[str, str]


def attempts(**per_minute: int) -> Series:
    """Attempts that end so, evenly."""
    return {
        f'distributed_lock_acquisitions_total{{{ORDERS},result="{result}"}}': f"0+{count}x{MINUTES}"
        for result, count in per_minute.items()
    }


def histogram(metric: str, inside: str, outside: str) -> Series:
    """A hundred observations a minute, all above one bound and none above another."""
    return {
        f'{metric}_bucket{{{ORDERS},le="{inside}"}}': f"0+0x{MINUTES}",
        f'{metric}_bucket{{{ORDERS},le="{outside}"}}': f"0+100x{MINUTES}",
        f'{metric}_bucket{{{ORDERS},le="+Inf"}}': f"0+100x{MINUTES}",
    }


def steady(metric: str, value: float, labels: str = ORDERS) -> Series:
    """A number that does not change."""
    return {f"{metric}{{{labels}}}": f"{value}+0x{MINUTES}"}


def waits(longer: str, shorter: str, ttl: float) -> Series:
    """Waits between two bounds, for locks with this TTL."""
    return {
        **histogram("distributed_lock_acquisition_seconds", longer, shorter),
        **steady("distributed_lock_ttl_seconds", ttl),
    }


def clocks(uncertainty: float, **offsets: float) -> Series:
    """Servers of one Redlock, as one process sees their clocks."""
    found: Series = {}
    for node, offset in offsets.items():
        labels = f'job="shop",instance="a",engine="redlock",node="{node}"'
        found |= steady("distributed_lock_server_clock_offset_seconds", offset, labels)
        found |= steady("distributed_lock_server_clock_uncertainty_seconds", uncertainty, labels)
    return found


REJECTED = f"distributed_lock_fencing_rejections_total{{{ORDERS}}}"
ACCEPTED = f"distributed_lock_fencing_acceptances_total{{{ORDERS}}}"
EXPIRED = f"distributed_lock_expiry_before_release_total{{{ORDERS}}}"
LATE = f"distributed_lock_late_renewals_total{{{ORDERS}}}"
STEPS = 'distributed_lock_server_clock_steps_total{engine="redlock",node="r1"}'


class Case(NamedTuple):
    """Some series, and whether one alert fires at one minute of them."""

    what: str
    alert: str
    fires: bool
    series: Series
    minute: int = 20
    severity: str = "warning"
    labels: str = ORDERS


CASES = [
    Case("waits above half the TTL", "LockAcquisitionSlow", True, waits("5.0", "7.5", 10)),
    Case("waits below half the TTL", "LockAcquisitionSlow", False, waits("2.5", "5.0", 10)),
    Case("the same waits, a longer TTL", "LockAcquisitionSlow", False, waits("5.0", "7.5", 30)),
    Case("a TTL not exported yet", "LockAcquisitionSlow", False, waits("5.0", "7.5", 0)),
    Case("40 % in vain", "HighLockContention", True, attempts(success=60, busy=25, timeout=15)),
    Case("40 % in vain, for 4 minutes", "HighLockContention", False,
         attempts(success=60, busy=40), minute=4),
    Case("20 % in vain", "HighLockContention", False, attempts(success=80, busy=20)),
    Case("errors are not contention", "HighLockContention", False, attempts(success=1, error=99)),
    Case("skipped runs are not contention", "HighLockContention", False,
         {**attempts(success=1),
          f"distributed_lock_skipped_runs_total{{{ORDERS}}}": f"0+99x{MINUTES}"}),
    Case("holds near max_hold", "LockHoldNearTTL", True,
         histogram("distributed_lock_hold_ratio", "0.8", "0.9")),
    Case("holds below 80 % of max_hold", "LockHoldNearTTL", False,
         histogram("distributed_lock_hold_ratio", "0.7", "0.8")),
    Case("one late renewal", "LockHoldNearTTL", True, {LATE: "0+0x17 1+0x10"}),
    Case("a late renewal long ago", "LockHoldNearTTL", False, {LATE: "0+0x5 1+0x20"}),
    Case("long holds without max_hold, renewed in time", "LockHoldNearTTL", False,
         {**histogram("distributed_lock_hold_seconds", "30.0", "60.0"),
          **histogram("distributed_lock_renewal_ratio", "0.35", "0.4"), LATE: f"0+0x{MINUTES}"}),
    Case("10 % time out", "LockTimeouts", True, attempts(success=90, timeout=10)),
    Case("4 % time out", "LockTimeouts", False, attempts(success=96, timeout=4)),
    Case("busy is no time-out", "LockTimeouts", False, attempts(success=50, busy=50, timeout=0)),
    Case("one token rejected", "FencingTokenRejected", True, {REJECTED: "0+0x17 1+0x10"},
         severity="critical"),
    Case("the first event of all is a rejection", "FencingTokenRejected", True,
         {REJECTED: "_x18 1+0x10"}, severity="critical"),
    Case("a rejection long ago", "FencingTokenRejected", False, {REJECTED: "0+0x5 1+0x25"},
         severity="critical"),
    Case("tokens accepted", "FencingTokenRejected", False,
         {ACCEPTED: f"0+99x{MINUTES}", REJECTED: f"0+0x{MINUTES}"}, severity="critical"),
    Case("12 expiries a minute", "LockExpiryBeforeRelease", True, {EXPIRED: f"0+12x{MINUTES}"},
         severity="critical"),
    Case("12 expiries a minute, for a minute", "LockExpiryBeforeRelease", False,
         {EXPIRED: f"0+12x{MINUTES}"}, minute=4, severity="critical"),
    Case("3 expiries a minute", "LockExpiryBeforeRelease", False, {EXPIRED: f"0+3x{MINUTES}"},
         severity="critical"),
    Case("clocks 20 ms apart", "LockServerClock", True,
         clocks(0.001, r1=0.0, r2=0.020, r3=0.001), labels='engine="redlock"'),
    Case("clocks 5 ms apart", "LockServerClock", False,
         clocks(0.001, r1=0.0, r2=0.005), labels='engine="redlock"'),
    Case("clocks perhaps apart, by slow answers", "LockServerClock", False,
         clocks(0.008, r1=0.0, r2=0.020), labels='engine="redlock"'),
    Case("our own clock is wrong, theirs agree", "LockServerClock", False,
         clocks(0.001, r1=3600.0, r2=3600.002), labels='engine="redlock"'),
    Case("a clock was set", "LockServerClock", True, {STEPS: "0+0x17 1+0x10"},
         severity="critical", labels='engine="redlock",node="r1"'),
    Case("a clock was set before anything else", "LockServerClock", True, {STEPS: "_x18 1+0x10"},
         severity="critical", labels='engine="redlock",node="r1"'),
    Case("a clock was set long ago", "LockServerClock", False, {STEPS: "0+0x5 1+0x25"},
         severity="critical", labels='engine="redlock",node="r1"'),
]  # fmt: skip


def test_every_alert_has_series_that_fire_and_series_that_must_not() -> None:
    """The table below leaves out no alarm, by name and severity."""
    for fires in (True, False):
        covered = {(case.alert, case.severity) for case in CASES if case.fires is fires}
        assert covered == {(alert.name, alert.severity) for alert in ALERTS}


@pytest.mark.parametrize("name", sorted({alert.name for alert in ALERTS}))
def test_alert(name: str, tmp_path: Path) -> None:
    """promtool feeds each alert series that must fire it and series that must not."""
    (tmp_path / "rules.yml").write_text(holdfast())
    tests = []
    for case in CASES:
        if case.alert != name:
            continue
        found = f'ALERTS{{alertname="{name}",alertstate="firing",severity="{case.severity}"}}'
        pairs = f'{{alertname="{name}",alertstate="firing",severity="{case.severity}",'
        expected = [{"labels": f"ALERTS{pairs}{case.labels}}}", "value": 1}] if case.fires else []
        tests.append(
            {
                "name": case.what,
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in case.series.items()],
                "promql_expr_test": [
                    {"expr": found, "eval_time": f"{case.minute}m", "exp_samples": expected}
                ],
            }
        )
    check(tests, tmp_path)


def check(tests: list[dict[str, Any]], folder: Path) -> None:
    """Let promtool run these tests on rules.yml."""
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "group_eval_order": [RECORDING, ALERTING],
        "tests": tests,
    }
    (folder / "tests.yml").write_text(json.dumps(document))
    promtool("test", "rules", "tests.yml", folder=folder)


def test_recording_rules(tmp_path: Path) -> None:
    """The five series that were asked for by name are what they say."""
    (tmp_path / "rules.yml").write_text(holdfast())
    series = {
        **attempts(success=80, timeout=10, busy=10),
        **waits("5.0", "10.0", 30),
        **histogram("distributed_lock_hold_seconds", "0.5", "1.0"),
        REJECTED: f"0+60x{MINUTES}",
    }
    expected = {
        "lock_acquisition_time_p99": 9.95,
        "lock_contention_rate": 0.2,
        "lock_hold_duration_p99": 0.995,
        "lock_timeout_rate": 0.1,
        "fencing_token_reject_rate": 1,
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": k, "values": v} for k, v in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({name}, 0.0001)",
                "eval_time": "20m",
                "exp_samples": [{"labels": f"{{{ORDERS}}}", "value": value}],
            }
            for name, value in expected.items()
        ],
    }
    check([test], tmp_path)
    assert expected.keys() <= {record.name for record in RECORDS}


def test_annotations_reach_whoever_is_on_duty(tmp_path: Path) -> None:
    """The summary names the pattern, the runbook says what to do, the link leads to the page."""
    (tmp_path / "rules.yml").write_text(holdfast("--runbook-url", "https://wiki/locks"))
    (alert,) = (alert for alert in ALERTS if alert.name == "FencingTokenRejected")
    annotations = {
        "summary": "A guard has refused an old token for orders/*: two have worked under one lock.",
        "runbook": alert.runbook,
        "runbook_url": "https://wiki/locks#fencingtokenrejected",
    }
    labels = {"severity": "critical", "resource": "orders/*"}
    test = {
        "interval": "1m",
        "input_series": [{"series": REJECTED, "values": "0+0x17 1+0x10"}],
        "alert_rule_test": [
            {
                "eval_time": "20m",
                "alertname": "FencingTokenRejected",
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}],
            }
        ],
    }
    check([test], tmp_path)


@pytest.mark.parametrize("words", [(), ("--by", "job", "--by", "cluster")])
def test_rules_are_valid(words: tuple[str, ...], tmp_path: Path) -> None:
    """promtool finds nothing wrong, with further labels too."""
    text = holdfast(*words)
    (tmp_path / "rules.yml").write_text(text)
    assert f"{len(RECORDS) + len(ALERTS)} rules found" in promtool(
        "check", "rules", "rules.yml", folder=tmp_path
    )
    if words:
        assert "sum by (resource, job, cluster)" in text


def test_summaries_name_what_it_is_about() -> None:
    """Each summary names the resource pattern, or the servers."""
    for alert in ALERTS:
        assert re.search(r"\$labels\.(resource|engine|node)", alert.summary), alert.name


def test_rules_use_only_metrics_that_exist() -> None:
    """No expression of a rule or panel names a metric that nobody exports."""
    known = {metric.name for metric in METRICS} | {record.name for record in RECORDS}
    texts = [rule.expression for rule in (*RECORDS, *ALERTS)]
    texts += [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    for text in texts:
        for name in re.findall(r"\b(?:distributed_lock|lock|fencing_token)_\w+", text):
            assert name.removesuffix("_bucket") in known, name


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    found: list[dict[str, Any]] = json.loads(holdfast("--format", "grafana"))["panels"]
    return found


def test_dashboard_is_valid(tmp_path: Path) -> None:
    """Every expression is PromQL, every panel has its place, every metric can be seen."""
    drawn = [panel for panel in panels() if panel["type"] != "row"]
    lines = ["groups:", "- name: dashboard", "  rules:"]
    for panel in drawn:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "5m").replace("$resource", ".*")
            lines += ["  - record: shown", f"    expr: {json.dumps(text)}"]
            lines += [f'    labels: {{of: "{panel["id"]}{target["refId"]}"}}']
    (tmp_path / "panels.yml").write_text("\n".join(lines) + "\n")
    promtool("check", "rules", "panels.yml", folder=tmp_path)
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels()
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_wrong_label_is_refused() -> None:
    """What cannot be a label is wrong usage."""
    assert "--by" in holdfast("--by", "a b", code=64)


def test_every_alert_is_on_the_operations_page() -> None:
    """docs/operations.md has a part for each alert, under the anchor that the links use."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for alert in ALERTS:
        assert f"\n### {alert.name}\n" in text, alert.name
