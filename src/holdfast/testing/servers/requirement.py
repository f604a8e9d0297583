"""What a test does about a server that is not installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from .errors import ServerMissing

T = TypeVar("T")


def need(find: Callable[[], T]) -> T:
    """Return what is found, such as a program; if it is missing, skip the test, or fail it in CI.

    A laptop need not have every server; where nobody looks, a skipped test would go unnoticed.
    """
    try:
        return find()
    except ServerMissing as missing:
        import pytest

        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
