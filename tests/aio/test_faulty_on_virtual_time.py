"""Faulty engines on virtual time: long waits cost nothing, and a seed decides what goes wrong."""

from __future__ import annotations

import asyncio
import random

import pytest

from holdfast import EngineUnavailable, aio
from holdfast.lock_table import LockTable
from holdfast.testing._async.faulty import AsyncFaulty
from holdfast.testing.faults import (
    Plan,
    block,
    delay,
    drop,
    late,
    lose_push,
    lose_reply,
    out_of_turn,
    random_plan,
    twice,
)
from holdfast.testing.loop import run
from holdfast.testing.virtual import virtual_client, virtual_state

TTL = 10.0
FAULTS = [
    drop(),
    drop(0.0, refused=True),
    delay(1.0, 1.0),
    delay(4.0),
    lose_reply(),
    lose_reply(2.0),
    late(3.0),
    late(20.0),
    twice(),
    out_of_turn(),
    block(15.0),
    lose_push(),
]


def faulty_client(state: LockTable, plan: Plan) -> tuple[aio.Client, AsyncFaulty]:
    inner = virtual_client(state).engine
    faulty = AsyncFaulty(inner, plan)
    clock = asyncio.get_running_loop().time
    return aio.Client(faulty, clock=clock, chance=random.Random(1).random, ttl=TTL), faulty


def test_a_blocked_renewal_delays_no_loss() -> None:
    """Blocked for 3 TTL, and still each lease ends at its own deadline, to the millisecond."""

    async def main() -> None:
        client, _ = faulty_client(
            virtual_state(), lambda verb, _: block(3 * TTL) if verb == "renew" else None
        )
        clock = asyncio.get_running_loop().time
        leases = [await client.lock(f"x{ttl}", ttl=ttl).acquire() for ttl in (8, 10, 12)]
        for lease in leases:
            assert lease is not None
            deadline = lease._deadline
            await lease.lost.wait()
            assert 0 <= clock() - deadline < 0.001
            assert lease.lost_reason == "unreachable"
        await client.close()

    run(main())


def test_a_request_that_lands_minutes_later() -> None:
    """Its owner was withdrawn long ago: nothing is held."""

    async def main() -> None:
        state = virtual_state()
        client, faulty = faulty_client(
            state, lambda verb, number: late(120.0) if (verb, number) == ("claim", 1) else None
        )
        with pytest.raises(EngineUnavailable):
            await client.lock("x").try_acquire()
        await asyncio.sleep(200)
        assert len(faulty.answers("claim")) == 1
        assert state.list("") == []
        await client.close()

    run(main())


@pytest.mark.parametrize("seed", range(40))
def test_any_mixture_of_faults(seed: int) -> None:
    """Never two holders, tokens that rise, and all is free one TTL after the faults are over."""
    run(mixture(seed), seed=seed, time_limit=36_000)


async def mixture(seed: int) -> None:
    """Let four clients work on two locks for a while."""
    state = virtual_state()
    chance = random.Random(seed)
    believed: dict[str, list[aio.Lease]] = {"x": [], "y": []}
    clients = [
        faulty_client(state, random_plan(seed * 10 + number, FAULTS, rate=0.25))
        for number in range(4)
    ]

    async def work(client: aio.Client) -> None:
        for _ in range(12):
            name = chance.choice("xy")
            try:
                lease = await client.lock(name).acquire(timeout=chance.choice((0, 5, 60)))
            except EngineUnavailable:
                continue
            if lease is None:
                continue
            assert not any(other.held for other in believed[name]), "two holders"
            assert all(other.token < lease.token for other in believed[name]), "a token went back"
            believed[name].append(lease)
            await lease.lost.wait(chance.uniform(0, 2 * TTL))
            await lease.release()

    await asyncio.gather(*(work(client) for client, _ in clients))
    assert sum(map(len, believed.values())) > 5
    for _, faulty in clients:
        faulty.follow(())
        faulty.unblock()
        await faulty.land()
    await asyncio.sleep(TTL + 7)  # a release is repeated every 6.4 s at the latest
    assert state.list("") == []
    for client, _ in clients:
        await client.close()
