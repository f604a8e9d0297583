"""The nemesis: does to the world what the plan says, each thing at its instant, until it heals."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import LockError
from . import plan as faults
from .machine import Machine
from .workload import PAUSES

if TYPE_CHECKING:
    from .world import World


class Nemesis:
    """Every fault has an end of its own; healing ends them all."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._loop = world.loop
        self._ttl = world.plan.ttl
        self._dice = random.Random(f"nemesis {world.plan.seed}")
        self._cuts = 0
        self._does: dict[str, Callable[[Machine], str | None]] = {
            faults.PARTITION: self._partition,
            faults.RESET: self._reset,
            faults.CLIENT_PAUSE: self._pause,
            faults.CLIENT_CRASH: self._crash,
            faults.SERVER_PAUSE: self._pause_server,
            faults.SERVER_RESTART: self._restart_server,
            faults.DATA_LOSS: self._lose_data,
            faults.WALL_STEP: self._step_wall,
            faults.CANCEL: self._cancel,
            faults.FORCE: self._force,
        }

    async def run(self) -> None:
        """Do all that is planned."""
        start = self._loop.time()
        for delay, fault in self._world.plan.events:
            await asyncio.sleep(start + delay - self._loop.time())
            victims = [machine for machine in self._world.machines if machine.alive]
            if not victims:
                continue
            detail = self._does[fault](self._dice.choice(victims))
            if detail is not None:
                self._world.history.inject(self._loop.time(), fault, detail)

    def _partition(self, victim: Machine) -> str:
        up, down = self._dice.choice(((True, True), (True, False), (False, True)))
        keeps = self._dice.random() < 0.5
        link, network = victim.link, self._world.network
        seconds = self._dice.uniform(0.3, 3.0) * self._ttl
        network.cut(link, up, down, keeps)
        self._loop.call_later(seconds, network.mend, link)
        which = "both ways" if up and down else "requests" if up else "replies"
        return f"{link.name} {which} {'kept' if keeps else 'lost'} for {seconds:.2f} s"

    def _reset(self, victim: Machine) -> str:
        session = victim.engine.session
        session.connected = False
        self._world.server.tell(session.caller, session.caller.disconnected)
        return victim.name

    def _pause(self, victim: Machine) -> str:
        ttls = self._dice.choice(PAUSES)
        victim.pause(ttls * self._ttl)
        return f"{victim.name} for {ttls} TTL"

    def _crash(self, victim: Machine) -> str:
        victim.kill()
        delay = self._dice.random() * 0.5 * self._ttl
        self._loop.call_later(delay, self._world.start_again, victim)
        return victim.name

    def _pause_server(self, victim: Machine) -> str:
        seconds = self._dice.uniform(0.2, 2.0) * self._ttl
        self._world.server.pause(seconds)
        return f"{seconds:.2f} s"

    def _restart_server(self, victim: Machine) -> str:
        seconds = self._dice.choice((0.001, 0.3)) * self._ttl
        self._world.server.crash(seconds, lose_data=False)
        return f"down for {seconds:.3f} s"

    def _lose_data(self, victim: Machine) -> str:
        seconds = self._dice.choice((0.001, 0.3)) * self._ttl
        self._world.server.crash(seconds, lose_data=True)
        return f"down for {seconds:.3f} s"

    def _step_wall(self, victim: Machine) -> str:
        seconds = self._dice.choice((1.0, self._ttl, 3600.0))
        # Data loss together with a clock set back is the documented exception of §2.9.
        if faults.DATA_LOSS not in self._world.plan.faults and self._dice.random() < 0.5:
            seconds = -seconds
        self._world.server.step_wall_clock(seconds)
        return f"{seconds:+g} s"

    def _cancel(self, victim: Machine) -> str | None:
        task = self._dice.choice(victim.workers)
        if task.done():
            return None
        task.cancel()
        return victim.name

    def _force(self, victim: Machine) -> str:
        key = self._dice.choice(self._world.plan.keys)
        self._loop.spawn(victim.process, self._force_release(victim, key.name))
        return f"{victim.name} breaks {key.name}"

    async def _force_release(self, victim: Machine, name: str) -> None:
        self._world.history.calls["force_release"] += 1
        try:
            await victim.client.force_release(name)
        except LockError:
            pass  # no answer: it may have happened
