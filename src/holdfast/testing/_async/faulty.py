"""An engine that wraps another and misbehaves as a plan tells it: for tests of what must survive.

Rule 1: what a call meets is decided by its verb and number (see `faults`), and is written down in
        `calls`; what the inner engine was really asked, and said, is in `executed`.
Rule 2: a request that was sent stays sent: a timeout, a cancel or a withdrawal that comes first
        does not call it back. What is still under way when the engine closes lands just before.
Rule 3: it is never instant, whatever the inner engine is: the client shields what it must.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from ..._async.engine import AsyncEngine, Haste, Notice
from ..._concurrency import AsyncEvent, AsyncWorker, Mutex, asleep
from ...errors import EngineUnavailable, OutcomeUnknown
from ...model import Claim, Grant, Queued, Reason, Renewal, Snapshot
from ..faults import Fault, Plan, Rule, as_plan

INTERRUPTED = (asyncio.CancelledError, KeyboardInterrupt)
LANDING = 5.0  # seconds until a copy that was told to land has done so


READS = ("inspect", "list", "ping")  # without an answer they certainly did nothing


class Call(NamedTuple):
    """One call of a verb: for whom, and what it met."""

    verb: str
    number: int
    about: tuple[str, ...]  # owners, or the key
    fault: str = ""


class Execution(NamedTuple):
    """One request that arrived, and what the inner engine answered (or the type it raised)."""

    call: Call
    answer: Any


class AsyncFaulty(AsyncEngine):
    """Another engine over a link that drops, delays, repeats, reorders or fails."""

    family: str  # type: ignore[misc]  # the inner engine's: tokens come from there

    def __init__(self, engine: AsyncEngine, plan: Plan | Iterable[Rule] = ()) -> None:
        self.inner = engine
        self.family = engine.family
        self.guarantees = engine.guarantees
        self.location = engine.location
        self.calls: list[Call] = []
        self.executed: list[Execution] = []
        self._mutex = Mutex()
        self._numbers: Counter[str] = Counter()
        self._plan = as_plan(plan)
        self._reached: dict[tuple[str, int], AsyncEvent] = {}
        self._flights: list[AsyncWorker] = []
        self._landing = AsyncEvent()
        self._blocking = AsyncEvent()
        self._hushed = AsyncEvent()  # set when nobody is to wait any more

    # --- What tests use. ---

    def follow(self, plan: Plan | Iterable[Rule]) -> None:
        """Go on by another plan; calls are counted on."""
        self._plan = as_plan(plan)

    def count(self, verb: str) -> int:
        """Return how often a verb was called."""
        return self._numbers[verb]

    def answers(self, verb: str) -> list[Any]:
        """Return what the inner engine answered to a verb, in order, heard or not."""
        return [one.answer for one in self.executed if one.call.verb == verb]

    async def reached(self, verb: str, number: int, timeout: float = 5.0) -> bool:
        """Wait until a verb was called that often; False if that takes too long."""
        with self._mutex:
            if self.count(verb) >= number:
                return True
            event = self._reached.setdefault((verb, number), AsyncEvent())
        return await event.wait(timeout)

    async def land(self) -> None:
        """Let every request that is still under way arrive now, and wait until it is executed."""
        with self._mutex:
            landing, self._landing = self._landing, AsyncEvent()
            flights, self._flights = self._flights, []
        landing.set()
        for flight in flights:
            await flight.join(LANDING)

    def unblock(self) -> None:
        """Let every blocked call go on."""
        with self._mutex:
            blocking, self._blocking = self._blocking, AsyncEvent()
        blocking.set()

    # --- The link. ---

    def _begin(self, verb: str, about: tuple[str, ...]) -> tuple[Call, Fault | None]:
        with self._mutex:
            number = self._numbers[verb] = self._numbers[verb] + 1
            fault = self._plan(verb, number)
            call = Call(verb, number, about, "" if fault is None else fault.what)
            self.calls.append(call)
            event = self._reached.pop((verb, number), None)
        if event is not None:
            event.set()
        return call, fault

    async def _send(
        self, verb: str, about: tuple[str, ...], timeout: float, request: Callable[[], Any]
    ) -> Any:
        call, fault = self._begin(verb, about)
        if fault is None:
            return await self._execute(call, request)
        if fault.error is not None:
            raise fault.error
        patience = min(fault.notices, timeout) if fault.obeys else math.inf
        await self._travel(call, fault, patience, request)
        before = self.answers(verb)
        answer = await self._execute(call, request)
        for _ in range(fault.copies - 1):
            await self._execute_unheard(call, request)
        left = patience - (fault.arrives or 0.0)
        if fault.answers > left:
            await asleep(left)
            raise self._unknown(call, "the answer was lost")
        await asleep(fault.answers)
        if not fault.shifted:
            return answer
        if fault.believed and before:
            return before[-1]
        raise self._unknown(call, "the answer was that of another request")

    async def _travel(
        self, call: Call, fault: Fault, patience: float, request: Callable[[], Any]
    ) -> None:
        """Return when the request has arrived; raise if the caller gives up before."""
        arrives = fault.arrives
        try:
            if not fault.obeys:
                await self._blocking.wait(arrives)
                return
            if arrives is not None and arrives <= patience:
                await asleep(arrives)
                return
            await asleep(patience)
        except INTERRUPTED:
            self._fly(call, arrives, request)
            raise
        if arrives is None or arrives < math.inf:
            self._fly(call, None if arrives is None else arrives - patience, request)
        elif fault.refused:
            raise EngineUnavailable(
                f"{self.location} refused the {call.verb}: nothing was sent.", engine=self.location
            )
        raise self._unknown(call, "the request may be under way")

    def _fly(self, call: Call, seconds: float | None, request: Callable[[], Any]) -> None:
        """Let a request that nobody waits for any more arrive later; see rule 2."""
        if seconds == math.inf:
            return
        landing = self._landing

        async def fly() -> None:
            await landing.wait(seconds)
            await self._execute_unheard(call, request)

        flight = AsyncWorker(fly, "faulty-flight")
        flight.start()
        with self._mutex:
            self._flights.append(flight)

    async def _execute(self, call: Call, request: Callable[[], Any]) -> Any:
        try:
            answer = await request()
        except Exception as error:
            self.executed.append(Execution(call, type(error)))
            raise
        self.executed.append(Execution(call, answer))
        return answer

    async def _execute_unheard(self, call: Call, request: Callable[[], Any]) -> None:
        try:
            await self._execute(call, request)
        except Exception:
            pass  # nobody is there to hear it

    def _unknown(self, call: Call, why: str) -> Exception:
        kind = EngineUnavailable if call.verb in READS else OutcomeUnknown
        return kind(
            f"{self.location} gave no answer to the {call.verb}: {why}.", engine=self.location
        )

    # --- The verbs. ---

    async def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See AsyncEngine."""
        answer = await self._send(
            "claim", (claim.owner,), timeout, lambda: self.inner.claim(claim, timeout)
        )
        return cast(Grant | Queued, answer)

    async def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See AsyncEngine."""
        call, fault = self._begin("wait", (claim.owner,))
        if fault is None:
            grant = await self._execute(call, lambda: self.inner.wait(claim, queued, timeout))
            return cast(Grant | None, grant)
        if fault.error is not None:
            raise fault.error
        if fault.arrives == 0.0:
            await asleep(0)
        else:
            await self._hushed.wait(min(fault.arrives or math.inf, fault.notices, timeout))
        if fault.arrives is None or fault.arrives == math.inf:
            raise self._unknown(call, "the link broke while waiting")
        if not fault.pushes:
            await self._hushed.wait(timeout)
            return None
        grant = await self._execute(call, lambda: self.inner.wait(claim, queued, timeout))
        await asleep(0)
        return cast(Grant | None, grant)

    async def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See AsyncEngine."""
        owners = tuple(claim.owner for claim in claims)
        answer = await self._send(
            "renew", owners, timeout, lambda: self.inner.renew(claims, timeout)
        )
        return cast(list[Renewal], answer)

    async def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See AsyncEngine."""
        answer = await self._send(
            "release", (claim.owner,), timeout, lambda: self.inner.release(claim, timeout, linger)
        )
        return cast(bool, answer)

    async def inspect(self, key: str, timeout: float) -> Snapshot:
        """See AsyncEngine."""
        answer = await self._send(
            "inspect", (key,), timeout, lambda: self.inner.inspect(key, timeout)
        )
        return cast(Snapshot, answer)

    async def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See AsyncEngine."""
        answer = await self._send(
            "list", (prefix,), timeout, lambda: self.inner.list(prefix, timeout)
        )
        return cast(Sequence[Snapshot], answer)

    async def force(self, key: str, token: int | None, timeout: float) -> int:
        """See AsyncEngine."""
        answer = await self._send(
            "force", (key,), timeout, lambda: self.inner.force(key, token, timeout)
        )
        return cast(int, answer)

    async def ping(self, timeout: float) -> None:
        """See AsyncEngine."""
        await self._send("ping", (), timeout, lambda: self.inner.ping(timeout))

    def notices(self, callback: Notice) -> None:
        """See AsyncEngine; verb "notice" in the plan: not passed on."""

        def pass_on(owner: str, reason: Reason) -> None:
            _, fault = self._begin("notice", (owner,))
            if fault is None or fault.pushes:
                callback(owner, reason)

        self.inner.notices(pass_on)

    def hastens(self, callback: Haste) -> None:
        """See AsyncEngine."""
        self.inner.hastens(callback)

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None] | None:
        """See AsyncEngine."""
        return self.inner.watch(key, callback)

    def stop_waiting(self) -> None:
        """See AsyncEngine."""
        self._hushed.set()
        self.inner.stop_waiting()

    async def close(self) -> None:
        """See AsyncEngine."""
        self._hushed.set()
        self.unblock()
        await self.land()
        await self.inner.close()

    def after_fork(self) -> None:
        """See AsyncEngine."""
        self._flights = []
        self.inner.after_fork()
