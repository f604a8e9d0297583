"""A process with clients of any contestant in it: started by `Crew`, talks in lines of JSON.

Each line that it reads is an order; it answers with what came of it, or with {"problem": why}.
Contestants are named by where their class is, `module:Class`, and stay open until `close`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from importlib import import_module
from typing import Any

from ..async_contestant import AsyncContestant, AsyncHandle
from ..contestant import Contestant, Place, why_not
from ..handle import Handle
from .load import TASKS, Load
from .sample import sample_of
from .tasks import run_tasks
from .threads import CLOCK, run_threads

Order = dict[str, Any]
Answer = dict[str, Any]
TURNS_END = 30_000_000_000  # nanoseconds that a fixed number of turns may take


class Worker:
    """The contestants that are open here, and their handles."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._runner = self._stack.enter_context(asyncio.Runner())
        self._blocking: dict[str, Contestant] = {}
        self._awaited: dict[str, tuple[AsyncContestant, AsyncExitStack]] = {}
        self._handles: dict[Any, Any] = {}
        self._kept: list[Handle] = []
        self._opening = threading.Lock()

    def obey(self, order: Order) -> Answer:
        """Do what a line says."""
        actions: dict[str, Callable[[Order], Answer]] = {
            "load": self._load,
            "hold": self._hold,
            "wait": self._wait,
            "keep": self._keep,
            "close": self._close,
        }
        return actions[order["do"]](order)

    # --- A load. ---

    def _load(self, order: Order) -> Answer:
        load = Load(**order["load"])
        if load.style == TASKS:
            return self._runner.run(self._load_tasks(order, load))
        contestant = self._open(order)
        clients = range(load.first, load.first + load.clients)
        handles = [self._handles_of(order, contestant, load, client) for client in clients]
        start, begin, end = _agree(order, load)
        turns, unserved = run_threads(load, handles, start, end)
        if load.turns is not None:
            end = CLOCK()
        sample = sample_of(load, turns, begin, end)
        sample.unserved = unserved
        return sample.document()

    def _handles_of(
        self, order: Order, contestant: Contestant, load: Load, client: int
    ) -> tuple[Handle, ...]:
        names = [load.key(client, number) for number in range(load.locks)]
        where = (_identity(order), client, load.reads is None, *names)
        if where not in self._handles:
            if load.reads is None:
                made = tuple(contestant.lock(name) for name in names)
            else:
                made = contestant.modes(f"mixed/{names[0]}")
            self._handles[where] = made
        found: tuple[Handle, ...] = self._handles[where]
        return found

    async def _load_tasks(self, order: Order, load: Load) -> Answer:
        identity = _identity(order)
        if identity not in self._awaited:
            stack = AsyncExitStack()
            opened = _find(order["who"])(stack, Place(*order["place"]), order["ttl"])
            await opened.open()
            self._awaited[identity] = opened, stack
        contestant, _ = self._awaited[identity]
        handles: list[AsyncHandle] = []
        for client in range(load.clients):
            where = (identity, "task", client, load.key(client))
            if where not in self._handles:
                self._handles[where] = await contestant.lock(load.key(client))
            handles.append(self._handles[where])
        start, begin, end = _agree(order, load)
        turns = await run_tasks(load, handles, start, end)
        return sample_of(load, turns, begin, end).document()

    def _open(self, order: Order) -> Contestant:
        identity = _identity(order)
        with self._opening:
            if identity not in self._blocking:
                kind = _find(order["who"])
                self._blocking[identity] = kind(self._stack, Place(*order["place"]), order["ttl"])
            return self._blocking[identity]

    # --- A holder that is killed, and those who wait for what it has. ---

    def _hold(self, order: Order) -> Answer:
        """Take a lock of each contestant, and keep it for as long as this process lives."""

        def hold(one: Order) -> None:
            handle = self._take(one)
            self._kept.append(handle)  # some give back what nobody refers to any more
            handle.acquire()

        return {"problems": _for_each(order, hold)}

    def _wait(self, order: Order) -> Answer:
        """Take a lock of each contestant, all at the same time; say when each was had."""
        held: list[tuple[str, int]] = []
        handles: list[tuple[Order, Handle]] = []

        def prepare(one: Order) -> None:
            handles.append((one, self._take(one)))

        def wait(one: Order) -> None:
            handle = next(handle for its, handle in handles if its is one)
            handle.acquire()
            held.append((one["who"], CLOCK()))
            handle.release()

        problems = _for_each(order, prepare)
        _say({"ready": True})
        problems |= _for_each({"orders": [one for one, _ in handles]}, wait)
        return {"held": held, "problems": problems}

    def _take(self, order: Order) -> Handle:
        return self._open(order).lock(order["key"])

    # --- Leases that are kept. ---

    def _keep(self, order: Order) -> Answer:
        """Take as many leases as it can in time, and say what keeping them costs."""
        from .ours import Ours

        opened = self._open(order)
        assert isinstance(opened, Ours)
        end = time.monotonic() + order["patience"]
        leases = []
        for number in range(order["leases"]):
            lease = opened.client.lock(f"kept/{number}", ttl=order["ttl"]).acquire()
            assert lease is not None
            leases.append(lease)
            if time.monotonic() > end:
                break
        _say({"ready": True})
        sys.stdin.readline()
        before, started = time.process_time(), time.monotonic()
        time.sleep(order["seconds"])
        busy, passed = time.process_time() - before, time.monotonic() - started
        kept = sum(lease.held for lease in leases)
        _say({"leases": len(leases), "kept": kept, "busy": busy, "passed": passed})
        for lease in leases:
            lease.release()
        return {}

    def _close(self, order: Order) -> Answer:
        """Close all contestants; their problems with that are no news."""
        self._handles.clear()
        for _, awaited in self._awaited.values():
            try:
                self._runner.run(awaited.aclose())
            except Exception:
                pass
        self._awaited.clear()
        self._blocking.clear()
        stack, self._stack = self._stack, ExitStack()
        try:
            stack.close()
        except Exception:
            pass
        self._runner = self._stack.enter_context(asyncio.Runner())
        return {}


