"""`holdfast doctor` on ZooKeeper: every finding on a real server, or on what one would say."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast.doctor import Finding, Level, Patient, examine, zookeeper
from holdfast.doctor.zookeeper import (
    check_disk,
    check_members,
    check_reached,
    check_sessions,
    check_versions,
    check_way,
)
from holdfast.doctor.zookeeper_facts import Facts
from holdfast.testing.servers import ZooKeeperEnsemble, ZooKeeperServer, need, zookeeper_program
from holdfast.zookeeper_link import from_url
from tests.cli.conftest import Commands

PATIENCE = 10.0  # seconds


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    """One server as tests use it: alone, open, and in no hurry to reach its disk."""
    need(zookeeper_program)
    with ZooKeeperServer() as running:
        yield running


def complete(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, each of which must be whole sentences."""
    found = list(findings)
    for finding in found:
        assert finding.detail.endswith((".", ")"))
        assert finding.remedy or finding.level is Level.OK or finding.title == "settings"
    return found


def levels(findings: Iterable[Finding], title: str) -> list[Level]:
    """Return how bad the findings of a title are."""
    return [finding.level for finding in complete(findings) if finding.title == title]


def own_findings(url: str, **options: Any) -> list[Finding]:
    """Return what the checks of this engine find."""
    with holdfast.connect(url, connect_timeout=2, **options) as client:
        return complete(zookeeper.check(Patient(client)))


def facts(**said: Any) -> Facts:
    """Return what a server might say of itself."""
    return Facts("there:2181", **{"answers": True, "mode": "follower", **said})


def test_what_is_wrong_with_a_test_server(server: ZooKeeperServer) -> None:
    """One member, open to all, never waits for its disk; the rest is as it should be."""
    with holdfast.connect(server.url) as client:
        client.lock("x").acquire(timeout=5).release()  # type: ignore[union-attr]
        found = complete(examine(Patient(client)))
    bad = {finding.title for finding in found if finding.level.bad}
    assert bad == {"members", "rights", "disk"}
    for title in ("servers", "version", "sessions", "encryption", "lock", "tokens", "answers"):
        assert levels(found, title) == [Level.OK], title


def test_command(commands: Commands, server: ZooKeeperServer) -> None:
    """The command line says it, and that something should be done."""
    commands.environment["HOLDFAST_URL"] = server.url
    output = commands.do("doctor", code=1)
    assert "forceSync" in output
    assert "one server only" in output


def test_user_of_its_own(server: ZooKeeperServer) -> None:
    """With a login, what is made is not open."""
    url = f"zookeeper://me:secret@127.0.0.1:{server.port}/private"
    with holdfast.connect(url) as client, client.lock("x"):
        found = complete(zookeeper.check(Patient(client)))
    assert levels(found, "rights") == [Level.OK]
    assert "secret" not in str(found)


def test_ensemble() -> None:
    """Three members are what they should be; a URL that names one of them is noticed."""
    need(zookeeper_program)
    with ZooKeeperEnsemble() as ensemble:
        found = own_findings(ensemble.url)
        assert levels(found, "members") == [Level.OK]
        assert levels(found, "URL") == []
        assert levels(own_findings(ensemble.servers[0].url), "URL") == [Level.INFO]
        ensemble.servers[ensemble.followers()[0]].kill()
        assert levels(own_findings(ensemble.url), "servers") == [Level.WARNING]


def test_bounds_of_sessions() -> None:
    """What the servers keep is measured; a short tick and a wrong word about it are noticed."""
    need(zookeeper_program)
    options = {"minSessionTimeout": 300, "maxSessionTimeout": 20000}
    properties = {"zookeeper.forceSync": "yes"}
    with ZooKeeperServer(options=options, properties=properties) as server:
        found = own_findings(server.url)
        assert levels(found, "sessions") == [Level.WARNING]
        assert "0.3 s to 20 s" in next(one.detail for one in found if one.title == "sessions")
        assert levels(found, "ticks") == [Level.WARNING]
        assert levels(found, "disk") == [Level.OK]
        told = own_findings(server.url, tick_time=0.1)
        assert levels(told, "ticks") == [Level.WARNING, Level.CRITICAL]


def test_silent_server() -> None:
    """A server that is not there is a finding, not a crash; the session does not go on asking."""
    before = set(threading.enumerate())
    found = own_findings("zookeeper://127.0.0.1:1")
    assert levels(found, "servers") == [Level.WARNING]
    end = time.monotonic() + PATIENCE
    while set(threading.enumerate()) - before:
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.01)
    assert levels(check_reached([facts(mode="")]), "servers") == [Level.WARNING]


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 4, 14), Level.CRITICAL),
        ((3, 6, 3), Level.INFO),
        ((3, 9, 2), Level.OK),
        ((), Level.INFO),
    ],
)
def test_versions(version: tuple[int, ...], level: Level) -> None:
    """3.5 is needed, 3.8 still gets fixes."""
    assert levels(check_versions([facts(version=version)]), "version") == [level]


@pytest.mark.parametrize(
    ("members", "level"), [(1, Level.WARNING), (3, Level.OK), (4, Level.INFO), (5, Level.OK)]
)
def test_members(members: int, level: Level) -> None:
    """Odd numbers above one."""
    assert levels(check_members([facts()], members, members), "members") == [level]


def test_what_servers_do_not_say() -> None:
    """Without the words for it, nothing is claimed about disks and ticks."""
    assert levels(check_disk([facts()]), "disk") == [Level.INFO]
    assert list(check_sessions(from_url("zookeeper://a"), [facts(answers=False)], None)) == []


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("zookeeper://127.0.0.1,localhost", Level.OK),
        ("zookeeper://10.0.0.1", Level.INFO),
        ("zookeeper://u:p@10.0.0.1", Level.WARNING),
        ("zookeeper://u:p@10.0.0.1?ssl_cert_reqs=none", Level.WARNING),
        ("zookeeper://u:p@10.0.0.1?tls=yes", Level.OK),
    ],
)
def test_way(url: str, level: Level) -> None:
    """A password goes over TLS, or stays on this machine."""
    assert levels(check_way(from_url(url)), "encryption") == [level]
