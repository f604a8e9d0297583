"""What every conformance test stands on: clients in a namespace of its own, closed at the end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any, ClassVar, TypeVar

import pytest

import holdfast.aio as holdfast

from ...._concurrency import asleep
from ....model import Claim, Grant
from ...collecting import collect
from ...harness import Harness
from ...running import AsyncRunner, AsyncSpawned
from .kinds import AsyncTaker, claim_of, mutex
from .recorder import AsyncRecorder

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")

CROWD = 4  # permits of "semaphore-5" that are taken before a test begins


class AsyncBase:
    """A test and its clients. Subclasses set `harness`; every test has its own namespace."""

    harness: ClassVar[Harness]
    namespace: str
    client: holdfast.Client  # the one that most tests need
    ttl: float  # short enough to wait for its end

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "harness"):
            collect(cls, cls.harness, AsyncRunner.plain)

    @classmethod
    def setup_class(cls) -> None:
        """Start the server."""
        cls.harness.start()

    @classmethod
    def teardown_class(cls) -> None:
        """Stop the server."""
        cls.harness.stop()

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        self.namespace = f"test-{token_hex(6)}"
        self.ttl = self.harness.shortest_ttl
        self._clients: list[holdfast.Client] = []
        self._crowds: dict[str, list[holdfast.Lease]] = {}
        self.client = self.connect()
        try:
            await test(self, **arguments)
        finally:
            for client in reversed(self._clients):
                await client.close()

    def connect(self, **options: Any) -> holdfast.Client:
        """Return one more client of the engine, in the test's namespace unless told otherwise."""
        chosen = {"namespace": self.namespace, **self.harness.connect_options, **options}
        client = holdfast.connect(self.harness.url, **chosen)
        self._clients.append(client)
        return client

    def listen(self, client: holdfast.Client) -> AsyncRecorder:
        """Hear every event of the client from now on."""
        return AsyncRecorder(client, self.harness.patience)

    def promises(self, name: str) -> bool:
        """Say whether the engine makes this promise; one it does not make must be refused."""
        try:
            self.client.guarantees.require(name)
        except holdfast.NotSupported:
            return False
        return True

    # --- Taking locks. ---

    async def mutex(
        self, kind: str, name: str, client: holdfast.Client | None = None, **options: Any
    ) -> AsyncTaker[holdfast.Lease]:
        """Return the lock under `name`, of whatever kind, that one more may hold."""
        if kind == "semaphore-5" and name not in self._crowds:
            crowd = self._crowds[name] = []
            for _ in range(CROWD):
                crowd.append(await self.take(self.client.semaphore(name, 5)))
        return mutex(client or self.client, kind, name, **options)

    async def take(self, lock: AsyncTaker[T], timeout: float | None = None) -> T:
        """Acquire what must be had, by the end of our patience."""
        lease = await lock.acquire(timeout=self.harness.patience if timeout is None else timeout)
        assert lease is not None, f"{lock!r} was not acquired"
        return lease

    async def queue(
        self, client: holdfast.Client, lock: AsyncTaker[T], timeout: float | None = None
    ) -> AsyncSpawned[T]:
        """Acquire, beside the test, a lock of `client` that is busy; return once it is queued."""
        heard = self.listen(client)
        waiter = AsyncSpawned(self.take, lock, timeout)
        await heard.until(holdfast.events.Waiting)
        heard.stop()
        return waiter

    # --- Talking to the engine. ---

    def claim(self, name: str, kind: str = "lock", **changes: Any) -> Claim:
        """Return a claim for the engine itself, whose lease nobody renews."""
        fields = {"ttl": self.ttl, "owner": token_hex(16), "queue": True, **changes}
        return claim_of(self.namespace, kind, name)._replace(**fields)

    def claim_behind(self, lease: holdfast.Lease) -> Claim:
        """Return the claim of a lease that came from `lock`: with it, it can be taken away."""
        return self.claim(lease.name, owner=lease.owner, ttl=lease.ttl)

    async def grant(self, client: holdfast.Client, claim: Claim) -> Grant:
        """Make a claim on the client's engine that must be granted at once."""
        await client.ping()  # opens it
        answer = await client.engine.claim(claim, self.harness.patience)
        assert isinstance(answer, Grant), f"{claim.name!r} was not granted but {answer}"
        return answer

    async def die_holding(self, claim: Claim) -> Grant:
        """Hold a claim as a process that was killed does: nobody renews or releases it."""
        client = self.connect()
        grant = await self.grant(client, claim)
        if client.guarantees.expiry == "session":
            await client.engine.close()
        return grant

    # --- Waiting. ---

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Return when the condition is true; it must become so."""
        end = time.monotonic() + self.harness.patience
        while not await condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.005)

    async def until_idle(self, name: str) -> None:
        """Return when nobody holds or waits for `name`."""

        async def idle() -> bool:
            return (await self.client.inspect(name)).kind is None

        await self.until(idle)

    async def until_lost(self, lease: holdfast.Lease | holdfast.LeaseGroup) -> None:
        """Return when the lease says that it is lost; it must."""
        assert await lease.lost.wait(self.harness.patience), "the loss was never noticed"

    async def raises(self, kind: type[E], call: Callable[..., Awaitable[Any]], *args: Any) -> E:
        """Return the error that the call must raise."""
        with pytest.raises(kind) as caught:
            await call(*args)
        return caught.value
