"""Both colours on one engine: a thread and a task exclude each other as two threads would.

Not part of the generated trees, because it needs both of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, ClassVar

import holdfast
from holdfast import aio

from .harness import Harness
from .running import PATIENCE, Spawned

WORKERS = 3
ROUNDS = 10


class BothColours:
    """Tests of a blocking and an awaitable client at once; a subclass sets `harness`."""

    harness: ClassVar[Harness]

    @classmethod
    def setup_class(cls) -> None:
        """Start the server."""
        cls.harness.start()

    @classmethod
    def teardown_class(cls) -> None:
        """Stop the server."""
        cls.harness.stop()

    @contextmanager
    def _clients(self) -> Iterator[tuple[holdfast.Client, dict[str, Any]]]:
        """Give a blocking client, and what an awaitable one in the same namespace needs."""
        options = {**self.harness.connect_options, "namespace": f"test-{token_hex(6)}"}
        with holdfast.connect(self.harness.url, **options) as client:
            yield client, options

    def test_thread_hands_over_to_task(self) -> None:
        """A task that waits for a thread's lock is let in when the thread lets go."""
        with self._clients() as (client, options):
            lease = client.lock("x").acquire()
            assert lease is not None

            queued = threading.Event()

            async def wait() -> int:
                async with aio.connect(self.harness.url, **options) as other:
                    _tell_when_queued(other, queued)
                    assert await other.lock("x").try_acquire() is None
                    async with other.lock("x", timeout=PATIENCE) as second:
                        return second.token

            waiting = Spawned(asyncio.run, wait())
            assert queued.wait(PATIENCE)
            assert lease.release() is True
            assert waiting.result() > lease.token

    def test_task_hands_over_to_thread(self) -> None:
        """A thread that waits for a task's lock is let in when the task lets go."""
        held, queued = threading.Event(), threading.Event()
        with self._clients() as (client, options):
            _tell_when_queued(client, queued)

            async def hold() -> int:
                async with aio.connect(self.harness.url, **options) as other:
                    async with other.lock("x") as lease:
                        held.set()
                        assert await asyncio.to_thread(queued.wait, PATIENCE)
                        return lease.token

            holding = Spawned(asyncio.run, hold())
            assert held.wait(PATIENCE)
            with client.lock("x", timeout=PATIENCE) as second:
                assert second.token > holding.result()

    def test_tasks_and_threads_exclude_each_other(self) -> None:
        """No increment of an unprotected counter is lost between threads and tasks."""
        counter = 0

        with self._clients() as (client, options):

            def work() -> None:
                nonlocal counter
                for _ in range(ROUNDS):
                    with client.lock("x", timeout=PATIENCE):
                        seen = counter
                        threading.Event().wait(0.0005)
                        counter = seen + 1

            async def work_too(other: aio.Client) -> None:
                nonlocal counter
                for _ in range(ROUNDS):
                    async with other.lock("x", timeout=PATIENCE):
                        seen = counter
                        await asyncio.sleep(0.0005)
                        counter = seen + 1

            async def all_tasks() -> None:
                async with aio.connect(self.harness.url, **options) as other:
                    await asyncio.gather(*(work_too(other) for _ in range(WORKERS)))

            threads = [Spawned(work) for _ in range(WORKERS)]
            tasks = Spawned(asyncio.run, all_tasks())
            for one in (*threads, tasks):
                one.result()
        assert counter == 2 * WORKERS * ROUNDS


def _tell_when_queued(client: holdfast.Client | aio.Client, queued: threading.Event) -> None:
    def hear(event: holdfast.events.Event) -> None:
        if isinstance(event, holdfast.events.Waiting):
            queued.set()

    client.listen(hear)
