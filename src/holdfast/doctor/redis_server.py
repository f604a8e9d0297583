"""Checks of one Redis server by what it says of itself: will it keep the locks it has granted?

Every detail starts with the server's location, so that the same finding on several can become one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from .finding import Finding, Level
from .redis_facts import TIMEOUT, Facts, Node, Reading

OLDEST = (5,)  # where a script may look at the clock and then write
OLD = (6, 2)
FULL = 0.9  # of maxmemory
LAG = 5  # seconds since a replica last confirmed anything
CLOCK_OFF = 0.010
CLOCK_WRONG = 0.100  # what counts as a step when it is set right

OWN_SERVER = "Give locks a server of their own, or several: redlock://."


def check_kind(facts: Facts) -> Iterator[Finding]:
    """Versions that are too old, members of a Cluster and replicas cannot keep locks."""
    where = facts.location
    if facts.version and facts.version < OLDEST:
        yield Finding(
            Level.CRITICAL,
            "version",
            f"{where} is {facts.program}, which cannot run the scripts that locks are made of.",
            "Update it to Redis 6.2 or later, or to Valkey.",
        )
    elif facts.version and facts.version < OLD:
        yield Finding(
            Level.INFO,
            "version",
            f"{where} is {facts.program}: it works, but gets no security fixes any more and cannot "
            "limit a user to the channels of locks.",
            "Update it to Redis 6.2 or later, or to Valkey.",
        )
    elif facts.version:
        yield Finding(Level.OK, "version", f"{where} is {facts.program}.")
    if facts.info.get("cluster_enabled") == "1":
        yield Finding(
            Level.CRITICAL,
            "cluster",
            f"{where} is a member of a Redis Cluster, which moves names to other members, and "
            "whose failover forgets locks that were granted.",
            OWN_SERVER,
        )
    if facts.info.get("role") == "slave":
        master = f"{facts.info.get('master_host')}:{facts.info.get('master_port')}"
        yield Finding(
            Level.CRITICAL,
            "role",
            f"{where} is a replica of {master}, and takes no locks.",
            "Name the master in the URL, or let Sentinel find it: redis+sentinel://.",
        )


def check_memory(facts: Facts, node: Node) -> Iterator[Finding]:
    """A server that makes room by removing keys removes locks: each of their keys has an expiry."""
    where, policy = facts.location, facts.info.get("maxmemory_policy")
    limit, used = facts.number("maxmemory"), facts.number("used_memory")
    evicted = facts.number("evicted_keys")
    if policy is None:
        return
    if policy == "noeviction":
        yield Finding(Level.OK, "eviction", f"{where} never removes keys to make room.")
        if limit and used > FULL * limit:
            yield Finding(
                Level.WARNING,
                "memory",
                f"{where} has used {used / limit:.0%} of its memory; once it is full no lock can "
                "be taken there, only renewed and given back.",
                "Raise maxmemory, or remove data.",
            )
    elif not limit:
        yield Finding(
            Level.INFO,
            "eviction",
            f"{where} has maxmemory-policy {policy}; that is harmless only while it has no "
            "maxmemory.",
            "Set maxmemory-policy noeviction before anybody sets maxmemory.",
        )
    elif evicted:
        yield Finding(
            Level.CRITICAL,
            "eviction",
            f"{where} removes keys when its memory is full ({policy}), locks included, and has "
            f"removed {evicted}: it is somebody's cache.",
            OWN_SERVER,
        )
    else:
        yield Finding(
            Level.CRITICAL,
            "eviction",
            f"{where} removes keys when its memory is full ({policy}), and locks that are held "
            "with them.",
            "Set maxmemory-policy noeviction, in its configuration file too.",
            lambda: node.command(
                *("CONFIG", "SET", "maxmemory-policy", "noeviction"), timeout=TIMEOUT
            ),
        )


class Kept(Enum):
    """How much of its locks a server has on disk when it starts again."""

    ALL = auto()
    MOST = auto()
    SOME = auto()
    NOTHING = auto()


def kept_on_disk(facts: Facts) -> tuple[Kept, str] | None:
    """Return how much that is, with words for it; None if it does not say."""
    if "aof_enabled" not in facts.info:
        return None
    if facts.info["aof_enabled"] == "1":
        match facts.config.get("appendfsync"):
            case "always":
                return Kept.ALL, "writes every lock to disk before it answers"
            case "no":
                how = "when the system likes: a power failure forgets the last of them"
                return Kept.SOME, f"writes locks to disk {how}"
            case "everysec":
                how = "every second: a power failure forgets the last of them"
                return Kept.MOST, f"writes locks to disk {how}"
        return Kept.MOST, "writes locks to disk, how often it does not say: some may be forgotten"
    if facts.config.get("save"):
        return Kept.SOME, "keeps snapshots only: a restart forgets all locks since the last one"
    return Kept.NOTHING, "keeps nothing on disk: a restart forgets all locks"


def check_persistence(facts: Facts, *, quarantine: bool) -> Iterator[Finding]:
    """What a restart forgets may be granted twice, unless the server then waits for a while."""
    found = kept_on_disk(facts)
    if found is None:
        return
    kept, words = found
    if kept is Kept.ALL:
        yield Finding(Level.OK, "persistence", f"{facts.location} {words}.")
    elif quarantine:
        yield Finding(
            Level.OK, "persistence", f"{facts.location} {words}, and then grants none for max_ttl."
        )
    else:
        yield Finding(
            Level.INFO if kept is Kept.MOST else Level.WARNING,
            "persistence",
            f"{facts.location} {words}, so two clients may hold the same one until its TTL is "
            "over; their tokens still rise.",
            "Set appendonly yes and appendfsync always, or connect with quarantine=True "
            "everywhere.",
        )


def check_disk(facts: Facts) -> Iterator[Finding]:
    """A server that cannot save refuses to be written to."""
    where = facts.location
    for name, what in (("aof_last_write_status", "AOF"), ("rdb_last_bgsave_status", "snapshot")):
        if facts.info.get(name, "ok") != "ok":
            yield Finding(
                Level.WARNING,
                "disk",
                f"{where} could not write its last {what} to disk, and may refuse all locks.",
                "Look at its log, and at the space and rights of its folder.",
            )


def check_replication(facts: Facts, *, wanted: int, instead: str) -> Iterator[Finding]:
    """A replica that takes over forgets what had not reached it. `wanted` confirm every grant."""
    where, replicas = facts.location, facts.replicas
    if "connected_slaves" not in facts.info or facts.info.get("role") == "slave":
        return
    online = [one for one in replicas if one.get("state") == "online"]
    number = f"{len(online)} replica{'s' * (len(online) != 1)}"
    least = int(facts.config.get("min-replicas-to-write") or 0)
    if len(online) < wanted:
        yield Finding(
            Level.CRITICAL,
            "replicas",
            f"{where} has {number} online, and every grant must reach {wanted} (replicas=): no "
            "lock can be taken.",
            "Bring the missing replicas back, or connect with a smaller replicas=.",
        )
    elif online and not wanted:
        yield Finding(
            Level.WARNING,
            "replicas",
            f"{where} has {number}; one that takes over forgets the grants that had not reached "
            "it, so two clients may hold the same lock until its TTL is over, with rising tokens.",
            instead,
        )
    elif len(online) > wanted:
        yield Finding(
            Level.INFO,
            "replicas",
            f"{where} has {number}, of which {wanted} confirm every grant; one of the others "
            "that takes over forgets what had not reached it.",
            f"Connect with replicas={len(online)}, or let only those take over that confirm.",
        )
    elif online:
        yield Finding(Level.OK, "replicas", f"{where} has {number}, all of which confirm grants.")
    if online and not least and "min-replicas-to-write" in facts.config:
        yield Finding(
            Level.INFO,
            "split brain",
            f"{where} goes on granting when it is cut off from all its replicas, also after one "
            "of them has taken over.",
            "Set min-replicas-to-write 1, and min-replicas-max-lag to less than your TTLs.",
        )
    if least > len(online):
        yield Finding(
            Level.CRITICAL,
            "replicas",
            f"{where} has {number} online and refuses all writes below {least} "
            "(min-replicas-to-write).",
            "Bring the missing replicas back, or lower min-replicas-to-write.",
        )
    for one in replicas:
        name = f"{one.get('ip')}:{one.get('port')}"
        state, lag = one.get("state"), int(one.get("lag") or 0)
        if state != "online" or lag > LAG:
            why = f"is {state}" if state != "online" else f"has confirmed nothing for {lag} s"
            yield Finding(
                Level.WARNING,
                "lag",
                f"{where} has a replica at {name} that {why}.",
                "Look at its log and at the network; do not let it take over before it is up "
                "to date.",
            )


def check_age(facts: Facts, max_ttl: float) -> Iterator[Finding]:
    """Somebody may still believe in a lock that a server has forgotten in its last restart."""
    up = facts.number("uptime_in_seconds")
    kept = facts.info.get("aof_enabled") == "1"
    if "uptime_in_seconds" in facts.info and up < max_ttl and not kept:
        yield Finding(
            Level.INFO,
            "restart",
            f"{facts.location} started {up} s ago; clients that held locks before may believe so "
            "until their TTL is over.",
            f"Rely on tokens alone until {max_ttl:g} s (max_ttl) after its start.",
        )


def check_clock(reading: Reading) -> Iterator[Finding]:
    """One clock off does no harm; but it is set right one day, and then locks end early or late."""
    apart = max(0.0, abs(reading.ahead) - reading.doubt)
    where = reading.location
    way = "ahead of" if reading.ahead > 0 else "behind"
    if apart <= CLOCK_OFF:
        yield Finding(Level.OK, "clock", f"{where} and this machine agree on the time.")
        return
    yield Finding(
        Level.WARNING if apart > CLOCK_WRONG else Level.INFO,
        "clock",
        f"{where} has a clock {_length(apart)} {way} this machine's; that does no harm, but when "
        "one of a server is set right, its locks end early or late by that much.",
        "Let NTP run on both, and never let it set the server's clock in a step.",
    )


def _length(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
