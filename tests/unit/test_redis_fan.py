"""One question to several servers at once: every answer has its place, in time or late."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterator

import pytest

from holdfast.clocks import boot_clock
from holdfast.errors import OutcomeUnknown
from holdfast.redis_link import LATE, AsyncLink, Link, Reply, afan_out, fan_out, from_url, pack
from holdfast.redis_link.connection import Connection
from holdfast.testing.servers import RedisServer, need, redis_program
from tests.unit.waiting import PATIENCE, until

COUNT = pack(("INCR", "asked"))
ECHOES = [pack(("ECHO", f"next {number}")) for number in range(3)]
NEXT = [b"next 0", b"next 1", b"next 2"]
BRIEF = 0.2


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
    for server in servers:
        if server.paused:
            server.resume()
    for link in links:
        link.close()


class Latecomers(list[tuple[int, Reply]]):
    """Hears what comes late."""

    def __call__(self, number: int, answer: Reply) -> None:
        self.append((number, answer))


def test_answers_are_in_the_order_of_links(servers: list[RedisServer], links: list[Link]) -> None:
    """Whoever is late: one that stands still does not keep others from being heard."""
    requests = [pack(("ECHO", f"I am {number}")) for number in range(3)]
    for silent in range(3):
        servers[silent].pause()
        try:
            answers = fan_out(links, requests, BRIEF)
        finally:
            servers[silent].resume()
        assert isinstance(answers[silent], OutcomeUnknown)
        others = [number for number in range(3) if number != silent]
        assert [answers[number] for number in others] == [f"I am {n}".encode() for n in others]
        assert fan_out(links, requests, PATIENCE) == [b"I am 0", b"I am 1", b"I am 2"]


# --- Enough is enough. ---


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_nobody_waits_for_the_last_one(
    servers: list[RedisServer], links: list[Link], slow: int
) -> None:
    """Two yeses of three are enough, whoever is slow. Its answers come late, each once and in
    order, and no later question takes them for its own."""
    late = Latecomers()
    servers[slow].pause()
    for step in (1, 2):
        answers = fan_out(links, [COUNT] * 3, PATIENCE, 2, late)
        assert answers == [LATE if number == slow else step for number in range(3)]
    assert late == []
    servers[slow].resume()
    assert fan_out(links, ECHOES, PATIENCE) == NEXT
    assert late == [(slow, 1), (slow, 2)]
    assert [len(link._idle) for link in links] == [1, 1, 1], "no connection was made for that"


def test_only_a_yes_counts(servers: list[RedisServer], links: list[Link]) -> None:
    """Words are no yes: without enough integers all are waited for."""
    servers[2].pause()
    answers = fan_out(links, [COUNT, COUNT, ECHOES[2]], BRIEF, 3)
    assert answers[:2] == [1, 1]
    assert isinstance(answers[2], OutcomeUnknown)
    servers[2].resume()
    assert fan_out(links, [*ECHOES[:2], COUNT], PATIENCE, 1) == [*NEXT[:2], 1]


def test_what_is_overdue_is_not_waited_for(servers: list[RedisServer], links: list[Link]) -> None:
    """A server that never answered is not asked again on the same connection, nor at once on a new
    one; whoever asked before is told that there is no answer."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, BRIEF, 2, late)
    time.sleep(BRIEF)
    started = time.monotonic()
    answers = fan_out(links, ECHOES, PATIENCE)
    assert time.monotonic() - started < PATIENCE
    assert answers == [NEXT[0], answers[1], NEXT[2]]
    assert isinstance(answers[1], OutcomeUnknown)
    ((number, error),) = late
    assert number == 1
    assert isinstance(error, OutcomeUnknown)
    servers[1].resume()
    assert fan_out(links, ECHOES, PATIENCE) == NEXT


def test_what_has_come_meanwhile_is_not_overdue(
    servers: list[RedisServer], links: list[Link]
) -> None:
    """However late it is looked at: an answer that is there is one."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, BRIEF, 2, late)
    servers[1].resume()
    until(lambda: servers[1].command("GET", "asked") == "1")
    time.sleep(2 * BRIEF)
    assert fan_out(links, ECHOES, PATIENCE) == NEXT
    assert late == [(1, 1)]


def test_a_connection_that_ends_owes_an_error(
    servers: list[RedisServer], links: list[Link]
) -> None:
    """Nobody is left without an answer or an error, whatever ends the connection."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, PATIENCE, 2, late)
    links[1].leave()
    assert late == [], "it may still come"
    servers[1].kill()
    assert isinstance(fan_out(links, ECHOES, PATIENCE)[1], OutcomeUnknown)
    ((number, error),) = late
    assert number == 1
    assert isinstance(error, OutcomeUnknown)
    servers[1].start()
    assert fan_out(links, ECHOES, PATIENCE) == NEXT


def test_a_call_of_its_own_gets_its_own_answer(
    servers: list[RedisServer], links: list[Link]
) -> None:
    """Also where something is late on the connection there is."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, PATIENCE, 2, late)
    timer = threading.Timer(BRIEF, servers[1].resume)
    timer.start()
    assert links[1].call(ECHOES[1], PATIENCE) == NEXT[1]
    timer.join()
    links[1].hear_out()
    assert late == [(1, 1)]


def test_closing_waits_for_what_is_late(servers: list[RedisServer], links: list[Link]) -> None:
    """A socket that is closed before its answer is read may take the question with it."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, PATIENCE, 2, late)
    timer = threading.Timer(BRIEF, servers[1].resume)
    timer.start()
    links[1].close()
    timer.join()
    assert late == [(1, 1)]


