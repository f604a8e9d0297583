"""What is known of a lock, as JSON with stable keys and as rows of a table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import click

from ..model import Entry, Family, Mode, Snapshot
from .table import Cell, Row
from .text import duration

MODES = {Mode.EXCLUSIVE: "exclusive", Mode.SHARED: "shared"}
OWNER_SHOWN = 8  # enough to tell owners apart, too little to act in their name

LOCK_HEADERS = ("NAME", "KIND", "HELD BY", "TOKEN", "SINCE", "LEFT", "WAITING")
ENTRY_HEADERS = ("NAME", "", "WHO", "MODE", "TOKEN", "SINCE", "LEFT")


def entry_json(entry: Entry, now: float) -> dict[str, Any]:
    """Return a holder or waiter (whose token is null)."""
    return {
        "label": entry.label,
        "owner": entry.owner[:OWNER_SHOWN],
        "token": entry.token,
        "mode": MODES[entry.mode],
        "path": "/".join(entry.path),
        "value": entry.value,
        "since": round(entry.since, 3),
        "age": round(max(0.0, now - entry.since), 3),
        "expires_in": round(entry.expires_in, 3) if math.isfinite(entry.expires_in) else None,
    }


def snapshot_json(shot: Snapshot, now: float) -> dict[str, Any]:
    """Return a lock; `kind` is null when nobody holds or waits."""
    return {
        "name": shot.name,
        "kind": None if shot.kind is None else str(shot.kind),
        "limit": shot.limit or None,
        "holders": [entry_json(entry, now) for entry in shot.holders],
        "waiters": [entry_json(entry, now) for entry in shot.waiters],
    }


def print_json(document: object, *, lines: bool = False) -> None:
    """Print JSON in pure ASCII: whatever a name contains, no terminal obeys it."""
    click.echo(json.dumps(document, indent=None if lines else 2))


def kind_of(shot: Snapshot) -> str:
    """Return the kind of lock in words."""
    if shot.kind is Family.SEMAPHORE:
        return f"semaphore {len(shot.holders)}/{shot.limit}"
    shared = shot.holders and all(entry.mode is Mode.SHARED for entry in shot.holders)
    return f"{shot.kind}, shared" if shared else str(shot.kind)


def _left(entry: Entry) -> Cell:
    if not math.isfinite(entry.expires_in):
        return Cell("")  # a waiter that the engine keeps as long as its process lives
    if entry.expires_in <= 0:
        return Cell("over", "red")
    return Cell(duration(entry.expires_in), "yellow" if entry.expires_in < 2 else "")


def lock_rows(shots: Sequence[Snapshot], now: float) -> list[Row]:
    """Return one row per lock."""
    rows: list[Row] = []
    for shot in shots:
        first = shot.holders[0] if shot.holders else None
        more = f" and {len(shot.holders) - 1} more" if len(shot.holders) > 1 else ""
        waiting = Cell(str(len(shot.waiters)), "yellow" if shot.waiters else "dim")
        held = (
            (
                Cell(first.label + more, "green"),
                Cell(str(first.token or "")),
                Cell(duration(now - first.since)),
                _left(first),
            )
            if first
            else (Cell("nobody", "yellow"), Cell(""), Cell(""), Cell(""))
        )
        rows.append((Cell(shot.name, "bold"), Cell(kind_of(shot)), *held, waiting))
    return rows


def entry_rows(shots: Sequence[Snapshot], now: float) -> list[Row]:
    """Return one row per holder and waiter, the waiters numbered as they will get it."""
    rows: list[Row] = []
    for shot in shots:
        name = Cell(shot.name, "bold")
        entries = [("holds", "green", entry) for entry in shot.holders]
        waiters = enumerate(shot.waiters, 1)
        entries += [(f"waits {number}", "yellow", entry) for number, entry in waiters]
        for role, style, entry in entries:
            path = f" {'/'.join(entry.path)}" if entry.path else ""
            rows.append(
                (
                    name,
                    Cell(role, style),
                    Cell(entry.label),
                    Cell(MODES[entry.mode] + path),
                    Cell("" if entry.token is None else str(entry.token)),
                    Cell(duration(now - entry.since)),
                    _left(entry),
                )
            )
            name = Cell("")  # once is enough
    return rows
