"""What tests of locks need: shipped, so that users can test with it too."""

from . import faults
from ._async.conformance import AsyncConformance
from ._async.faulty import AsyncFaulty
from ._sync.conformance import Conformance
from ._sync.faulty import Faulty
from .both_colours import BothColours
from .harness import Harness, MemoryHarness
from .interrupt import Interruption, cancel_at_every_await, raise_at_every_line
from .losing import lose

__all__ = [
    "AsyncConformance",
    "AsyncFaulty",
    "BothColours",
    "Conformance",
    "Faulty",
    "Harness",
    "Interruption",
    "MemoryHarness",
    "cancel_at_every_await",
    "faults",
    "lose",
    "raise_at_every_line",
]
