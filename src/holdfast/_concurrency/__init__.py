"""The only package that imports asyncio or threading: each primitive in two colours, in pairs.

Async code uses `AsyncX` and `ax`, the generated sync code `X` and `x`; nothing else may differ.

Rule 1: `set`, `ring` and `poke` may be called from any thread, and `ring` and `poke` also from
        `__del__`: they are reentrant (SimpleQueue.put, call_soon_threadsafe) and take no lock.
Rule 2: a wait takes its time-out as an argument; nothing here relies on cancel scopes.
Rule 3: threads are daemons and are started when first needed; after a fork they are simply gone.
"""

from .alarm import Alarm, AsyncAlarm
from .background import (
    AsyncCallbacks,
    AsyncWorker,
    Callbacks,
    Worker,
    ajoin,
    ashield,
    join,
    logger,
    shield,
)
from .caller import (
    AsyncCancelScope,
    CancelScope,
    acheck_function,
    asleep,
    check_function,
    current_task_key,
    current_thread_key,
    sleep,
)
from .home import AsyncHome, Home, hear_of_fork
from .listening import AsyncListener, Listener
from .reader import AsyncReader, Reader
from .waiting import (
    AsyncBell,
    AsyncEvent,
    AsyncSignal,
    AsyncThreadLock,
    Bell,
    Event,
    Mutex,
    Signal,
    ThreadLock,
)

__all__ = [
    "Alarm",
    "AsyncAlarm",
    "AsyncBell",
    "AsyncCallbacks",
    "AsyncCancelScope",
    "AsyncEvent",
    "AsyncHome",
    "AsyncListener",
    "AsyncReader",
    "AsyncSignal",
    "AsyncThreadLock",
    "AsyncWorker",
    "Bell",
    "Callbacks",
    "CancelScope",
    "Event",
    "Home",
    "Listener",
    "Mutex",
    "Reader",
    "Signal",
    "ThreadLock",
    "Worker",
    "acheck_function",
    "ajoin",
    "ashield",
    "asleep",
    "check_function",
    "current_task_key",
    "current_thread_key",
    "hear_of_fork",
    "join",
    "logger",
    "shield",
    "sleep",
]
