"""The doctor: is this engine set up so that locks are safe? Every finding with its remedy.

A check is a function of a patient (a client) that yields findings. The general ones are in
`general` and `locks`; an engine adds its own by a line in ENGINE_CHECKS, or, if it is not part of
holdfast, by an attribute `doctor_checks = "module:function"` of its class.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from ..errors import LockError
from .finding import Check, Finding, Level, Patient
from .general import promises, reachable, settings, take_and_give_back
from .locks import cycles_of_waits, long_held, nobody_served

__all__ = ["Check", "Finding", "Level", "Patient", "examine"]

# Engine family -> module:function. The function yields findings like any check.
ENGINE_CHECKS = {
    "sqlite": "holdfast.doctor.sqlite:check",
    "redis": "holdfast.doctor.redis:check",
    "redlock": "holdfast.doctor.redlock:check",
    "postgresql": "holdfast.doctor.postgres:check",
    "zookeeper": "holdfast.doctor.zookeeper:check",
    "etcd": "holdfast.doctor.etcd:check",
    "dynamodb": "holdfast.doctor.dynamodb:check",
}

BEFORE: tuple[Check, ...] = (settings,)
AFTER: tuple[Check, ...] = (
    *(take_and_give_back, promises),
    *(cycles_of_waits, nobody_served, long_held),
)


def examine(patient: Patient) -> Iterator[Finding]:
    """Yield all findings: the engine's own first, since they may explain the others.

    A check that raises is a finding itself; without an answer from the engine the rest is skipped.
    """
    own = _engine_check(patient)
    for check in (*BEFORE, *([own] if own else [])):
        yield from _guarded(check, patient)
    answers = list(_guarded(reachable, patient))
    yield from answers
    if not any(finding.level is Level.CRITICAL for finding in answers):
        for check in AFTER:
            yield from _guarded(check, patient)


def _engine_check(patient: Patient) -> Check | None:
    engine = patient.client.engine
    path = ENGINE_CHECKS.get(engine.family) or getattr(engine, "doctor_checks", None)
    if path is None:
        return None
    module, _, name = str(path).partition(":")
    check: Check = getattr(importlib.import_module(module), name)
    return check


def _guarded(check: Check, patient: Patient) -> Iterator[Finding]:
    try:
        yield from check(patient)
    except (LockError, OSError, ValueError) as error:
        yield Finding(
            Level.CRITICAL,
            check.__name__.replace("_", " "),
            f"This could not be examined: {error}",
            "Do what the sentence says, and run the doctor again.",
        )
