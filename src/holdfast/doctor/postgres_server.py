"""Checks of one PostgreSQL server by what it says of itself: will it keep what it has granted?"""

from __future__ import annotations

from collections.abc import Iterator

from .finding import Finding, Level
from .postgres_facts import Facts

OLDEST = 120000
TESTED = 150000
FULL = 0.9  # of max_connections
CLOCK_OFF = 0.010
CLOCK_WRONG = 0.100


def check_kind(facts: Facts) -> Iterator[Finding]:
    """A version that is too old lacks what the functions need, a standby takes no writes."""
    where, name = facts.location, facts.settings.get("server_version", "?")
    old = facts.version < OLDEST
    yield Finding(
        Level.CRITICAL if old else Level.INFO if facts.version < TESTED else Level.OK,
        "version",
        f"{where} is PostgreSQL {name}"
        + (", which is too old for the functions that locks are made of." if old else "."),
        "" if facts.version >= TESTED else "Locks are tested on PostgreSQL 15 and later: update.",
    )
    if facts.standby:
        yield Finding(
            Level.CRITICAL,
            "role",
            f"{where} is a standby, and takes no locks.",
            "Name all hosts in the URL, postgresql://one,two/db: the primary is found by itself.",
        )


def check_durability(facts: Facts) -> Iterator[Finding]:
    """What was granted must not be forgotten in a crash: `guarantees` count on it."""
    where, said = facts.location, facts.settings
    for name, harm in (
        ("fsync", "a power failure may damage all data, locks included"),
        ("full_page_writes", "a power failure may damage pages that were half written"),
    ):
        if said.get(name) == "off":
            yield Finding(
                Level.WARNING,
                "durability",
                f"{where} has {name} = off: {harm}.",
                f"Set {name} = on in postgresql.conf.",
            )
    if said.get("synchronous_commit") == "off":
        yield Finding(
            Level.WARNING,
            "durability",
            f"{where} has synchronous_commit = off for this user: a crash forgets the grants of "
            "the last moments, and two may hold the same lock.",
            "ALTER ROLE … SET synchronous_commit = on, for the user that takes locks.",
        )
    elif said.get("fsync") == said.get("full_page_writes") == "on":
        yield Finding(Level.OK, "durability", f"{where} has on disk what it has granted.")


def check_standbys(facts: Facts) -> Iterator[Finding]:
    """A standby that takes over knows only what it has heard."""
    where = facts.location
    if not facts.standbys:
        yield Finding(Level.OK, "failover", f"{where} has no standby that this user can see.")
        return
    waits = [name for name, state in facts.standbys if state in ("sync", "quorum")]
    if waits and facts.settings.get("synchronous_commit") not in ("off", "local"):
        yield Finding(
            Level.OK,
            "failover",
            f"{where} waits for {', '.join(map(str, waits))} before it grants.",
        )
        return
    yield Finding(
        Level.INFO,
        "failover",
        f"{where} has {len(facts.standbys)} standby servers and waits for none of them: one that "
        "takes over may have missed the last grants, and two then hold the same lock for a TTL. "
        "Tokens rise all the same.",
        "Set synchronous_standby_names, or let the resource check tokens (holdfast.guards).",
    )


def check_isolation(facts: Facts) -> Iterator[Finding]:
    """Behind a pooler a session cannot choose: the default must be what the functions need."""
    level = facts.settings.get("default_transaction_isolation", "read committed")
    if facts.pooled and level != "read committed":
        yield Finding(
            Level.CRITICAL,
            "isolation",
            f"{facts.location} runs transactions of this user as {level!r}, and a pooler keeps us "
            "from asking for another: claims that meet fail.",
            "ALTER ROLE … SET default_transaction_isolation = 'read committed'.",
        )


def check_sessions(facts: Facts) -> Iterator[Finding]:
    """Transactions that stay open keep rows locked, and dead rows from being removed."""
    where = facts.location
    limit = int(facts.settings.get("max_connections", "0"))
    limit -= int(facts.settings.get("superuser_reserved_connections", "0"))
    if limit and facts.sessions > FULL * limit:
        yield Finding(
            Level.WARNING,
            "connections",
            f"{where} has {facts.sessions} of {limit} connections in use: soon nobody gets in, and "
            "leases cannot be renewed by who has to connect again.",
            "Raise max_connections, or put PgBouncer before it.",
        )
    for pid, user, program, seconds in facts.idle:
        yield Finding(
            Level.WARNING,
            "idle in transaction",
            f"{where} has a session (pid {pid}, {user}, {program or 'nameless'}) that is idle in a "
            f"transaction for {float(seconds):.0f} s: whatever rows it has locked stay so.",
            f"Let that program end its transactions, or SELECT pg_terminate_backend({pid}); set "
            "idle_in_transaction_session_timeout.",
        )
    for pid, user, program, seconds in facts.oldest:
        yield Finding(
            Level.WARNING,
            "long transaction",
            f"{where} has a transaction (pid {pid}, {user}, {program or 'nameless'}) that is open "
            f"for {float(seconds) / 60:.0f} min: rows of locks that changed since then cannot be "
            "cleaned up, and each use of a busy lock gets slower.",
            "Keep transactions short, and long queries on a standby.",
        )
    if not facts.idle and not facts.oldest:
        yield Finding(Level.OK, "transactions", f"{where} has none that stays open for long.")
    if facts.settings.get("autovacuum") == "off":
        yield Finding(
            Level.WARNING,
            "autovacuum",
            f"{where} has autovacuum = off: the tables of locks only ever grow.",
            "Set autovacuum = on.",
        )


def check_clock(location: str, ahead: float, doubt: float) -> Iterator[Finding]:
    """One clock off does no harm; but it is set right one day, and then locks end early or late."""
    apart = max(0.0, abs(ahead) - doubt)
    if apart <= CLOCK_OFF:
        yield Finding(Level.OK, "clock", f"{location} and this machine agree on the time.")
        return
    way = "ahead of" if ahead > 0 else "behind"
    yield Finding(
        Level.WARNING if apart > CLOCK_WRONG else Level.INFO,
        "clock",
        f"{location} has a clock {apart:.3g} s {way} this machine's; that does no harm, but when "
        "it is set right, locks end early or late by that much.",
        "Let NTP run on both, and never let it set the server's clock in a step.",
    )
