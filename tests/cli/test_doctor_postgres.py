"""The doctor on PostgreSQL: what a real server says, what it may say, and what is to be done."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import holdfast
from holdfast.doctor import Finding, Level, Patient, examine, postgres
from holdfast.doctor.postgres import check_way, grants
from holdfast.doctor.postgres_facts import QUESTIONS, Facts, connected
from holdfast.doctor.postgres_server import (
    check_clock,
    check_durability,
    check_isolation,
    check_kind,
    check_sessions,
    check_standbys,
)
from holdfast.postgres_link import from_url
from holdfast.testing.servers import PostgresServer, need, postgres_program
from holdfast.testing.servers.pgbouncer import PgBouncer, pgbouncer_program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines" / "postgresql.md"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for all tests here; it keeps data as a doctor likes it."""
    with PostgresServer(need(postgres_program), options={"fsync": "on"}) as server:
        yield server


@pytest.fixture(autouse=True)
def no_tables(server: PostgresServer) -> None:
    """Begin each test without tables, and without the user of another."""
    run(server, "DROP SCHEMA IF EXISTS holdfast CASCADE")
    run(server, "DROP ROLE IF EXISTS app")


def run(server: PostgresServer, *texts: str) -> None:
    """Run statements on the server."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        for text in texts:
            connection.execute(text.encode())


def complete(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, each of which must be whole sentences."""
    found = list(findings)
    for finding in found:
        assert finding.title
        assert finding.detail.endswith((".", ")"))
        assert finding.remedy or finding.level is Level.OK or finding.title == "settings"
    return found


def own_findings(url: str, **options: Any) -> list[Finding]:
    """Return what the checks of this engine find."""
    with holdfast.connect(url, connect_timeout=5, **options) as client:
        return complete(postgres.check(Patient(client)))


def all_findings(url: str, **options: Any) -> list[Finding]:
    """Return what all checks find."""
    with holdfast.connect(url, connect_timeout=5, **options) as client:
        return complete(examine(Patient(client)))


def levels(findings: Iterable[Finding], title: str) -> list[Level]:
    """Return how bad the findings of a title are."""
    return [finding.level for finding in complete(findings) if finding.title == title]


def bad(findings: Iterable[Finding]) -> list[str]:
    """Return the titles of what should be done something about."""
    return [finding.title for finding in complete(findings) if finding.level.bad]


def facts(**changes: Any) -> Facts:
    """Return what a server that is well might say of itself."""
    said = {
        "server_version_num": "150018",
        "server_version": "15.18",
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "autovacuum": "on",
        "max_connections": "100",
        "superuser_reserved_connections": "3",
        "default_transaction_isolation": "read committed",
    }
    said |= changes.pop("settings", {})
    known: dict[str, Any] = {
        "location": "postgresql://there:5432/db",
        "settings": said,
        "standbys": [],
        "sessions": 5,
        "idle": [],
        "oldest": [],
        "pooled": False,
        "standby": False,
    }
    return Facts(**known | changes)


# --- A real server. ---


def test_healthy_server(server: PostgresServer) -> None:
    """Nothing to complain about, and nothing left behind but the tables."""
    found = all_findings(server.url)
    assert bad(found) == []
    for title in ("encryption", "version", "messages", "durability", "clock", "lock", "tokens"):
        assert levels(found, title) == [Level.OK], title
    assert levels(found, "tables") == [Level.INFO], "they are made on first use"
    assert levels(own_findings(server.url), "tables") == [Level.OK]


