"""Fences to show to a guard: such as none takes, and mixtures with what must become of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from holdfast.errors import StaleToken
from holdfast.events import Event, GuardEvent
from holdfast.fencing import Fence, Floors, judge
from holdfast.model import Mode

DOMAIN = "test:locks"

# What is shown, the error, and what its sentence says.
BAD_FENCES: list[tuple[Any, type[Exception], str]] = [
    (Fence(0, DOMAIN), ValueError, "positive number"),
    (Fence(-1, DOMAIN), ValueError, "positive number"),
    (Fence(2**63, DOMAIN), ValueError, "below 2"),
    (Fence(1.0, DOMAIN), TypeError, "not float"),  # type: ignore[arg-type]
    (Fence("1", DOMAIN), TypeError, "not str"),  # type: ignore[arg-type]
    (Fence(True, DOMAIN), TypeError, "not bool"),
    (Fence(1, ""), ValueError, "A domain is"),
    (Fence(1, "a\nb"), ValueError, "A domain is"),
    (Fence(1, DOMAIN, "Z"), ValueError, "A mode is"),  # type: ignore[arg-type]
    (7, TypeError, "takes a lease"),
    (None, TypeError, "takes a lease"),
]

# A higher token and a lower one that doubles, or texts compared as such, would take for equal or
# higher.
NEIGHBOURS = [
    (2**53 + 1, 2**53),
    (10**18 + 1, 10**18),
    (2**63 - 1, 2**63 - 2),
    (10, 9),
    (1000, 999),
]

_NUMBERS = (1, 2, 9, 10, 11, 2**53 - 1, 2**53, 2**53 + 1, 10**18, 10**18 + 1, 2**63 - 1)


def mixture(seed: int, steps: int) -> Iterator[tuple[Fence, Floors | None, bool]]:
    """Yield fences of both kinds, the floors there must be after each, and whether it may in."""
    chance = random.Random(seed)
    floors: Floors | None = None
    highest = 1
    for _ in range(steps):
        highest = min(highest + chance.randrange(2), len(_NUMBERS))
        token = _NUMBERS[chance.randrange(max(0, highest - 3), highest)]
        fence = Fence(token, DOMAIN, chance.choice((Mode.SHARED, Mode.EXCLUSIVE)))
        try:
            floors = judge("x", floors, fence)
        except StaleToken:
            yield fence, floors, False
        else:
            yield fence, floors, True


def told(events: list[Event]) -> list[tuple[str, str, str, str, Mode, int, int]]:
    """Return what a guard has said of those it let in, and of those it did not."""
    return [
        (
            *(type(event).__name__, event.engine, event.name, event.domain),
            *(event.mode, event.seen, event.offered),
        )
        for event in events
        if isinstance(event, GuardEvent)
    ]
