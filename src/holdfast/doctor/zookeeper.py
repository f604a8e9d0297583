"""Checks of zookeeper://: enough servers, that keep what they say, and rights that are not open."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import LockError
from ..names import encode
from ..zookeeper_link import Settings
from ..zookeeper_link import requests as requests_for
from .finding import Finding, Level, Patient
from .zookeeper_facts import TIMEOUT, Facts, bounds, examine

USUAL = 30.0  # seconds: the TTL of a client that was told nothing else
OLDEST = (3, 5)  # knows containers, and tells the stat of what it has made
SUPPORTED = (3, 8)
READ = 1  # of the rights


def check(patient: Patient) -> Iterator[Finding]:
    """Examine way, members, versions, sessions, disk and rights."""
    engine: Any = patient.client.engine
    settings: Settings = engine.settings
    yield from check_way(settings)
    members = _members(engine)  # first, because it writes: a session is begun
    found = [examine(settings, address) for address in settings.hosts]
    yield from check_reached(found)
    there = [one for one in found if one.answers]
    if not there:
        return  # which the check of all engines reports
    yield from check_versions(there)
    yield from check_members(there, members, len(settings.hosts))
    yield from check_sessions(settings, found, engine.tick_time)
    yield from check_disk(there)
    yield from check_rights(engine, patient.client.namespace)


def check_way(settings: Settings) -> Iterator[Finding]:
    """Whoever reads what we send can log in as we do."""
    where = settings.location
    if all(_is_near(host) for host, _ in settings.hosts):
        yield Finding(Level.OK, "encryption", f"{where} is on this machine.")
    elif settings.tls is None:
        login = bool(settings.auth or settings.sasl)
        what = "the password and all locks" if settings.auth else "all locks"
        yield Finding(
            Level.WARNING if login else Level.INFO,
            "encryption",
            f"{where} is reached without TLS: {what} can be read and changed on the way there.",
            "Give the servers a secureClientPort, and use its port with ?tls=yes.",
        )
    elif settings.tls.verify_mode == ssl.CERT_NONE or not settings.tls.check_hostname:
        yield Finding(
            Level.WARNING,
            "encryption",
            f"{where} could be anybody: certificates, or the names in them, are not checked.",
            "Give the certificate of their authority by ssl_ca_certs=, and check both.",
        )
    else:
        yield Finding(
            Level.OK, "encryption", f"{where} is reached by TLS, and has to prove itself."
        )


def check_reached(found: Sequence[Facts]) -> Iterator[Finding]:
    """Every server of the URL should answer."""
    silent = [one.where for one in found if not one.answers]
    idle = [one.where for one in found if one.answers and not one.mode]
    if silent:
        yield Finding(
            Level.WARNING,
            "servers",
            f"No answer from {', '.join(silent)}.",
            "Start them, or take them out of the URL; a majority of all members must be up.",
        )
    if idle:
        yield Finding(
            Level.WARNING,
            "servers",
            f"{', '.join(idle)} run but do not serve: they have found no leader, or do not "
            "answer the word srvr.",
            "See that a majority of the members reach each other; put srvr on "
            "4lw.commands.whitelist.",
        )
    if not silent and not idle:
        yield Finding(Level.OK, "servers", "Every server of the URL answers.")


def check_versions(found: Sequence[Facts]) -> Iterator[Finding]:
    """Locks need 3.5; what is older than 3.8 gets no fixes any more."""
    versions = sorted({one.version for one in found if one.version})
    if not versions:
        yield Finding(
            Level.INFO,
            "version",
            "No server says which version it is.",
            "Put srvr on 4lw.commands.whitelist to have it checked.",
        )
        return
    oldest = versions[0]
    said = " and ".join(".".join(map(str, version)) for version in versions)
    if oldest < OLDEST:
        yield Finding(
            Level.CRITICAL,
            "version",
            f"ZooKeeper {said} is too old: locks need containers and answers with a stat.",
            "Use 3.5 or later, better one that gets fixes.",
        )
    elif oldest < SUPPORTED:
        yield Finding(
            Level.INFO, "version", f"ZooKeeper {said} gets no fixes any more.", "Use 3.8 or later."
        )
    else:
        yield Finding(Level.OK, "version", f"The servers run ZooKeeper {said}.")


def check_members(found: Sequence[Facts], members: int | None, named: int) -> Iterator[Finding]:
    """One server is one point of failure, an even number helps no more than one less."""
    alone = any(one.mode == "standalone" for one in found)
    if alone or members == 1:
        yield Finding(
            Level.WARNING,
            "members",
            "There is one server only: while it is down nobody gets a lock, and leases end.",
            "Run three members or five.",
        )
    elif members is not None and members % 2 == 0:
        yield Finding(
            Level.INFO,
            "members",
            f"Of {members} members {members // 2 - 1} may fail, as of {members - 1}.",
            "Use an odd number.",
        )
    elif members is not None:
        yield Finding(
            Level.OK, "members", f"Of {members} members {members // 2} may fail at a time."
        )
    if members is not None and named < members:
        yield Finding(
            Level.INFO,
            "URL",
            f"The URL names {named} of {members} members: clients know nobody else to go to.",
            "Name all members in the URL.",
        )


def check_sessions(
    settings: Settings, found: Sequence[Facts], told: float | None
) -> Iterator[Finding]:
    """A TTL is a session's time-out: servers have bounds, and should hear of it in time."""
    pairs = zip(settings.hosts, found, strict=True)
    address = next((address for address, one in pairs if one.answers), None)
    range_ = None if address is None else bounds(settings, address)
    if range_ is not None:
        fits = range_.least <= USUAL <= range_.most
        yield Finding(
            Level.OK if fits else Level.WARNING,
            "sessions",
            f"Servers keep sessions for {range_.least:g} s to {range_.most:g} s: no other TTL is "
            f"granted; the usual {USUAL:g} s {'fits' if fits else 'does not fit'}.",
            ""
            if fits
            else "Give connect() a ttl= between those, or change their "
            "minSessionTimeout and maxSessionTimeout.",
        )
    tick = next((one.tick for one in found if one.tick is not None), None)
    if tick is None:
        return
    if range_ is not None and range_.least < 2 * tick:
        yield Finding(
            Level.WARNING,
            "ticks",
            f"Sessions of {range_.least:g} s are allowed with ticks of {tick:g} s: a leader hears "
            "of clients of others every half tick, so such sessions may end while all is well.",
            f"Set minSessionTimeout to two ticks ({2 * tick:g} s) at least, or never use a TTL "
            "below that.",
        )
    if told is not None and told < tick:
        yield Finding(
            Level.CRITICAL,
            "ticks",
            f"This client was told tick_time={told:g}, but the servers' tick is {tick:g} s: leases "
            "may be relied on for too long.",
            f"Say tick_time={tick:g}, or nothing.",
        )


