"""Stories of networks: cut between a holder and the servers, for long, for a moment, at the end."""

from __future__ import annotations

from ..stage import Contrast, Stage
from .story import story

STOCK, LEADER, CHARGE = "stock/42", "leader/billing", "charge/4711"


@story(
    "partition",
    "A holder and the lock server are cut off from each other for longer than the TTL",
    "The lease ends by the holder's own clock before the server gives the lock away: who asks it "
    "stops in time. Who does not ask is refused by the guard.",
)
def partition(stage: Stage) -> None:
    """The resource can be reached all the time; only the lock server cannot."""
    a, b = stage.players(stage.redis(), "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    b.ask_for(STOCK)
    with stage.cut_off(a):
        b.gets(STOCK)
        a.look()
        b.work(STOCK)
        b.release()
        stage.wait(0.5)
        a.write(STOCK)


@story(
    "two-leaders",
    "A leader is cut off, another is elected, and the old one goes on leading",
    "An election is a lock. The old leader's lease is over before the new one is elected, but a "
    "leader that does not look writes on: only its token shows that it is the old one.",
)
def two_leaders(stage: Stage) -> None:
    """Both of them send out invoices."""
    a, b = stage.players(stage.redis(), "A", "B")
    stage.begin()
    a.acquire(LEADER, value="A")
    a.read(LEADER)
    b.ask_for(LEADER, value="B")
    with stage.cut_off(a, "The leader A and the server are cut off from each other."):
        b.gets(LEADER)
        b.work(LEADER)
        stage.wait(0.3)
        a.write(LEADER)
        a.look()
    b.release()


@story(
    "47-milliseconds",
    "A replica misses 47 ms of its server's writes, takes over, and a customer is charged twice",
    "A lock that lives in one copy dies with it, however short the gap. Here nobody was slow and "
    "nobody was cut off from a lock server; only the tokens show who came later.",
)
def forty_seven_milliseconds(stage: Stage) -> None:
    """In these 47 ms the lock was granted."""
    redis = stage.redis("fail_over")
    part = redis.parts()[0]
    a, b = stage.players(redis, "A", "B")
    stage.begin()
    with stage.fault("failover", "The replica hears nothing of its server, for 47 ms."):
        part.part_replica()
        a.acquire(CHARGE)
        stage.wait(0.047 / stage.ttl)
        stage.say("The server dies, and the replica takes over: it has never heard of this lock.")
        part.fail_over()
    a.read(CHARGE)
    b.acquire(CHARGE)
    a.look()
    b.read(CHARGE)
    stage.wait(0.1)
    a.write(CHARGE)
    b.write(CHARGE)
    stage.wait(0.3)
    a.look()
    b.release()


@story(
    "lost-release",
    "The network is cut while a lock is being given back",
    "release() does not guess: it says that there is no answer, repeats itself in the background, "
    "and at the latest the TTL frees the lock. Nobody is let in too early, nobody waits for ever.",
)
def lost_release(stage: Stage) -> None:
    """Was it given back or not? Nobody on this side can know."""
    a, b = stage.players(stage.redis(), "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.work(STOCK)
    b.ask_for(STOCK)
    with stage.cut_off(a):
        answer = a.release()
        b.gets(STOCK)
    b.work(STOCK)
    b.release()
    assert answer is None
    stage.contrast = Contrast(
        "2 updates were acknowledged, none of them lost: a guard was not needed.",
        "2 updates were taken, none refused, none lost.",
    )


STORIES = (partition, two_leaders, forty_seven_milliseconds, lost_release)
