"""Locks that others have written for Redis, as contestants: one may be missing, or fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from .floor import Row
from .redis_servers import no_figure
from .timing import ratio

TTL = 30  # seconds
PATIENCE = 5  # seconds
Pair = Callable[[], object]  # take and give back
MakePair = Callable[[ExitStack, Sequence[str]], Pair]


def why_not(error: Exception) -> str:
    """Return what to say of a peer that raised this."""
    if isinstance(error, ModuleNotFoundError):
        return f"is not installed here ({error.name})"
    return f"failed: {type(error).__name__}: {error}"


def repeated(times: int, pair: Pair) -> Callable[[], None]:
    """Return a function that does it so many times."""

    def run() -> None:
        for _ in range(times):
            pair()

    return run


class Peer:
    """Somebody else's lock, free and uncontended; `problem` says why it has no figure."""

    def __init__(self, name: str, make: MakePair, addresses: Sequence[str]) -> None:
        self.name = name
        self.problem = ""
        self._pair: Pair = lambda: None
        self._stack = ExitStack()
        try:
            self._pair = make(self._stack, addresses)
        except Exception as error:
            self.problem = why_not(error)

    def repeated(self, times: int) -> Callable[[], None]:
        """Return a function that takes and gives back so many times, and never raises."""
        run = repeated(times, self._pair)

        def guarded() -> None:
            if self.problem:
                return
            try:
                run()
            except Exception as error:
                self.problem = why_not(error)

        return guarded

    def row(self, beside: str, floor: list[float], times: list[float]) -> Row:
        """Return its ratio to the floor, or why there is none."""
        what = f"{self.name} / {beside}"
        if self.problem:
            return no_figure(what, self.problem)
        return ratio(what, floor, times, None)

    def close(self) -> None:
        """Close its connections."""
        self._stack.close()


def client(stack: ExitStack, address: str) -> Any:
    """Return redis-py's client, to be closed with the stack."""
    made = import_module("redis").Redis.from_url(f"redis://{address}")
    stack.callback(made.close)
    return made


def redis_py(stack: ExitStack, addresses: Sequence[str]) -> Pair:
    """redis-py's own lock."""
    lock = client(stack, addresses[0]).lock("redis-py", timeout=TTL)

    def pair() -> None:
        lock.acquire()
        lock.release()

    return pair


def python_redis_lock(stack: ExitStack, addresses: Sequence[str]) -> Pair:
    """python-redis-lock."""
    lock = import_module("redis_lock").Lock(client(stack, addresses[0]), "pair", expire=TTL)

    def pair() -> None:
        lock.acquire()
        lock.release()

    return pair


def redlock_py(stack: ExitStack, addresses: Sequence[str]) -> Pair:
    """redlock-py."""
    manager = import_module("redlock").Redlock([client(stack, one) for one in addresses])

    def pair() -> None:
        lock = manager.lock("redlock-py", TTL * 1000)
        if not lock:
            raise RuntimeError("it did not get a lock that nobody holds")
        manager.unlock(lock)

    return pair


def pottery(stack: ExitStack, addresses: Sequence[str]) -> Pair:
    """pottery's Redlock."""
    masters = {client(stack, one) for one in addresses}
    lock = import_module("pottery").Redlock(key="pair", masters=masters, auto_release_time=TTL)

    def pair() -> None:
        # It does not wait for all nodes, so a late one may keep a key that was released before.
        if not lock.acquire(timeout=PATIENCE):
            raise RuntimeError("it did not get a lock that nobody holds")
        lock.release()

    return pair


ON_ONE: dict[str, MakePair] = {
    "redis-py's Lock (no token)": redis_py,
    "python-redis-lock (no token)": python_redis_lock,
}
ON_MANY: dict[str, MakePair] = {
    "redlock-py (no token)": redlock_py,
    "pottery (no token)": pottery,
}
