"""What is measured, as data: for each engine the loads, who takes part, and what is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .document import Settings
from .killed import kill_holders
from .load import HOT, PROCESSES, TASKS, THREADS, Load
from .node_death import kill_node
from .nodes import on_nodes
from .renewal import keep_leases
from .rounds import style_for, take_turns
from .stage import Result, Stage
from .trips import count_trips

Measure = Callable[[Stage, Load, float], list[Result]]

CROWD = 10  # clients where the number is not what counts
CLAIMED = 100  # clients that others had when they measured Redlock
READS = 0.9
WORK = 0.01  # seconds that a request has to do besides its locks
LOCKS, QUICK_LOCKS = (1, 3, 5), (3,)

PAIR, OWN_KEYS, HOT_KEY, MIX, OPEN_LOOP = "pair", "own keys", "hot key", "mix", "open loop"
REQUEST, TRIPS, RENEWAL, KILLED = "request", "round trips", "renewal", "holder killed"
NODES, NODE_KILLED, SET_UP = "nodes", "node killed", "claimed set-up"

NO_SERVER = ("memory", "sqlite")
OWN_WEIGHTS = {TASKS: 0.6, THREADS: 1.0, PROCESSES: 1.5}


def everybody(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let the floor, ours and all peers take turns."""
    return take_turns(stage, stage.all(), load, seconds)


