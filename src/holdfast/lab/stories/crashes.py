"""Stories of servers and holders that crash, and of a server whose clock jumps."""

from __future__ import annotations

from ..player import Player
from ..stage import Contrast, Stage
from .story import story

STOCK = "stock/42"
TWO = (
    "A server that forgets a lock gives it to the next one who asks, while the first still relies "
    "on it. The tokens rise all the same, as they follow the clock: the guard knows who is older."
)


def _both_hold(stage: Stage, a: Player, b: Player) -> None:
    """Let B in, though A relies on its lock, and both write; A hears of it when it renews."""
    b.acquire(STOCK)
    a.look()
    b.read(STOCK)
    stage.wait(0.1)
    a.write(STOCK)
    b.write(STOCK)
    stage.wait(0.3)
    a.look()
    b.release()


@story("crash-restart", "The lock server crashes and comes back without its data", TWO)
def crash_restart(stage: Stage) -> None:
    """Redis as it is installed: what was not on disk is gone."""
    redis = stage.redis()
    a, b = stage.players(redis, "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    with stage.fault("forget", "The server is killed, and comes back with nothing."):
        redis.restart(keep_data=False)
    _both_hold(stage, a, b)


@story(
    "failover", "The lock server dies, and a replica takes over that missed the last writes", TWO
)
def failover(stage: Stage) -> None:
    """Replication is asynchronous: the last writes may be missing."""
    redis = stage.redis("fail_over")
    part = redis.parts()[0]
    a, b = stage.players(redis, "A", "B")
    stage.begin()
    with stage.fault("failover", "The replica lags behind. The server dies; the replica is in."):
        part.part_replica()
        a.acquire(STOCK)
        a.read(STOCK)
        part.fail_over()
    _both_hold(stage, a, b)


@story("clock-jump", "The wall clock of the lock server is set ahead by an hour", TWO)
def clock_jump(stage: Stage) -> None:
    """Redis counts TTLs by its wall clock: to it, an hour is over."""
    redis = stage.redis("step_clock")
    a, b = stage.players(redis, "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    with stage.fault("server-clock", "The server's clock is set ahead by an hour."):
        redis.parts()[0].step_clock(3600)
        _both_hold(stage, a, b)
    redis.parts()[0].step_clock(0)


@story(
    "crashed-holder",
    "A holder is killed with the lock in its hands",
    "Nobody has to clean up: the lock is free one TTL after its last renewal, and nothing was "
    "written twice. What was half done, the next one finds, and must be able to go on from.",
)
def crashed_holder(stage: Stage) -> None:
    """kill -9, an out-of-memory killer, a power cut."""
    a, b = stage.players(stage.redis(), "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    b.ask_for(STOCK)
    with stage.fault("kill", "A is killed."):
        stage.killed(a)
    b.gets(STOCK)
    b.work(STOCK)
    b.release()
    stage.contrast = Contrast(
        "1 update was acknowledged, none lost: the dead write no more.",
        "1 update was taken, none refused, none lost.",
    )


STORIES = (crash_restart, failover, clock_jump, crashed_holder)
