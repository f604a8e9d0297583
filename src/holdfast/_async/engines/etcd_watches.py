"""Watches on etcd keys: one stream for all of a client's, opened again wherever it breaks.

Rule 1: a watch begins after the revision at which its keys were last read, and goes on there on
        every new stream: no change is missed, whichever member tells.
Rule 2: who cannot be told any more, because etcd has forgotten so far back, hears None: look again.
Rule 3: `hear` may be called from any thread, must not block, and hears of deletes, unless it asked
        for more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dice
from ..._concurrency import AsyncBell, AsyncWorker, Mutex, logger
from ...errors import LockError
from ...etcd_link import AsyncLink, AsyncWatchStream
from ...etcd_link import messages as m
from ...rules import backoff

NO_PUTS = 0  # a filter
OPEN_TIMEOUT = 5.0  # seconds to log in
JOIN_PATIENCE = 2.0
FROM_NOW = -1  # as a revision: whatever was before is no matter

Hear = Callable[[Any], None]  # an event; None = changes may have been missed


class Watch:
    """One range of keys, and who wants to hear of changes there."""

    __slots__ = ("end", "hears", "key", "next", "number", "puts")

    def __init__(self, number: int, key: bytes, end: bytes, revision: int, puts: bool) -> None:
        self.number = number
        self.key = key
        self.end = end
        self.next = revision + 1  # the first revision not heard of yet
        self.puts = puts
        self.hears: list[Hear] = []

    def request(self) -> Any:
        """Return what starts it on a stream."""
        create = m.WatchCreateRequest(
            key=self.key,
            range_end=self.end,
            start_revision=self.next,
            filters=[] if self.puts else [NO_PUTS],
            prev_kv=not self.puts,  # of who left one wants to know whose it was
            watch_id=self.number,
        )
        return m.WatchRequest(create_request=create)


class AsyncWatches:
    """All watches of a client."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self._mutex = Mutex()
        self._numbers = 0
        self._watches: dict[int, Watch] = {}
        self._by_range: dict[tuple[bytes, bytes, bool], Watch] = {}
        self._stream: AsyncWatchStream | None = None
        self._stopped = False
        self._bell = AsyncBell()
        self._worker = AsyncWorker(self._work, "holdfast-etcd-watches")

    def add(
        self, key: bytes, end: bytes, revision: int, hear: Hear, *, puts: bool = False
    ) -> Callable[[], None]:
        """Hear of changes after `revision`, until the returned function is called."""
        missed = False
        with self._mutex:
            watch = self._by_range.get((key, end, puts))
            if watch is None:
                self._numbers += 1
                watch = Watch(self._numbers, key, end, revision, puts)
                self._watches[watch.number] = self._by_range[key, end, puts] = watch
                if self._stream is not None:
                    self._stream.send(watch.request())
            else:
                # It may have heard what the newcomer has not.
                missed = FROM_NOW < revision < watch.next - 1
            watch.hears.append(hear)
        self._worker.start()
        if missed:
            hear(None)

        def stop() -> None:
            self._remove(watch, hear)

        return stop

    def _remove(self, watch: Watch, hear: Hear) -> None:
        with self._mutex:
            if hear in watch.hears:
                watch.hears.remove(hear)
            if watch.hears or self._watches.get(watch.number) is not watch:
                return
            self._drop(watch)
            if self._stream is not None:
                cancel = m.WatchCancelRequest(watch_id=watch.number)
                self._stream.send(m.WatchRequest(cancel_request=cancel))

    def _drop(self, watch: Watch) -> None:
        self._watches.pop(watch.number, None)
        self._by_range.pop((watch.key, watch.end, watch.puts), None)

    # --- The one who reads. ---

    async def _work(self) -> None:
        attempt = 0
        while not self._stopped:
            if await self._follow():
                attempt = 0
            if not self._stopped:
                await self._bell.wait(backoff(attempt, dice.chance()))
                attempt += 1

    async def _follow(self) -> bool:
        """Read one stream to its end; say whether anything came."""
        try:
            stream = await self._link.watch(OPEN_TIMEOUT)
        except LockError:
            return False
        with self._mutex:
            if self._stopped:
                stream.cancel()
                return False
            self._stream = stream
            for watch in self._watches.values():
                stream.send(watch.request())
        heard = False
        while (response := await stream.read()) is not None:
            heard = True
            self._hear(response)
        with self._mutex:
            self._stream = None
        stream.cancel()
        return heard

    def _hear(self, response: Any) -> None:
        with self._mutex:
            watch = self._watches.get(response.watch_id)
            if watch is None:
                return
            if response.canceled:
                self._drop(watch)
            if response.events:
                watch.next = response.events[-1].kv.mod_revision + 1
            hears = list(watch.hears)
        for event in [*response.events, *([None] if response.canceled else [])]:
            for hear in hears:
                try:
                    hear(event)
                except Exception:
                    logger.exception("A watch on etcd failed unexpectedly; it goes on.")

    # --- The end. ---

    async def close(self) -> None:
        """End the stream."""
        with self._mutex:
            self._stopped = True
            stream = self._stream
        if stream is not None:
            stream.cancel()
        self._bell.ring()
        await self._worker.join(JOIN_PATIENCE)
