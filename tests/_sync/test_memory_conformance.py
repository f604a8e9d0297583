"""(Generated from _async/test_memory_conformance.py by tools/unasync.py: do not edit.) The memory engine does what every engine must do."""

from holdfast.testing import Conformance, MemoryHarness


class TestMemory(Conformance):
    """All of it."""

    harness = MemoryHarness()
