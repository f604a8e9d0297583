"""(Generated from _async/test_sqlite_conformance.py by tools/unasync.py: do not edit.) The SQLite engine does what every engine must do."""

from holdfast.testing import Conformance
from holdfast.testing.harness import SqliteHarness


class TestSqlite(Conformance):
    """All of it."""

    harness = SqliteHarness()
