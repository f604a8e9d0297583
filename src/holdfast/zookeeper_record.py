"""A ZooKeeper record from our side: its paths, how a claim is named, what its node says.

A record is a node `<root>/<namespace>/1/<name>`, a container, which ZooKeeper removes once nobody
has used it for a while. Each claim is an ephemeral node below it:

    <kind>[-<limit>]:<mode>:<path>:<owner>:<number>        lock:X::5f3a…:0000000007

ZooKeeper gives the number, which orders the queue; who is inside follows from the names alone.
The node says `[name, label, value, ttl]` in JSON. Its czxid is the token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .model import Claim, Entry, Family, Holder, Mode, Snapshot
from .names import decode
from .sorted_queue import divide

NUMBERS = 2**32  # ZooKeeper counts in 32 bits: after 2147483647 comes -2147483648


class Contender(NamedTuple):
    """A claim as the name of its node tells it."""

    node: str
    family: Family
    limit: int
    mode: Mode
    path: tuple[str, ...]
    owner: str
    number: int


def stem(claim: Claim) -> str:
    """Return the name of a claim's node, up to the number."""
    kind = f"{claim.family.value}-{claim.limit}" if claim.limit else claim.family.value
    return f"{kind}:{claim.mode.value}:{','.join(claim.path)}:{claim.owner}:"


@lru_cache(maxsize=16384)
def read_name(node: str) -> Contender | None:
    """Return the claim behind a name; None if it is not one of ours."""
    try:
        kind, mode, path, owner, number = node.split(":")
        family, _, limit = kind.partition("-")
        return Contender(
            node,
            Family(family),
            int(limit or 0),
            Mode(mode),
            tuple(path.split(",")) if path else (),
            owner,
            int(number),
        )
    except ValueError:
        return None


def in_order(nodes: Iterable[str]) -> list[Contender]:
    """Return the queue that the children of a record are, first come first."""
    queue = [one for one in map(read_name, nodes) if one is not None]
    numbers = [one.number for one in queue]
    if queue and max(numbers) - min(numbers) >= NUMBERS // 2:  # it has begun to count anew
        return sorted(queue, key=lambda one: one.number % NUMBERS)
    return sorted(queue, key=lambda one: one.number)


def write_data(claim: Claim) -> bytes:
    """Return what a claim's node says."""
    said = [claim.name, claim.label, claim.value, claim.ttl]
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()


def read_holder(data: bytes, stat: Any) -> Holder | None:
    """Return who is in the way; None if the node says something else."""
    try:
        _, label, _, ttl = json.loads(data)
        return Holder(str(label), int(stat.czxid), float(ttl))
    except (TypeError, ValueError):
        return None


def read_snapshot(key: str, queue: Sequence[Contender], found: dict[str, Any]) -> Snapshot:
    """Return a record as `inspect` shows it; `found` has data and stat of those left."""
    left = [one for one in queue if one.node in found]
    name = decode(key.rsplit("/", 1)[-1])
    if not left:
        return Snapshot(name, None, 0, (), ())
    first = left[0]
    inside, outside = divide(left, first.limit)
    return Snapshot(
        name,
        first.family,
        first.limit,
        tuple(_entry(one, found[one.node], holds=True) for one in inside),
        tuple(_entry(one, found[one.node], holds=False) for one in outside),
    )


def _entry(one: Contender, found: tuple[bytes, Any], holds: bool) -> Entry:
    data, stat = found
    try:
        name, label, value, ttl = json.loads(data)
    except (TypeError, ValueError):
        name, label, value, ttl = "?", "?", "", 0.0
    return Entry(
        name=name,
        token=stat.czxid if holds else None,
        owner=one.owner,
        label=label,
        mode=one.mode,
        since=stat.ctime / 1000,
        expires_in=ttl,  # since its last sign of life, of which only the servers know
        value=value,
        path=one.path,
    )
