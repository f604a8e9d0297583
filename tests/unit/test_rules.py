"""The pure rules, by their properties: who conflicts, who enters, how long an answer counts."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import rules
from holdfast.model import Entry, Family, Mode, Snapshot

S, X = Mode.SHARED, Mode.EXCLUSIVE


class One(NamedTuple):
    """Somebody who wants in; numbered, so that no two are equal."""

    mode: Mode
    path: tuple[str, ...]
    number: int


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3).map(tuple)
CLAIMS = st.builds(One, st.sampled_from(Mode), PATHS, st.integers(0, 10**9))
CROWDS = st.lists(CLAIMS, max_size=8, unique=True)
LIMITS = st.integers(0, 5)
INSTANTS = st.floats(0, 1e9)
TTLS = st.floats(0.02, 300)


# --- S3, S4: conflict and admission. ---


@given(CLAIMS, CLAIMS)
def test_conflict_is_mutual(one: One, other: One) -> None:
    """Who excludes whom does not depend on who came first."""
    assert rules.conflict(one, other) == rules.conflict(other, one)


@given(CLAIMS, CLAIMS)
def test_conflict_is_about_prefixes_of_whole_segments(one: One, other: One) -> None:
    """Two claims exclude each other if one path leads to the other and not both share."""
    left, right = ("".join(f"{segment}/" for segment in each.path) for each in (one, other))
    related = left.startswith(right) or right.startswith(left)
    assert rules.conflict(one, other) == (related and X in (one.mode, other.mode))


def admitted_by_the_book(holders: list[One], waiters: list[One], limit: int) -> list[One]:
    """Rule S3, word by word."""
    entering: list[One] = []
    for position, claim in enumerate(waiters):
        inside = holders + entering
        earlier = [one for one in waiters[:position] if one not in entering]
        if (
            not any(rules.conflict(claim, one) for one in inside)
            and not any(rules.conflict(claim, one) for one in earlier)
            and (not limit or len(inside) < limit)
        ):
            entering.append(claim)
    return entering


@given(CROWDS, CROWDS, LIMITS)
def test_admission_follows_the_rule_to_the_letter(
    holders: list[One], waiters: list[One], limit: int
) -> None:
    """The short cuts of `admit` change nothing."""
    assert rules.admit(holders, waiters, limit) == admitted_by_the_book(holders, waiters, limit)


@given(CROWDS, LIMITS)
def test_nobody_inside_excludes_another(waiters: list[One], limit: int) -> None:
    """From an empty start, all who enter get along, and are no more than the limit."""
    inside = rules.admit([], waiters, limit)
    assert not any(rules.conflict(one, other) for one in inside for other in inside if one != other)
    assert not limit or len(inside) <= limit
    assert bool(inside) == bool(waiters), "somebody can always enter an empty room"


@given(CROWDS, CROWDS, LIMITS, st.integers(0, 8))
def test_who_comes_later_changes_nothing_for_the_earlier(
    holders: list[One], waiters: list[One], limit: int, position: int
) -> None:
    """First come, first served: the end of the queue has no say about its beginning."""
    whole = rules.admit(holders, waiters, limit)
    part = rules.admit(holders, waiters[:position], limit)
    assert whole[: len(part)] == part
    assert not {*whole[len(part) :]} & {*waiters[:position]}


@given(CROWDS, CROWDS, LIMITS)
def test_admitting_again_admits_nobody(holders: list[One], waiters: list[One], limit: int) -> None:
    """Once the admitted are inside, nobody else may enter: one look is enough."""
    entering = rules.admit(holders, waiters, limit)
    left = [one for one in waiters if one not in entering]
    assert rules.admit(holders + entering, left, limit) == []


def test_a_waiting_writer_is_not_overtaken() -> None:
    """A reader behind a writer waits, although the holders only read."""
    reader, writer, late = One(S, (), 1), One(X, (), 2), One(S, (), 3)
    assert rules.admit([reader], [writer, late], 0) == []
    assert rules.admit([], [writer, late], 0) == [writer]


@given(st.lists(PATHS, max_size=6), PATHS)
def test_a_node_shows_what_is_above_and_below_it(held: list[tuple[str, ...]], path: object) -> None:
    """Of a tree's record: exactly those entries that a writer of that node would wait for."""
    assert isinstance(path, tuple)
    entries = tuple(Entry("t", n, str(n), "", X, 0.0, 1.0, "", at) for n, at in enumerate(held))
    shot = rules.within(Snapshot("t", Family.TREE, 0, entries, ()), "t/node", path)
    writer = One(X, path, 0)
    assert shot.holders == tuple(entry for entry in entries if rules.conflict(writer, entry))
    assert shot.kind == (Family.TREE if shot.holders else None)


