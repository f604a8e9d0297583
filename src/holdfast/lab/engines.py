"""The engines of the lab: every harness in `holdfast.testing` that has a name there.

An engine joins by its harness file alone: `holdfast/testing/<anything>harness.py`, with a subclass
of Harness that sets `lab`. `module:Class` names one that is elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from .. import testing
from ..testing import Harness

LEFT_OUT = {
    "memory": "memory:// lives in one process: there is nothing between processes to break. "
    "`python -m holdfast.testing.simulation` is where it is put to the test."
}


def find_engines() -> dict[str, type[Harness]]:
    """Return the harnesses by their name in the lab, in alphabetical order."""
    found: dict[str, type[Harness]] = {}
    for module in pkgutil.iter_modules(testing.__path__):
        if not module.name.endswith("harness"):
            continue
        try:
            members = vars(importlib.import_module(f"{testing.__name__}.{module.name}"))
        except ImportError:
            continue  # its driver is not installed; `load_harness` says so
        for member in members.values():
            if isinstance(member, type) and issubclass(member, Harness) and vars(member).get("lab"):
                found[member.lab] = member
    return dict(sorted(found.items()))


def load_harness(name: str) -> Harness:
    """Return a new harness of this engine; ValueError, in one sentence, if there is none."""
    if name in LEFT_OUT:
        raise ValueError(LEFT_OUT[name])
    if ":" in name:
        module, _, attribute = name.partition(":")
        made: Any = getattr(importlib.import_module(module), attribute)()
        assert isinstance(made, Harness)
        return made
    engines = find_engines()
    if name not in engines:
        known = ", ".join(engines)
        raise ValueError(f"The lab has no engine called {name!r}; it has: {known}.")
    return engines[name]()


def present_engines() -> dict[str, str]:
    """Return all engines, each with what must be installed first, empty if nothing."""
    found = {}
    for name, kind in find_engines().items():
        harness = kind()
        found[name] = harness.missing()
        harness.stop()
    return found