def test_threads_that_do_not_wait(links: list[Link]) -> None:
    """Of many questions of many threads each gets each server's answer once, in time or late."""
    threads, steps = 6, 150
    found: dict[tuple[int, int], list[int]] = defaultdict(list)

    def run(thread: int) -> None:
        request = pack(("INCR", f"thread {thread}"))

        def late(number: int, answer: Reply) -> None:
            found[thread, number].append(answer)

        for _ in range(steps):
            answers = fan_out(links, [request] * 3, PATIENCE, 2, late)
            for number, answer in enumerate(answers):
                if answer is not LATE:
                    late(number, answer)

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for link in links:
        link.hear_out()
    for thread in range(threads):
        for number in range(3):
            assert sorted(found[thread, number]) == [*range(1, steps + 1)]


# --- Tasks. ---


async def connected(servers: list[RedisServer]) -> list[AsyncLink]:
    """Return a connected link to each, and let nothing be counted yet."""
    links = [AsyncLink(from_url(server.url), boot_clock) for server in servers]
    for link, server in zip(links, servers, strict=True):
        server.command("FLUSHALL")
        await link.call(pack(("PING",)), PATIENCE)
    return links


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_no_task_waits_for_the_last_one(servers: list[RedisServer], slow: int) -> None:
    """The same for tasks; and closing waits for what is late."""
    late = Latecomers()

    async def main() -> None:
        links = await connected(servers)
        servers[slow].pause()
        for step in (1, 2):
            answers = await afan_out(links, [COUNT] * 3, PATIENCE, 2, late)
            assert answers == [LATE if number == slow else step for number in range(3)]
        assert late == []
        asyncio.get_running_loop().call_later(BRIEF, servers[slow].resume)
        for link in links:
            await link.close()
        assert late == [(slow, 1), (slow, 2)]

    asyncio.run(main())


def test_a_task_is_told_what_never_came(servers: list[RedisServer]) -> None:
    """When its time is over, the absence of an answer is told too, and closing goes on."""
    late = Latecomers()

    async def main() -> None:
        links = await connected(servers)
        servers[1].pause()
        try:
            await afan_out(links, [COUNT] * 3, BRIEF, 2, late)
            for link in links:
                await link.close()
        finally:
            servers[1].resume()

    asyncio.run(main())
    ((number, error),) = late
    assert number == 1
    assert isinstance(error, OutcomeUnknown)


def test_a_cancelled_task_is_told_nothing(servers: list[RedisServer]) -> None:
    """Who was cancelled cannot know what his answers are about: he is not bothered with them."""
    late = Latecomers()

    async def main() -> None:
        links = await connected(servers)
        servers[0].pause()
        servers[1].pause()
        asking = asyncio.create_task(afan_out(links, [COUNT] * 3, PATIENCE, 2, late))
        await asyncio.sleep(BRIEF)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        servers[0].resume()
        servers[1].resume()
        assert await afan_out(links, ECHOES, PATIENCE) == NEXT
        for link in links:
            await link.close()

    asyncio.run(main())
    assert late == []


# --- Interrupts. ---


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
    assert fan_out(links, ECHOES, PATIENCE) == NEXT


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_an_interrupt_while_answers_come(
    links: list[Link], moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that took part is closed, and nobody is told what comes of it."""
    receive, left, late = Connection.receive, iter(range(moment, -1, -1)), Latecomers()

    def interrupted(connection: Connection, looked: bool) -> None:
        if next(left) == 0:
            raise KeyboardInterrupt
        receive(connection, looked)

    before = [link._idle[0] for link in links]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Connection, "receive", interrupted)
        fan_out(links, [COUNT] * 3, PATIENCE, 3, late)
    assert [len(link._idle) for link in links] == [0, 0, 0]
    assert all(connection.socket.fileno() < 0 for connection in before)
    assert fan_out(links, ECHOES, PATIENCE) == NEXT
    assert late == []


def test_an_interrupt_tells_who_asked_before(servers: list[RedisServer], links: list[Link]) -> None:
    """What was late on a connection that is closed by somebody else's interrupt has its error."""
    late = Latecomers()
    servers[1].pause()
    fan_out(links, [COUNT] * 3, PATIENCE, 2, late)
    with pytest.raises(KeyboardInterrupt):
        fan_out(links, Interrupted(2), PATIENCE)
    ((number, error),) = late
    assert number == 1
    assert isinstance(error, OutcomeUnknown)


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_an_interrupt_while_connections_are_given_back(
    links: list[Link], moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given back is not closed behind its back."""
    keep, left = Link.keep, iter(range(moment, -1, -1))

    def interrupted(link: Link, connection: Connection, now: float) -> None:
        keep(link, connection, now)
        if next(left) == 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Link, "keep", interrupted)
        fan_out(links, [COUNT] * 3, PATIENCE)
    assert [len(link._idle) for link in links] == [int(number <= moment) for number in range(3)]
    assert all(one.socket.fileno() >= 0 for link in links for one in link._idle)
    assert fan_out(links, ECHOES, PATIENCE) == NEXT
