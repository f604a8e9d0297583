"""What a seed decides: the same faults each time, of every kind, and none that must not meet."""

from __future__ import annotations

from itertools import combinations

from holdfast.lab.nemeses import NEMESES, find
from holdfast.lab.nemesis import AROUND, CLIENTS, clash
from holdfast.lab.plan import make_plan, swarm
from holdfast.model import Fault
from holdfast.testing.harness import Harness

ALL = tuple(NEMESES.values())


def test_same_seed_gives_the_same_faults() -> None:
    """Names, gaps and the dice of each are the same; another seed has others."""
    assert make_plan(7, ALL, 0.8, 20) == make_plan(7, ALL, 0.8, 20)
    assert make_plan(7, ALL, 0.8, 20) != make_plan(8, ALL, 0.8, 20)
    strike = make_plan(7, ALL, 0.8, 20)[CLIENTS][0]
    assert strike.dice.random() == strike.dice.random()


def test_each_fault_has_its_turn() -> None:
    """Before any fault comes a second time, all others of its side have come once."""
    for side, strikes in make_plan(3, ALL, 0.8, 60).items():
        names = [nemesis.name for nemesis in ALL if nemesis.side == side]
        assert sorted(strike.nemesis for strike in strikes[: len(names)]) == sorted(names)
    assert make_plan(3, find(["pause"]), 0.8, 10)[AROUND] == []


def test_swarms_differ_and_never_break_tokens_by_design() -> None:
    """Each seed has another subset, and none in which data are lost and clocks are set back."""
    swarms = [swarm(seed, ALL) for seed in range(50)]
    assert len({tuple(nemesis.name for nemesis in found) for found in swarms}) > 40
    for found in swarms:
        assert found
        assert not any(clash(one, other) for one, other in combinations(found, 2))


def test_every_fault_of_the_guarantees_has_a_nemesis() -> None:
    """What an engine may promise to bear, the lab can do; and every hook it needs exists."""
    assert {fault for nemesis in ALL for fault in nemesis.faults} == set(Fault)
    for nemesis in ALL:
        assert all(hasattr(Harness, hook) for hook in nemesis.needs), nemesis.name
    assert {nemesis.number for nemesis in ALL} == {
        *(f"N{number}" for number in range(1, 14)),
        "N17",
    }
