"""Checks of postgresql://: the way there, the tables, our rights, messages, and the server."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import EngineUnavailable
from ..postgres_link import Settings, addresses
from ..postgres_record import VERSION, creation, quoted
from .finding import Finding, Level, Patient
from .postgres_facts import Connection, ask, connected, read_clock, rows
from .postgres_server import (
    check_clock,
    check_durability,
    check_isolation,
    check_kind,
    check_sessions,
    check_standbys,
)

TIMEOUT = 2.0  # seconds for a message
TABLES = ("record", "holder", "waiter", "tombstone", "folded")
RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
VERIFIED = ("verify-ca", "verify-full")


def check(patient: Patient) -> Iterator[Finding]:
    """Examine way, server, tables, rights and messages."""
    engine: Any = patient.client.engine
    settings: Settings = engine.node.settings
    schema: str = engine.node.statements.schema
    try:
        facts = ask(settings)
    except EngineUnavailable:
        return  # which the check of all engines reports
    with connected(settings) as connection:
        yield from check_way(settings, connection)
        yield from check_kind(facts)
        yield from check_tables(settings, connection, schema, engine.creates)
        yield from check_rights(settings, connection, schema)
        yield from check_messages(settings, connection, pooled=facts.pooled, wanted=engine.listen)
        yield from check_durability(facts)
        yield from check_standbys(facts)
        yield from check_isolation(facts)
        yield from check_sessions(facts)
        yield from check_clock(settings.location, *read_clock(connection))


# --- The way. ---


def check_way(settings: Settings, connection: Connection) -> Iterator[Finding]:
    """Whoever reads what we send can log in as we do; whoever can connect may break locks."""
    where, pgconn = settings.location, connection.pgconn
    if _is_near(settings):
        yield Finding(Level.OK, "encryption", f"{where} is on this machine.")
    elif not pgconn.ssl_in_use:
        yield Finding(
            Level.WARNING,
            "encryption",
            f"{where} is another machine, and all that is sent can be read and changed on the way.",
            "Let the server speak TLS, and say sslmode=verify-full in the URL.",
        )
    elif settings.parameters.get("sslmode") not in VERIFIED:
        yield Finding(
            Level.WARNING,
            "encryption",
            f"{where} could be anybody: its certificate is not checked.",
            "Say sslmode=verify-full&sslrootcert=FILE in the URL.",
        )
    else:
        yield Finding(
            Level.OK, "encryption", f"{where} is reached by TLS, and has to prove itself."
        )
    if (
        not _is_near(settings)
        and not pgconn.used_password
        and not settings.parameters.get("sslcert")
    ):
        yield Finding(
            Level.WARNING,
            "password",
            f"{where} lets this user in without a password or certificate, from another machine.",
            "Ask for scram-sha-256 in pg_hba.conf.",
        )


def _is_near(settings: Settings) -> bool:
    for where in addresses(settings.parameters):
        if not where.host or where.host.startswith(("/", "@")):
            continue
        try:
            found = socket.getaddrinfo(where.host, where.port or None, type=socket.SOCK_STREAM)
        except OSError:
            return False
        numbers = [str(address[0]).partition("%")[0] for *_, address in found]
        if not all(ipaddress.ip_address(number).is_loopback for number in numbers):
            return False
    return True


# --- Tables and rights. ---


def check_tables(
    settings: Settings, connection: Connection, schema: str, creates: bool
) -> Iterator[Finding]:
    """The tables must be there, and of the version that this holdfast speaks."""
    where = settings.location
    there = rows(
        connection,
        "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relname = 'record' "
        "AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)",
        schema,
    )
    version = there[0][0] if there else None
    if version == VERSION:
        yield Finding(Level.OK, "tables", f"{where} has the tables of locks in schema {schema!r}.")
    elif version is None:
        yield Finding(
            Level.INFO if creates else Level.CRITICAL,
            "tables",
            f"{where} has no {'complete ' if there else ''}tables of locks in schema {schema!r}"
            + (" yet." if creates else ", and this client may not make them (create=False)."),
            "They are made on first use, or now." if creates else "Make them now.",
            _create(settings, schema),
        )
    else:
        yield Finding(
            Level.CRITICAL,
            "tables",
            f"{where} has tables of {version!r} in schema {schema!r}, this is {VERSION!r}.",
            "Let all clients use one version of holdfast, or give this one another schema=.",
        )


def _create(settings: Settings, schema: str) -> Callable[[], object]:
    def create() -> None:
        with connected(settings) as connection:
            connection.execute(creation(schema).encode())

    return create


def grants(schema: str, user: str) -> list[str]:
    """Return what gives a user all rights that locks need, and no others."""
    inside, who = quoted(schema), quoted(user)
    return [
        f"GRANT USAGE ON SCHEMA {inside} TO {who}",
        f"GRANT {', '.join(RIGHTS)} ON ALL TABLES IN SCHEMA {inside} TO {who}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {inside} TO {who}",
    ]


def check_rights(settings: Settings, connection: Connection, schema: str) -> Iterator[Finding]:
    """Each right by itself: what is missing shows only when it is needed, otherwise."""
    where, inside = settings.location, quoted(schema)
    ((user, exists),) = rows(
        connection,
        "SELECT current_user, EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)",
        schema,
    )
    if not exists:
        ((may,),) = rows(connection, "SELECT has_database_privilege(current_database(), 'CREATE')")
        if not may:
            yield Finding(
                Level.CRITICAL,
                "rights",
                f"{where} does not let {user} make the schema {schema!r}.",
                "Let an administrator run holdfast doctor --fix, and then: "
                f"{'; '.join(grants(schema, user))};",
            )
        return
    missing: list[str] = []
    ((usage,),) = rows(connection, "SELECT has_schema_privilege(%s, 'USAGE')", schema)
    if not usage:
        missing.append(f"USAGE on schema {schema}")
    for table, right, has in rows(
        connection,
        "SELECT c.relname, r, has_table_privilege(c.oid, r) "
        "FROM pg_class c, unnest(%s::text[]) AS r WHERE c.relname = ANY (%s) "
        "AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)",
        list(RIGHTS),
        list(TABLES),
        schema,
    ):
        if not has:
            missing.append(f"{right} on {inside}.{table}")
    for name, has in rows(
        connection,
        "SELECT p.proname, has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p WHERE "
        "p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)",
        schema,
    ):
        if not has:
            missing.append(f"EXECUTE on {inside}.{name}")
    if missing:
        yield Finding(
            Level.CRITICAL,
            "rights",
            f"{where} does not give {user}: {', '.join(missing)}.",
            f"Let the owner of the schema run: {'; '.join(grants(schema, user))};",
        )
    else:
        yield Finding(Level.OK, "rights", f"{where} gives {user} all rights that locks need.")


# --- Messages. ---


def check_messages(
    settings: Settings, connection: Connection, *, pooled: bool, wanted: str
) -> Iterator[Finding]:
    """Send ourselves a message, as a waiter gets its lock; without them waiters have to look."""
    where = settings.location
    harm = "waiters look four times a second, and one that has died is found out late"
    if wanted == "no" or (pooled and wanted == "auto"):
        why = "a pooler stands between" if pooled else "listen=no was said"
        yield Finding(
            Level.INFO,
            "messages",
            f"{where} cannot tell waiters when it is their turn ({why}): {harm}.",
            "Connect past the pooler, or let it keep sessions apart and say listen=yes."
            if pooled
            else "Leave listen=no out where no pooler stands between.",
        )
        return
    channel = f"holdfast:{secrets.token_hex(8)}"
    with connected(settings) as other:
        other.execute(f'LISTEN "{channel}"'.encode())
        connection.execute(b"SELECT pg_notify(%s, 'x')", (channel,))
        heard = any(True for _ in other.notifies(timeout=TIMEOUT, stop_after=1))
    if heard:
        yield Finding(Level.OK, "messages", f"{where} tells waiters when it is their turn.")
        return
    yield Finding(
        Level.WARNING,
        "messages",
        f"{where} did not deliver a message within {TIMEOUT:g} s: {harm}.",
        "If a pooler in transaction mode stands between, say listen=no; else look at its log.",
    )