# --- S8, S10: validity. ---


@given(INSTANTS, TTLS)
def test_validity_ends_before_the_ttl(sent: float, ttl: float) -> None:
    """It is counted from the send, and shorter than the TTL by the drift allowance."""
    until = rules.validity(sent, ttl)
    assert until == pytest.approx(sent + ttl * 0.99 - 0.002)
    assert until < sent + ttl


@given(INSTANTS, INSTANTS, TTLS, TTLS)
def test_validity_grows_with_both(sent: float, later: float, ttl: float, longer: float) -> None:
    """Sent later or asked for longer is never valid for less."""
    sent, later = sorted((sent, later))
    ttl, longer = sorted((ttl, longer))
    assert rules.validity(sent, ttl) <= rules.validity(later, ttl)
    assert rules.validity(sent, ttl) <= rules.validity(sent, longer)


@given(
    anchor=st.floats(0, 1e6),
    travel=st.floats(0, 5),
    waited=st.floats(0, 400),
    push=st.floats(0, 5),
    server_start=st.floats(0, 2e9),
    rate=st.floats(0.9, 1 / rules.CLOCK_RATE_SLACK - 1e-6),
    ttl=TTLS,
)
def test_a_pushed_grant_is_never_valid_for_longer_than_the_engine_keeps_it(
    anchor: float,
    travel: float,
    waited: float,
    push: float,
    server_start: float,
    rate: float,
    ttl: float,
) -> None:
    """Whatever the ways took, and with a server clock up to 0.1 % fast, we stop in time."""
    granted = anchor + travel + waited  # on our clock, which is right
    received = granted + push
    until = rules.pushed_validity(
        anchor=anchor,
        anchor_server=server_start,
        granted_server=server_start + waited * rate,
        received=received,
        ttl=ttl,
    )
    if received - anchor > ttl:
        assert until == received, "an old anchor proves nothing"
    else:
        assert until <= rules.validity(granted, ttl) + 1e-6
    assert until <= max(received, rules.validity(received, ttl))


@given(INSTANTS, TTLS)
def test_a_grant_from_before_its_anchor_proves_nothing(anchor: float, ttl: float) -> None:
    """A server clock that seems to have gone back gives no time: confirm it first."""
    until = rules.pushed_validity(
        anchor=anchor, anchor_server=1000.0, granted_server=900.0, received=anchor, ttl=ttl
    )
    assert until == anchor


# --- S18: tokens; the timers. ---


@given(st.integers(0, 2**60), st.integers(0, rules.MAX_TOKEN - 1))
def test_a_token_is_above_its_floor_and_not_behind_the_clock(floor: int, micros: int) -> None:
    """And it is the smallest such number."""
    assert rules.next_token(floor, micros) == max(floor + 1, micros)


def test_a_clock_beyond_exact_numbers_is_refused() -> None:
    """From 2^53 µs on a Lua double is not exact any more."""
    with pytest.raises(ValueError, match="2255"):
        rules.next_token(0, rules.MAX_TOKEN)


@given(st.floats(0, 1e7), st.floats(0.02, 300))
def test_renewal_is_due_at_a_third_of_the_ttl_or_a_little_before(sent: float, ttl: float) -> None:
    """Never later, and earlier by less than one step of the grid that makes batches."""
    due = rules.renew_at(sent, ttl)
    step = ttl / rules.RENEWAL_GRID
    assert sent + ttl / 3 - step - 1e-6 <= due <= sent + ttl / 3 + 1e-6
    assert due > sent
    assert math.isclose(due / step, round(due / step), rel_tol=0, abs_tol=1e-4)


@given(st.integers(0, 200), st.floats(0, 1, exclude_max=True), st.floats(0.02, 300))
def test_pauses_are_short_and_never_nothing(attempt: int, chance: float, ttl: float) -> None:
    """However often it was tried: a pause is above zero and below what it must leave room for."""
    assert 0 < rules.backoff(attempt, chance) <= 0.8
    assert 0 < rules.retry_renewal(attempt, chance, ttl) <= ttl / 10
    assert 0.05 <= rules.retry_release(attempt, chance) <= 6.4


@given(st.floats(-10, 300), st.integers(0, 10_000))
def test_a_waiter_looks_again_soon_after_the_holder_may_be_gone(left: float, place: int) -> None:
    """Not before its lease is over, and no more than about two seconds later."""
    again = rules.recheck_in(left, place)
    assert max(0.0, left) < again <= max(0.0, left) + rules.RECHECK_SPREAD_MOST + 0.01
    assert again <= rules.recheck_in(left, place + 1), "those in front look first"
