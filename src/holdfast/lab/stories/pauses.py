"""Stories of holders that stand still: nothing in a process can notice that it does not run."""

from __future__ import annotations

from ..assignment import ASYNC, SYNC
from ..stage import Stage
from .story import story

STOCK = "stock/42"
MORAL = (
    "No lock can protect from this: who does not run cannot notice that time is over. The token "
    "goes along with the write, and the resource can tell which is older."
)


@story("paused-holder", "A holder is stopped (SIGSTOP) for longer than its TTL", MORAL)
def paused_holder(stage: Stage) -> None:
    """A virtual machine that is moved, a laptop lid, a debugger, swap."""
    a, b = stage.players(stage.redis(), "A", "B")
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    b.ask_for(STOCK)
    with stage.standing_still(a):
        b.gets(STOCK)
        b.work(STOCK)
        b.release()
        stage.wait(0.5)
    a.write(STOCK)
    a.look()


def _blocked(stage: Stage, colour: str, says: str) -> None:
    a, b = stage.players(stage.redis(), "A", "B", colour=colour)
    stage.begin()
    a.acquire(STOCK)
    a.read(STOCK)
    b.ask_for(STOCK)
    with stage.fault("block", says):
        a.begin("block", seconds=2.2 * stage.ttl)
        b.gets(STOCK)
        b.work(STOCK)
        b.release()
        a.answer()
    stage.say("A goes on.")
    a.write(STOCK)
    a.look()


@story("gc-pause", "The whole interpreter of a holder stands still, renewal included", MORAL)
def gc_pause(stage: Stage) -> None:
    """Garbage collection, or a C extension that keeps the interpreter's lock."""
    _blocked(stage, SYNC, "One call of A keeps the interpreter's lock: no thread of A runs.")


@story("blocked-loop", "A coroutine blocks the event loop of a holder", MORAL)
def blocked_loop(stage: Stage) -> None:
    """A forgotten time.sleep, a slow regular expression, a synchronous driver."""
    _blocked(stage, ASYNC, "A coroutine of A blocks the loop: nothing is renewed.")


STORIES = (paused_holder, gc_pause, blocked_loop)
