"""An actor of a story: a process that does what it is told, by python -m holdfast.lab.actor.

One line of JSON on standard input is an order, one on standard output the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from ..cli.run.child import PR_SET_PDEATHSIG, control_process
from ..fencing import fence_of
from .assignment import ASYNC, Assignment
from .diary import Diary
from .failpoint import block
from .hands import AsyncHands, Client, Hands, Lease, SyncHands, run_blocking
from .ledger import Ledger, stalled
from .register import Register

PIPE = 1  # standard output: the stage reads it
Order = dict[str, Any]


class Actor:
    """One client, one lease at a time."""

    def __init__(self, assignment: Assignment, hands: Hands, client: Client, diary: Diary) -> None:
        self._hands, self._colour = hands, assignment.colour
        self._ledger = Ledger(hands, client, diary)
        self._register = Register(assignment.register, assignment.name)
        self._lease: Lease | None = None
        self._read: dict[str, int | None] = {}
        self._does: dict[str, Callable[[Order], Awaitable[object]]] = {
            "acquire": self._acquire,
            "read": self._begin,
            "write": self._write,
            "look": self._look,
            "release": self._release,
            "block": self._block,
            "ready": self._ready,
        }

    async def play(self) -> None:
        """Obey until there are no more orders."""
        while line := await self._hands.next_line():
            order = json.loads(line)
            answer = await self._does[order["do"]](order)
            os.write(PIPE, json.dumps(answer).encode() + b"\n")
        self._register.close()

    async def _acquire(self, order: Order) -> object:
        value = order.get("value")
        self._lease = await self._ledger.take(order["name"], order["timeout"], value)
        return None if self._lease is None else self._lease.token

    async def _begin(self, order: Order) -> object:
        self._read = self._register.begin(order["name"], fence_of(self._lease))
        return {**self._read, "why": self._register.refusal}

    async def _write(self, order: Order) -> object:
        taken = self._register.write(order["name"], fence_of(self._lease), self._read)
        return {**taken, "why": self._register.refusal}

    async def _look(self, order: Order) -> object:
        assert self._lease is not None
        held = self._ledger.look(self._lease)
        return {"held": held, "reason": self._lease.lost_reason}

    async def _release(self, order: Order) -> object:
        assert self._lease is not None
        return await self._ledger.leave(self._lease)

    async def _ready(self, order: Order) -> object:
        return True

    async def _block(self, order: Order) -> object:
        block(self._colour, order["seconds"])
        return None


async def act(assignment: Assignment, hands: SyncHands | AsyncHands) -> None:
    """Play one part from beginning to end."""
    diary = Diary(assignment.home, assignment.name)
    hands.watch(lambda start, end: stalled(diary, start, end))
    client: Client = hands.connect(assignment)
    await Actor(assignment, hands, client, diary).play()
    await hands.close(client)


def main(text: str) -> None:
    """Play the part that is assigned; nobody outlives the stage."""
    control_process(PR_SET_PDEATHSIG, signal.SIGKILL)
    assignment = Assignment.from_json(text)
    if assignment.colour == ASYNC:
        asyncio.run(act(assignment, AsyncHands()))
    else:
        run_blocking(act(assignment, SyncHands()))


if __name__ == "__main__":
    main(sys.argv[1])
