"""The PostgreSQL engine does what every engine must do, directly and through PgBouncer."""

import pytest

from holdfast.testing import AsyncConformance
from holdfast.testing.postgres_harness import PgBouncerHarness, PostgresHarness


class TestPostgres(AsyncConformance):
    """All of it."""

    harness = PostgresHarness()


@pytest.mark.slow
class TestPgBouncer(AsyncConformance):
    """All of it, in transaction mode: nobody is woken, everybody looks."""

    harness = PgBouncerHarness()
