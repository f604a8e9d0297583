"""Stories of locks that are mixed up: freed by the wrong one, or kept in two places."""

from __future__ import annotations

from ...testing.harness import SqliteHarness
from ..stage import Contrast, Stage
from .story import story

STOCK, NAIVE = "stock/42", "naive-lock"


@story(
    "late-release",
    "A holder that was late gives back a lock that is another's by now",
    "A release says whose lock it gives back. The lock of many a tutorial, SET NX and DEL, does "
    "not, and frees what belongs to the next one.",
)
def late_release(stage: Stage) -> None:
    """The same steps with a lock from a tutorial beside ours, on the same server."""
    redis = stage.redis()
    a, b, c = stage.players(redis, "A", "B", "C")
    ttl = int(stage.ttl * 1000)
    stage.begin()
    a.acquire(STOCK)
    assert redis.server.command("SET", NAIVE, "A", "NX", "PX", ttl) == "OK"
    b.ask_for(STOCK)
    with stage.standing_still(a):
        b.gets(STOCK)
        stage.wait(0.1)
        assert redis.server.command("SET", NAIVE, "B", "NX", "PX", 60 * ttl) == "OK"
        stage.say("B also has the lock of the tutorial: SET naive-lock B NX PX.")
    a.release()
    redis.server.command("DEL", NAIVE)
    stage.say("A also gives back the lock of the tutorial: DEL naive-lock.")
    ours = c.acquire(STOCK, timeout=0.0)
    theirs = redis.server.command("SET", NAIVE, "C", "NX", "PX", ttl)
    stage.say(f"C tries the lock of the tutorial: {theirs or 'busy'}. B still works under it.")
    b.release()
    assert ours is None
    stage.contrast = Contrast(
        "With SET NX and DEL, A freed the lock of B, and C got in while B worked.",
        "With holdfast, A was told that the lock was not its own, and C had to wait.",
    )


@story(
    "two-systems",
    "Two lock systems guard the same resource, and each keeps its promise",
    "One resource, one lock system. The guard remembers whose tokens it compares, and refuses the "
    "other's: they cannot be compared, however large they are.",
)
def two_systems(stage: Stage) -> None:
    """A uses a file on its host, B uses Redis: after a move that was forgotten halfway."""
    (a,) = stage.players(stage.serve(SqliteHarness()), "A")
    (b,) = stage.players(stage.redis(), "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    with stage.fault("mix-up", "B takes a lock of the same name, but in another system."):
        b.acquire(STOCK)
        b.read(STOCK)
        stage.wait(0.2)
        b.write(STOCK)
    a.write(STOCK)
    stage.wait(0.1)
    a.release()
    b.release()


STORIES = (late_release, two_systems)
