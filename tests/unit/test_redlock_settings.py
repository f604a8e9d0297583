"""Which servers a Redlock is made of: what is refused, what is reported, and what is not shown."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast._async.engines.redlock import AsyncRedlockEngine
from holdfast._sync.engines.redlock import RedlockEngine
from holdfast.errors import NotSupported
from holdfast.redlock_settings import read_nodes

FIVE = "redlock://a:1,b:2,c:3,d:4,e:5"
SECRETS = [f"redis://user{n}:secret{n}@host{n}:6379/{n}" for n in range(3)]
ENGINES = pytest.mark.parametrize("kind", [AsyncRedlockEngine, RedlockEngine])


# --- How many. ---


@pytest.mark.parametrize("url", ["redlock://", "redlock://a", "redlock://a,b", ["redis://a"], []])
def test_fewer_than_three_are_refused(url: object) -> None:
    """One or two nodes survive no failure at all: that is no Redlock."""
    with pytest.raises(ValueError, match="at least 3"):
        read_nodes(url)


@pytest.mark.parametrize("count", [4, 6])
def test_an_even_number_is_reported(count: int, caplog: pytest.LogCaptureFixture) -> None:
    """Four nodes survive no more than three: allowed, but said."""
    nodes = read_nodes("redlock://" + ",".join(f"h{n}" for n in range(count)))
    assert len(nodes) == count
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{count} nodes" in record.getMessage()
    assert "odd" in record.getMessage()


@pytest.mark.parametrize("count", [3, 5, 7])
def test_an_odd_number_is_fine(count: int, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said about three, five or seven."""
    assert len(read_nodes([f"redis://h{n}" for n in range(count)])) == count
    assert not caplog.records


@pytest.mark.parametrize(
    "url",
    [
        "redlock://a:1,b:2,a:1",
        "redlock://a,b,a:6379",
        ["redis://a:1/0", "redis://b:2", "redis://me:pass@a:1"],
        ["redis://a:1/2", "redis://b:2", redis.Redis(host="a", port=1, db=2)],
    ],
)
def test_the_same_address_twice_is_refused(url: object) -> None:
    """A server that votes twice makes a majority of one; who logs in how does not matter."""
    with pytest.raises(ValueError, match="named twice"):
        read_nodes(url)


# --- Where, and as whom. ---


def test_one_url_shares_everything_but_the_host() -> None:
    """User, password, database and TLS of a redlock:// URL are those of every node."""
    nodes = read_nodes("redlock://me:pa%40ss@a:1,b,[::1]:3/4")
    assert [(node.host, node.port) for node in nodes] == [("a", 1), ("b", 6379), ("::1", 3)]
    assert {node.database for node in nodes} == {4}
    assert {(node.username, node.password) for node in nodes} == {("me", "pa@ss")}
    assert {node.tls for node in nodes} == {None}
    assert all(node.tls is not None for node in read_nodes("redlocks://a,b,c"))


def test_each_node_of_a_list_has_its_own_login() -> None:
    """A list of URLs says for each node who we are there, and which database is ours."""
    nodes = read_nodes([*SECRETS, "rediss://host3", "redis+unix:///tmp/redis.sock"])
    assert [node.username for node in nodes] == ["user0", "user1", "user2", None, None]
    assert [node.password for node in nodes][:3] == ["secret0", "secret1", "secret2"]
    assert [node.database for node in nodes] == [0, 1, 2, 0, 0]
    assert [node.tls is not None for node in nodes] == [False, False, False, True, False]
    assert nodes[4].path == "/tmp/redis.sock"


def test_urls_and_clients_can_be_mixed() -> None:
    """Clients of redis-py, of both colours, lend their settings beside URLs."""
    nodes = read_nodes(
        (
            redis.Redis(host="a", port=1, username="me", password="pass"),
            redis.asyncio.Redis(host="b", port=2, db=3, ssl=True),
            "redis://c:3",
        )
    )
    assert [(node.host, node.port, node.database) for node in nodes] == [
        ("a", 1, 0),
        ("b", 2, 3),
        ("c", 3, 0),
    ]
    assert (nodes[0].username, nodes[0].password) == ("me", "pass")
    assert nodes[1].tls is not None


def test_what_is_no_node_is_refused() -> None:
    """A Cluster client names no server, a number no address; each says what would be right."""
    with pytest.raises(TypeError, match="list of URLs"):
        read_nodes(5)
    with pytest.raises(ValueError, match="not a Redis URL"):
        read_nodes(["http://a", "redis://b", "redis://c"])
    with pytest.raises(NotSupported, match="does not name one server"):
        read_nodes([object(), "redis://b", "redis://c"])


# --- What is not shown. ---


@ENGINES
def test_passwords_are_shown_nowhere(kind: type[RedlockEngine]) -> None:
    """Neither the engine, nor its nodes, nor their settings, nor a client show a password."""
    engine = kind(SECRETS, max_ttl=300.0)
    shown = [engine.location, repr(engine), repr(engine._settings)]
    shown += [text for node in engine.nodes for text in (node.location, repr(node.settings))]
    shown += [repr(holdfast.connect("redlock://me:secret@a,b,c"))]
    assert engine.location == "redlock://host0:6379/0,host1:6379/1,host2:6379/2"
    assert not [text for text in shown if "secret" in text or "user1" in text]


@pytest.mark.parametrize(
    "url",
    [
        ["redis://me:secret@a:x", "redis://b", "redis://c"],
        ["redis://me:secret@a/zero", "redis://b", "redis://c"],
        ["redis://a?password=secret", "redis://b", "redis://c"],
        "redlock://me:secret@a,a,b",
        "redlock://me:secret@a",
    ],
)
def test_errors_show_no_password(url: object) -> None:
    """What is wrong with a URL is said without the part in which a password could be."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_nodes(url)
    assert "secret" not in str(caught.value)


# --- Options. ---


@ENGINES
@pytest.mark.parametrize("quorum", [0, 1, 2, 6, -1])
def test_quorum_is_never_lowered(kind: type[RedlockEngine], quorum: int) -> None:
    """Fewer than a majority would let two in, more than all nobody."""
    with pytest.raises(ValueError, match="quorum must be 3 to 5 of 5"):
        kind(FIVE, max_ttl=300.0, quorum=quorum)


@ENGINES
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"node_timeout": 0}, "node_timeout"),
        ({"node_timeout": -1.0}, "node_timeout"),
        ({"on_clock_step": "ignore"}, "on_clock_step"),
        ({"max_ttl": 90_000.0}, "max_ttl"),
        ({"max_ttl": 0.0}, "max_ttl"),
    ],
)
def test_bad_options_are_refused(
    kind: type[RedlockEngine], options: dict[str, Any], words: str
) -> None:
    """Each bad option is named, before anything is connected."""
    with pytest.raises(ValueError, match=words):
        kind(FIVE, **{"max_ttl": 300.0, **options})


def test_a_majority_is_one_of_all_that_are_named() -> None:
    """The quorum follows from how many nodes are configured, not from how many answer."""
    for count, quorum in ((3, 2), (4, 3), (5, 3), (6, 4), (7, 4)):
        engine = RedlockEngine([f"redis://h{n}" for n in range(count)], max_ttl=300.0)
        assert engine._nodes.quorum == quorum
        assert engine._nodes.blocking == count - quorum + 1
