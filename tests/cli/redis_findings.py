"""What the tests of the doctor on Redis share: findings of a real server, each complete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import holdfast
from holdfast.doctor import Finding, Level, Patient, examine, redis
from holdfast.doctor.redis_facts import Facts, Node
from holdfast.testing.servers import RedisServer


def complete(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, each of which must be whole sentences."""
    found = list(findings)
    for finding in found:
        assert finding.title
        assert finding.detail.endswith((".", ")"))
        assert finding.remedy or finding.level is Level.OK or finding.title == "settings"
    return found


def levels(findings: Iterable[Finding], title: str) -> list[Level]:
    """Return how bad the findings of a title are."""
    return [finding.level for finding in complete(findings) if finding.title == title]


def bad(findings: Iterable[Finding]) -> list[str]:
    """Return the titles of what should be done something about."""
    return [finding.title for finding in complete(findings) if finding.level.bad]


def own_findings(url: str, **options: Any) -> list[Finding]:
    """Return what the checks of this engine find."""
    with holdfast.connect(url, connect_timeout=2, **options) as client:
        return complete(redis.check(Patient(client)))


def all_findings(url: str, **options: Any) -> list[Finding]:
    """Return what all checks find."""
    with holdfast.connect(url, connect_timeout=2, **options) as client:
        return complete(examine(Patient(client)))


def node_of(client: holdfast.Client) -> Node:
    """Return the server behind a client, which must answer."""
    client.ping()  # what was used is closed with the client
    node: Node = vars(client.engine)["node"]
    return node


def facts(info: dict[str, str], config: dict[str, str] | None = None) -> Facts:
    """Return what a server might say of itself."""
    return Facts("redis://there:6379/0", info, config or {}, {})


def user_url(server: RedisServer, *rules: str) -> str:
    """Return the URL of a user with these rights and no others."""
    server.command("ACL", "SETUSER", "locks", "reset", "on", ">secret", *rules)
    return f"redis://locks:secret@127.0.0.1:{server.port}/0"
