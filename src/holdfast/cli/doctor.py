"""`holdfast doctor`: is this engine set up so that locks are safe?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from ..doctor import Finding, Level, Patient, examine
from .base import FOUND_SOMETHING, Command, Where, say, where_options
from .table import console, on_terminal
from .text import safe
from .view import print_json

STYLES = {Level.OK: "green", Level.INFO: "cyan", Level.WARNING: "yellow", Level.CRITICAL: "red"}


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Do the remedies that are marked as fixable.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, with stable keys.")
@where_options
def doctor(where: Where, fix: bool, as_json: bool) -> None:
    """Examine the engine: can it be reached, are locks kept, is it set up safely?

    Takes and gives back a lock whose name starts with `holdfast-doctor`. With Redis and Redlock it
    also tries every right that locks need, and looks at eviction, persistence, replicas and clocks
    of each server. Every finding comes with its remedy.

    Exit code 0: no warnings; 1: there are some.
    """
    with where.connect() as client:
        patient = Patient(client, _source(where))
        findings: list[tuple[Finding, bool]] = []
        for finding in examine(patient):
            fixed = fix and _fix(finding)
            findings.append((finding, fixed))
            if not as_json:
                _print(finding, fixed)
        location, namespace = client.engine.location, client.namespace
    healthy = not any(finding.level.bad and not fixed for finding, fixed in findings)
    if as_json:
        listed = [_json(finding, fixed) for finding, fixed in findings]
        print_json({"engine": location, "namespace": namespace, "ok": healthy, "findings": listed})
    raise SystemExit(0 if healthy else FOUND_SOMETHING)


def _source(where: Where) -> str:
    if where.url is None:
        return "the default, because neither --url nor HOLDFAST_URL is set"
    return "from HOLDFAST_URL" if where.url == os.environ.get("HOLDFAST_URL") else "from --url"


def _fix(finding: Finding) -> bool:
    if finding.fix is None:
        return False
    try:
        finding.fix()
    except OSError as error:
        say(f"{finding.title} could not be fixed: {error}.")
        return False
    return True


def _json(finding: Finding, fixed: bool) -> dict[str, Any]:
    return {
        "level": str(finding.level),
        "title": finding.title,
        "detail": finding.detail,
        "remedy": finding.remedy or None,
        "fixable": finding.fixable,
        "fixed": fixed,
    }


def _lines(finding: Finding, fixed: bool) -> Iterator[str]:
    yield f"{finding.title}: {finding.detail}"
    if fixed:
        yield "Fixed."
    elif finding.remedy:
        fixable = " (holdfast doctor --fix does it)" if finding.fixable else ""
        yield f"{finding.remedy}{fixable}"


def _print(finding: Finding, fixed: bool) -> None:
    lines = [safe(line) for line in _lines(finding, fixed)]
    mark = f"{finding.level:<8}"
    if not on_terminal():
        click.echo("\n".join([f"{mark}  {lines[0]}", *(f"{'':10}{line}" for line in lines[1:])]))
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_row(Text(mark, STYLES[finding.level]), Text(lines[0]))
    for line in lines[1:]:
        grid.add_row("", Text(line, "dim"))
    console().print(grid)
