"""(Generated from _async/test_redlock_conformance.py by tools/unasync.py: do not edit.) The Redlock engine does what every engine must do, on five servers."""

from holdfast.testing import Conformance
from holdfast.testing.redis_harness import DirectRedlockHarness


class TestRedlock(Conformance):
    """All of it."""

    harness = DirectRedlockHarness()
