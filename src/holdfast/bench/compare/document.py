"""The document of a run: what `--json` writes, what reports are made of, what two runs compare.

Times are microseconds unless a figure's unit says otherwise; what is not known is null.
"""

from __future__ import annotations

import math
import types
import typing
from typing import Any, TypedDict

VERSION = 1


class Machine(TypedDict):
    """Where it ran."""

    cores: int
    cpu: str
    system: str
    kernel: str
    python: str


class Settings(TypedDict):
    """What was asked for."""

    engines: list[str]
    peers: bool
    clients: list[int]
    seconds: float
    quick: bool


class Row(TypedDict):
    """One contestant under one load; `problem` says why it has no figures."""

    engine: str
    scenario: str
    label: str
    style: str
    loop: str
    clients: int
    contestant: str
    role: str
    lacks: str
    rounds: int
    figures: dict[str, float | None]
    curve: list[list[float]]  # of acquiring: percent, microseconds
    note: str
    problem: str


class Ratio(TypedDict):
    """What ours costs beside another, from one run: above 1 ours is behind.

    `halves` are the same from the even and from the odd rounds. `few`: it happened too seldom for
    more than which of the two is ahead to be told.
    """

    engine: str
    scenario: str
    label: str
    style: str
    clients: int
    figure: str
    contestant: str
    role: str
    value: float
    halves: list[float]
    stable: bool
    few: bool


class Document(TypedDict):
    """A whole run."""

    version: int
    made: str
    holdfast: str
    machine: Machine
    servers: dict[str, str]
    packages: dict[str, str]
    settings: Settings
    took: float
    rows: list[Row]
    ratios: list[Ratio]


def number(value: float) -> float | None:
    """Return a figure for JSON, which has no word for what is not a number."""
    return round(value, 6) if math.isfinite(value) else None


def faults(document: Any) -> list[str]:
    """Return what is wrong with a document, a sentence each; nothing if it keeps the schema."""
    found = list(_faults("document", document, Document))
    if not found and document["version"] != VERSION:
        found.append(f"document.version is {document['version']}, this holdfast reads {VERSION}")
    return found


def _faults(where: str, value: Any, kind: Any) -> typing.Iterator[str]:
    if typing.is_typeddict(kind):
        yield from _faults_of_fields(where, value, typing.get_type_hints(kind))
        return
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if all(list(_faults(where, value, one)) for one in inside):
            yield f"{where} is {value!r}, not {kind}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{where} is {value!r}, not a list"
            return
        for position, item in enumerate(value):
            yield from _faults(f"{where}[{position}]", item, inside[0])
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{where} is {value!r}, not an object"
            return
        for key, item in value.items():
            yield from _faults(f"{where}.{key}", item, inside[1])
    elif not _is(value, kind):
        yield f"{where} is {value!r}, not {kind.__name__}"


def _faults_of_fields(where: str, value: Any, fields: dict[str, Any]) -> typing.Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is {value!r}, not an object"
        return
    for name in fields.keys() - value.keys():
        yield f"{where} has no {name}"
    for name in value.keys() - fields.keys():
        yield f"{where} has an unknown {name}"
    for name in fields.keys() & value.keys():
        yield from _faults(f"{where}.{name}", value[name], fields[name])


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)
