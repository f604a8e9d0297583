"""The world of one seed: a server, a network, a few client processes, and two phases.

Phase 1: the clients work while the nemesis does its worst; only safety counts.
Phase 2: everything is healed. Every waiter must end, every key must be free to take, every client
         must still renew, and in the end nothing may be left: no holder, no waiter, no task.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from ...model import Mode
from ..loop import ProcessClock, VirtualLoop, current_loop
from . import plan as plans
from .history import Awaited, Healed, History, Recovered, Remains
from .machine import Machine
from .nemesis import Nemesis
from .network import Link, Network
from .plan import CLIENT_RATE, SERVER_RATE, Key, Plan
from .register import Register
from .server import LockServer
from .workload import NODES, Worker

PATIENCE = 2.0  # seconds that recovery may take beside what TTL and time-outs explain
KEEP = 1.3  # TTLs for which a lease is held to show that it is renewed


class World:
    """Made and run inside a virtual loop."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.loop: VirtualLoop = current_loop()
        self.plan = plan
        self.history = history
        self.heal_at = self.loop.time() + plan.span
        self.network = Network(self.loop, plan, history, self.heal_at)
        self._dice = random.Random(f"world {plan.seed}")
        rated = plans.CLOCK_RATE in plan.faults
        self.server = LockServer(
            self.loop, self.network, history, self._clock(SERVER_RATE if rated else 0.0)
        )
        self._client_rate = CLIENT_RATE if rated else 0.0
        self.registers = {
            name: Register(name, history)
            for key in plan.keys
            for name in (
                key.name,
                *(key.name + leaf for leaves in NODES.values() for leaf in leaves),
            )
        }
        self.machines: list[Machine] = []
        self._boots: dict[str, int] = {}

    def _clock(self, rate: float) -> ProcessClock:
        offset = self._dice.uniform(-500.0, 500.0)
        return ProcessClock(self.loop, offset=offset, rate=1.0 + self._dice.uniform(-rate, rate))

    # --- Processes. ---

    def start(self, host: str, clock: ProcessClock, link: Link, workers: int) -> Machine:
        """Start a client process on a host, with some workers."""
        self._boots[host] = boots = self._boots.get(host, 0) + 1
        machine = Machine(self, f"{host}.{boots}", link, clock)
        self.machines.append(machine)

        async def main() -> None:
            machine.boot()
            for number in range(workers):
                work = Worker(machine, number).run()
                machine.workers.append(self.loop.create_task(work, name=f"{machine.name}#{number}"))

        self.loop.spawn(machine.process, main())
        return machine

    def start_again(self, killed: Machine) -> None:
        """Start a fresh process where one was killed."""
        if self.loop.time() < self.heal_at:
            host = killed.name.partition(".")[0]
            self.start(host, killed.clock, killed.link, self.plan.workers)

    # --- The run. ---

    async def run(self) -> None:
        """Live through both phases."""
        for number in range(self.plan.clients):
            host = f"c{number}"
            clock = self._clock(self._client_rate)
            if clock.rate != 1.0:
                self.history.inject(self.loop.time(), plans.CLOCK_RATE, f"{host} {clock.rate:.5f}")
            self.start(host, clock, Link(host), self.plan.workers)
        nemesis = self.loop.create_task(Nemesis(self).run(), name="nemesis")
        await asyncio.sleep(self.plan.span)
        await asyncio.wait([nemesis])
        nemesis.result()
        self._heal()
        await self._recover()
        await self._close()
        self.history.seal()

    def _heal(self) -> None:
        self.history.add(Healed(self.loop.time()))
        for machine in self.machines:
            self.network.mend(machine.link)
            self.loop.resume(machine.process)
            if not machine.alive:
                machine.hang_up()
        self.server.heal()

    async def _recover(self) -> None:
        plan = self.plan
        waiters = plan.clients * plan.workers + len(plan.keys)
        bound = plan.longest_ttl + plan.connect_timeout + 0.05 * waiters + PATIENCE
        living = [machine for machine in self.machines if machine.alive]
        prober = self.start("probe", self._clock(0.0), Link("probe"), 0)
        await asyncio.sleep(0)
        awaited: list[tuple[str, asyncio.Task[Any], float]] = []
        for machine in living:
            for task in machine.workers:
                if not task.done():
                    awaited.append((f"worker {task.get_name()}", task, bound))
            keeping = self.loop.spawn(machine.process, self._keep(machine))
            awaited.append((f"lease kept by {machine.name}", keeping, bound + KEEP * plan.ttl))
        for key in plan.keys:
            probing = self.loop.spawn(prober.process, self._probe(prober, key))
            awaited.append((f"key {key.name} free", probing, bound))
        await self._await(awaited)

    async def _await(self, awaited: list[tuple[str, asyncio.Task[Any], float]]) -> None:
        now = self.loop.time()
        for what, task, bound in awaited:
            self.history.add(Awaited(now, what, now + bound))
            task.add_done_callback(self._recovered(what))
        longest = max(bound for _, _, bound in awaited)
        await asyncio.wait([task for _, task, _ in awaited], timeout=longest)
        await asyncio.sleep(0)  # for the callbacks of those that ended last

    def _recovered(self, what: str) -> Callable[[asyncio.Task[Any]], None]:
        def done(task: asyncio.Task[Any]) -> None:
            if not task.cancelled() and task.exception() is None and task.result() is not False:
                self.history.add(Recovered(self.loop.time(), what))

        return done

    async def _probe(self, prober: Machine, key: Key) -> None:
        """Take a key for itself alone, and give it back."""
        lock = Worker(prober, 0).make_lock(key, shared=False)
        invoked = self.loop.time()
        self.history.calls["acquire"] += 1
        lease = await lock.acquire(timeout=-1)
        assert lease is not None
        assert lease.mode is Mode.EXCLUSIVE or key.limit
        prober.took(lease, key, invoked)
        prober.leave(lease)
        self.history.calls["release"] += 1
        await lease.release()

    async def _keep(self, machine: Machine) -> bool:
        """Hold a lock of one's own for longer than its TTL: is it renewed?"""
        key = Key("own-" + machine.name.replace(".", "-"), plans.MUTEX, 0, self.plan.ttl)
        invoked = self.loop.time()
        self.history.calls["acquire"] += 1
        lease = await machine.client.lock(key.name, ttl=key.ttl).acquire()
        assert lease is not None
        machine.took(lease, key, invoked)
        await asyncio.sleep(KEEP * key.ttl)
        machine.look(lease)
        held = lease.held
        machine.leave(lease)
        self.history.calls["release"] += 1
        await lease.release()
        return held

    async def _close(self) -> None:
        living = [machine for machine in self.machines if machine.alive]
        self.history.calls["close"] += len(living)
        closing = [(m, self.loop.spawn(m.process, m.client.close())) for m in living]
        await self._await([(f"close of {m.name}", task, 6.0) for m, task in closing])
        await asyncio.sleep(self.plan.longest_ttl * 1.01 + 0.1)
        now = self.loop.time()
        for shot in self.server.state.list(""):
            for entry in (*shot.holders, *shot.waiters):
                what = "waiter" if entry.token is None else "holder"
                self.history.add(Remains(now, f"{what} {entry.label} of {shot.name}: {entry}"))
        for name in self._tasks_left():
            self.history.add(Remains(now, f"task {name}"))

    def _tasks_left(self) -> list[str]:
        here = asyncio.current_task()
        return [task.get_name() for task, _ in self.loop._living() if task is not here]
