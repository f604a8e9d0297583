"""The link to ZooKeeper without a server: what is proven when, who is woken, what goes out."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest
from kazoo.exceptions import (  # type: ignore[import-untyped]
    ConnectionLoss,
    NoAuthError,
    NoNodeError,
)

from holdfast import EngineUnavailable, OutcomeUnknown
from holdfast.zookeeper_link import Answer, Handler, Wiretap, explain
from holdfast.zookeeper_link.nodes import Watches
from holdfast.zookeeper_link.sockets import Corked, Waker

TTL = 10.0


class World:
    """A handler with a clock of its own, and a socket that it may write to."""

    def __init__(self, tick: float | None = None) -> None:
        self.now = 1000.0
        self.beats = 0
        self.handler = Handler(lambda: self.now, TTL, tick, None, self.beat)
        self.near, self.far = socket.socketpair()

    def beat(self) -> None:
        """Count."""
        self.beats += 1

    def greet(self, at: float) -> None:
        """Let kazoo send the first word of a connection."""
        self.now = at
        assert self.handler.select([], [self.near], [], 1.0)[1]

    def ask(self, at: float, took: float = 0.0) -> float:
        """Ask something, and return what the answer proves."""
        self.now = at + took
        return self.handler.answered(at)

    def close(self) -> None:
        """Close the sockets."""
        self.near.close()
        self.far.close()


@pytest.fixture
def world() -> Iterator[World]:
    """One of them."""
    made = World()
    yield made
    made.close()


def test_a_greeting_counts_at_once(world: World) -> None:
    """The leader itself has heard of a new connection: a write right after it proves its start."""
    world.greet(1000.0)
    assert world.ask(1000.1) == 1000.0


def test_what_was_just_asked_proves_nothing_yet(world: World) -> None:
    """The leader may not have heard: only what was answered a while before counts (S11)."""
    world.greet(1000.0)
    assert world.ask(1003.0) == 1000.0
    assert world.ask(1005.0) == 1000.0
    assert world.ask(1005.0 + 0.28 * TTL) == 1003.0
    assert world.ask(1005.0 + 0.3 * TTL) == 1005.0


def test_a_late_answer_counts_late(world: World) -> None:
    """Nobody knows when a server heard what it answered late: until then it may not have."""
    world.greet(1000.0)
    assert world.ask(1001.0, took=4.0) == 1000.0
    assert world.ask(1006.0) == 1000.0
    assert world.ask(1005.0 + 0.3 * TTL) == 1001.0


def test_renewals_in_their_rhythm_prove_each_other(world: World) -> None:
    """With a third of the TTL between them, less a step of the grid, each proves the last one."""
    step = TTL / 3 - TTL / 64
    world.greet(1000.0)
    for number in range(5):
        proof = world.ask(1000.0 + number * step)
        assert proof == pytest.approx(1000.0 + max(0, number - 1) * step)


def test_a_known_tick_settles_sooner() -> None:
    """Who knows the servers' tick need not wait for a share of the TTL."""
    world = World(tick=0.2)
    world.greet(1000.0)
    assert world.ask(1001.0) == 1000.0
    assert world.ask(1001.1) == 1000.0
    assert world.ask(1001.2) == 1001.0
    world.close()


def test_a_proof_is_never_too_young(world: World) -> None:
    """Many answers are thinned out, never ahead of time."""
    world.greet(1000.0)
    for number in range(5000):
        at = 1000.0 + number * 0.01
        proof = world.ask(at, took=0.005)
        assert proof <= max(1000.0, at - world.handler.settling)
    assert proof > at - 2 * world.handler.settling


def test_answers_are_told_once() -> None:
    """Whoever links before or after hears of it once; the first word counts."""
    heard: list[object] = []
    answer = Answer(5.0, lambda asked: asked - 1)
    answer.rawlink(lambda one: heard.append(one.value))
    assert not answer.ready()
    answer.set("yes")
    answer.set_exception(ConnectionLoss())
    answer.rawlink(lambda one: heard.append(one.value))
    assert heard == ["yes", "yes"]
    assert answer.get() == "yes"
    assert answer.proven == 4.0


@pytest.mark.parametrize(("error", "proves"), [(NoNodeError(), True), (ConnectionLoss(), False)])
def test_only_answers_prove(error: Exception, proves: bool) -> None:
    """A no is an answer as well; a lost connection is none."""
    answer = Answer(5.0, lambda asked: asked)
    answer.set_exception(error)
    assert (answer.proven == 5.0) is proves
    with pytest.raises(type(error)):
        answer.get()


def test_watches() -> None:
    """Each node is watched once, whoever waits for it; who has left is not woken."""
    watches = Watches()
    assert watches.join("a", ["x", "y"]) == ["x", "y"]
    assert watches.join("b", ["x"]) == []
    watches.leave("b", ["x", "never seen"])
    assert watches.fire("x") == {"a"}
    assert watches.fire("x") == set()
    assert watches.join("c", ["x"]) == ["x"]
    assert watches.fire_all() == {"a", "c"}
    assert watches.fire_all() == set()


def test_waker_wakes_once() -> None:
    """What is sent while it is held back arrives together."""
    near, far = socket.socketpair()
    waker = Waker(near)
    waker.send(b"\0")
    assert far.recv(10) == b"\0"
    waker.hold()
    waker.send(b"\0")
    waker.hold()
    waker.send(b"\0")
    assert not select.select([far], [], [], 0)[0]
    waker.release()
    assert far.recv(10) == b"\0\0"
    waker.release()
    assert not select.select([far], [], [], 0)[0]
    waker.close()
    far.close()


def test_corked_connection_sends_together() -> None:
    """Nothing goes out before `flush`, then everything; else it is a socket."""
    near, far = socket.socketpair()
    corked = Corked(near)
    assert corked.send(b"one") == 3
    assert corked.send(memoryview(b"two")) == 3
    assert corked.waits
    assert not select.select([far], [], [], 0)[0]
    corked.flush()
    assert far.recv(10) == b"onetwo"
    assert not corked.waits
    corked.setblocking(False)
    big = b"x" * 10_000_000
    corked.send(big)
    assert corked.full
    with pytest.raises(AttributeError):
        corked.pending()
    corked.close()
    far.close()


def test_wiretap_hears_the_negotiated_timeout() -> None:
    """By kazoo's own words, which are the only ones about it."""
    wiretap = Wiretap()
    words = (
        "Session created, session_id: %r session_passwd: %s\n    negotiated session timeout: %s\n"
    )
    wiretap.log(
        5, words + "    connect timeout: %s\n    read timeout: %s", 1, b"", 4000, 4000, 2666
    )
    assert wiretap.negotiated == 4000
    wiretap.warning("Connection dropped: %s", "socket connection error: refused")
    assert wiretap.trouble == "Connection dropped: socket connection error: refused"


def test_errors_in_our_words() -> None:
    """Doubtful ones leave the outcome open, refusals say what to do."""
    assert isinstance(explain("there", ConnectionLoss()), OutcomeUnknown)
    refused = explain("there", NoAuthError())
    assert isinstance(refused, EngineUnavailable)
    assert "right" in str(refused)
    assert str(explain("there", NoNodeError())).startswith("there answered NoNodeError")
