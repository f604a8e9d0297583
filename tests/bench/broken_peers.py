"""Contestants that cannot run, each in its own way; workers find them by their names."""

from __future__ import annotations

import importlib
import os
from typing import NoReturn

from holdfast.bench.contestant import Contestant
from holdfast.bench.handle import Handle


class NotInstalled(Contestant):
    """Its package is missing."""

    name = "not installed"

    def open(self) -> None:
        """Import it."""
        importlib.import_module("no_such_package_at_all")


class Raises(Contestant):
    """It fails when it is used."""

    name = "raises"

    def lock(self, key: str) -> Handle:
        """See Contestant."""

        def acquire() -> NoReturn:
            raise RuntimeError("this store is too old")

        return Handle(acquire, acquire)


class Dies(Contestant):
    """It takes its process with it."""

    name = "dies"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        return Handle(lambda: os._exit(3), lambda: None)
