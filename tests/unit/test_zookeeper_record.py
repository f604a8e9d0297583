"""Names and contents of ZooKeeper's nodes: written and read back, in order for ever."""

from __future__ import annotations

import random
from collections import namedtuple

import pytest

from holdfast.model import Claim, Family, Mode
from holdfast.zookeeper_record import (
    in_order,
    read_holder,
    read_name,
    read_snapshot,
    stem,
    write_data,
)

Stat = namedtuple("Stat", "czxid ctime")

OWNER = "0123456789abcdef" * 2


def claim(**changes: object) -> Claim:
    """Return a claim."""
    made = Claim(
        key="ns/1/x",
        name="x é",
        family=Family.LOCK,
        mode=Mode.EXCLUSIVE,
        path=(),
        limit=0,
        ttl=1.5,
        label="me",
        value="v",
        owner=OWNER,
        queue=True,
    )
    return made._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mode": Mode.SHARED},
        {"family": Family.SEMAPHORE, "mode": Mode.SHARED, "limit": 12},
        {"family": Family.TREE, "path": ("a", "b%2Cc", "d-_")},
    ],
)
def test_name_says_what_admission_needs(changes: dict[str, object]) -> None:
    """Kind, limit, mode, path and owner are read back from the name alone."""
    made = claim(**changes)
    read = read_name(f"{stem(made)}0000000012")
    assert read is not None
    for field in ("family", "limit", "mode", "path", "owner"):
        assert getattr(read, field) == getattr(made, field)
    assert read.number == 12
    assert "/" not in read.node


@pytest.mark.parametrize(
    "name", ["", "lock", "lock:X::a:b", "other:X::a:1", "lock:Y::a:1", "a:b:c"]
)
def test_foreign_names_are_no_claims(name: str) -> None:
    """What others have put there is not taken for a claim."""
    assert read_name(name) is None
    assert in_order([name]) == []


@pytest.mark.parametrize(
    "numbers",
    [
        [0, 1, 2, 10, 9999999999 % 2**31],
        [2147483646, 2147483647, -2147483648, -2147483647],
        [-3, -2, -1, 0, 1],
    ],
)
def test_order_outlives_the_counter(numbers: list[int]) -> None:
    """ZooKeeper's 32 bits come to their end, and begin anew: the queue keeps its order."""
    nodes = [f"lock:X::{OWNER}:{number:010d}" for number in numbers]
    shuffled = nodes[:]
    random.Random(7).shuffle(shuffled)
    assert [one.node for one in in_order(shuffled)] == nodes


def test_contents() -> None:
    """Name, label, value and TTL are read back; what is not ours is no holder."""
    holder = read_holder(write_data(claim()), Stat(77, 0))
    assert holder is not None
    assert (holder.label, holder.token, holder.expires_in) == ("me", 77, 1.5)
    assert read_holder(b"something else", Stat(77, 0)) is None


def test_snapshot_leaves_out_who_has_gone() -> None:
    """Nodes that vanished while they were read are neither inside nor in the way."""
    made = [claim(owner=letter * 32) for letter in "abc"]
    nodes = [f"{stem(one)}{number:010d}" for number, one in enumerate(made)]
    found = {nodes[n]: (write_data(made[n]), Stat(100 + n, 5000)) for n in (1, 2)}
    shot = read_snapshot("ns/1/x%20%C3%A9", in_order(nodes), found)
    assert (shot.name, shot.kind) == ("x é", Family.LOCK)
    assert [(one.owner, one.token) for one in shot.holders] == [("b" * 32, 101)]
    assert [(one.owner, one.token) for one in shot.waiters] == [("c" * 32, None)]
    assert shot.holders[0].since == 5.0
    assert read_snapshot("ns/1/x", in_order(nodes), {}).kind is None
