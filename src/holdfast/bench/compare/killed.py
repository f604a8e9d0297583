"""How long it takes until the next one has a lock whose holder was killed."""

from __future__ import annotations

import time
from typing import Any

from ..handle import PATIENCE
from .crew import GRACE, AnyContestant, CrewFailed, name_of, order_for
from .load import Load
from .sample import Sample
from .stage import Result, Stage

TTL, QUICK_TTL = 3.0, 2.0  # seconds, whole ones: some contestants take no others
KEYS = ("killed/even", "killed/odd")  # two at the same time: halves
SETTLE = 0.3  # seconds, for those who wait to be in line


def kill_holders(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Kill a process that holds locks of every contestant, while another waits for the same."""
    results = {name_of(kind): Result(kind) for kind in stage.waiting()}
    ttl = QUICK_TTL if stage.quick else TTL
    waiter, holder = stage.crew.first, stage.crew.members[-1]
    try:
        holder.order({"do": "hold", "orders": _orders(stage, results, ttl)})
        _note(results, holder.answer(PATIENCE + GRACE))
        waiter.order({"do": "wait", "orders": _orders(stage, results, ttl)})
        waiter.answer(PATIENCE + GRACE)  # it is ready
        time.sleep(SETTLE)
        killed = time.monotonic_ns()
        stage.crew.kill(holder)
        answer = waiter.answer(PATIENCE + GRACE)
        _note(results, answer)
        for who, held in answer["held"]:
            sample = Sample(1.0, [1], extra={"recovery": (held - killed) / 1e6})
            results[who].samples.append(sample)
    except CrewFailed as failed:
        stage.crew.dismiss()
        for result in results.values():
            result.problem = result.problem or stage.ground.problem() or str(failed)
    for result in results.values():
        if result.samples and min(_recovery(one) for one in result.samples) < 0:
            result.problem = "failed: the lock was had while its holder was alive"
        result.note = f"ttl={ttl:g} s"
    return list(results.values())


def _recovery(sample: Sample) -> float:
    return sample.extra["recovery"]


def _orders(stage: Stage, results: dict[str, Result], ttl: float) -> list[dict[str, Any]]:
    kinds: list[AnyContestant] = [one.kind for one in results.values() if not one.problem]
    place = stage.ground.place
    return [order_for(kind, place, ttl, key=key) for kind in kinds for key in KEYS]


def _note(results: dict[str, Result], answer: dict[str, Any]) -> None:
    for who, problem in answer["problems"].items():
        results[who].problem = results[who].problem or problem
