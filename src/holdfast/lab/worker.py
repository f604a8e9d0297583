"""A worker process of the lab: python -m holdfast.lab.worker ASSIGNMENT (as JSON)."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import sys
import threading
import traceback

from ..clocks import boot_clock
from .assignment import ASYNC, COMMAND, Assignment
from .commander import command
from .diary import Diary
from .hands import AsyncHands, Hands, SyncHands, run_blocking
from .ledger import stalled
from .orders import Orders
from .planting import plant
from .wall_clock import WallClock
from .workload import Workload

LAST_MOMENT = 3.0  # seconds; libraries close sockets in threads of their own


def main(text: str) -> None:
    """Work as assigned, until told to finish."""
    assignment = Assignment.from_json(text)
    diary = Diary(assignment.home, assignment.name)
    orders = Orders(assignment.home, assignment.name)
    logging.getLogger("holdfast").addHandler(_Surprises(diary))
    threading.excepthook = lambda died: _surprised(diary, repr(died.exc_value))
    WallClock(assignment.home, assignment.name).install()
    plant()
    try:
        if assignment.colour == COMMAND:
            command(assignment, diary, orders)
        elif assignment.colour == ASYNC:
            asyncio.run(_work_async(assignment, diary, orders))
        else:
            run_blocking(_work_sync(assignment, diary, orders))
    except Exception:
        diary.note("unexpected", error=traceback.format_exc())
    diary.note("end")


async def _work_sync(assignment: Assignment, diary: Diary, orders: Orders) -> None:
    hands, sockets = SyncHands(), count_sockets()
    hands.watch(lambda start, end: stalled(diary, start, end))
    client = hands.connect(assignment)
    workload = Workload(assignment, hands, client, diary, orders)
    diary.note("ready")
    rushes = [
        threading.Thread(target=run_blocking, args=(workload.rush(number),), name="rush")
        for number in range(assignment.rushes)
    ]
    for rush in rushes:
        rush.start()
    await workload.run(0)
    for rush in rushes:
        rush.join()
    await workload.finish()
    await hands.close(client)
    await _tell_remains(hands, diary, sockets)


async def _work_async(assignment: Assignment, diary: Diary, orders: Orders) -> None:
    hands, sockets = AsyncHands(), count_sockets()
    hands.watch(lambda start, end: stalled(diary, start, end))
    asyncio.get_running_loop().set_exception_handler(
        lambda _, found: _surprised(diary, f"{found['message']}: {found.get('exception')!r}")
    )
    client = hands.connect(assignment)
    workload = Workload(assignment, hands, client, diary, orders)
    diary.note("ready")
    tasks = [workload.run(number) for number in range(assignment.tasks)]
    tasks += [workload.rush(number) for number in range(assignment.rushes)]
    await asyncio.gather(*tasks)
    await workload.finish()
    await hands.close(client)
    await _tell_remains(hands, diary, sockets)


def _surprised(diary: Diary, error: str) -> None:
    diary.note("unexpected", error=error)


async def _tell_remains(hands: Hands, diary: Diary, sockets: int) -> None:
    """Write down what a closed client has left behind, once it had a moment to go."""
    end = boot_clock() + LAST_MOMENT
    while True:
        gc.collect()  # what only waits to be collected is not left
        left, more = hands.leftovers(), count_sockets() - sockets
        if (not left and more <= 0) or boot_clock() > end:
            break
        await hands.sleep(0.02)
    if left:
        faulthandler.dump_traceback(sys.stderr)  # into its log: where they are
    diary.note("closed", remains=[*left, *([f"{more} sockets"] if more > 0 else [])])


def count_sockets() -> int:
    """Return how many sockets this process has open; 0 where nobody tells."""
    count = 0
    try:
        for name in os.listdir("/proc/self/fd"):
            try:
                count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
            except OSError:
                pass  # closed meanwhile: the listing itself was one
    except FileNotFoundError:
        pass
    return count


class _Surprises(logging.Handler):
    """Writes down what the library did not foresee; the rest is for the log of the process."""

    def __init__(self, diary: Diary) -> None:
        super().__init__(logging.ERROR)
        self._diary = diary

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        if record.exc_info:
            error = f"{record.getMessage()} {record.exc_info[1]!r}"
            self._diary.note("unexpected", error=error)


if __name__ == "__main__":
    main(sys.argv[1])
