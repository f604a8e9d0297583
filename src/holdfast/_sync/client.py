"""(Generated from _async/client.py by tools/unasync.py: do not edit.) The client: makes every kind of lock on one engine, and owns what keeps them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, overload
from urllib.parse import quote

from .. import dice
from .._concurrency import Home, Listener, join, sleep, hear_of_fork
from ..clocks import Clock, boot_clock
from ..errors import NotSupported
from ..events import Event, Forced
from ..filesystems import default_path
from ..model import (
    Family,
    Guarantees,
    Mode,
    Reason,
    Seconds,
    Snapshot,
    Terms,
    check_limit,
    check_text,
    check_ttl,
    check_wait,
    seconds,
)
from ..names import encode, encode_path, encode_prefix, record_key
from ..registry import load_engine, load_observers, split_options
from ..rules import within
from .engine import Engine
from .lease import Lease, LeaseOptions
from .recipes.election import Election
from .recipes.entrance import Named
from .recipes.group import Group
from .recipes.lock import Lock
from .recipes.rwlock import RWLock, Tree
from .recipes.singleton import Singleton
from .runtime import Runtime

COLOUR = "_sync"

OnLost = Callable[[Lease, Reason], object]
OnChange = Callable[[Lease], object]


def connect(
    url: str | object | None = None,
    *,
    namespace: str = "holdfast",
    ttl: Seconds = 30.0,
    timeout: Seconds | None = None,
    connect_timeout: Seconds = 5.0,
    max_ttl: Seconds = 300.0,
    label: str | None = None,
    domain: str | None = None,
    **options: Any,
) -> Client:
    """Return a client of the engine that `url` names; no I/O before its first use.

    Without a URL it is $HOLDFAST_URL, and without that a file in the user's state directory. In
    place of a URL, a client of redis-py lends its settings; a list of URLs or clients is Redlock.

    `ttl` and `timeout` are the defaults of its locks: how long the engine keeps a lock without
    news from us, and how long we wait for one (None = for ever). Further options are the engine's;
    they may also stand in the URL (`?quarantine=yes`), as may `max_ttl`. $HOLDFAST_OBSERVE names
    listeners from the start: `prometheus,logs` (see holdfast.observe).
    """
    if url is None or url == "":
        url = os.environ.get("HOLDFAST_URL") or f"sqlite://{quote(default_path())}"
    engine_class = load_engine(url, COLOUR)
    url, found = split_options(url, {"max_ttl": float, **engine_class.url_options})
    longest = found.pop("max_ttl", max_ttl)
    engine = engine_class(url, max_ttl=seconds(longest, "max_ttl"), **{**found, **options})
    client = Client(
        engine,
        namespace=namespace,
        ttl=ttl,
        timeout=timeout,
        connect_timeout=connect_timeout,
        label=label,
        domain=domain,
    )
    for observer in load_observers(os.environ):
        client.listen(observer)
    return client


class Client:
    """Locks on one engine, in one namespace. Close it, or use it as a context manager."""

    def __init__(
        self,
        engine: Engine,
        *,
        namespace: str = "holdfast",
        ttl: Seconds = 30.0,
        timeout: Seconds | None = None,
        connect_timeout: Seconds = 5.0,
        label: str | None = None,
        domain: str | None = None,
        clock: Clock = boot_clock,
        entropy: Callable[[int], bytes] = os.urandom,
        chance: Callable[[], float] = dice.chance,
    ) -> None:
        encode(namespace, "namespace")
        self.namespace = namespace
        self._ttl = check_ttl(ttl, engine.guarantees)
        self._timeout = check_wait(timeout)
        self._label = check_text(label or f"{socket.gethostname()}:{os.getpid()}", "label")
        patience = seconds(connect_timeout, "connect_timeout")
        if patience <= 0:
            raise ValueError(f"connect_timeout must be more than 0 seconds, not {patience:g}.")
        self._runtime = Runtime(
            engine,
            namespace=namespace,
            domain=domain or f"{engine.family}:{namespace}",
            connect_timeout=patience,
            clock=clock,
            entropy=entropy,
            chance=chance,
        )
        hear_of_fork(self._runtime)
        Home.close_at_exit(self)

    @property
    def engine(self) -> Engine:
        """The engine behind this client."""
        return self._runtime.engine

    @property
    def guarantees(self) -> Guarantees:
        """What the engine promises, without asking it."""
        return self._runtime.engine.guarantees

    # --- Kinds of lock. ---

    @overload
    def lock(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
        max_hold: Seconds | None = None,
        reentrant: bool = False,
        on_lost: OnLost | None = None,
        on_suspended: OnChange | None = None,
        on_resumed: OnChange | None = None,
        label: str | None = None,
        cancel_on_loss: bool = True,
    ) -> Lock: ...

    @overload
    def lock(self, name: Callable[..., str], **options: Any) -> Named: ...

    def lock(self, name: str | Callable[..., str], **options: Any) -> Lock | Named:
        """Return an exclusive lock; with a function as name, a decorator.

        The function gets the arguments of each decorated call and returns the name to lock.
        """
        if callable(name):
            self._make("name", Family.LOCK, Mode.EXCLUSIVE, **options)  # bad options fail here
            return Named(lambda text: self.lock(text, **options), name)
        return self._make(name, Family.LOCK, Mode.EXCLUSIVE, **options)

    def rwlock(self, name: str, **options: Any) -> RWLock:
        """Return a read-write lock: `.read()` is shared, `.write()` exclusive."""
        return RWLock(name, lambda mode: self._make(name, Family.LOCK, mode, **options))

    def semaphore(self, name: str, limit: int, **options: Any) -> Lock:
        """Return a lock of which `limit` may be held at once; it cannot fence writes."""
        return self._make(name, Family.SEMAPHORE, Mode.SHARED, limit=check_limit(limit), **options)

    def tree(self, path: str, **options: Any) -> Tree:
        """Return a read-write lock on a node `a/b` and all below it."""
        encode_path(path)
        return Tree(path, lambda mode: self._make(path, Family.TREE, mode, **options))

    def all_of(self, *locks: Lock) -> Group:
        """Return one lock over several, also of other clients, taken in one order, all or none."""
        return Group(locks)

    def election(self, name: str, value: str = "", **options: Any) -> Election:
        """Return an election under `name`, in which this candidate announces `value`."""
        text = check_text(value, "value")
        lock = self._make(name, Family.LOCK, Mode.EXCLUSIVE, value=text, **options)
        return Election(self._runtime, lock)

    def singleton(self, name: str, *, at_least: Seconds = 0, **options: Any) -> Singleton:
        """Return a decorator: run the job here, or return SKIPPED because another runs it.

        With `at_least` the job counts as running for that many seconds from its start, so that a
        short one is not run again by a machine whose clock is a little behind.
        """
        shortest = seconds(at_least, "at_least")
        if shortest < 0:
            raise ValueError(f"at_least must be 0 or more seconds, not {shortest:g}.")
        if shortest:
            self.guarantees.require("at_least")
        wanted = {**options, "at_least": shortest, "singleton": True}
        lock = self._make(name, Family.LOCK, Mode.EXCLUSIVE, **wanted)
        return Singleton(self._runtime, lock)

    def _make(
        self,
        name: str,
        family: Family,
        mode: Mode,
        *,
        limit: int = 0,
        value: str = "",
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
        max_hold: Seconds | None = None,
        reentrant: bool = False,
        on_lost: OnLost | None = None,
        on_suspended: OnChange | None = None,
        on_resumed: OnChange | None = None,
        label: str | None = None,
        cancel_on_loss: bool = True,
        at_least: float = 0.0,
        singleton: bool = False,
    ) -> Lock:
        if family is Family.TREE:
            first, *rest = encode_path(name)
        else:
            first, rest = encode(name), []
        hold = None if max_hold is None else seconds(max_hold, "max_hold")
        if hold is not None and hold <= 0:
            raise ValueError(f"max_hold must be more than 0 seconds, not {hold:g}.")
        if reentrant and limit:
            raise NotSupported(
                f"The semaphore {name!r} cannot be re-entered: it has no owner, only permits.",
                name=name,
            )
        wait = check_wait(timeout)
        if wait is None:
            wait = self._timeout
        terms = Terms(
            key=record_key(self.namespace, first),
            name=name,
            family=family,
            mode=mode,
            path=tuple(rest),
            limit=limit,
            ttl=self._ttl if ttl is None else check_ttl(ttl, self.guarantees),
            label=self._label if label is None else check_text(label, "label"),
            value=value,
        )
        options = LeaseOptions(
            hold, on_lost, on_suspended, on_resumed, cancel_on_loss, reentrant, at_least, singleton
        )
        return Lock(self._runtime, terms, options, float("inf") if wait is None else wait)

    # --- Looking, and repairing. ---

    def inspect(self, name: str) -> Snapshot:
        """Show who holds and who waits for `name`, at one instant.

        Of a path in a tree, that is everybody on it, above it or below it.
        """
        self._runtime.ready()
        shot = self._look(encode(name))
        if shot.kind is None and "/" in name:
            first, *rest = encode_path(name)
            tree = self._look(first)
            if tree.kind is Family.TREE:
                return within(tree, name, tuple(rest))
        return shot

    def _look(self, encoded: str) -> Snapshot:
        key = record_key(self.namespace, encoded)
        return self._runtime.engine.inspect(key, self._runtime.connect_timeout)

    def locks(self, prefix: str = "") -> Sequence[Snapshot]:
        """Show every lock of this namespace in use whose name starts with `prefix`."""
        self._runtime.ready()
        key = record_key(self.namespace, encode_prefix(prefix))
        return self._runtime.engine.list(key, self._runtime.connect_timeout)

    def force_release(self, name: str, token: int | None = None) -> int:
        """Break a lock: remove all holders, or the one with `token`; return how many.

        Of a path in a tree, those who hold just that path. The queue stays and moves up. This is
        outside exclusion: the holder may go on working until it hears of it. Its token is then the
        older one, which guards refuse (S16).
        """
        self._runtime.ready()
        if token is not None and (isinstance(token, bool) or not isinstance(token, int)):
            raise TypeError(f"token must be a whole number, not {type(token).__name__}.")
        count = self._break(encode(name), token)
        if not count and "/" in name:
            for entry in (self.inspect(name)).holders:
                if entry.name == name and token in (None, entry.token):
                    count += self._break(encode_path(name)[0], entry.token)
        self._runtime.tell(Forced, name, token=token, count=count)
        return count

    def _break(self, encoded: str, token: int | None) -> int:
        key = record_key(self.namespace, encoded)
        return self._runtime.engine.force(key, token, self._runtime.connect_timeout)

    def listen(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback` for every event, until the returned function is called.

        A plain function is called in a thread of its own, one that awaits on the loop. Whatever it
        does, no lock waits for it: one that raises or blocks is reported once, in the log.
        """
        if not callable(callback):
            raise TypeError(f"A listener must be a function, not {type(callback).__name__}.")
        listener = Listener(callback)
        self._runtime.listeners = [*self._runtime.listeners, listener]

        def stop() -> None:
            left = [one for one in self._runtime.listeners if one is not listener]
            self._runtime.listeners = left
            listener.stop()

        return stop

    def ping(self) -> None:
        """Return if the engine answers, else raise EngineUnavailable."""
        self._runtime.ready()
        self._runtime.engine.ping(self._runtime.connect_timeout)

    # --- The end. ---

    def close(self, timeout: Seconds = 5.0) -> None:
        """Release what is held, end what waits, stop renewal; harmless when repeated."""
        runtime = self._runtime
        end = runtime.clock() + seconds(timeout, "timeout")
        untouched = runtime.untouched
        if not runtime.shut():
            if untouched:  # but its engine may have been asked directly, as doctor does
                runtime.engine.close()
            return
        runtime.engine.stop_waiting()
        leases = runtime.keeper.close()
        while runtime.keeper.leases and runtime.clock() < end:
            sleep(0.002)  # those who were coming in withdraw, those going out finish
        runtime.renewer.close(leases, max(0.0, end - runtime.clock()))
        runtime.keeper.stop()
        join(runtime.tasks, max(0.0, end - runtime.clock()))
        runtime.engine.close()
        runtime.callbacks.drain(max(0.0, end - runtime.clock()))
        for listener in runtime.listeners:
            listener.drain(max(0.0, end - runtime.clock()))
        runtime.to_wind_up = False

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.engine.location} namespace={self.namespace!r}>"
