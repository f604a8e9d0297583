"""A worker that takes locks as shell scripts do: `holdfast run`, again and again."""

from __future__ import annotations

import random
import subprocess
import sys

from ..clocks import boot_clock
from .assignment import NAMESPACE, Assignment
from .diary import Diary
from .orders import Orders

SHORTEST_TTL = 1.5  # a command needs time to be stopped
NOT_ACQUIRED = 75


def command(assignment: Assignment, diary: Diary, orders: Orders) -> None:
    """Run errands under the lock until told to finish, and one more then."""
    dice = random.Random(f"{assignment.seed} {assignment.name}")
    diary.note("ready")
    while not orders.finish:
        hold = dice.random() ** 2 * assignment.pace
        _run(assignment, diary, dice.choice(assignment.keys), 3 * assignment.pace, hold)
        orders.poll()
    _run(assignment, diary, assignment.keys[0], 60.0, 0.0)
    diary.note("closed", remains=[])


def _run(assignment: Assignment, diary: Diary, key: str, timeout: float, hold: float) -> None:
    ttl = max(assignment.ttl, SHORTEST_TTL)
    asked = boot_clock()
    errand = [sys.executable, "-m", "holdfast.lab.errand"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "holdfast", "run", "--url", assignment.url),
            *("--namespace", NAMESPACE, "--label", assignment.name),
            *("--ttl", str(ttl), "--timeout", str(timeout), key, "--"),
            *(*errand, assignment.to_json(), str(asked), str(hold)),
        ],
        stdin=subprocess.DEVNULL,
    )
    diary.note("started", key=key, pid=process.pid)
    code = process.wait()
    diary.note("ended", key=key, pid=process.pid, code=code)
    if code == NOT_ACQUIRED:
        diary.note("missed", key=key, asked=asked, why="busy")
