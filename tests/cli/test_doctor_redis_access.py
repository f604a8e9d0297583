"""The doctor on the way to a Redis server: who can listen in, what may we do, are we heard?"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast._sync import engines
from holdfast.doctor import Level, redis_access
from holdfast.doctor.redis_access import check_way, commands, rules
from holdfast.redis_link import Script, from_url
from holdfast.testing.servers import Proxy, RedisServer, need, redis_program, valkey_program
from holdfast.testing.servers.programs import openssl_program
from tests.cli.redis_findings import all_findings, bad, levels, own_findings, user_url

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines" / "redis.md"
CALLED = re.compile(r"(?:redis\.p?call|in_batches)\('([A-Z]+)'")
NEEDED = commands()


@pytest.fixture(scope="module", params=[redis_program, valkey_program])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server whose users a test may change, in each make."""
    with RedisServer(need(request.param), persist=True) as running:
        yield running


# --- Who can listen in. ---


@pytest.mark.parametrize(
    ("url", "encryption", "password"),
    [
        ("redis://localhost", Level.OK, [Level.INFO]),
        ("redis://:secret@127.0.0.1", Level.OK, []),
        ("redis+unix:///run/redis.sock", Level.OK, []),
        ("redis://192.0.2.1", Level.INFO, [Level.WARNING]),
        ("redis://:secret@192.0.2.1", Level.WARNING, []),
        ("redis://:secret@there.invalid", Level.WARNING, []),
        ("rediss://:secret@192.0.2.1", Level.OK, []),
        ("rediss://:secret@192.0.2.1?ssl_cert_reqs=none", Level.WARNING, []),
        ("rediss://:secret@192.0.2.1?ssl_check_hostname=false", Level.WARNING, []),
    ],
)
def test_who_can_listen_in(url: str, encryption: Level, password: list[Level]) -> None:
    """Locks and passwords in the clear are for this machine only."""
    found = list(check_way(from_url(url)))
    assert levels(found, "encryption") == [encryption]
    assert levels(found, "password") == password


def test_tls_on_the_same_machine() -> None:
    """The whole examination works through TLS."""
    need(openssl_program)
    with RedisServer(need(redis_program), tls=True, persist=True) as server:
        assert bad(all_findings(f"{server.url}?ssl_ca_certs={server.ca_file}")) == []


# --- What may we do? ---


def called_by(family: str) -> set[str]:
    """Return the commands that the scripts of an engine call."""
    called: set[str] = set()
    for found in pkgutil.iter_modules(engines.__path__, f"{engines.__name__}."):
        if found.name.removeprefix(f"{engines.__name__}.").split("_")[0] == family:
            for thing in vars(importlib.import_module(found.name)).values():
                text = thing.text.decode() if isinstance(thing, Script) else ""
                called.update(CALLED.findall(text))
    return called


def test_all_commands_of_all_scripts_are_examined() -> None:
    """What a script calls is on the list, and nothing else is; Redlock's has some more."""
    redis, redlock = called_by("redis"), called_by("redlock")
    outside = set(redis_access.OUTSIDE)
    assert set(NEEDED) == outside | redis
    assert set(commands(redlock=True)) == outside | redis | redlock


def test_least_rights(server: RedisServer) -> None:
    """A user with the listed rights and no others can do everything, replicas= too."""
    found = all_findings(user_url(server, *rules("holdfast", NEEDED).split()))
    assert bad(found) == []
    assert levels(found, "questions") == [Level.INFO], "CONFIG GET is for the doctor only"


def test_rights_on_the_page(server: RedisServer) -> None:
    """The line in docs/engines/redis.md makes a user who can do everything."""
    line = next(line for line in PAGE.read_text("utf-8").splitlines() if "ACL SETUSER" in line)
    words = line.removeprefix("ACL SETUSER locks on >secret ").split()
    assert words == rules("holdfast", NEEDED).split()
    assert bad(all_findings(user_url(server, *words))) == []


@pytest.mark.parametrize("word", [word for word in NEEDED if word not in ("INFO", "SUBSCRIBE")])
def test_each_missing_right_is_named_and_its_remedy_works(server: RedisServer, word: str) -> None:
    """The remedy is a command for the server as it stands."""
    rights = rules("holdfast", [one for one in NEEDED if one != word]).split()
    url = user_url(server, *rights)
    found = [one for one in own_findings(url) if one.title == "rights"]
    level = Level.WARNING if word in ("SCAN", "PUBLISH") else Level.CRITICAL
    assert [one.level for one in found] == [level]
    assert re.search(rf"\b{word}\b", found[0].detail)
    server.command(*found[0].remedy.split())
    assert levels(own_findings(url), "rights") == [Level.OK]


@pytest.mark.parametrize(
    ("forgotten", "level"), [("~{holdfast/*", Level.CRITICAL), ("&holdfast:*", Level.WARNING)]
)
def test_keys_and_channels_that_are_not_ours(
    server: RedisServer, forgotten: str, level: Level
) -> None:
    """Commands alone are not enough."""
    rights = [word for word in rules("holdfast", NEEDED).split() if word != forgotten]
    assert levels(own_findings(user_url(server, *rights)), "rights") == [level]
    other = user_url(server, *rules("holdfast", NEEDED).split())
    assert levels(own_findings(other, namespace="other"), "rights") == [Level.CRITICAL]


def test_wait_is_needed_for_replicas(server: RedisServer) -> None:
    """Only who asks for confirmations needs the right to wait for them."""
    url = user_url(server, *rules("holdfast", NEEDED).split())
    assert levels(own_findings(url), "rights") == [Level.OK]
    assert levels(own_findings(url, replicas=1), "rights") == [Level.CRITICAL]


def test_questions_that_are_not_answered(server: RedisServer) -> None:
    """What could not be looked at is said, and is no reason to stop."""
    rights = rules("holdfast", [word for word in NEEDED if word != "INFO"]).split()
    found = all_findings(user_url(server, *rights))
    assert levels(found, "questions") == [Level.WARNING, Level.INFO]
    assert levels(found, "tokens") == [Level.OK]
    assert levels(found, "persistence") == []


def test_nothing_is_left_on_the_server(server: RedisServer) -> None:
    """Trying all commands leaves no key behind."""
    server.command("FLUSHALL")
    assert levels(own_findings(server.url), "rights") == [Level.OK]
    assert server.command("KEYS", "*") == []


# --- Are we heard? ---


def test_user_who_may_not_listen(server: RedisServer) -> None:
    """Locks work, but waiters have to look for themselves."""
    rights = rules("holdfast", [word for word in NEEDED if word != "SUBSCRIBE"]).split()
    found = all_findings(user_url(server, *rights))
    assert levels(found, "messages") == [Level.WARNING]
    assert levels(found, "lock") == [Level.OK]


def test_messages_that_do_not_arrive(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscription that is granted is not believed: a message has to come."""
    monkeypatch.setattr(redis_access, "TIMEOUT", 0.5)
    with Proxy(server.port) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        assert levels(own_findings(url), "messages") == [Level.OK]
        proxy.drop_pushes()
        assert levels(own_findings(url), "messages") == [Level.WARNING]
