"""Bugs of reliability.md §3.6, for workers of the lab: each breaks one rule, in both colours.

A worker calls the function that HOLDFAST_LAB_PLANT names before it does anything else. Not here:
the guard that looks only when it writes, which stands in every run, as a register of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any

from holdfast import clocks, rules
from holdfast.model import Outcome
from holdfast.redis_link import Script
from holdfast.redis_record import keys_of, load_script

LATE = 0.15  # seconds
COLOURS = {"_sync": "", "_async": "Async"}


def modules(path: str) -> list[Any]:
    """Return a module in both colours."""
    return [importlib.import_module(f"holdfast.{colour}.{path}") for colour in COLOURS]


def classes(path: str, name: str) -> list[Any]:
    """Return a class in both colours, sync first."""
    pairs = zip(modules(path), COLOURS.values(), strict=True)
    return [getattr(module, f"{prefix}{name}") for module, prefix in pairs]


def rewrite(name: str, queue: str, *changes: tuple[str, str]) -> Script:
    """Return a script of ours with some of its text replaced."""
    text = load_script(name, queue).text.decode()
    for old, new in changes:
        assert old in text, f"{name}.lua no longer says {old!r}"
        text = text.replace(old, new)
    return Script(name, text)


# --- Releasing. ---


def release_without_owner_check() -> None:
    """DEL, whoever holds."""
    sync, awaitable = classes("engines.redis", "RedisEngine")

    def release(self: Any, claim: Any, timeout: float, linger: float = 0.0) -> bool:
        self.node.command("DEL", keys_of(claim.key)[0], timeout=timeout)
        return True

    async def arelease(self: Any, claim: Any, timeout: float, linger: float = 0.0) -> bool:
        await self.node.command("DEL", keys_of(claim.key)[0], timeout=timeout)
        return True

    sync.release, awaitable.release = release, arelease


def no_release_after_ambiguous_acquire() -> None:
    """An attempt that ends without an answer is forgotten."""
    for renewer in classes("renewal", "Renewer"):
        renewer.give_back = lambda *_, **__: None


# --- Renewing. ---

NOT_HELD = """    settle(r)
    if r.changed then commit(r) end
    answer[#answer + 1] = holders(r) > 0 and 2 or 0
"""
SEAT = """
      r.kind, r.limit = r.kind or 'lock', 0
      local ghost = { owner = owner, ttl = ttl, mode = 'X', channel = '-', path = '.' }
      ghost.rest = '["?","?",""]'
      seat(r, ghost, %s)
      commit(r)
      answer[#answer + 1] = 1
"""


def renew_as_set() -> None:
    """A renewal writes its owner, whoever holds now."""
    seat = SEAT % "mint(r)"
    new = f"for _, h in ipairs({{ unpack(inside(r)) }}) do drop(r, h) end {seat}"
    for module in modules("engines.redis"):
        module.RENEW = rewrite("renew", "granting", (NOT_HELD, new))


def renew_revives_released() -> None:
    """A renewal that comes after the release puts the owner back; and it comes late."""
    seat = SEAT % "r.floor"
    new = f"if holders(r) == 0 then {seat} else {NOT_HELD} end"
    for module in modules("engines.redis"):
        module.RENEW = rewrite("renew", "granting", (NOT_HELD, new))
    sync, awaitable = classes("renewal", "Renewer")
    honest, ahonest = sync._renew, awaitable._renew

    def late(self: Any, leases: Any) -> None:
        time.sleep(LATE)
        honest(self, leases)

    async def alate(self: Any, leases: Any) -> None:
        await asyncio.sleep(LATE)
        await ahonest(self, leases)

    sync._renew, awaitable._renew = late, alate


def watchdog_dies() -> None:
    """The first renewal that fails ends the worker."""
    sync, awaitable = classes("renewal", "Renewer")

    def fragile(self: Any, leases: Any) -> None:
        claims, sent = [lease._claim for lease in leases], self._clock()
        answers = self._runtime.engine.renew(claims, claims[0].ttl / 3)
        for lease, claim, answer in zip(leases, claims, answers, strict=True):
            self._apply(lease, claim, answer, sent)

    async def afragile(self: Any, leases: Any) -> None:
        claims, sent = [lease._claim for lease in leases], self._clock()
        answers = await self._runtime.engine.renew(claims, claims[0].ttl / 3)
        for lease, claim, answer in zip(leases, claims, answers, strict=True):
            self._apply(lease, claim, answer, sent)

    sync._renew, awaitable._renew = fragile, afragile


# --- Time. ---


def deadline_from_reply() -> None:
    """Validity is counted from the answer, not from the request."""
    for module in modules("engines.redis"):
        module.validity = lambda sent, ttl: rules.validity(clocks.boot_clock(), ttl)
        module.pushed_validity = lambda received, ttl, **_: rules.validity(received, ttl)


def wall_clock_deadline() -> None:
    """Deadlines live on a clock that can be set."""
    for kind in (*classes("client", "Client"), *classes("engines.redis", "RedisEngine")):
        kind.__init__.__kwdefaults__["clock"] = lambda: time.time()


def lost_is_reversible() -> None:
    """A renewal that is answered late brings a lost lease back; and it is answered late."""
    from holdfast._async.lease import HELD, LOST

    for renewer in classes("renewal", "Renewer"):
        _revive(renewer, HELD, LOST)
    sync, awaitable = classes("engines.redis", "RedisEngine")
    honest, ahonest = sync.renew, awaitable.renew

    def late(self: Any, *arguments: Any) -> Any:
        answer = honest(self, *arguments)
        time.sleep(LATE)
        return answer

    async def alate(self: Any, *arguments: Any) -> Any:
        answer = await ahonest(self, *arguments)
        await asyncio.sleep(LATE)
        return answer

    sync.renew, awaitable.renew = late, alate


def _revive(renewer: Any, held: int, lost: int) -> None:
    honest = renewer._apply

    def reviving(self: Any, lease: Any, claim: Any, answer: Any, *more: Any, **most: Any) -> None:
        if answer.outcome is Outcome.RENEWED and lease._state == lost:
            lease._state, lease._reason = held, None
            lease._not_after = lease._deadline = self._clock() + claim.ttl
        honest(self, lease, claim, answer, *more, **most)

    renewer._apply = reviving


# --- Connections and processes. ---


def connection_reused_after_time_out() -> None:
    """Who gave up waiting lets the next one have the connection, and the answer."""
    from holdfast.redis_link import blocking
    from holdfast.redis_link.wire import silent

    honest = blocking.Link.call

    def call(self: Any, request: bytes, timeout: float, follow: Any = None) -> Any:
        if follow is not None or not self._idle:
            return honest(self, request, timeout, follow)
        connection = self._idle.pop()
        try:
            return connection.converse(request, timeout)
        except (BlockingIOError, TimeoutError):
            raise silent(self.settings, "in time") from None
        finally:
            self._idle.append(connection)

    blocking.Link.call = call  # type: ignore[method-assign]
    blocking.Link.take = lambda self, now: self._idle.pop() if self._idle else None  # type: ignore[method-assign]


def fork_keeps_lease() -> None:
    """A forked child takes its parent's leases for its own."""
    for keeper in classes("keeper", "Keeper"):
        keeper.disown = lambda self: None


# --- Tokens. ---


def counter_is_forgotten() -> None:
    """Tokens are a plain counter, and the counter goes with the lock."""
    count = ("return math.max(r.floor + 1, now)", "return r.floor + 1")
    forget = ("gone[#gone + 1] = 'm'", "gone[#gone + 1] = 'm' gone[#gone + 1] = 'f'")
    alone = ("if not seen[2] and floor < now and", "if false and")
    let_go = ("redis.call('HDEL', KEYS[1], ARGV[3], 'm')",) * 2
    let_go = (let_go[0], let_go[0].replace("'m'", "'m', 'f'"))
    for module in modules("engines.redis"):
        module.CLAIM = rewrite("claim", "granting", count, forget, alone)
        module.RELEASE = rewrite("release", "granting", count, forget, let_go)


# --- Redlock. ---


def half_is_a_majority() -> None:
    """Redlock is content with half of the nodes, rounded down."""
    for nodes in classes("engines.redlock_nodes", "RedlockNodes"):
        honest = nodes.__init__

        def careless(
            self: Any, settings: Any, clock: Any, quorum: int, *, _honest: Any = honest, **more: Any
        ) -> None:
            _honest(self, settings, clock, len(settings) // 2, **more)

        nodes.__init__ = careless


def redlock_without_floors() -> None:
    """Each client counts by itself, and nodes take any token."""
    proposal = ("if proposal <= r.floor then", "if false then")
    for module in modules("engines.redlock_voting"):
        module.VOTE = rewrite("vote", "hinting", proposal)
    for voting in classes("engines.redlock_voting", "Voting"):
        voting._propose = lambda self, key, now: self._floors.get(key, 0) + 1


# --- ZooKeeper and DynamoDB. ---


def waits_for_lost() -> None:
    """A lease is relied on until ZooKeeper says that the session is lost."""
    for module in modules("zookeeper_session"):
        module.validity = lambda sent, ttl: rules.validity(sent + 3600.0, ttl)


def renewals_are_not_seen() -> None:
    """A holder is taken for dead when it was seen twice, a lease apart, renewed or not."""
    from holdfast.dynamodb_draft import Sight

    honest = Sight.note

    def careless(self: Any, key: str, item: Any, received: float) -> dict[str, float]:
        holders = item.get("h", {}).get("M", {})
        still = {owner: {"M": {**one["M"], "n": {"N": "0"}}} for owner, one in holders.items()}
        return honest(self, key, {**item, "h": {"M": still}}, received)

    Sight.note = careless  # type: ignore[method-assign]