def _for_each(order: Order, action: Callable[[Order], object]) -> dict[str, str]:
    """Do it for all orders at once, a thread each; return the problems by contestant."""
    problems: dict[str, str] = {}

    def guarded(one: Order) -> None:
        try:
            action(one)
        except Exception as error:
            problems[one["who"]] = why_not(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in order["orders"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def _find(who: str) -> Any:
    module, _, name = who.partition(":")
    return getattr(import_module(module), name)


def _identity(order: Order) -> str:
    return json.dumps([order["who"], order["place"], order["ttl"]])


def _agree(order: Order, load: Load) -> tuple[int, int, int]:
    """Say that all is prepared, and hear when to start, when to count, when to end."""
    _say({"ready": True})
    start = int(sys.stdin.readline())
    if load.turns is not None:
        return start, start, start + TURNS_END
    begin = start + int(order["warm"] * 1e9)
    return start, begin, begin + int(order["seconds"] * 1e9)


def _say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Obey until there are no more orders."""
    warnings.simplefilter("ignore")  # others' business, and it costs time
    logging.disable(logging.CRITICAL)
    worker = Worker()
    for line in sys.stdin:
        try:
            answer = worker.obey(json.loads(line))
        except BaseExceptionGroup as group:
            answer = {"problem": why_not(_first(group))}
        except Exception as error:
            answer = {"problem": why_not(error)}
        _say(answer)
    # Nothing is worth being closed in order: servers and files are thrown away as well.
    os._exit(0)


def _first(group: BaseExceptionGroup[BaseException]) -> Exception:
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, Exception) else RuntimeError(str(first))


if __name__ == "__main__":
    main()
