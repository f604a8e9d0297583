"""The SQLite engine does what every engine must do."""

from holdfast.testing import AsyncConformance
from holdfast.testing.harness import SqliteHarness


class TestSqlite(AsyncConformance):
    """All of it."""

    harness = SqliteHarness()