def check_disk(found: Sequence[Facts]) -> Iterator[Finding]:
    """What was not written to disk a power failure forgets: locks, and tokens with them."""
    told = [one for one in found if one.syncs is not None]
    lazy = [one.where for one in told if not one.syncs]
    if lazy:
        yield Finding(
            Level.WARNING,
            "disk",
            f"{', '.join(lazy)} has never waited for its disk (forceSync=no): after a power "
            "failure two may hold, and tokens fall.",
            "Take forceSync=no out of the servers' Java options.",
        )
    elif told:
        yield Finding(Level.OK, "disk", "The servers wait for their disks.")
    else:
        yield Finding(
            Level.INFO,
            "disk",
            "Whether the servers wait for their disks they do not say.",
            "Put mntr on 4lw.commands.whitelist to have it checked; never set forceSync=no.",
        )


def check_rights(engine: Any, namespace: str) -> Iterator[Finding]:
    """Who may delete a node may break a lock."""
    path = f"{engine.settings.root}/{encode(namespace)}"
    try:
        flight = engine.sessions.any(TIMEOUT).flight()
        asked = flight.send(requests_for.acl_of(path))
        flight.read(TIMEOUT)
    except LockError:
        return  # which is found by others
    acls = engine.settings.acl if asked.exception is not None else asked.value[0]
    if any(acl.id.scheme == "world" and acl.perms & ~READ for acl in acls):
        yield Finding(
            Level.WARNING,
            "rights",
            f"{path} on {engine.location} is open to anybody who can connect: all may break "
            "locks, and pretend to hold them.",
            "Connect as a user (zookeeper://user:password@…), and let a user with rights change "
            "the ACL of what is there, or use another namespace.",
        )
    else:
        yield Finding(Level.OK, "rights", f"Only some users may change what is below {path}.")


def _members(engine: Any) -> int | None:
    """Return how many members vote, as the servers themselves say."""
    try:
        flight = engine.sessions.any(TIMEOUT).flight()
        asked = flight.send(requests_for.data("/zookeeper/config"))
        flight.read(TIMEOUT)
    except LockError:
        return None
    if asked.exception is not None:
        return None
    lines = (asked.value[0] or b"").decode(errors="replace").splitlines()
    voting = [line for line in lines if line.startswith("server.") and ":observer" not in line]
    return len(voting) or None


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
