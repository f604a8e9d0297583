"""The conformance suite: what every engine must do, in one class to inherit from."""

from __future__ import annotations

from .election import AsyncElectionTests
from .ending import AsyncEndingTests
from .group import AsyncGroupTests
from .jobs import AsyncJobTests
from .keeping import AsyncKeepingTests
from .listening import AsyncListeningTests
from .looking import AsyncLookingTests
from .losing import AsyncLosingTests
from .mismatch import AsyncMismatchTests
from .mutex import AsyncMutexTests
from .naming import AsyncNamingTests
from .outages import AsyncOutageTests
from .promising import AsyncPromisingTests
from .readwrite import AsyncReadWriteTests
from .reentrant import AsyncReentrantTests
from .semaphore import AsyncSemaphoreTests
from .sharing import AsyncSharingTests
from .tokens import AsyncTokenTests
from .tree import AsyncTreeTests
from .verbs import AsyncVerbTests
from .waiting import AsyncWaitingTests


class AsyncConformance(
    AsyncPromisingTests,
    AsyncVerbTests,
    AsyncMutexTests,
    AsyncWaitingTests,
    AsyncTokenTests,
    AsyncNamingTests,
    AsyncReadWriteTests,
    AsyncSemaphoreTests,
    AsyncTreeTests,
    AsyncMismatchTests,
    AsyncKeepingTests,
    AsyncLosingTests,
    AsyncEndingTests,
    AsyncOutageTests,
    AsyncReentrantTests,
    AsyncSharingTests,
    AsyncGroupTests,
    AsyncElectionTests,
    AsyncJobTests,
    AsyncLookingTests,
    AsyncListeningTests,
):
    """All tests; a subclass sets `harness`, and pytest does the rest."""
