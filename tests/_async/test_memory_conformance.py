"""The memory engine does what every engine must do."""

from holdfast.testing import AsyncConformance, MemoryHarness


class TestMemory(AsyncConformance):
    """All of it."""

    harness = MemoryHarness()
