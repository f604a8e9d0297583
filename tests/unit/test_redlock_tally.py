"""Counting votes: a fixed majority, one proposal, and what to do with everything else (S20)."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from holdfast.model import Holder
from holdfast.redis_link import LATE
from holdfast.redlock_tally import (
    NEAR,
    Tally,
    count_votes,
    free_slot,
    main_holder,
    trusted,
    undisputed,
)

NOW = 1_800_000_000_000_000
P = NOW + 7
SECOND = 1_000_000


def granted(token: int = P) -> list[object]:
    return [b"granted", NOW, token]


def busy(
    token: int | None = None,
    *,
    left: float = 5.0,
    position: int = 0,
    floor: int = 0,
    slots: str = "",
) -> list[object]:
    answer: list[object] = [b"busy", NOW, position, floor, slots.encode()]
    if token is not None:
        expires = int(NOW + left * SECOND)
        rest = json.dumps(["x", f"holder of {token}", ""])
        answer += [b"%d" % token, b"%d" % expires, rest.encode()]
    return answer


# --- One round. ---


def test_only_the_proposal_of_this_round_counts() -> None:
    """A grant under another token is no vote, not even a silent one."""
    tally = count_votes([granted(), granted(P - 1), granted(), granted(P + 1), granted()], P)
    assert tally.granted == [0, 2, 4]
    assert tally.silent == []


def test_everything_that_is_no_list_is_silence() -> None:
    """Errors and missing answers are silent; of those that were asked we cannot be sure."""
    tally = count_votes([granted(), None, ConnectionError("no"), OSError("no"), None], P)
    assert tally.granted == [0]
    assert tally.silent == [1, 2, 3, 4]
    assert tally.unsure == [2, 3]


def test_every_kind_of_answer_has_its_place() -> None:
    """Nothing that a node can say is lost, or taken for a vote."""
    answers: list[object] = [
        busy(5, position=3, floor=9),
        [b"floor", NOW, 11],
        [b"stranger", NOW],
        [b"quarantine", NOW, 2_500_000],
        [b"mismatch", NOW, b"semaphore", 3],
        [b"late", NOW],
        [b"barred", NOW],
        [b"ahead", NOW],
        [b"roster", NOW, b"60000000", b"3"],
    ]
    tally = count_votes(answers, P)
    assert tally.granted == tally.silent == tally.unsure == []
    assert (tally.busy, tally.positions) == ([0], [3])
    assert (tally.floors, tally.floor) == ([11], 11)
    assert tally.strangers == [2]
    assert tally.quarantined == [2.5]
    assert tally.mismatches == [(b"semaphore", 3)]
    assert (tally.late, tally.barred, tally.ahead) == (1, 1, 1)
    assert tally.roster == [b"60000000", b"3"]


def test_the_floor_is_the_highest_that_anybody_tells() -> None:
    """Busy nodes tell their floor too, and the next proposal must be above all of them."""
    tally = count_votes([busy(1, floor=40), [b"floor", NOW, 30], busy(1, floor=10)], P)
    assert tally.floor == 40
    assert tally.floors == [30]


def test_slots_are_counted_by_node() -> None:
    """A slot is as taken as many nodes say so; a path that is no slot is none."""
    tally = count_votes([busy(1, slots="0 1"), busy(1, slots="1"), busy(1, slots=". a/b")], P)
    assert dict(tally.slots) == {0: 1, 1: 2}


@pytest.mark.parametrize("other", [OSError("no"), granted(), busy(1), [b"late", NOW]])
def test_undisputed_means_that_nobody_says_anything_else(other: object) -> None:
    """The shortcut is taken only where a majority said yes, and nobody anything but that."""
    assert undisputed([NOW] * 5, 3)
    assert undisputed([NOW, LATE, NOW, NOW, LATE], 3)
    assert undisputed([NOW, None, NOW, NOW, LATE], 3)
    assert not undisputed([NOW, None, NOW, None, LATE], 3)
    assert not undisputed([NOW, LATE, NOW, LATE, LATE], 3)
    assert not undisputed([NOW, NOW, other, NOW, NOW], 3)


def test_who_is_late_may_have_granted() -> None:
    """Where a round was decided without them and then was not, they are asked again, or told."""
    tally = count_votes([NOW, LATE, NOW, OSError("struck out"), LATE], P)
    assert tally.granted == [0, 2]
    assert tally.awaited == 2
    assert tally.unsure == [1, 3, 4]


# --- Who keeps us out. ---


def test_one_holder_on_enough_nodes_is_the_main_one() -> None:
    """Whoever blocks a majority alone is named, with the time after which it does no more."""
    tally = count_votes(
        [busy(7, left=5), busy(7, left=3), busy(7, left=4), granted(), granted()], P
    )
    assert main_holder(tally, 3) == Holder("holder of 7", 7, 3.0)


def test_split_votes_have_no_main_holder() -> None:
    """Two claimants with two nodes each: nobody holds, and it is worth asking again soon."""
    tally = count_votes([busy(7), busy(7), busy(8), busy(8), None], P)
    assert main_holder(tally, 3) is None
    assert main_holder(Tally(), 3) is None


# --- Which clock numbers tokens. ---


@pytest.mark.parametrize("off", [-3600.0, 3600.0, -1e9, 1e9, NEAR + 1])
def test_a_clock_that_is_far_off_numbers_nothing(off: float) -> None:
    """One or two of five clocks, however far ahead or behind, do not move tokens."""
    good = [1000.0, 1000.2, 999.9]
    assert trusted([*good, 1000.1, 1000.0 + off]) == 1000.2
    assert trusted([*good, 1000.0 + off, 1000.0 + off]) == 1000.2


def test_the_highest_of_the_near_clocks_numbers() -> None:
    """Tokens follow the fastest clock, so that most nodes accept the first proposal."""
    assert trusted([1000.0, 1000.5, 1000.0 + NEAR]) == 1000.0 + NEAR
    assert trusted([5.0]) == 5.0
    assert trusted([5.0, 4000.0]) == 5.0  # of two that disagree, the lower one: nothing is ahead


# --- Slots of a semaphore. ---


def test_a_free_slot_is_one_that_a_majority_may_still_give() -> None:
    """What two of five nodes say is taken can be had from the other three."""
    tally = count_votes([busy(1, slots="0"), busy(1, slots="0"), busy(1), busy(1), busy(1)], P)
    assert free_slot(tally, 1, 3, 5, 0.0) == 0
    tally = count_votes([busy(1, slots="0")] * 3 + [busy(1)] * 2, P)
    assert free_slot(tally, 1, 3, 5, 0.0) is None


def test_nodes_that_do_not_vote_make_slots_scarce() -> None:
    """With two of five silent, a slot that one node refuses is no use, and another is chosen."""
    tally = count_votes([busy(1, slots="1"), granted(), granted(), None, None], P)
    assert {free_slot(tally, 2, 3, 5, step / 10) for step in range(10)} == {0}
    tally = count_votes([busy(1, slots="1"), busy(1, slots="0"), granted(), None, None], P)
    assert free_slot(tally, 2, 3, 5, 0.5) is None
    tally = count_votes(
        [busy(1, slots="1"), granted(), [b"quarantine", NOW, 5], [b"ahead", NOW]], P
    )
    assert {free_slot(tally, 2, 2, 4, step / 10) for step in range(10)} == {0}


def test_every_free_slot_can_be_chosen_and_no_other() -> None:
    """Over all chances, the choice is every free slot and never a taken one."""
    for taken in combinations(range(5), 2):
        slots = " ".join(map(str, taken))
        tally = count_votes([busy(1, slots=slots)] * 3 + [busy(1)] * 2, P)
        found = {free_slot(tally, 5, 3, 5, step / 100) for step in range(100)}
        assert found == set(range(5)) - set(taken)


def test_no_slot_is_left_when_all_are_taken() -> None:
    """All slots taken on a blocking number of nodes: somebody has to let go first."""
    tally = count_votes([busy(1, slots="0 1 2")] * 3, P)
    assert free_slot(tally, 3, 3, 5, 0.99) is None
    assert free_slot(Tally(), 3, 3, 5, 0.99) == 2
