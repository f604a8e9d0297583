"""Cancelling any public coroutine at any suspension leaves nothing held, queued or running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest

import holdfast
from holdfast._async.engines.memory import AsyncMemoryEngine
from holdfast.aio import Client, Engine, Lease
from holdfast.lock_table import LockTable
from holdfast.testing._async.faulty import AsyncFaulty
from holdfast.testing.faults import always, pause
from holdfast.testing.interrupt import Interruption, cancel_at_every_await
from holdfast.testing.losing import lose

BOUND = 2.0  # seconds until what was cancelled is given back; the TTL is 30
SHORT = 0.003  # a wait that is over soon

Call = Coroutine[Any, Any, object]


class Scene:
    """Two clients of one state: one whose caller is cancelled, and a bystander."""

    def __init__(self, faulty: bool) -> None:
        self.before = asyncio.all_tasks()
        self.state = LockTable()
        self.client, self.other = self.make_client(faulty), self.make_client(False)
        self.blocker: Lease | None = None
        self.helper: asyncio.Task[Any] | None = None
        self.waiter: asyncio.Task[Lease | None] | None = None

    def make_client(self, faulty: bool) -> Client:
        engine: Engine = AsyncMemoryEngine("memory://", max_ttl=300.0, state=self.state)
        return Client(AsyncFaulty(engine, always(pause())) if faulty else engine, label="sweep")

    async def take(self, name: str) -> Lease:
        """Hold a lock as the client whose caller will be cancelled."""
        lease = await self.client.lock(name).try_acquire()
        assert lease is not None
        return lease

    async def block(self, name: str) -> Lease:
        """Hold a lock as the bystander."""
        self.blocker = await self.other.lock(name).try_acquire()
        assert self.blocker is not None
        return self.blocker

    async def queue_up(self, name: str) -> None:
        """Let the bystander wait for a lock, and return when it stands in the queue."""
        self.waiter = asyncio.create_task(self.other.lock(name).acquire(timeout=2 * BOUND))
        await self.somebody_waits(name)

    async def somebody_waits(self, name: str) -> None:
        """Return when somebody stands in the queue."""
        changed = asyncio.Event()
        stop = self.state.watch(f"holdfast/1/{name}", changed.set)
        try:
            while not self.state.inspect(f"holdfast/1/{name}").waiters:
                await changed.wait()
                changed.clear()
        finally:
            stop()

    async def unblock_when_queued(self, name: str) -> None:
        """Let the bystander give its lock back as soon as somebody waits for it."""
        lease = await self.block(name)

        async def let_go() -> None:
            await self.somebody_waits(name)
            await lease.release()

        self.helper = asyncio.create_task(let_go())

    async def settle(self) -> None:
        """Fail unless all that is left in the state goes away by itself."""
        if self.helper is not None:
            self.helper.cancel()
            await asyncio.wait([self.helper])
        if self.blocker is not None:
            await self.blocker.release()
        if self.waiter is not None:
            passed_on = await self.waiter
            assert passed_on is not None, "the waiter did not get the lock"
            assert await passed_on.release() is True, "the waiter only believed it had the lock"
        end = time.monotonic() + BOUND
        while left := self.state.list(""):
            assert time.monotonic() < end, f"still there: {left}"
            await asyncio.sleep(0.0002)

    async def close(self) -> None:
        """Fail unless closing ends every task."""
        self.helper = self.waiter = None
        await self.client.close()
        await self.other.close()
        await asyncio.sleep(0)
        assert not asyncio.all_tasks() - self.before
        assert not self.state._watchers


Scenario = Callable[[Scene], Coroutine[Any, Any, Call]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


# --- One lock. ---


@scenario
async def acquire(scene: Scene) -> Call:
    return scene.client.lock("x").acquire()


@scenario
async def acquire_and_tell(scene: Scene) -> Call:
    scene.client.listen(lambda event: None)
    return scene.client.lock("x").acquire()


@scenario
async def try_acquire(scene: Scene) -> Call:
    return scene.client.lock("x").try_acquire()


@scenario
async def try_acquire_in_vain(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.lock("x").try_acquire()


@scenario
async def acquire_in_vain(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.lock("x").acquire(timeout=SHORT)


@scenario
async def acquire_after_waiting(scene: Scene) -> Call:
    await scene.unblock_when_queued("x")
    return scene.client.lock("x").acquire()


@scenario
async def acquire_another_kind(scene: Scene) -> Call:
    await scene.block("x")

    async def call() -> None:
        with suppress(holdfast.LockMismatch):
            await scene.client.semaphore("x", 2).acquire()

    return call()


@scenario
async def with_lock(scene: Scene) -> Call:
    async def call() -> None:
        async with scene.client.lock("x"):
            await asyncio.sleep(0)

    return call()


@scenario
async def with_lock_after_waiting(scene: Scene) -> Call:
    await scene.unblock_when_queued("x")

    async def call() -> None:
        async with scene.client.lock("x"):
            await asyncio.sleep(0)

    return call()


@scenario
async def with_lock_that_is_taken(scene: Scene) -> Call:
    await scene.block("x")

    async def call() -> None:
        with suppress(holdfast.NotAcquired):
            async with scene.client.lock("x", timeout=SHORT):
                pass

    return call()


@scenario
async def with_lock_around_an_error(scene: Scene) -> Call:
    async def call() -> None:
        with suppress(ZeroDivisionError):
            async with scene.client.lock("x"):
                raise ZeroDivisionError

    return call()


@scenario
async def with_lock_that_is_lost(scene: Scene) -> Call:
    async def call() -> None:
        with suppress(holdfast.LeaseLost):
            async with scene.client.lock("x") as lease:
                asyncio.get_running_loop().call_soon(lose, lease, "stolen")
                await asyncio.sleep(BOUND)

    return call()


@scenario
async def with_lease(scene: Scene) -> Call:
    async def call() -> None:
        lease = await scene.client.lock("x").acquire()
        assert lease is not None
        async with lease:
            await asyncio.sleep(0)

    return call()


@scenario
async def reentrant(scene: Scene) -> Call:
    async def call() -> None:
        lock = scene.client.lock("x", reentrant=True)
        async with lock, lock:
            await asyncio.sleep(0)

    return call()


@scenario
async def release(scene: Scene) -> Call:
    return (await scene.take("x")).release()


@scenario
async def release_and_tell(scene: Scene) -> Call:
    scene.client.listen(lambda event: None)
    return (await scene.take("x")).release()


@scenario
async def release_to_a_waiter(scene: Scene) -> Call:
    lease = await scene.take("x")
    await scene.queue_up("x")
    return lease.release()


@scenario
async def extend(scene: Scene) -> Call:
    return (await scene.take("x")).extend(20)


@scenario
async def ensure_held(scene: Scene) -> Call:
    return (await scene.take("x")).ensure_held()


@scenario
async def ensure_held_by_asking(scene: Scene) -> Call:
    lease = await scene.take("x")
    lease._deadline -= 25  # as if it had not been renewed for a while
    return lease.ensure_held(margin=10)


@scenario
async def locked(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.lock("x").locked()


# --- The other kinds. ---


@scenario
async def rwlock(scene: Scene) -> Call:
    async def call() -> None:
        lock = scene.client.rwlock("x")
        async with lock.read():
            await asyncio.sleep(0)
        async with lock.write():
            await asyncio.sleep(0)

    return call()


@scenario
async def semaphore(scene: Scene) -> Call:
    async def call() -> None:
        async with scene.client.semaphore("x", 2):
            await asyncio.sleep(0)

    return call()


@scenario
async def tree(scene: Scene) -> Call:
    async def call() -> None:
        async with scene.client.tree("a/b/c").write():
            await asyncio.sleep(0)

    return call()


@scenario
async def all_of(scene: Scene) -> Call:
    async def call() -> None:
        client = scene.client
        async with client.all_of(client.lock("x"), client.lock("y")):
            await asyncio.sleep(0)

    return call()


@scenario
async def all_of_in_vain(scene: Scene) -> Call:
    await scene.block("y")
    client = scene.client
    return client.all_of(client.lock("x"), client.lock("y")).try_acquire()


@scenario
async def all_of_after_waiting(scene: Scene) -> Call:
    await scene.unblock_when_queued("y")
    client = scene.client
    return client.all_of(client.lock("x"), client.lock("y")).acquire()


@scenario
async def group_lease(scene: Scene) -> Call:
    client = scene.client
    group = await client.all_of(client.lock("x"), client.lock("y")).acquire()
    assert group is not None

    async def call() -> None:
        async with group:
            await group.extend(20)
            await group.ensure_held()

    return call()


@scenario
async def campaign(scene: Scene) -> Call:
    await scene.unblock_when_queued("x")
    return scene.client.election("x", "me").campaign()


@scenario
async def leader(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.election("x", "me").leader()


@scenario
async def lead(scene: Scene) -> Call:
    async def work(lease: Lease) -> int:
        await asyncio.sleep(0)
        return lease.token

    return scene.client.election("x", "me").run(work)


@scenario
async def lead_again_after_a_loss(scene: Scene) -> Call:
    terms: list[int] = []

    async def work(lease: Lease) -> None:
        terms.append(lease.token)
        if len(terms) == 1:
            asyncio.get_running_loop().call_soon(lose, lease)
            await asyncio.sleep(BOUND)

    return scene.client.election("x", "me").run(work)


@scenario
async def observe(scene: Scene) -> Call:
    await scene.block("x")

    async def call() -> None:
        leaders = scene.client.election("x").observe()
        assert await anext(leaders) is not None
        assert scene.blocker is not None
        await scene.blocker.release()
        assert await anext(leaders) is None
        await leaders.aclose()  # type: ignore[attr-defined]

    return call()


@scenario
async def singleton(scene: Scene) -> Call:
    @scene.client.singleton("x")
    async def job() -> None:
        await asyncio.sleep(0)

    async def call() -> None:
        await job()

    return call()


@scenario
async def singleton_elsewhere(scene: Scene) -> Call:
    await scene.block("x")
    return await singleton(scene)


@scenario
async def decorated(scene: Scene) -> Call:
    @scene.client.lock("x")
    async def function() -> None:
        await asyncio.sleep(0)

    async def call() -> None:
        await function()

    return call()


@scenario
async def decorated_by_name(scene: Scene) -> Call:
    @scene.client.lock(lambda number: f"order-{number}")
    async def function(number: int) -> None:
        await asyncio.sleep(0)

    async def call() -> None:
        await function(7)

    return call()


# --- The client. ---


@scenario
async def inspect(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.inspect("x")


@scenario
async def locks(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.locks()


@scenario
async def force_release(scene: Scene) -> Call:
    await scene.block("x")
    return scene.client.force_release("x")


@scenario
async def ping(scene: Scene) -> Call:
    return scene.client.ping()


@scenario
async def close(scene: Scene) -> Call:
    leases = [await scene.take(name) for name in "xyz"]

    async def call() -> None:
        await scene.client.close()
        assert not any(lease.held for lease in leases)

    return call()


@scenario
async def close_while_another_waits(scene: Scene) -> Call:
    await scene.block("x")

    async def wait_in_vain() -> None:
        with suppress(holdfast.ClientClosed):
            await scene.client.lock("x").acquire()

    task = asyncio.create_task(wait_in_vain())
    await scene.somebody_waits("x")

    async def call() -> None:
        await scene.client.close()
        await task

    return call()


@pytest.fixture(autouse=True)
def no_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """Allow only the one that says that what was returned to nobody has been dropped."""
    yield
    assert all(warning.category is ResourceWarning for warning in recwarn)


@pytest.mark.filterwarnings("always::ResourceWarning")
@pytest.mark.parametrize("faulty", [False, True], ids=["memory", "slow"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_cancelled_at_any_suspension(name: str, faulty: bool) -> None:
    """Wherever it is cancelled: the cancel comes out, nothing stays, and the client goes on."""
    problems = asyncio.run(_sweep(name, faulty))
    assert not problems, "\n".join(problems)


async def _sweep(name: str, faulty: bool) -> list[str]:
    scenes: list[Scene] = []
    problems: list[str] = []

    async def prepare() -> Call:
        scenes[:] = [Scene(faulty)]
        return await SCENARIOS[name](scenes[0])

    async def check(outcome: Interruption) -> None:
        scene = scenes.pop()
        try:
            if outcome.thrown:
                assert isinstance(outcome.error, asyncio.CancelledError), repr(outcome.error)
            else:
                assert outcome.error is None, repr(outcome.error)
            if name.startswith("close"):
                await scene.client.close()
            else:
                again = await scene.client.lock("again").try_acquire()
                assert again is not None, "the client is of no use any more"
                assert await again.release() is True
            await scene.settle()
            await scene.close()
        except Exception as problem:
            problems.append(f"suspension {outcome.point}, {outcome.where}: {problem}")

    tried = await cancel_at_every_await(prepare, check)
    assert tried > 0 or not faulty or name == "ensure_held"
    return problems
