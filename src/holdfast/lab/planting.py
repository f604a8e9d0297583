"""Planted bugs: a worker that is told so breaks its own library first, so that tests can see
whether the lab would notice. Nothing but tests sets the variable."""

from __future__ import annotations

import importlib
import os

VARIABLE = "HOLDFAST_LAB_PLANT"  # module:function


def plant() -> None:
    """Call the function that the environment names, if it names one."""
    where = os.environ.get(VARIABLE)
    if where:
        module, _, name = where.partition(":")
        getattr(importlib.import_module(module), name)()
