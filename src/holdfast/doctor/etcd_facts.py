"""What the members of an etcd cluster say of themselves, each asked on its own."""

from __future__ import annotations

import re
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import LockError
from ..etcd_link import (
    ALARM,
    GRANT,
    MEMBERS,
    REVOKE,
    STATUS,
    LeaseGone,
    Link,
    Settings,
    messages,
)

TIMEOUT = 2.0
WRITES = 3  # after which a member that waits for its disk has done so at least once
SYNCS = "etcd_disk_wal_fsync_duration_seconds_count"
ALARMS = {1: "NOSPACE", 2: "CORRUPT"}
_METRIC = re.compile(r"^(etcd_[a-z_]+)(?:\{[^}]*\})? ([0-9.e+-]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """One member; `problem` says why it gave no answer."""

    endpoint: str
    problem: str = ""
    version: str = ""
    cluster: int = 0
    member: int = 0
    leader: int = 0
    size: int = 0  # of its database, in bytes
    learner: bool = False
    members: int = 0  # in its cluster, learners not counted
    alarms: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    syncs: float | None = None  # how often it waited for its disk while we wrote something

    @property
    def number(self) -> tuple[int, ...]:
        """The version, to be compared; empty if it is none."""
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", self.version)
        return tuple(int(part) for part in found.groups()) if found else ()


def ask(settings: Settings) -> list[MemberFacts]:
    """Return what each endpoint of the URL answers, and whether it waits for its disk."""
    found = [_ask_one(settings, endpoint) for endpoint in settings.endpoints]
    if not any(SYNCS in one.metrics for one in found) or not _write(settings):
        return found
    return [_with_syncs(settings, one) for one in found]


def _with_syncs(settings: Settings, one: MemberFacts) -> MemberFacts:
    before = one.metrics.get(SYNCS)
    after = _metrics(settings, one.endpoint).get(SYNCS)
    return one if before is None or after is None else replace(one, syncs=after - before)


def _write(settings: Settings) -> bool:
    """Have the log written a few times, one after the other; say whether it was."""
    link = Link(settings)
    try:
        for _ in range(WRITES):
            lease = link.call(GRANT, messages.LeaseGrantRequest(TTL=1), TIMEOUT)
            link.call(REVOKE, messages.LeaseRevokeRequest(ID=lease.ID), TIMEOUT)
    except (LockError, LeaseGone):
        return False  # which others report
    finally:
        link.close()
    return True


def _ask_one(settings: Settings, endpoint: str) -> MemberFacts:
    link = Link(replace(settings, endpoints=(endpoint,)))
    try:
        status = link.call(STATUS, messages.StatusRequest(), TIMEOUT)
        members = _try(link, MEMBERS, messages.MemberListRequest())
        alarms = _try(link, ALARM, messages.AlarmRequest())
    except (LockError, LeaseGone) as error:
        return MemberFacts(endpoint, problem=str(error))
    finally:
        link.close()
    return MemberFacts(
        endpoint,
        version=status.version,
        cluster=status.header.cluster_id,
        member=status.header.member_id,
        leader=status.leader,
        size=status.dbSize,
        learner=status.isLearner,
        members=sum(not one.isLearner for one in members.members) if members else 0,
        alarms=tuple(dict.fromkeys(ALARMS.get(one.alarm, str(one.alarm)) for one in alarms.alarms))
        if alarms
        else (),
        metrics=_metrics(settings, endpoint),
    )


def _try(link: Link, method: Any, request: Any) -> Any:
    """Return an answer that not every user may have; None then."""
    try:
        return link.call(method, request, TIMEOUT)
    except LockError:
        return None


def _metrics(settings: Settings, endpoint: str) -> dict[str, float]:
    """Return the metrics of a member, none where they are not to be had over HTTP."""
    if not endpoint:
        return {}
    context = None
    try:
        if settings.tls is not None:
            files = settings.files
            context = ssl.create_default_context(cafile=files.get("ssl_ca_certs"))
            if "ssl_certfile" in files:
                context.load_cert_chain(files["ssl_certfile"], files.get("ssl_keyfile"))
        scheme = "http" if context is None else "https"
        with urllib.request.urlopen(
            f"{scheme}://{endpoint}/metrics", timeout=TIMEOUT, context=context
        ) as reply:
            text = reply.read().decode(errors="replace")
    except (OSError, ValueError):
        return {}
    found: dict[str, float] = {}
    for name, value in _METRIC.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found
