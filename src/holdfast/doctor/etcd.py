"""Checks of etcd://: a cluster that keeps its log, its leases and its majority."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import LockError
from ..etcd_link import GRANT, REVOKE, LeaseGone, Link, Settings, messages
from .etcd_facts import SYNCS, TIMEOUT, MemberFacts, ask
from .finding import Finding, Level, Patient

OLDEST = (3, 4)
CURRENT = {(3, 5): 33, (3, 6): 14, (3, 7): 1}  # the first of each series with all security fixes
QUOTA = 2 * 1024**3  # bytes of a database, unless it is set up otherwise
FULL = 0.8  # of the quota
SLOW_DISK = 0.010  # seconds


class Bug(NamedTuple):
    """What some versions do to leases or revisions; `fixed` is the first good one of a series."""

    fixed: dict[tuple[int, int], int]
    level: Level
    what: str


BUGS = (
    Bug(
        {(3, 4): 31, (3, 5): 13},
        Level.WARNING,
        "a leader that was stopped for longer than a TTL and comes back may revoke leases that "
        "are alive: their holders are told at once, but another may be let in a moment before",
    ),
    Bug(
        {(3, 4): 32, (3, 5): 14},
        Level.WARNING,
        "a crash in the middle of a compaction may set revisions back, and tokens with them",
    ),
    Bug(
        {(3, 4): 38, (3, 5): 23, (3, 6): 5},
        Level.INFO,
        "a keep-alive may be answered for a lease that was revoked; holdfast reads its key to know",
    ),
)


def check(patient: Patient) -> Iterator[Finding]:
    """Examine each member: way, answers, version, size, alarms, disk; and the shortest lease."""
    engine: Any = patient.client.engine
    settings: Settings = engine.settings
    yield from check_way(settings)
    facts = ask(settings)
    answering = [one for one in facts if not one.problem]
    if not answering:
        return  # which the check of all engines reports
    yield from check_answers(settings.location, facts)
    yield from check_members(settings.location, answering)
    for one in answering:
        yield from check_version(one)
        yield from check_alarms(one)
        yield from check_disk(one)
    yield from check_shortest(engine.link, settings.location)


def check_way(settings: Settings) -> Iterator[Finding]:
    """Whoever reads what we send can log in as we do; whoever can connect may break locks."""
    where = settings.location
    if settings.channel is not None:
        yield Finding(Level.OK, "encryption", "A channel was given: how it is secured is its own.")
        return
    if all(_is_near(endpoint) for endpoint in settings.endpoints):
        yield Finding(Level.OK, "encryption", f"{where} is on this machine.")
    elif settings.tls is None:
        secret = settings.username is not None
        what = "the password and all locks" if secret else "all locks"
        yield Finding(
            Level.WARNING if secret else Level.INFO,
            "encryption",
            f"{where} is another machine, and {what} can be read and changed on the way there.",
            "Let the servers speak TLS, and use etcds://.",
        )
    else:
        yield Finding(Level.OK, "encryption", f"{where} is reached by TLS, certificates checked.")
    if settings.username is None and not settings.files.get("ssl_certfile"):
        yield Finding(
            Level.INFO,
            "users",
            f"{where} is used without a user: whoever reaches it may take and break any lock.",
            "Enable authentication, with a role for this namespace only.",
        )


def _is_near(endpoint: str) -> bool:
    host = endpoint.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_answers(where: str, facts: Sequence[MemberFacts]) -> Iterator[Finding]:
    """Each member that the URL names should answer."""
    for one in facts:
        if one.problem:
            yield Finding(
                Level.WARNING,
                "members",
                f"{one.endpoint} gave no answer: {one.problem.rstrip('.')}.",
                "Bring it back, or take it out of the URL; the others are used meanwhile.",
            )
        elif one.learner:
            yield Finding(
                Level.WARNING,
                "members",
                f"{one.endpoint} is a learner, which answers no reads that locks can rely on.",
                "Promote it, or take it out of the URL.",
            )
    if len({one.cluster for one in facts if not one.problem}) > 1:
        yield Finding(
            Level.CRITICAL,
            "members",
            f"{where} names members of different clusters: each would grant the same lock.",
            "Name members of one cluster only.",
        )


def check_members(where: str, facts: Sequence[MemberFacts]) -> Iterator[Finding]:
    """A majority must be left when one is lost, and be reachable."""
    count = max(one.members for one in facts)
    if not count:
        return  # it does not say
    if count == 1:
        yield Finding(
            Level.WARNING,
            "cluster",
            f"{where} is a single member: while it is away nobody gets a lock, and if its disk is "
            "lost so are all locks, and tokens begin again at 1.",
            "Let three members or five run, on different machines.",
        )
    elif count % 2 == 0:
        yield Finding(
            Level.INFO,
            "cluster",
            f"{where} has {count} members: as many may fail as of {count - 1}.",
            f"Let {count - 1} or {count + 1} run.",
        )
    else:
        may = "one" if count == 3 else f"{count // 2}"
        yield Finding(Level.OK, "cluster", f"{where} has {count} members, of which {may} may fail.")
    if len(facts) < count:
        yield Finding(
            Level.INFO,
            "cluster",
            f"The URL names {len(facts)} of {count} members: when those are lost the rest is not "
            "found.",
            "Name all members in the URL.",
        )


def check_version(one: MemberFacts) -> Iterator[Finding]:
    """Some versions have lost leases or revisions."""
    where, number = one.endpoint, one.number
    if not number:
        return
    series, patch = (number[0], number[1]), number[2]
    if series < OLDEST:
        yield Finding(
            Level.CRITICAL,
            "version",
            f"{where} is etcd {one.version}, which does not know all that locks need.",
            "Update it to 3.5.33, 3.6.14 or later.",
        )
        return
    bugs = [bug for bug in BUGS if patch < bug.fixed.get(series, 0)]
    for bug in bugs:
        yield Finding(
            bug.level,
            "version",
            f"{where} is etcd {one.version}, in which {bug.what}.",
            "Update it to 3.5.33, 3.6.14 or later; let the resource check tokens meanwhile.",
        )
    old = series < min(CURRENT) or patch < CURRENT.get(series, 0)
    if old and not bugs:
        yield Finding(
            Level.INFO,
            "version",
            f"{where} is etcd {one.version}, which lacks security fixes: users may get around "
            "their rights.",
            "Update it to 3.5.33, 3.6.14 or later.",
        )
    elif not bugs:
        yield Finding(Level.OK, "version", f"{where} is etcd {one.version}.")


def check_alarms(one: MemberFacts) -> Iterator[Finding]:
    """A member without space refuses locks; one that disagrees with others cannot be believed."""
    where = one.endpoint
    if "CORRUPT" in one.alarms:
        yield Finding(
            Level.CRITICAL,
            "alarm",
            f"{where} says that members disagree about their data (CORRUPT).",
            "Stop relying on locks there; replace the member that is wrong.",
        )
    if "NOSPACE" in one.alarms:
        yield Finding(
            Level.CRITICAL,
            "alarm",
            f"{where} has no space left (NOSPACE): no lock can be taken, only given back.",
            "Compact and defragment it, or raise --quota-backend-bytes; then 'etcdctl alarm "
            "disarm'.",
        )
    elif one.size > FULL * one.metrics.get("etcd_server_quota_backend_bytes", QUOTA):
        yield Finding(
            Level.WARNING,
            "space",
            f"{where} has a database of {one.size / 1024**2:,.0f} MiB, close to its quota; once "
            "that is full no lock can be taken.",
            "Compact it regularly (--auto-compaction-retention), defragment it, or raise the "
            "quota.",
        )


def check_disk(one: MemberFacts) -> Iterator[Finding]:
    """What is not on disk is forgotten by a power failure; a slow disk costs leases."""
    metrics, where = one.metrics, one.endpoint
    synced = metrics.get(SYNCS)
    if synced is None:
        return
    if one.syncs == 0:
        yield Finding(
            Level.CRITICAL,
            "fsync",
            f"{where} does not wait for its disk (--unsafe-no-fsync): a power failure forgets "
            "locks that were granted, and tokens are given twice.",
            "Start it without that flag.",
        )
        return
    mean = metrics.get("etcd_disk_wal_fsync_duration_seconds_sum", 0.0) / max(synced, 1.0)
    if mean > SLOW_DISK:
        yield Finding(
            Level.WARNING,
            "fsync",
            f"{where} waits {mean * 1000:.0f} ms for its disk on average; leaders are lost that "
            "way, and leases with them.",
            "Give it a faster disk of its own, or raise its election timeout and your TTLs.",
        )
    else:
        yield Finding(Level.OK, "fsync", f"{where} writes every lock to disk before it answers.")


def check_shortest(link: Link, where: str) -> Iterator[Finding]:
    """The shortest lease follows from the election timeout."""
    try:
        lease = link.call(GRANT, messages.LeaseGrantRequest(TTL=1), TIMEOUT)
        link.call(REVOKE, messages.LeaseRevokeRequest(ID=lease.ID), TIMEOUT)
    except (LockError, LeaseGone):
        return  # which others report
    yield Finding(
        Level.OK,
        "shortest TTL",
        f"{where} keeps leases of {lease.TTL} s and more; shorter ones are refused.",
    )
