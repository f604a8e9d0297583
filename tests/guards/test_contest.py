"""Every guard on its real resource: several processes, holders stopped past their TTL.

In each run one write is stale by construction: see contest.py. `make soak` adds more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .contest import CONTENDERS, Resource, hold
from .resources.dynamodb import DynamoItem, DynamoTransaction
from .resources.file import GuardedFile
from .resources.http import GuardedService
from .resources.plain_file import PlainFile
from .resources.redis import RedisCounter
from .resources.sql import (
    MariaDBInside,
    MariaDBRow,
    PostgresInside,
    PostgresRow,
    SQLiteInside,
    SQLiteRow,
)
from .resources.store import GuardedStore

RESOURCES: list[type[Resource]] = [
    PlainFile,
    *(SQLiteRow, PostgresRow, MariaDBRow),
    *(RedisCounter, DynamoItem, GuardedFile, GuardedStore, GuardedService),
]
# Without the guard they do what one of the others does.
OTHER_FORMS: list[type[Resource]] = [SQLiteInside, PostgresInside, MariaDBInside, DynamoTransaction]
ADDITIONS = int(os.environ.get("HOLDFAST_CONTEST_ADDITIONS", "300"))
UNGUARDED = 30


def name_of(resource: type[Resource]) -> str:
    return resource.__name__


@pytest.mark.slow
@pytest.mark.parametrize("resource", RESOURCES + OTHER_FORMS, ids=name_of)
def test_no_addition_is_lost_with_the_guard(resource: type[Resource], tmp_path: Path) -> None:
    """Whoever was stopped past its TTL is refused, and the counter says what was added."""
    verdict = hold(resource, tmp_path, ADDITIONS, guarded=True)
    assert verdict.added >= ADDITIONS
    assert verdict.refused >= CONTENDERS, verdict
    assert verdict.lost == 0, verdict


@pytest.mark.slow
@pytest.mark.parametrize("resource", RESOURCES, ids=name_of)
def test_an_addition_is_lost_without_it(resource: type[Resource], tmp_path: Path) -> None:
    """The same contest without the guard loses at least the writes that were forced."""
    verdict = hold(resource, tmp_path, UNGUARDED, guarded=False)
    assert verdict.refused == 0
    assert verdict.lost > 0, verdict
