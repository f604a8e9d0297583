"""A node is killed under clients at work: one of five for Redlock, the leader of three for others.

All contestants work at the same time, a process each, so that they see the same death.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from ..contestant import Place
from ..handle import PATIENCE
from .crew import GRACE, AnyContestant, Crew, CrewFailed
from .grounds import NODES, redis_ground
from .load import Load
from .rounds import TRIAL
from .sample import Sample
from .stage import Result, Stage

if TYPE_CHECKING:
    from ...testing.servers import ServerProcess

DEATH = 0.4  # seconds after all have begun


class Cluster(NamedTuple):
    """Servers that stand in for each other, and the end of one of them."""

    place: Place
    kill: Callable[[], None]


def _redlock(stack: ExitStack) -> Cluster:
    from ...testing.servers import redis_program

    ground = redis_ground(stack, "redlock", NODES, redis_program())
    return Cluster(ground.place, ground.servers[0].kill)


def _etcd(stack: ExitStack) -> Cluster:
    from ...testing.servers import EtcdCluster

    cluster = stack.enter_context(EtcdCluster(3))
    ports = [server.port for server in cluster.servers]
    return _with_leader("etcd", ports, cluster.leader(), cluster.servers)


def _zookeeper(stack: ExitStack) -> Cluster:
    from ...testing.servers import ZooKeeperEnsemble

    ensemble = stack.enter_context(ZooKeeperEnsemble(3))
    ports = [server.port for server in ensemble.servers]
    return _with_leader("zookeeper", ports, ensemble.leader(), ensemble.servers)


def _with_leader(
    engine: str, ports: Sequence[int], leader: int, servers: Sequence[ServerProcess]
) -> Cluster:
    """Return the cluster, the leader named first: who knows one server only knows that one."""
    order = [ports[leader], *(port for number, port in enumerate(ports) if number != leader)]
    addresses = tuple(f"127.0.0.1:{port}" for port in order)
    victim = servers[leader]
    return Cluster(Place(engine, f"{engine}://{','.join(addresses)}", addresses), victim.kill)


class Trial(NamedTuple):
    """How a cluster is made, and how long to look: until the others have gone on for sure."""

    make: Callable[[ExitStack], Cluster]
    seconds: float
    times: int


TRIALS: dict[str, Trial] = {
    "redlock": Trial(_redlock, 1.2, 4),
    "etcd": Trial(_etcd, 5.0, 2),
    "zookeeper": Trial(_zookeeper, 6.0, 2),
}


def kill_node(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Kill a node, each time of new servers; say how long each client was without a pair."""
    trial = TRIALS[stage.engine]
    results = [Result(kind) for kind in stage.waiting()]
    for _ in range(1 if stage.quick else trial.times):
        able = [result for result in results if not result.problem]
        if able:
            _once(trial, able)
    return results


def _once(trial: Trial, results: Sequence[Result]) -> None:
    begun = threading.Barrier(len(results) + 1)

    def work(kind: AnyContestant) -> Sample:
        with Crew(1) as crew:
            try:
                crew.run(kind, cluster.place, Load(turns=TRIAL), 0.0)
            finally:
                begun.wait(PATIENCE + GRACE)  # also who failed lets the others begin
            return crew.run(kind, cluster.place, Load(), trial.seconds, patience=trial.seconds)

    with ExitStack() as stack:
        cluster = trial.make(stack)
        with ThreadPoolExecutor(len(results)) as pool:
            working = [pool.submit(work, result.kind) for result in results]
            begun.wait(2 * (PATIENCE + GRACE))
            time.sleep(DEATH)
            cluster.kill()
            for result, future in zip(results, working, strict=True):
                try:
                    sample = future.result()
                except CrewFailed as failed:
                    result.problem = str(failed)
                    continue
                # A closed loop of one client: its longest pair is its longest time without one.
                worst = sample.histograms["pair"].percentile(100) / 1e3
                result.samples.append(Sample(1.0, [0], extra={"stall": worst}))
