"""The Redlock engine does what every engine must do, on five servers."""

from holdfast.testing import AsyncConformance
from holdfast.testing.redis_harness import DirectRedlockHarness


class TestRedlock(AsyncConformance):
    """All of it."""

    harness = DirectRedlockHarness()
