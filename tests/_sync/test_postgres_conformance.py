"""(Generated from _async/test_postgres_conformance.py by tools/unasync.py: do not edit.) The PostgreSQL engine does what every engine must do, directly and through PgBouncer."""

import pytest

from holdfast.testing import Conformance
from holdfast.testing.postgres_harness import PgBouncerHarness, PostgresHarness


class TestPostgres(Conformance):
    """All of it."""

    harness = PostgresHarness()


@pytest.mark.slow
class TestPgBouncer(Conformance):
    """All of it, in transaction mode: nobody is woken, everybody looks."""

    harness = PgBouncerHarness()
