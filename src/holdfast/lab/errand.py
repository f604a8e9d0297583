"""What runs under `holdfast run`: python -m holdfast.lab.errand ASSIGNMENT ASKED HOLD.

It has no lease to look at; that it runs is its claim to hold the lock. So it writes down signs of
life, and each of them must lie outside everybody else's time.
"""

from __future__ import annotations

import os
import sys
import time

from ..clocks import boot_clock
from ..fencing import fence_from_environ
from .assignment import Assignment
from .diary import Diary
from .register import GUARDED, Register

BEAT = 0.02  # seconds


def main(text: str, asked: str, hold: str) -> None:
    """Do the work of one errand."""
    assignment = Assignment.from_json(text)
    diary = Diary(assignment.home, f"{assignment.name}-errand")
    fence = fence_from_environ(os.environ)
    key, token = os.environ["HOLDFAST_NAME"], fence.token
    diary.note("began", key=key, token=token, asked=float(asked), pid=os.getpid())
    register = Register(assignment.register, assignment.name)
    read = register.begin(key, fence)
    end = boot_clock() + float(hold)
    while boot_clock() < end:
        time.sleep(BEAT)
        diary.note("alive", key=key, token=token)
    taken = register.write(key, fence, read)
    diary.note("wrote", key=key, token=token, taken=taken[GUARDED])
    register.close()
    diary.note("alive", key=key, token=token)


if __name__ == "__main__":
    main(*sys.argv[1:])
