"""A whole run: engine by engine, step by step; what cannot run says why, and the rest goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from ... import __version__
from .. import cores
from ..contestant import OURS
from ..peers import PEERS
from .budget import Budget
from .crew import Crew
from .document import VERSION, Document, Ratio, Row, Settings, number
from .figures import FIGURES, fairness_of, figure_of, figures_of, handovers, histograms_of
from .floors import FLOORS
from .grounds import GROUNDS, NoGround, ground_of
from .load import HOT
from .machine import this_machine, versions
from .ours import Ours
from .stability import believable, measured
from .stage import Result, Stage
from .steps import HOT_KEY, PAIR, Step, plan

ENGINES = tuple(GROUNDS)
PROCESSES, QUICK_PROCESSES = 4, 2
FULL, QUICK = 830.0, 80.0  # seconds; a run must not take more than 15 minutes, or 90 seconds
CLIENTS = (1, 10, 100)
# The weight of starting servers and processes; Java takes its time.
STARTING = {"dynamodb": 6.0, "zookeeper": 4.0, "postgresql": 4.0}
USUAL = 2.0
CANNOT = "cannot run: "
TIME_IS_UP = "the time was used up before it; give the run more with --seconds"
DRIVERS = ("redis", "hiredis", "kazoo", "grpcio", "protobuf", "psycopg", "boto3")

Tell = Callable[[float, str, float], None]  # share that is done, what is next, seconds left


def compare(settings: Settings, tell: Tell = lambda share, what, left: None) -> Document:
    """Measure all that was asked for, in the time that was given."""
    began = time.monotonic()
    steps = plan(settings)
    budget = Budget(settings["seconds"], sum(_weight(mine) for _, mine in by_engine(steps)))
    run = _Run(settings, budget, tell)
    with cores.awake():
        for engine, mine in by_engine(steps):
            run.measure_engine(engine, mine)
    tell(1.0, "", 0.0)
    kinds = {kind for some in PEERS.values() for kind in some}
    return {
        "version": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "holdfast": __version__,
        "machine": this_machine(),
        "servers": run.servers,
        "packages": versions([*DRIVERS, *(kind.package for kind in kinds)]),
        "settings": settings,
        "took": round(time.monotonic() - began, 1),
        "rows": run.rows,
        "ratios": run.ratios,
    }


def by_engine(steps: Sequence[Step]) -> list[tuple[str, list[Step]]]:
    """Return the steps of each engine, which share its servers."""
    grouped = groupby(steps, key=lambda step: step.engine)
    return [(engine, list(mine)) for engine, mine in grouped]


def _weight(steps: Sequence[Step]) -> float:
    return STARTING.get(steps[0].engine, USUAL) + sum(step.weight for step in steps)


class _Run:
    """What has been found so far.

    An engine that takes longer than its part loses its last rows, and not those of the others.
    """

    def __init__(self, settings: Settings, budget: Budget, tell: Tell) -> None:
        self._settings, self._budget, self._tell = settings, budget, tell
        self.rows: list[Row] = []
        self.ratios: list[Ratio] = []
        self.servers: dict[str, str] = {}

    def measure_engine(self, engine: str, steps: Sequence[Step]) -> None:
        """Start its servers, do all steps, stop them."""
        self._tell(self._budget.share, f"{engine}: starting", self._budget.left)
        part = Budget(self._budget.slice(_weight(steps)), sum(step.weight for step in steps))
        with ExitStack() as stack:
            try:
                if part.left <= 0:
                    raise NoGround(TIME_IS_UP)
                ground = stack.enter_context(ground_of(engine))
            except NoGround as error:
                for step in steps:
                    self._add(step, [Result(Ours, problem=str(error))], None)
                return
            self.servers[engine] = ground.version
            size = QUICK_PROCESSES if self._settings["quick"] else PROCESSES
            stage = Stage(self._settings, ground, stack.enter_context(Crew(size)))
            if not self._settings["quick"]:
                stage.second = stack.enter_context(Crew(size))
            for step in steps:
                self._measure(step, stage, part)

    def _measure(self, step: Step, stage: Stage, part: Budget) -> None:
        self._tell(self._budget.share, f"{step.engine}: {step.label}", self._budget.left)
        seconds = part.slice(step.weight)
        problem = stage.ground.problem() or (TIME_IS_UP if part.left <= 0 else "")
        if problem:
            self._add(step, [Result(Ours, problem=problem)], stage)
            return
        try:
            results = step.measure(stage, step.load, seconds)
        except Exception as error:  # of our own making: the other rows are worth having
            stage.dismiss()
            why = stage.ground.problem() or f"failed: {type(error).__name__}: {error}"
            results = [Result(Ours, problem=why)]
        if step.crowding:
            stage.dismiss()  # with hundreds of connections that nobody needs any more
        self._add(step, results, stage)

    def _add(self, step: Step, results: Sequence[Result], stage: Stage | None) -> None:
        for result in results:
            if not result.samples and not result.problem:
                result.problem = "failed: it did nothing in its time"
            self.rows.append(row_of(step, result, stage))
        self.ratios += ratios_of(step, results)


def row_of(step: Step, result: Result, stage: Stage | None = None) -> Row:
    """Return the row of one contestant; what it found is remembered for later ones."""
    kind, figures, curve = result.kind, dict[str, float](), list[list[float]]()
    if not result.problem:
        figures = figures_of(result.samples)
        latencies = histograms_of(result.samples)
        curve = latencies["acquire"].curve() if "acquire" in latencies else []
        if step.load.keys == HOT:
            figures |= fairness_of(result.samples)
        if stage is not None:
            _remember(step, result, stage, figures)
    known = {name: number(value) for name, value in figures.items() if name in FIGURES}
    return {
        "engine": step.engine,
        "scenario": step.scenario,
        "label": step.label,
        "style": step.load.style,
        "loop": "open" if "response p50" in known else step.load.loop,
        "clients": step.load.clients,
        "contestant": kind.name,
        "role": kind.role,
        "lacks": kind.lacks,
        "rounds": 0 if result.problem else len(result.samples),
        "figures": known,
        "curve": curve,
        "note": result.note,
        "problem": f"{CANNOT}{result.problem}" if result.problem else "",
    }


def _remember(step: Step, result: Result, stage: Stage, figures: dict[str, float]) -> None:
    name = result.kind.name
    if step.scenario == PAIR:
        stage.free[name] = figures.get("acquire p99", math.nan)
        if result.kind.role == OURS:
            stage.rate = figures["pairs/s"]
    elif step.scenario == HOT_KEY and name in stage.free:
        figures["contended/free"] = figures.get("acquire p99", math.nan) / stage.free[name]


def ratios_of(step: Step, results: Sequence[Result]) -> list[Ratio]:
    """Return how ours compares with each of the others, by each figure that counts."""
    able = [result for result in results if not result.problem]
    ours = next((result for result in able if result.kind.role == OURS), None)
    if ours is None:
        return []
    found: list[Ratio] = []
    for figure in step.ratios:
        total, kind = partial(figure_of, figure=figure), FIGURES[figure]
        for other in able:
            ratio = measured(ours.samples, other.samples, total, more=kind.more, rare=kind.rare)
            if other is ours or ratio is None:
                continue
            counted = min(handovers(ours.samples), handovers(other.samples))
            few = kind.rare and not believable(ratio.value, counted, more=kind.more)
            found.append(
                {
                    "engine": step.engine,
                    "scenario": step.scenario,
                    "label": step.label,
                    "style": step.load.style,
                    "clients": step.load.clients,
                    "figure": figure,
                    "contestant": other.kind.name,
                    "role": other.kind.role,
                    "value": round(ratio.value, 4),
                    "halves": [round(half, 4) for half in ratio.halves],
                    "stable": ratio.stable and not few,
                    "few": few,
                }
            )
    return found


def settings_for(
    engines: Sequence[str] = (),
    *,
    peers: bool = False,
    clients: Sequence[int] = CLIENTS,
    seconds: float | None = None,
    quick: bool = False,
) -> Settings:
    """Return what was asked for, with what was not said."""
    return {
        "engines": list(engines or FLOORS),
        "peers": peers,
        "clients": sorted(set(clients)),
        "seconds": float(seconds or (QUICK if quick else FULL)),
        "quick": quick,
    }
