"""Six locks that one may hold: the same tests must pass through each of them (S2)."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import pytest

import holdfast.aio as holdfast

from ....model import Claim, Family, Mode, Seconds
from ....names import encode, record_key

L_co = TypeVar("L_co", covariant=True)

KINDS = ("lock", "rwlock", "semaphore-1", "semaphore-5", "tree", "election")

every_kind = pytest.mark.parametrize("kind", KINDS)


class AsyncTaker(Protocol[L_co]):
    """What can be taken: a lock of any kind, or several as one."""

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> L_co | None: ...
    async def try_acquire(self) -> L_co | None: ...


class AsyncCandidate:
    """An election, seen as the lock that it is."""

    def __init__(self, election: holdfast.Election) -> None:
        self._election = election

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None
    ) -> holdfast.Lease | None:
        """Campaign."""
        return await self._election.campaign(timeout if blocking else 0)

    async def try_acquire(self) -> holdfast.Lease | None:
        """Campaign, without waiting for the leader to go."""
        return await self._election.campaign(0)


def mutex(
    client: holdfast.Client, kind: str, name: str, **options: Any
) -> AsyncTaker[holdfast.Lease]:
    """Return a lock of that kind: exclusive, once four permits of "semaphore-5" are taken."""
    if kind == "rwlock":
        return client.rwlock(name, **options).write()
    if kind == "semaphore-1":
        return client.semaphore(name, 1, **options)
    if kind == "semaphore-5":
        return client.semaphore(name, 5, **options)
    if kind == "tree":
        return client.tree(f"{name}/leaf", **options).write()
    if kind == "election":
        return AsyncCandidate(client.election(name, "candidate", **options))
    return client.lock(name, **options)


def claim_of(namespace: str, kind: str, name: str) -> Claim:
    """Return what such a lock asks of the engine; owner and TTL are the caller's to fill in."""
    claim = Claim(
        key=record_key(namespace, encode(name)),
        name=name,
        family=Family.LOCK,
        mode=Mode.EXCLUSIVE,
        path=(),
        limit=0,
        ttl=0.0,
        label="claim of a test",
        value="",
        owner="",
        queue=True,
    )
    if kind.startswith("semaphore-"):
        limit = int(kind.removeprefix("semaphore-"))
        return claim._replace(family=Family.SEMAPHORE, mode=Mode.SHARED, limit=limit)
    if kind == "tree":
        return claim._replace(family=Family.TREE, name=f"{name}/leaf", path=("leaf",))
    return claim