def few(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let the floor, ours and the best known peer take turns, or without the peer if it is to be
    over soon. All peers take part where it is about their kind of lock, not about this load: each
    of few has enough rounds to be believed."""
    return take_turns(stage, stage.all(peers=not stage.quick)[:3], load, seconds)


def without_peers(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let ours and the floor take turns."""
    return take_turns(stage, stage.all(peers=False), load, seconds)


def waiters(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let those take turns that can be waited for; if not for the usual crowd, or in a hurry, ours
    and the best known peer."""
    kinds = stage.waiting()
    some = stage.quick or load.clients != CROWD
    return take_turns(stage, kinds[:2] if some else kinds, load, seconds)


def readers_and_writers(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let those take turns that have a read-write lock."""
    return take_turns(stage, stage.with_modes(), load, seconds)


def awaited(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let those take turns whose calls are awaited."""
    return take_turns(stage, stage.awaited(), load, seconds)


def on_time(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Let requests come at half the rate that one client of ours reaches, for everybody."""
    rate = min(2_000.0, max(20.0, stage.rate / 2))
    results = few(stage, replace(load, rate=rate), seconds)
    for result in results:
        result.note = f"{rate:,.0f} requests/s"
    return results


@dataclass(frozen=True)
class Step:
    """One block of rows; `ratios` are the figures that ours is compared by."""

    engine: str
    scenario: str
    label: str
    load: Load
    measure: Measure
    ratios: tuple[str, ...]
    weight: float = 1.0

    @property
    def crowding(self) -> int:
        """How many clients it has beyond the usual; most where they are in each other's way."""
        more = max(0, self.load.clients - CROWD)
        return more + 1 if more and self.scenario == HOT_KEY else more


def plan(settings: Settings) -> list[Step]:
    """Return all steps, engine by engine; crowds come last, they take longest."""
    steps = []
    for engine in settings["engines"]:
        steps += sorted(_of_engine(engine, settings), key=lambda step: step.crowding)
    return steps


def _of_engine(engine: str, settings: Settings) -> list[Step]:
    quick, clients = settings["quick"], settings["clients"]
    more = [count for count in clients if count > 1]
    if quick:
        more = more[:1]
    basics = [
        Step(engine, PAIR, "uncontended pair", Load(), everybody, ("pair p50",), 2.0),
        *_own_keys(engine, clients, more, quick),
        *(_hot_key(engine, count) for count in ([] if quick else [2]) + more),
    ]
    trips = Step(engine, TRIPS, "requests per pair", Load(), count_trips, ("requests/pair",), 0.5)
    if engine not in NO_SERVER:
        basics.append(trips)
    if engine == "valkey":
        return basics  # the same engine as on Redis: the rest says little more
    steps = [
        *basics,
        *([] if engine == "memory" else [_open_loop(engine)]),
        Step(
            engine,
            MIX,
            f"{READS:.0%} readers, {CROWD} clients",
            Load(style_for(engine, PROCESSES), CROWD, HOT, reads=READS),
            readers_and_writers,
            ("pairs/s",),
        ),
        *(_request(engine, count) for count in (QUICK_LOCKS if quick else LOCKS)),
    ]
    steps.append(Step(engine, RENEWAL, "renewal", Load(), keep_leases, (), 1.5))
    if engine != "memory":
        killed = "holder killed"
        steps.append(Step(engine, KILLED, killed, Load(), kill_holders, ("recovery",), 1.5))
    if engine == "redlock":
        steps += _of_redlock(quick)
    elif engine in ("zookeeper", "etcd") and not quick:  # three servers take seconds to start
        steps.append(_node_killed(engine, "leader of 3 killed"))
    return steps


def _node_killed(engine: str, label: str) -> Step:
    return Step(engine, NODE_KILLED, label, Load(), kill_node, ("stall",), 1.5)


def _own_keys(engine: str, clients: list[int], more: list[int], quick: bool) -> list[Step]:
    """A key for each client: in threads, in tasks, in processes."""
    styles: list[tuple[str, list[int], Measure]] = [
        (THREADS, more, few),
        (TASKS, more if quick else clients, awaited),
    ]
    if engine != "memory" and not quick:
        counts = [count for count in more if (engine, count) != ("redlock", CLAIMED)]
        styles.append((PROCESSES, counts, everybody))
    return [
        Step(
            engine,
            OWN_KEYS,
            f"a key each, {_clients(count, style)}",
            Load(style, count),
            few if measure is everybody and count > CROWD else measure,
            ("pairs/s",),
            OWN_WEIGHTS[style] * (2 if style == THREADS and count > CROWD else 1),
        )
        for style, counts, measure in styles
        for count in counts
    ]


def _clients(count: int, style: str) -> str:
    if style == PROCESSES:
        return f"{count} clients in processes"
    return f"{count} {style if count > 1 else style[:-1]}"


def _hot_key(engine: str, count: int) -> Step:
    load = Load(style_for(engine, PROCESSES), count, HOT)
    label = f"one key, {count} clients"
    ratios = ("hand-overs/s", "hand-over p50")
    weight = 4.0 if count == CROWD else 1.5 if count < CROWD else 3.0
    return Step(engine, HOT_KEY, label, load, waiters, ratios, weight)


def _open_loop(engine: str) -> Step:
    label = f"requests on time, {CROWD} threads"
    return Step(engine, OPEN_LOOP, label, Load(THREADS, CROWD), on_time, ("response p50",))


def _request(engine: str, count: int) -> Step:
    words = "1 lock" if count == 1 else f"{count} locks"
    label = f"request of {WORK * 1000:g} ms with {words}"
    return Step(
        engine, REQUEST, label, Load(locks=count, work=WORK), without_peers, ("pair p50",), 0.7
    )


def _of_redlock(quick: bool) -> list[Step]:
    sizes: list[tuple[int, int]] = [(5, 2)] if quick else [(3, 0), (5, 0), (7, 0), (5, 2)]
    ratio = ("pair p50",)
    variants = {
        f"{count} nodes{f', {dead} of them dead' if dead else ''}": on_nodes(count, dead)
        for count, dead in sizes
    }
    made: dict[str, Any] = {"engine": "redlock", "load": Load(), "weight": 0.8}
    steps = [
        Step(scenario=NODES, label=label, measure=measure, ratios=ratio, **made)
        for label, measure in variants.items()
    ]
    steps.append(_node_killed("redlock", "1 of 5 nodes killed"))
    label, load = f"5 nodes, {CLAIMED} clients in processes", Load(PROCESSES, CLAIMED)
    figures = ("pairs/s", "acquire p50")
    return [*steps, Step("redlock", SET_UP, label, load, few, figures, 1.5)]
