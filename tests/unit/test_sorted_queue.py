"""The queue that a log keeps in order agrees with the one admission rule, on random queues."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import Mode
from holdfast.rules import admit
from holdfast.sorted_queue import divide, standing


class One(NamedTuple):
    """An entry, told from others by its number."""

    number: int
    mode: Mode
    path: tuple[str, ...]


paths = st.lists(st.sampled_from("ab"), max_size=2).map(tuple)
modes = st.sampled_from(list(Mode))
trees = st.lists(st.tuples(modes, paths), min_size=1, max_size=7)
locks = st.lists(st.tuples(modes, st.just(())), min_size=1, max_size=7)


def entries(drawn: list[tuple[Mode, tuple[str, ...]]]) -> list[One]:
    return [One(number, mode, path) for number, (mode, path) in enumerate(drawn)]


@given(trees | locks)
def test_inside_is_what_the_rule_admits(drawn: list[tuple[Mode, tuple[str, ...]]]) -> None:
    """Whoever has no blocker, and nobody else, is let in by `rules.admit`."""
    queue = entries(drawn)
    inside = admit((), queue, 0)
    assert [one for at, one in enumerate(queue) if standing(queue, at).inside] == inside
    entered, waiting = divide(queue)
    assert entered == inside
    assert sorted(entered + waiting) == queue


@given(trees | locks)
def test_nobody_is_forgotten(drawn: list[tuple[Mode, tuple[str, ...]]]) -> None:
    """Each who waits is called when the one it watches leaves, and all get in by and by, whoever
    leaves first of those inside."""
    queue = entries(drawn)
    while queue:
        inside, waiting = divide(queue)
        assert inside
        for one in waiting:
            stands = standing(queue, queue.index(one))
            assert stands.blockers[-1] in queue[: queue.index(one)]
            assert 0 <= stands.position <= waiting.index(one)
        queue.remove(inside[0])


@given(st.integers(1, 4), st.integers(1, 9))
def test_limit(limit: int, count: int) -> None:
    """With a limit the first of them are inside; the others know how many must leave."""
    queue = entries([(Mode.SHARED, ())] * count)
    assert divide(queue, limit)[0] == admit((), queue, limit) == queue[:limit]
    for at in range(count):
        stands = standing(queue, at, limit)
        assert stands.inside == (at < limit)
        if not stands.inside:
            assert stands.surplus == at - limit + 1
            assert standing(queue[stands.surplus :], at - stands.surplus, limit).inside
