"""Watching file descriptors: calls a function when one becomes readable or hangs up."""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
from collections.abc import Callable

from .loops import daemon, join_started


class AsyncReader:
    """Readers of the running loop; callbacks run on it."""

    __slots__ = ("_files", "_loop")

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._files: set[int] = set()

    def add(self, file: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever `file` is readable or hung up, until removed."""
        self._files.add(file)
        self._loop.add_reader(file, callback)

    def remove(self, file: int) -> None:
        """Watch `file` no more; do this before closing it."""
        if file in self._files:
            self._files.discard(file)
            if not self._loop.is_closed():
                self._loop.remove_reader(file)

    def close(self) -> None:
        """Watch nothing any more."""
        for file in list(self._files):
            self.remove(file)


class Reader:
    """One thread with a selector, started with the first file; callbacks run on it."""

    __slots__ = ("_callbacks", "_mutex", "_name", "_selector", "_stopped", "_thread", "_wake")

    def __init__(self, name: str) -> None:
        self._name = name
        self._mutex = threading.Lock()
        self._selector: selectors.BaseSelector | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, file: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever `file` is readable or hung up, until removed."""
        with self._mutex:
            if self._stopped:
                return
            if self._selector is None:
                self._selector = selectors.DefaultSelector()
                self._wake = os.pipe()
                self._selector.register(self._wake[0], selectors.EVENT_READ)
                self._thread = daemon(self._run, self._name)
                self._thread.start()
            self._callbacks[file] = callback
            self._selector.register(file, selectors.EVENT_READ)

    def remove(self, file: int) -> None:
        """Watch `file` no more; do this before closing it."""
        with self._mutex:
            if self._callbacks.pop(file, None) is not None and self._selector is not None:
                self._selector.unregister(file)

    def _run(self) -> None:
        selector = self._selector
        while selector is not None and not self._stopped:  # it may be closed before it has begun
            for key, _ in selector.select():
                with self._mutex:
                    callback = self._callbacks.get(key.fd)
                if callback is not None:
                    callback()

    def close(self) -> None:
        """Watch nothing any more, and end the thread."""
        with self._mutex:
            self._stopped = True
            self._callbacks.clear()
            selector, wake, thread = self._selector, self._wake, self._thread
            self._selector = self._wake = None
        if selector is None or wake is None or thread is None:
            return
        os.write(wake[1], b".")
        join_started(thread, 1.0)
        selector.close()
        os.close(wake[0])
        os.close(wake[1])
