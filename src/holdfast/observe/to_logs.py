"""Lines for a log: one per event, structured, at the level at which somebody should read it.

DEBUG is routine, INFO worth knowing later, WARNING to be looked at by day, ERROR means that
something failed, CRITICAL that somebody should get up: data may be wrong.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from typing import Any

from .. import events
from ..events import Event
from ..model import Reason
from .meter import EXPIRIES

DEBUG, INFO, WARNING, ERROR, CRITICAL = (
    *(logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL),
)

Level = int | Callable[[Any], int]

_MISSED = {"error": ERROR, "timeout": INFO, "busy": INFO, "skipped": DEBUG}
_LOST = dict.fromkeys(EXPIRIES, ERROR) | {
    Reason.FORCED: WARNING,
    Reason.MAX_HOLD: WARNING,
    Reason.CLOSED: INFO,
    Reason.FORKED: INFO,
}

# What each kind of event is called, and at which level it is read.
LINES: dict[type[Event], tuple[str, Level]] = {
    events.Waiting: ("waiting for lock", DEBUG),
    events.Acquired: ("lock acquired", DEBUG),
    events.Renewed: ("lock renewed", DEBUG),
    events.Released: ("lock released", lambda event: WARNING if event.outcome is None else DEBUG),
    events.NodeAnswered: ("server answered", DEBUG),
    events.Accepted: ("write accepted", DEBUG),
    events.Skipped: ("job skipped", INFO),
    events.Missed: ("lock not acquired", lambda event: _MISSED.get(event.result, ERROR)),
    events.Resumed: ("lock resumed", INFO),
    events.Suspended: ("lock suspended", WARNING),
    events.LongWait: ("long wait for lock", WARNING),
    events.Leaked: ("lock dropped without release", WARNING),
    events.Forced: ("lock broken", lambda event: WARNING if event.count else INFO),
    events.Adopted: ("resource adopted", WARNING),
    events.NodeFailed: ("server failed", WARNING),
    events.Deaf: ("server cannot call back", WARNING),
    events.Lost: ("lock lost", lambda event: _LOST.get(event.reason, ERROR)),
    events.ClockStep: ("server clock was set", CRITICAL),
    events.ReleaseGaveUp: ("release gave up", CRITICAL),
    events.Refused: ("write refused", CRITICAL),
}


class Lines:
    """Writes every event of clients and guards to one logger."""

    def __init__(self, logger: logging.Logger | str, as_json: bool) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._as_json = as_json

    def __call__(self, event: Event) -> None:
        """Write one line."""
        what, level = LINES.get(type(event)) or (type(event).__name__, INFO)
        if not isinstance(level, int):
            level = level(event)
        if self._logger.isEnabledFor(level):
            facts = facts_of(event)
            line = _as_object(what, facts) if self._as_json else _as_words(what, facts)
            self._logger.log(level, "%s", line, extra={"holdfast": {"event": what, **facts}})


def facts_of(event: Event) -> dict[str, Any]:
    """Return what there is to say about an event, without what says nothing."""
    facts: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if value == "" or (value is None and field.name != "outcome"):
            continue
        if isinstance(value, Enum):
            value = value.value
        elif isinstance(value, float):
            value = round(value, 6)
        facts[field.name] = value
    return facts


def _as_object(what: str, facts: dict[str, Any]) -> str:
    return json.dumps({"event": what, **facts})


def _as_words(what: str, facts: dict[str, Any]) -> str:
    shown = (f"{key}={_shown(value)}" for key, value in facts.items() if key != "at")
    return f"{what}: {' '.join(shown)}"


def _shown(value: object) -> str:
    """Return a value as one word; what others wrote cannot begin a line of its own."""
    if isinstance(value, str):
        plain = value.isprintable() and not any(sign in value for sign in ' "=')
        return value if plain else json.dumps(value)
    return json.dumps(value)
