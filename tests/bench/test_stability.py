"""Ratios: which way round they are, when they can be believed, and when two runs agree."""

from __future__ import annotations

import math
from statistics import median

import pytest

from holdfast.bench.compare.budget import Budget
from holdfast.bench.compare.stability import COUNTED, agree, believable, close, measured
from tests.bench.documents import document, ratio


def test_above_one_is_behind_for_costs_and_for_rates() -> None:
    """Twice the latency and half the rate are both 2."""
    costs = measured([20.0, 20.0], [10.0, 10.0], median, more=False)
    rates = measured([10.0, 10.0], [20.0, 20.0], median, more=True)
    assert costs is not None
    assert rates is not None
    assert costs.value == rates.value == 2.0


def test_halves_that_differ_are_unstable() -> None:
    """Even and odd rounds are compared, so a slow second half of the run is no excuse."""
    steady = measured([10, 11, 10, 11], [10, 10, 10, 10], median, more=False)
    shaky = measured([10, 13, 10, 13], [10, 10, 10, 10], median, more=False)
    assert steady is not None
    assert shaky is not None
    assert (steady.stable, shaky.stable) == (True, False)
    assert shaky.halves == [1.0, 1.3]


def test_one_round_alone_proves_nothing() -> None:
    """There is no second half that could agree."""
    once = measured([10.0], [10.0], median, more=False)
    assert once is not None
    assert not once.stable


def test_what_has_no_figure_has_no_ratio() -> None:
    """Neither nothing nor what is no number makes one."""
    for nothing in (0.0, math.nan):
        assert measured([nothing, nothing], [10.0, 10.0], median, more=False) is None
        assert measured([10.0, 10.0], [nothing, nothing], median, more=True) is None
    some = measured([0.0, 10.0, 10.0], [10.0, 10.0, 10.0], median, more=False)
    assert some is not None
    assert some.value == 1.0


def test_what_is_rare_is_counted_over_all_rounds() -> None:
    """A lock that polls is handed over in every other round: that is half as often, not never."""
    rare = measured([0.0, 10.0, 0.0, 10.0], [10.0] * 4, sum, more=False, rare=True)
    assert rare is not None
    assert (rare.value, rare.halves, rare.stable) == (0.5, [1.0], False)


def test_few_hand_overs_are_no_ratio() -> None:
    """Unless one happens ten times as often as the other: that can be told from a few."""
    assert believable(2.0, COUNTED, more=True)
    assert believable(2.0, COUNTED, more=False)
    assert not believable(2.0, COUNTED - 1, more=True)
    assert believable(30.0, 5, more=True)
    assert believable(0.01, 5, more=True)
    assert not believable(0.01, 5, more=False), "how long a handful took says nothing"


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        *((1.0, 1.15, True), (1.15, 1.0, True), (1.0, 1.16, False), (0.0, 0.0, False)),
        *((0.001, 0.09, True), (0.09, 0.12, False), (12.0, 300.0, True), (12.0, 8.0, False)),
    ],
)
def test_close_is_fifteen_percent_of_the_smaller_one(
    first: float, second: float, near: bool
) -> None:
    """It does not matter which of the runs came first."""
    assert close(first, second) is near


def test_two_runs_are_compared_where_both_have_a_ratio() -> None:
    """Those that differ are listed, with whether a run had marked them."""
    first = document(
        [],
        [
            *(ratio(1.0), ratio(2.0, contestant="b"), ratio(1.0, contestant="c")),
            *(ratio(5.0, contestant="only here"), ratio(0.5, contestant="d")),
        ],
    )
    second = document(
        [],
        [
            *(ratio(1.1), ratio(3.0, contestant="b")),
            *(ratio(2.0, contestant="c", stable=False), ratio(0.5, contestant="d")),
        ],
    )
    found = agree(first, second)
    assert (found.common, found.within) == (4, 2)
    assert found.share == 0.5
    assert not found.enough
    assert [one.marked for one in found.differences] == [False, True]
    assert agree(first, first).enough


def test_runs_with_nothing_in_common_do_not_agree() -> None:
    """Nothing compared is nothing shown."""
    assert not agree(document([], []), document([], [])).enough


def test_a_step_that_takes_too_long_shortens_the_others() -> None:
    """The end stays where it is: slices are parts of what is left."""
    now = [0.0]
    budget = Budget(100.0, 10.0, lambda: now[0])
    assert budget.slice(5.0) == 50.0
    now[0] = 80.0
    assert budget.slice(4.0) == pytest.approx(16.0)
    now[0] = 120.0
    assert budget.slice(1.0) == 0.0
    assert budget.share == 1.0


def test_of_few_hand_overs_two_runs_agree_on_who_is_ahead() -> None:
    """Nothing else was told."""
    few = [ratio(value, few=True, stable=False) for value in (0.2, 0.8, 1.5)]
    within = [agree(document([], [few[0]]), document([], [other])).within for other in few]
    assert within == [1, 1, 0]
