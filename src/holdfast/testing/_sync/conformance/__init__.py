"""(Generated from _async/conformance/__init__.py by tools/unasync.py: do not edit.) The conformance suite: what every engine must do, in one class to inherit from."""

from __future__ import annotations

from .election import ElectionTests
from .ending import EndingTests
from .group import GroupTests
from .jobs import JobTests
from .keeping import KeepingTests
from .listening import ListeningTests
from .looking import LookingTests
from .losing import LosingTests
from .mismatch import MismatchTests
from .mutex import MutexTests
from .naming import NamingTests
from .outages import OutageTests
from .promising import PromisingTests
from .readwrite import ReadWriteTests
from .reentrant import ReentrantTests
from .semaphore import SemaphoreTests
from .sharing import SharingTests
from .tokens import TokenTests
from .tree import TreeTests
from .verbs import VerbTests
from .waiting import WaitingTests


class Conformance(
    PromisingTests,
    VerbTests,
    MutexTests,
    WaitingTests,
    TokenTests,
    NamingTests,
    ReadWriteTests,
    SemaphoreTests,
    TreeTests,
    MismatchTests,
    KeepingTests,
    LosingTests,
    EndingTests,
    OutageTests,
    ReentrantTests,
    SharingTests,
    GroupTests,
    ElectionTests,
    JobTests,
    LookingTests,
    ListeningTests,
):
    """All tests; a subclass sets `harness`, and pytest does the rest."""
