"""Ctrl-C anywhere in any public call leaves nothing held, queued or running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import holdfast
from holdfast import Client, Lease
from holdfast._sync.engines.memory import MemoryEngine
from holdfast.lock_table import LockTable
from holdfast.testing.interrupt import Interruption, raise_at_every_line
from holdfast.testing.running import Runner, Spawned

BOUND = 2.0  # seconds until what was interrupted is given back; the TTL is 30
SHORT = 0.003  # a wait that is over soon
TIMER = 0.05  # a TTL after which a waiter that nobody told looks by itself

Call = Callable[[], object]


class Scene:
    """Two clients of one state: one that is interrupted, and a bystander."""

    def __init__(self) -> None:
        self.before = Runner.background()
        self.state = LockTable()
        self.client, self.other = self.make_client(), self.make_client()
        self.blocker: Lease | None = None
        self.waiter: Spawned[Lease | None] | None = None

    def make_client(self) -> Client:
        engine = MemoryEngine("memory://", max_ttl=300.0, state=self.state)
        return Client(engine, label="sweep")

    def take(self, name: str, ttl: float = 30.0) -> Lease:
        """Hold a lock as the client that will be interrupted."""
        lease = self.client.lock(name, ttl=ttl).try_acquire()
        assert lease is not None
        return lease

    def block(self, name: str) -> Lease:
        """Hold a lock as the bystander."""
        self.blocker = self.other.lock(name).try_acquire()
        assert self.blocker is not None
        return self.blocker

    def queue_up(self, name: str) -> None:
        """Let the bystander wait for a lock, and return when it stands in the queue."""
        queued = threading.Event()
        key = f"holdfast/1/{name}"
        stop = self.state.watch(key, queued.set)
        self.waiter = Spawned(self.other.lock(name).acquire, timeout=2 * BOUND)
        while not self.state.inspect(key).waiters:
            assert queued.wait(BOUND)
            queued.clear()
        stop()

    def unblock_when_queued(self, name: str) -> None:
        """Let the bystander give its lock back as soon as somebody waits for it."""
        lease = self.block(name)
        queued = threading.Event()
        stop = self.state.watch(f"holdfast/1/{name}", queued.set)

        def let_go() -> None:
            queued.wait(0.05)  # an interrupted call may never come that far
            stop()
            lease.release()

        self.helper = Spawned(let_go)

    def settle(self) -> None:
        """Fail unless all that is left in the state goes away by itself."""
        if self.blocker is not None:
            self.blocker.release()
        if self.waiter is not None:
            passed_on = self.waiter.result()
            assert passed_on is not None, "the waiter did not get the lock"
            assert passed_on.release() is True, "the waiter only believed it had the lock"
        end = time.monotonic() + BOUND
        while left := self.state.list(""):
            assert time.monotonic() < end, f"still there: {left}"
            time.sleep(0.0002)

    def close(self) -> None:
        """Fail unless closing waits for nobody and ends every thread."""
        started = time.monotonic()
        self.client.close()
        assert time.monotonic() - started < BOUND, "close() waited for somebody who is gone"
        self.other.close()
        for thread in Runner.background() - self.before:
            assert isinstance(thread, threading.Thread)
            thread.join(BOUND)
            assert not thread.is_alive(), f"{thread} is left"


Scenario = Callable[[Scene], Call]
SCENARIOS: dict[str, Scenario] = {}


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


# --- One lock. ---


@scenario
def acquire(scene: Scene) -> Call:
    return scene.client.lock("x").acquire


@scenario
def acquire_and_tell(scene: Scene) -> Call:
    scene.client.listen(lambda event: None)
    return scene.client.lock("x").acquire


@scenario
def try_acquire(scene: Scene) -> Call:
    return scene.client.lock("x").try_acquire


@scenario
def try_acquire_in_vain(scene: Scene) -> Call:
    scene.block("x")
    return scene.client.lock("x").try_acquire


@scenario
def acquire_in_vain(scene: Scene) -> Call:
    scene.block("x")
    lock = scene.client.lock("x")
    return lambda: lock.acquire(timeout=SHORT)


@scenario
def acquire_after_waiting(scene: Scene) -> Call:
    scene.unblock_when_queued("x")
    return scene.client.lock("x", timeout=BOUND).acquire


@scenario
def acquire_another_kind(scene: Scene) -> Call:
    scene.block("x")
    lock = scene.client.semaphore("x", 2)

    def call() -> None:
        with suppress(holdfast.LockMismatch):
            lock.acquire()

    return call


@scenario
def with_lock(scene: Scene) -> Call:
    lock = scene.client.lock("x")

    def call() -> None:
        with lock:
            pass

    return call


@scenario
def with_lock_that_is_taken(scene: Scene) -> Call:
    scene.block("x")
    lock = scene.client.lock("x", timeout=SHORT)

    def call() -> None:
        with suppress(holdfast.NotAcquired), lock:
            pass

    return call


@scenario
def with_lock_around_an_error(scene: Scene) -> Call:
    lock = scene.client.lock("x")

    def call() -> None:
        with suppress(ZeroDivisionError), lock:
            raise ZeroDivisionError

    return call


@scenario
def with_lease(scene: Scene) -> Call:
    lock = scene.client.lock("x")

    def call() -> None:
        lease = lock.acquire()
        assert lease is not None
        with lease:
            pass

    return call


@scenario
def reentrant(scene: Scene) -> Call:
    lock = scene.client.lock("x", reentrant=True)

    def call() -> None:
        with lock, lock:
            pass

    return call


@scenario
def release(scene: Scene) -> Call:
    return scene.take("x").release


@scenario
def release_and_tell(scene: Scene) -> Call:
    scene.client.listen(lambda event: None)
    return scene.take("x").release


@scenario
def release_to_a_waiter(scene: Scene) -> Call:
    lease = scene.take("x", TIMER)
    scene.queue_up("x")
    return lease.release


@scenario
def extend(scene: Scene) -> Call:
    lease = scene.take("x")
    return lambda: lease.extend(20)


@scenario
def ensure_held(scene: Scene) -> Call:
    return scene.take("x").ensure_held


@scenario
def ensure_held_by_asking(scene: Scene) -> Call:
    lease = scene.take("x")
    lease._deadline -= 25  # as if it had not been renewed for a while
    return lambda: lease.ensure_held(margin=10)


@scenario
def locked(scene: Scene) -> Call:
    scene.block("x")
    return scene.client.lock("x").locked


# --- The other kinds. ---


@scenario
def rwlock(scene: Scene) -> Call:
    lock = scene.client.rwlock("x")

    def call() -> None:
        with lock.read():
            pass
        with lock.write():
            pass

    return call


@scenario
def semaphore(scene: Scene) -> Call:
    lock = scene.client.semaphore("x", 2)

    def call() -> None:
        with lock:
            pass

    return call


@scenario
def tree(scene: Scene) -> Call:
    node = scene.client.tree("a/b/c")

    def call() -> None:
        with node.write():
            pass

    return call


@scenario
def all_of(scene: Scene) -> Call:
    client = scene.client
    group = client.all_of(client.lock("x"), client.lock("y"))

    def call() -> None:
        with group:
            pass

    return call


@scenario
def all_of_in_vain(scene: Scene) -> Call:
    scene.block("y")
    client = scene.client
    return client.all_of(client.lock("x"), client.lock("y")).try_acquire


@scenario
def group_lease(scene: Scene) -> Call:
    client = scene.client
    group = client.all_of(client.lock("x"), client.lock("y")).acquire()
    assert group is not None

    def call() -> None:
        with group:
            group.extend(20)
            group.ensure_held()

    return call


@scenario
def campaign(scene: Scene) -> Call:
    return scene.client.election("x", "me").campaign


@scenario
def leader(scene: Scene) -> Call:
    scene.block("x")
    return scene.client.election("x", "me").leader


@scenario
def lead(scene: Scene) -> Call:
    election = scene.client.election("x", "me")
    return lambda: election.run(lambda lease: lease.token)


@scenario
def observe(scene: Scene) -> Call:
    election = scene.client.election("x")

    def call() -> None:
        leaders = election.observe()
        next(leaders)
        leaders.close()  # type: ignore[attr-defined]

    return call


@scenario
def singleton(scene: Scene) -> Call:
    return scene.client.singleton("x")(lambda: 1)


@scenario
def singleton_elsewhere(scene: Scene) -> Call:
    scene.block("x")
    return scene.client.singleton("x")(lambda: 1)


@scenario
def decorated(scene: Scene) -> Call:
    return scene.client.lock("x")(lambda: 1)


@scenario
def decorated_by_name(scene: Scene) -> Call:
    function = scene.client.lock(lambda number: f"order-{number}")(lambda number: number)
    return lambda: function(7)


# --- The client. ---


@scenario
def inspect(scene: Scene) -> Call:
    scene.block("x")
    return lambda: scene.client.inspect("x")


@scenario
def locks(scene: Scene) -> Call:
    scene.block("x")
    return scene.client.locks


@scenario
def force_release(scene: Scene) -> Call:
    scene.block("x")
    return lambda: scene.client.force_release("x")


@scenario
def force_release_to_a_waiter(scene: Scene) -> Call:
    scene.blocker = scene.take("x", TIMER)
    scene.queue_up("x")
    return lambda: scene.client.force_release("x")


@scenario
def ping(scene: Scene) -> Call:
    return scene.client.ping


@scenario
def close(scene: Scene) -> Call:
    leases = [scene.take(name) for name in "xyz"]
    client = scene.client

    def call() -> None:
        client.close()
        assert not any(lease.held for lease in leases)

    return call


@pytest.fixture(autouse=True)
def no_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """A lease that is dropped in mid-air says so; that is allowed here."""
    yield
    for warning in recwarn:
        # An interrupt that hits a finalizer is swallowed by the interpreter, which says so.
        expected = warning.category is ResourceWarning or "raised on purpose" in str(
            warning.message
        )
        assert expected, warning


@pytest.mark.filterwarnings("always::ResourceWarning")
@pytest.mark.parametrize("name", SCENARIOS)
def test_interrupted_anywhere(name: str) -> None:
    """Wherever Ctrl-C hits: it comes out, nothing stays, and the client goes on working."""
    scenes: list[Scene] = []
    problems: list[str] = []

    def prepare() -> Call:
        scenes[:] = [Scene()]
        return SCENARIOS[name](scenes[0])

    def check(outcome: Interruption) -> None:
        scene = scenes.pop()
        try:
            if outcome.thrown and not outcome.swallowed:
                assert isinstance(outcome.error, KeyboardInterrupt), repr(outcome.error)
            else:
                assert outcome.error is None
            if name == "close":
                scene.client.close()
            else:
                again = scene.client.lock("again").try_acquire()
                assert again is not None, "the client is of no use any more"
                clock = scene.client._runtime.keeper._alarm._thread
                assert clock is not None, "nobody looks after its leases"
                assert clock.is_alive(), "nobody looks after its leases any more"
                assert again.release() is True
            scene.settle()
            scene.close()
        except Exception as problem:
            problems.append(f"place {outcome.point}, {outcome.where}: {problem}")
            assert len(problems) < 4, "\n".join(problems)

    tried = raise_at_every_line(prepare, check)
    assert not problems, "\n".join(problems)
    assert tried > 3
