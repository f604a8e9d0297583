"""Listeners that make locks visible: metrics, traces, logs. Nothing is imported before it is used.

client.listen(prometheus())     # or HOLDFAST_OBSERVE=prometheus,logs in the environment
guard.listen(prometheus())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import MissingDriver
from ..events import Event
from .patterns import MOST, OTHER, Patterns, Rule, pattern_of

if TYPE_CHECKING:
    import logging

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
    from prometheus_client import CollectorRegistry

Observer = Callable[[Event], None]

VARIABLE = "HOLDFAST_OBSERVE"
PATTERNS = "HOLDFAST_OBSERVE_PATTERNS"

__all__ = [
    "MOST",
    "OTHER",
    "Observer",
    "from_environ",
    "logs",
    "opentelemetry",
    "pattern_of",
    "prometheus",
]


def prometheus(
    *,
    pattern: Rule | None = None,
    most: int = MOST,
    registry: CollectorRegistry | None = None,
) -> Observer:
    """Return a listener for clients and guards that counts into a registry of prometheus_client.

    `pattern` names what a lock's name is counted as: a function, or globs that are tried before
    the rule that is built in (`orders/99999` is `orders/*`). Beyond `most` patterns all the rest
    is `(other)`. Without a registry it is prometheus_client's own.
    """
    patterns = Patterns(pattern, most)
    try:
        from .to_prometheus import PrometheusInstruments
    except ImportError as error:
        raise _missing("prometheus", error) from error
    from .meter import Meter

    return Meter(PrometheusInstruments(registry), patterns)


def opentelemetry(
    *,
    pattern: Rule | None = None,
    most: int = MOST,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Observer:
    """Return a listener that makes spans of acquiring, holding and releasing, and the metrics.

    Spans are children of the span in which the lock was asked for, whatever task or thread
    releases it. Without providers they are the global ones of OpenTelemetry.
    """
    patterns = Patterns(pattern, most)
    try:
        from .to_opentelemetry import OpenTelemetryInstruments, Spans
    except ImportError as error:
        raise _missing("opentelemetry", error) from error
    from .meter import Meter

    trace = Spans(tracer_provider, patterns)
    count = Meter(OpenTelemetryInstruments(meter_provider), patterns)

    def observe(event: Event) -> None:
        trace(event)
        count(event)

    return observe


def logs(*, logger: logging.Logger | str = "holdfast.events", as_json: bool = False) -> Observer:
    """Return a listener that writes one line per event to a logger of the standard library.

    A line is `event key=value …`, or with `as_json` an object; the same fields are in the record,
    as `record.holdfast`. What is routine is DEBUG, what wakes somebody up is CRITICAL.
    """
    from .to_logs import Lines

    return Lines(logger, as_json)


def from_environ(environ: Mapping[str, str]) -> list[Observer]:
    """Return the listeners that HOLDFAST_OBSERVE names, the same ones for the whole process.

    HOLDFAST_OBSERVE_PATTERNS may have globs for names, by comma: `orders/*,users/*/cart`.
    """
    names = [name.strip() for name in environ.get(VARIABLE, "").split(",")]
    return [_shared(name, globs_in(environ)) for name in names if name]


def globs_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the globs of HOLDFAST_OBSERVE_PATTERNS."""
    globs = (glob.strip() for glob in environ.get(PATTERNS, "").split(","))
    return tuple(filter(None, globs))


@cache
def _shared(name: str, globs: tuple[str, ...]) -> Observer:
    options: dict[str, Any] = {"pattern": globs} if globs else {}
    if name == "prometheus":
        return prometheus(**options)
    if name == "opentelemetry":
        return opentelemetry(**options)
    if name == "logs":
        return logs()
    raise ValueError(
        f"{VARIABLE} names prometheus, opentelemetry or logs, several by comma, not {name!r}."
    )


def _missing(extra: str, error: ImportError) -> Exception:
    if (error.name or "").startswith("holdfast"):
        return error
    return MissingDriver(
        f"Observing with {extra} needs {error.name}, which is not installed: "
        f'pip install "holdfast[{extra}]".'
    )
