"""`holdfast alerts`: rules for Prometheus, or a dashboard for Grafana, on standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click

from ..observe.alert_rules import ALERTING, RECORDING, Alert, Record, rules_by
from ..observe.grafana import dashboard
from .base import Command

EPILOG = """\b
Examples:
  holdfast alerts > /etc/prometheus/rules/locks.yml
  holdfast alerts --by job --runbook-url https://wiki.example/locks > locks.yml
  holdfast alerts --format grafana > dashboard.json      # import it in Grafana
"""
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@click.command(cls=Command, epilog=EPILOG)
@click.option(
    "--format",
    "form",
    type=click.Choice(["prometheus", "grafana"]),
    default="prometheus",
    show_default=True,
    help="Rules for Prometheus, or a dashboard for Grafana.",
)
@click.option(
    "--by",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="Judge each value of this label on its own, such as job or cluster; may be repeated.",
)
@click.option(
    "--runbook-url",
    metavar="URL",
    help="Where docs/operations.md can be read: each alert links to its part of it.",
)
def alerts(form: str, labels: tuple[str, ...], runbook_url: str | None) -> None:
    """Print recording and alerting rules for locks, thresholds and runbooks included."""
    for label in labels:
        if not LABEL.fullmatch(label):
            raise click.UsageError(f"--by takes the name of a label, not {label!r}.")
    if form == "grafana":
        click.echo(json.dumps(dashboard(), indent=2))
        return
    records, alarms = rules_by(*labels)
    click.echo("\n".join(rules_file(records, alarms, runbook_url)))


def rules_file(
    records: list[Record], alarms: list[Alert], runbook_url: str | None = None
) -> Iterator[str]:
    """Yield the lines of a rules file."""
    yield "# Rules for distributed locks, as printed by `holdfast alerts`."
    yield "groups:"
    yield f"- name: {RECORDING}"
    yield "  rules:"
    for record in records:
        yield f"  - record: {record.name}"
        yield from _expression(record.expression)
    yield f"- name: {ALERTING}"
    yield "  rules:"
    for alert in alarms:
        yield f"  - alert: {alert.name}"
        yield from _expression(alert.expression)
        if alert.wait:
            yield f"    for: {alert.wait}"
        yield "    labels:"
        yield f"      severity: {alert.severity}"
        yield "    annotations:"
        # A string of JSON is one of YAML.
        yield f"      summary: {json.dumps(alert.summary)}"
        yield f"      runbook: {json.dumps(alert.runbook)}"
        if runbook_url:
            link = f"{runbook_url}#{alert.name.lower()}"
            yield f"      runbook_url: {json.dumps(link)}"


def _expression(text: str) -> Iterator[str]:
    yield "    expr: |-"
    for line in text.split("\n"):
        yield f"      {line}"
