"""Fixtures that several files of this folder use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if anything is logged, even by the garbage collector; warnings are errors anyway."""
    unraisable: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    yield
    gc.collect()
    sys.unraisablehook = before
    assert not unraisable
    assert [record.getMessage() for record in caplog.records] == []
