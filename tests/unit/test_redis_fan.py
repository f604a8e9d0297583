"""One question to several servers at once: every answer has its place, and none comes later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.clocks import boot_clock
from holdfast.errors import OutcomeUnknown
from holdfast.redis_link import Link, Reply, fan, fan_out, from_url, pack
from holdfast.redis_link.connection import Connection
from holdfast.testing.servers import RedisServer, need, redis_program
from tests.unit.waiting import PATIENCE

COUNT = pack(("INCR", "asked"))


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RedisServer]]:
    """Three servers that know nothing of each other."""
    need(redis_program)
    with RedisServer() as one, RedisServer() as two, RedisServer() as three:
        yield [one, two, three]


@pytest.fixture
def links(servers: list[RedisServer]) -> Iterator[list[Link]]:
    """A connected link to each, and nothing counted yet."""
    links = [Link(from_url(server.url), boot_clock) for server in servers]
    for link, server in zip(links, servers, strict=True):
        server.command("FLUSHALL")
        link.call(pack(("PING",)), PATIENCE)
    yield links
    for link in links:
        link.close()


def test_answers_are_in_the_order_of_links(servers: list[RedisServer], links: list[Link]) -> None:
    """Whoever is late: one that stands still does not keep others from being heard."""
    requests = [pack(("ECHO", f"I am {number}")) for number in range(3)]
    for silent in range(3):
        servers[silent].pause()
        try:
            answers = fan_out(links, requests, 0.2)
        finally:
            servers[silent].resume()
        assert isinstance(answers[silent], OutcomeUnknown)
        others = [number for number in range(3) if number != silent]
        assert [answers[number] for number in others] == [f"I am {n}".encode() for n in others]
        assert fan_out(links, requests, PATIENCE) == [b"I am 0", b"I am 1", b"I am 2"]


class Interrupted(list[bytes]):
    """Requests that are interrupted when it is the turn of one of them."""

    def __init__(self, moment: int) -> None:
        super().__init__([COUNT] * 3)
        self._moment = moment

    def __iter__(self) -> Iterator[bytes]:
        for number, request in enumerate(super().__iter__()):
            if number == self._moment:
                raise KeyboardInterrupt
            yield request


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_an_interrupt_while_sending(links: list[Link], moment: int) -> None:
    """What was asked, and has no answer yet, is closed: no later question gets that answer."""
    with pytest.raises(KeyboardInterrupt):
        fan_out(links, Interrupted(moment), PATIENCE)
    requests = [pack(("ECHO", f"next {number}")) for number in range(3)]
    assert fan_out(links, requests, PATIENCE) == [b"next 0", b"next 1", b"next 2"]


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_an_interrupt_while_answers_come(
    links: list[Link], moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose answer was read is used again, all others are closed."""
    finish, left = Connection.finish, iter(range(moment, -1, -1))

    def interrupted(connection: Connection) -> Reply:
        if next(left) == 0:
            raise KeyboardInterrupt
        return finish(connection)

    before = [link._idle[0] for link in links]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Connection, "finish", interrupted)
        fan_out(links, [COUNT] * 3, PATIENCE)
    assert [len(link._idle) for link in links] == [int(number < moment) for number in range(3)]
    closed = [connection.socket.fileno() < 0 for connection in before]
    assert closed == [number >= moment for number in range(3)]
    requests = [pack(("ECHO", f"next {number}")) for number in range(3)]
    assert fan_out(links, requests, PATIENCE) == [b"next 0", b"next 1", b"next 2"]


def test_an_interrupt_of_the_patient(
    servers: list[RedisServer], links: list[Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one server was slow, what was given back is not closed behind its back."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    servers[1].pause()
    try:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(fan, "drive", interrupted)
            fan_out(links, [COUNT] * 3, 0.2)
    finally:
        servers[1].resume()
    (connection,) = links[0]._idle
    assert connection.socket.fileno() >= 0
    assert links[0].call(pack(("ECHO", "here")), PATIENCE) == b"here"
    assert not links[1]._idle
    assert not links[2]._idle
