"""Log lines: one per event, structured, at levels that a night shift agrees with."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

import holdfast
from holdfast import events
from holdfast.model import Mode, Reason
from holdfast.observe import logs
from holdfast.observe.to_logs import LINES

COMMON: dict[str, Any] = {"name": "x", "engine": "redis://r", "namespace": "n", "at": 1.5}
LEASE: dict[str, Any] = {**COMMON, "token": 7, "owner": "o", "label": "host:1"}
GUARD: dict[str, Any] = {
    **COMMON,
    "domain": "d",
    "mode": Mode.EXCLUSIVE,
    "seen": 9,
    "offered": 7,
}


def test_every_kind_of_event_has_a_line() -> None:
    """No event that is told is without a word and a level."""
    told = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, events.Event) and not kind.__subclasses__()
    }
    assert told == set(LINES)


def lost(reason: Reason) -> events.Event:
    """Return a loss."""
    return events.Lost(**LEASE, reason=reason, held_for=1.0)


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (events.Acquired(**LEASE, mode=Mode.EXCLUSIVE, ttl=30.0, waited=0.0), "DEBUG"),
        (events.Released(**LEASE, outcome=True, held_for=1.0), "DEBUG"),
        (events.Released(**LEASE, outcome=None, held_for=1.0), "WARNING"),
        (events.Missed(**COMMON, mode=Mode.SHARED, result="busy", waited=0.0), "INFO"),
        (events.Missed(**COMMON, mode=Mode.SHARED, result="timeout", waited=5.0), "INFO"),
        (events.Missed(**COMMON, mode=Mode.SHARED, result="error", waited=5.0), "ERROR"),
        (events.Missed(**COMMON, mode=Mode.SHARED, result="skipped", waited=0.0), "DEBUG"),
        (events.Suspended(**LEASE, remaining=3.0, error="gone"), "WARNING"),
        (lost(Reason.EXPIRED), "ERROR"),
        (lost(Reason.UNREACHABLE), "ERROR"),
        (lost(Reason.STOLEN), "ERROR"),
        (lost(Reason.FORCED), "WARNING"),
        (lost(Reason.MAX_HOLD), "WARNING"),
        (lost(Reason.CLOSED), "INFO"),
        (events.Forced(**COMMON, token=None, count=1), "WARNING"),
        (events.Forced(**COMMON, token=None, count=0), "INFO"),
        (events.ClockStep(**COMMON, node="r", step=3600.0), "CRITICAL"),
        (events.NodeFailed(**COMMON, node="r", error="gone"), "WARNING"),
        (events.ReleaseGaveUp(**LEASE, error="gone"), "CRITICAL"),
        (events.Accepted(**GUARD), "DEBUG"),
        (events.Refused(**GUARD, error="stale"), "CRITICAL"),
    ],
)
def test_levels(event: events.Event, level: str, caplog: pytest.LogCaptureFixture) -> None:
    """Routine is DEBUG, what fails is ERROR, what may have damaged data is CRITICAL."""
    caplog.set_level(logging.DEBUG, "holdfast.events")
    logs()(event)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.name == "holdfast.events"


def test_line_is_words_or_an_object(caplog: pytest.LogCaptureFixture) -> None:
    """The fields are in the line, as words or as JSON, and in the record for other formatters."""
    caplog.set_level(logging.DEBUG, "holdfast.events")
    event = events.Refused(**GUARD, error="has seen token 9")
    logs()(event)
    logs(as_json=True)(event)
    words, document = caplog.records
    assert words.getMessage() == (
        "write refused: name=x engine=redis://r namespace=n domain=d mode=X seen=9 offered=7 "
        'error="has seen token 9"'
    )
    facts = json.loads(document.getMessage())
    assert facts == vars(document)["holdfast"]
    assert facts["event"] == "write refused"
    assert facts["at"] == 1.5
    assert facts["offered"] == 7


def test_nobody_writes_a_line_of_his_own(caplog: pytest.LogCaptureFixture) -> None:
    """A label with a line break stays in its line."""
    caplog.set_level(logging.DEBUG, "holdfast.events")
    evil = "me\nCRITICAL holdfast: all is lost \x1b[2J"
    logs()(events.Leaked(**{**LEASE, "label": evil}))
    text = caplog.records[0].getMessage()
    assert text.isprintable()
    assert json.dumps(evil) in text


def test_quiet_levels_cost_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody reads is not even put into words."""
    from holdfast.observe import to_logs

    caplog.set_level(logging.INFO, "holdfast.events")
    monkeypatch.setattr(to_logs, "facts_of", None)
    logs()(events.Released(**LEASE, outcome=True, held_for=1.0))
    assert caplog.records == []


def test_lines_of_a_client(caplog: pytest.LogCaptureFixture) -> None:
    """A client that is listened to leaves a line for each thing that happens, in order."""
    caplog.set_level(logging.DEBUG, "shop.locks")
    with holdfast.connect("memory://lines", label="me") as client:
        client.listen(logs(logger="shop.locks"))
        with client.lock("orders/1"):
            assert client.lock("orders/1").try_acquire() is None
    told = [record.getMessage().split(":")[0] for record in caplog.records]
    assert told == ["lock acquired", "lock not acquired", "lock released"]
