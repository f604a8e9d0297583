"""Every guard on its real resource: several processes, holders stopped past their TTL.

In each run one write is stale by construction: see contest.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .contest import CONTENDERS, Resource, hold
from .resources.plain_file import PlainFile

RESOURCES: list[type[Resource]] = [PlainFile]
ADDITIONS = int(os.environ.get("HOLDFAST_CONTEST_ADDITIONS", "300"))
UNGUARDED = 30

every_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: one.__name__)


@pytest.mark.slow
@every_resource
def test_no_addition_is_lost_with_the_guard(resource: type[Resource], tmp_path: Path) -> None:
    """Whoever was stopped past its TTL is refused, and the counter says what was added."""
    verdict = hold(resource, tmp_path, ADDITIONS, guarded=True)
    assert verdict.added >= ADDITIONS
    assert verdict.refused >= CONTENDERS, verdict
    assert verdict.lost == 0, verdict


@pytest.mark.slow
@every_resource
def test_an_addition_is_lost_without_it(resource: type[Resource], tmp_path: Path) -> None:
    """The same contest without the guard loses at least the writes that were forced."""
    verdict = hold(resource, tmp_path, UNGUARDED, guarded=False)
    assert verdict.refused == 0
    assert verdict.lost > 0, verdict
