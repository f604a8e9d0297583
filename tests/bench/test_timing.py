"""Contestants are timed in turns, in no order that would help one of them."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

from holdfast.bench.timing import alternate


def test_each_has_its_own_times() -> None:
    """Whatever the order was, a time goes to whoever took it, once in each round."""
    slow, quick = alternate(10, 1, lambda: time.sleep(0.01), lambda: None)
    assert len(slow) == len(quick) == 10
    assert min(slow) >= 10_000
    assert min(quick) < 5_000


def test_nobody_always_comes_after_the_same_one() -> None:
    """What one leaves behind is found by each of the others, and in each run alike."""
    runs = []
    for _ in range(2):
        order: list[str] = []
        alternate(40, 1, *(partial(order.append, name) for name in "abcd"))
        runs.append(order)
    assert runs[0] == runs[1]
    assert {"".join(sorted(runs[0][at : at + 4])) for at in range(0, 160, 4)} == {"abcd"}
    behind = {(one, other) for one, other in pairwise(runs[0]) if one != other}
    assert len(behind) == 12
