"""The doctor on etcd: versions that lost leases, small clusters, disks that nobody waits for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast.doctor import Finding, Level, Patient, etcd, examine
from holdfast.doctor.etcd import (
    check_alarms,
    check_answers,
    check_disk,
    check_members,
    check_version,
    check_way,
)
from holdfast.doctor.etcd_facts import MemberFacts
from holdfast.etcd_link import from_url
from holdfast.testing.servers import EtcdServer, etcd_program, need
from tests.cli.conftest import Commands

WHERE = "there:2379"
FSYNC = "etcd_disk_wal_fsync_duration_seconds"


def complete(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, each of which must be whole sentences."""
    found = list(findings)
    for finding in found:
        assert finding.title
        assert finding.detail.endswith((".", ")"))
        assert finding.remedy or finding.level is Level.OK or finding.title == "settings"
    return found


def levels(findings: Iterable[Finding], title: str = "") -> list[Level]:
    """Return how bad the findings of a title are."""
    return [one.level for one in complete(findings) if one.title == title or not title]


@pytest.fixture(scope="module")
def server() -> Iterator[EtcdServer]:
    """One server for those tests that need one."""
    with EtcdServer(need(etcd_program)) as running:
        yield running


# --- On a real server. ---


def test_server_of_the_tests(server: EtcdServer, commands: Commands) -> None:
    """It is alone, and does not wait for its disk; all of that is found, with its remedy."""
    commands.environment["HOLDFAST_URL"] = server.url
    report = json.loads(commands.do("doctor", "--json", code=1))
    assert report["ok"] is False
    found = {one["title"]: one["level"] for one in report["findings"]}
    assert found["encryption"] == "ok"
    assert found["cluster"] == "warning"
    assert found["fsync"] == "critical"
    assert found["shortest TTL"] == "ok"
    assert found["lock"] == found["tokens"] == "ok"
    assert "version" in found
    assert server.keys() == []


def test_server_that_waits_for_its_disk() -> None:
    """Then its writes are on disk before they are answered."""
    with EtcdServer(need(etcd_program), fsync=True) as careful:
        with holdfast.connect(careful.url) as client:
            found = complete(etcd.check(Patient(client)))
    assert Level.CRITICAL not in levels(found, "fsync")


def test_server_that_is_not_there() -> None:
    """That is said once, and by what all engines share."""
    with holdfast.connect("etcd://127.0.0.1:1", connect_timeout=1) as client:
        found = complete(examine(Patient(client)))
    assert [one.title for one in found if one.level.bad] == ["reachable"]


def test_member_that_is_not_there(server: EtcdServer) -> None:
    """One of several is named, and the others are examined."""
    with holdfast.connect(f"{server.url},127.0.0.1:1") as client:
        found = complete(etcd.check(Patient(client)))
    (missing,) = [one for one in found if one.title == "members"]
    assert missing.level is Level.WARNING
    assert "127.0.0.1:1" in missing.detail


def test_server_with_tls() -> None:
    """Its metrics are read by the same certificates."""
    with EtcdServer(need(etcd_program), tls=True) as secure:
        url = f"{secure.url}?ssl_ca_certs={secure.directory}/ca.crt"
        with holdfast.connect(url) as client:
            client.ping()
            found = complete(etcd.check(Patient(client)))
    assert "fsync" in {one.title for one in found}


# --- On what a server might say. ---


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.3.25", [Level.CRITICAL]),
        ("3.4.23", [Level.WARNING, Level.WARNING, Level.INFO]),
        ("3.4.31", [Level.WARNING, Level.INFO]),
        ("3.4.38", [Level.INFO]),
        ("3.5.12", [Level.WARNING, Level.WARNING, Level.INFO]),
        ("3.5.22", [Level.INFO]),
        ("3.5.33", [Level.OK]),
        ("3.6.4", [Level.INFO]),
        ("3.6.5", [Level.INFO]),
        ("3.6.14", [Level.OK]),
        ("3.7.1", [Level.OK]),
        ("3.8.0", [Level.OK]),
        ("unknown", []),
    ],
)
def test_versions(version: str, expected: list[Level]) -> None:
    """Those that lost leases or set revisions back are warned of, others by what they lack."""
    assert levels(check_version(MemberFacts(WHERE, version=version))) == expected


@pytest.mark.parametrize(
    ("count", "named", "expected"),
    [
        (1, 1, [Level.WARNING]),
        (2, 2, [Level.INFO]),
        (3, 3, [Level.OK]),
        (3, 2, [Level.OK, Level.INFO]),
        (5, 5, [Level.OK]),
        (0, 1, []),
    ],
)
def test_members(count: int, named: int, expected: list[Level]) -> None:
    """One is too few, two are no better, and all of them should be known."""
    facts = [MemberFacts(WHERE, members=count, member=number) for number in range(named)]
    assert levels(check_members("etcd://there", facts)) == expected


def test_members_of_several_clusters() -> None:
    """A URL that mixes clusters grants the same lock in each: nothing is worse."""
    facts = [MemberFacts("a:1", cluster=1), MemberFacts("b:1", cluster=2)]
    assert levels(check_answers("etcd://a:1,b:1", facts)) == [Level.CRITICAL]
    learner = [MemberFacts("a:1", cluster=1, learner=True)]
    assert levels(check_answers("etcd://a:1", learner)) == [Level.WARNING]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"alarms": ("NOSPACE",)}, [Level.CRITICAL]),
        ({"alarms": ("CORRUPT",)}, [Level.CRITICAL]),
        ({"size": 2 * 1024**3}, [Level.WARNING]),
        ({"size": 1024}, []),
        ({"size": 900, "metrics": {"etcd_server_quota_backend_bytes": 1000.0}}, [Level.WARNING]),
    ],
)
def test_alarms(facts: dict[str, Any], expected: list[Level]) -> None:
    """No space, or soon none, and members that disagree."""
    assert levels(check_alarms(MemberFacts(WHERE, **facts))) == expected


@pytest.mark.parametrize(
    ("metrics", "syncs", "expected"),
    [
        ({}, None, []),
        ({f"{FSYNC}_count": 2.0, f"{FSYNC}_sum": 0.0}, None, [Level.OK]),
        ({f"{FSYNC}_count": 2.0, f"{FSYNC}_sum": 0.0}, 0.0, [Level.CRITICAL]),
        ({f"{FSYNC}_count": 500.0, f"{FSYNC}_sum": 0.5}, 3.0, [Level.OK]),
        ({f"{FSYNC}_count": 500.0, f"{FSYNC}_sum": 50.0}, 6.0, [Level.WARNING]),
    ],
)
def test_disk(metrics: dict[str, float], syncs: float | None, expected: list[Level]) -> None:
    """A disk that is never waited for, or for too long."""
    facts = MemberFacts(WHERE, metrics=metrics, syncs=syncs)
    assert levels(check_disk(facts)) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("etcd://127.0.0.1:2379,localhost", [Level.OK, Level.INFO]),
        ("etcd://there", [Level.INFO, Level.INFO]),
        ("etcd://me:word@there", [Level.WARNING]),
        ("etcds://me:word@there", [Level.OK]),
    ],
)
def test_way(url: str, expected: list[Level]) -> None:
    """A password must not go over the wire in the open; without a user anybody may do anything."""
    found = complete(check_way(from_url(url)))
    assert levels(found) == expected
    assert not any("word" in one.detail.replace("password", "") for one in found)