def test_fix_makes_the_tables(server: PostgresServer) -> None:
    """The command line makes the tables for those who may not, and says what it did."""
    url = f"{server.url}?create=no"
    command = [sys.executable, "-m", "holdfast", "doctor", "--json", "--url", url]
    for fix, code in (("--json", 1), ("--fix", 0), ("--json", 0)):
        done = subprocess.run([*command, fix], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        findings = json.loads(done.stdout)["findings"]
        (tables,) = [one for one in findings if one["title"] == "tables"]
        if fix == "--fix":
            assert tables["fixed"]
    assert tables["level"] == "ok"


def test_tables_of_another_version(server: PostgresServer) -> None:
    """They are not touched."""
    with holdfast.connect(server.url) as client:
        client.ping()
    run(server, "COMMENT ON TABLE holdfast.record IS 'holdfast 99'")
    (found,) = [one for one in own_findings(server.url) if one.title == "tables"]
    assert found.level is Level.CRITICAL
    assert not found.fixable
    assert "holdfast 99" in found.detail


def test_server_that_does_not_answer() -> None:
    """That is said once, by the check of all engines."""
    found = all_findings("postgresql://nobody@127.0.0.1:1/db")
    assert bad(found) == ["reachable"]


# --- Rights. ---


def as_app(server: PostgresServer, *statements: str) -> str:
    """Return the URL of a user with these rights and no others."""
    run(server, "CREATE ROLE app LOGIN", *statements)
    return server.url.replace("postgres@", "app@") + "?create=no"


def make_tables(server: PostgresServer) -> None:
    """Let an administrator make the tables."""
    with holdfast.connect(server.url) as client:
        client.ping()


def test_least_rights(server: PostgresServer) -> None:
    """A user with the listed rights and no others can do everything; they are those on the page."""
    make_tables(server)
    run(server, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC")
    wanted = grants("holdfast", "app")
    lines = re.findall(r"^(GRANT .*);$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert lines == wanted
    url = as_app(server, *wanted)
    assert bad(all_findings(url)) == []
    with holdfast.connect(url) as client:
        permits = [client.semaphore("s", 2).acquire(timeout=5) for _ in range(2)]
        assert client.semaphore("s", 2).acquire(timeout=0.3) is None
        assert client.force_release("s") == len(permits)
    run(server, "DROP OWNED BY app")


@pytest.mark.parametrize(
    "missing", ["USAGE on schema", "UPDATE on holdfast.record", "EXECUTE on holdfast.claim"]
)
def test_each_missing_right_is_named_and_its_remedy_works(
    server: PostgresServer, missing: str
) -> None:
    """The remedy is SQL for the owner as it stands."""
    make_tables(server)
    run(server, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC")
    url = as_app(server, *grants("holdfast", "app"))
    what, where = missing.split(" on ")
    names = {"schema": "SCHEMA holdfast", "holdfast.record": "TABLE holdfast.record"}
    run(server, f"REVOKE {what} ON {names.get(where, 'FUNCTION holdfast.claim')} FROM app")
    (found,) = [one for one in own_findings(url) if one.title == "rights"]
    assert found.level is Level.CRITICAL
    assert missing in found.detail
    run(server, *found.remedy.partition(": ")[2].rstrip(";").split("; "))
    assert levels(own_findings(url), "rights") == [Level.OK]
    run(server, "DROP OWNED BY app")


def test_user_who_may_not_make_a_schema(server: PostgresServer) -> None:
    """What an administrator has to do is said in full."""
    run(server, "REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    (found,) = [one for one in own_findings(as_app(server)) if one.title == "rights"]
    assert found.level is Level.CRITICAL
    assert "GRANT USAGE" in found.remedy


# --- A pooler. ---


def test_behind_a_pooler(server: PostgresServer) -> None:
    """It is said that nobody is woken; nothing else is wrong."""
    need(pgbouncer_program)
    with PgBouncer(server) as bouncer:
        found = all_findings(bouncer.url)
        assert bad(found) == []
        assert levels(found, "messages") == [Level.INFO]
        assert levels(own_findings(f"{bouncer.url}?listen=no"), "messages") == [Level.INFO]
        # A pooler of which somebody says that it keeps sessions apart, and it does not.
        assert levels(own_findings(f"{bouncer.url}?listen=yes"), "messages") == [Level.WARNING]


# --- Sessions of others. ---


def test_idle_in_transaction(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that does nothing in a transaction is shown, with what ends it."""
    monkeypatch.setitem(QUESTIONS, "idle", QUESTIONS["idle"].replace("10 s", "0 s"))
    with psycopg.connect(server.url) as stranger:
        stranger.execute("SELECT 1")
        (found,) = [one for one in own_findings(server.url) if one.title == "idle in transaction"]
        assert f"pg_terminate_backend({stranger.info.backend_pid})" in found.remedy
        stranger.rollback()
    assert levels(own_findings(server.url), "transactions") == [Level.OK]


# --- What a server might say. ---


def test_what_is_well() -> None:
    """A server as it should be."""
    for check in (check_kind, check_durability, check_standbys, check_isolation, check_sessions):
        assert bad(check(facts())) == []


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_durability(name: str) -> None:
    """Each setting that forgets grants is named."""
    (found,) = complete(check_durability(facts(settings={name: "off"})))
    assert found.level is Level.WARNING
    assert name in found.detail


def test_versions_and_roles() -> None:
    """Old is info, too old and standby are critical."""
    old = {"server_version_num": "130004", "server_version": "13.4"}
    assert levels(check_kind(facts(settings=old)), "version") == [Level.INFO]
    too_old = {"server_version_num": "110004", "server_version": "11.4"}
    assert levels(check_kind(facts(settings=too_old)), "version") == [Level.CRITICAL]
    assert levels(check_kind(facts(standby=True)), "role") == [Level.CRITICAL]


def test_standbys() -> None:
    """One that is waited for has all grants, the others may lag."""
    assert levels(check_standbys(facts(standbys=[("b", "async")])), "failover") == [Level.INFO]
    for state in ("sync", "quorum"):
        assert levels(check_standbys(facts(standbys=[("b", state)])), "failover") == [Level.OK]
    local = facts(standbys=[("b", "sync")], settings={"synchronous_commit": "local"})
    assert levels(check_standbys(local), "failover") == [Level.INFO]


def test_isolation() -> None:
    """Only a pooler keeps us from saying what we need."""
    strict = {"default_transaction_isolation": "serializable"}
    assert bad(check_isolation(facts(settings=strict))) == []
    assert bad(check_isolation(facts(settings=strict, pooled=True))) == ["isolation"]


def test_sessions() -> None:
    """Few connections left, transactions that stay open, no autovacuum."""
    assert bad(check_sessions(facts(sessions=95))) == ["connections"]
    assert bad(check_sessions(facts(oldest=[(1, "u", "", 4000)]))) == ["long transaction"]
    assert bad(check_sessions(facts(settings={"autovacuum": "off"}))) == ["autovacuum"]


@pytest.mark.parametrize(
    ("ahead", "level"), [(0.001, Level.OK), (-0.05, Level.INFO), (3600.0, Level.WARNING)]
)
def test_clock(ahead: float, level: Level) -> None:
    """A clock far off is a step to come."""
    assert levels(check_clock("there", ahead, 0.002), "clock") == [level]


def test_way(server: PostgresServer) -> None:
    """Another machine has to prove itself and to ask for a password; this one need not."""
    with connected(from_url(server.url)) as connection:
        assert bad(check_way(from_url(server.url), connection)) == []
        far = from_url("postgresql://192.0.2.1/db")
        assert bad(check_way(far, connection)) == ["encryption", "password"]
