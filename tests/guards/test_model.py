"""Every interleaving of two and three holders at one guarded counter, by the rule guards apply.

A lock hands out rising tokens; pauses are what makes any interleaving possible: each holder takes
its token and then does its steps at any time, in its own order. One rule: whoever is told that its
write was stored finds it in the counter. What is explored is `fencing.judge` itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from holdfast.errors import StaleToken
from holdfast.fencing import Fence, Floors, judge
from holdfast.model import Mode

DOMAIN = "model"
X, S = Mode.EXCLUSIVE, Mode.SHARED


class Holder(NamedTuple):
    """How far one holder has come: steps done, what it read, whether it was kept out."""

    mode: Mode
    done: int = 0
    read: int = 0
    refused: bool = False


class World(NamedTuple):
    """The counter with its floors, and everybody who wants something of it."""

    value: int
    floors: Floors | None
    added: int
    holders: tuple[Holder, ...]


class Guarding(NamedTuple):
    """When a guard judges: at the beginning of the work, when something is written, or both."""

    at_begin: bool
    at_write: bool


OURS = Guarding(at_begin=True, at_write=True)
WRITE_ONLY = Guarding(at_begin=False, at_write=True)
BEGIN_ONLY = Guarding(at_begin=True, at_write=False)
NONE = Guarding(at_begin=False, at_write=False)


def admit(world: World, token: int, mode: Mode, judged: bool) -> Floors | None:
    return judge("counter", world.floors, Fence(token, DOMAIN, mode)) if judged else world.floors


def step(world: World, number: int, guarding: Guarding) -> World:
    """Let one holder do its next step: begin and read, then write (the pause is in between)."""
    holder, token = world.holders[number], number + 1
    value, added, floors = world.value, world.added, world.floors
    try:
        if holder.done == 0:
            floors = admit(world, token, holder.mode, guarding.at_begin)
            after = holder._replace(done=1, read=value)
        else:
            floors = admit(world, token, holder.mode, guarding.at_write)
            after = holder._replace(done=2)
            value, added = holder.read + 1, added + 1
    except StaleToken:
        after = holder._replace(done=2, refused=True)
    holders = (*world.holders[:number], after, *world.holders[number + 1 :])
    return World(value, floors, added, holders)


def last_step(holder: Holder) -> int:
    return 1 if holder.mode is S else 2


@dataclass
class Found:
    """What exploring has found."""

    worlds: int = 0
    ends: int = 0
    lost: World | None = None  # an end in which an addition is gone
    refused_newest: World | None = None  # an end in which the newest exclusive holder was kept out


def explore(modes: tuple[Mode, ...], guarding: Guarding) -> Found:
    """Visit every world that these holders can reach."""
    start = World(0, None, 0, tuple(Holder(mode) for mode in modes))
    seen, waiting, found = {start}, [start], Found()
    while waiting:
        world = waiting.pop()
        found.worlds += 1
        nexts = [
            step(world, number, guarding)
            for number, holder in enumerate(world.holders)
            if holder.done < last_step(holder)
        ]
        if not nexts:
            found.ends += 1
            if world.value != world.added:
                found.lost = world
            if world.holders[-1].refused:
                found.refused_newest = world
        for one in nexts:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found


def crowds() -> Iterator[tuple[Mode, ...]]:
    for size in (2, 3):
        yield from itertools.product((X, S), repeat=size)


@pytest.mark.parametrize("modes", list(crowds()), ids="".join)
def test_no_update_is_lost_by_our_rule(modes: tuple[Mode, ...]) -> None:
    """In every interleaving the counter says what was added, and the newest is never kept out."""
    found = explore(modes, OURS)
    assert found.ends > 0
    assert found.lost is None, found.lost
    assert found.refused_newest is None, found.refused_newest


WRONG: dict[str, tuple[Guarding, str]] = {
    "write-only": (WRITE_ONLY, "looking only when something is written"),
    "begin-only": (BEGIN_ONLY, "looking only when the work begins, outside its transaction"),
    "none": (NONE, "no guard"),
}


@pytest.mark.parametrize("name", WRONG)
def test_weaker_rules_lose_one(name: str) -> None:
    """Each weaker rule has an interleaving of two holders that loses an update."""
    guarding, words = WRONG[name]
    lost = explore((X, X), guarding).lost
    assert lost is not None, f"{words} should lose an update"
    assert lost.value < lost.added, f"{words}: {lost}"


def test_a_reader_keeps_older_writers_out() -> None:
    """What a shared holder has read is not changed by an older exclusive one afterwards."""
    for order in interleavings((2, 1)):
        world = World(0, None, 0, (Holder(X), Holder(S)))
        for number in order:
            if world.holders[number].done < last_step(world.holders[number]):
                world = step(world, number, OURS)
        writer, reader = world.holders
        assert writer.refused or reader.read == world.value


def interleavings(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    steps = [number for number, count in enumerate(counts) for _ in range(count)]
    yield from sorted(set(itertools.permutations(steps)))


def test_one_floor_for_both_is_too_strict_or_too_weak() -> None:
    """Two shared holders pass in any order; an exclusive one passes neither above it."""
    floors = judge("counter", None, Fence(2, DOMAIN, S))
    assert judge("counter", floors, Fence(1, DOMAIN, S)).shared == 2
    with pytest.raises(StaleToken):
        judge("counter", floors, Fence(1, DOMAIN, X))
    floors = judge("counter", floors, Fence(3, DOMAIN, X))
    with pytest.raises(StaleToken):
        judge("counter", floors, Fence(2, DOMAIN, S))
