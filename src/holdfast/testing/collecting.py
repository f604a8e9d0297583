"""Which tests of a suite a harness gets: those whose hooks it has, as functions anyone can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .harness import Harness

F = TypeVar("F", bound=Callable[..., object])

_NEEDS = "holdfast_needs"
_PLAIN = "holdfast_plain"


def needs(*hooks: str) -> Callable[[F], F]:
    """Mark a test that only a harness with these hooks can run."""

    def mark(test: F) -> F:
        setattr(test, _NEEDS, hooks)
        return test

    return mark


def collect(suite: type, harness: Harness, plain: Callable[[Any], Callable[..., None]]) -> None:
    """Give the suite each of its tests as a plain function, or None where a hook is missing.

    In the order of definition, so that the simple ones fail first.
    """
    names = [name for base in suite.__mro__ for name in vars(base)]
    for name in dict.fromkeys(names):
        test = getattr(suite, name)
        if not name.startswith("test_") or test is None or hasattr(test, _PLAIN):
            continue
        if not harness.supports(*getattr(test, _NEEDS, ())):
            setattr(suite, name, None)
            continue
        function = plain(test)
        setattr(function, _PLAIN, True)
        setattr(suite, name, function)
