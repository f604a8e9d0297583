"""One run: servers, workers, faults, healing, silence, and the verdict.

Rule 1: whatever happens, also Ctrl-C, every fault is undone and all that was started is stopped.
Rule 2: what is judged was written down by the processes themselves; judging comes last.
Rule 3: the folder of a run stays only if a promise was broken.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .. import connect
from ..model import Guarantees
from ..testing import Harness
from ..testing.servers import ServerMissing
from .assignment import ASYNC, COMMAND, REGISTER, SYNC, Assignment
from .checks import judge
from .chronicle import LAB, read_chronicle
from .commander import SHORTEST_TTL
from .diary import Diary, read_diaries
from .engines import load_harness
from .fleet import Fleet, is_gone, tasks_of
from .nemeses import NEMESES, find
from .nemesis import Nemesis
from .plan import Strike, make_plan, swarm
from .register import Register
from .report import Report
from .scene import Scene
from .witness import Witness
from .workload import LONG

KEYS = ("orders/1", "orders/2", "orders/3")
CREW = (SYNC, SYNC, ASYNC, COMMAND)
SHORTEST_LAB_TTL = 0.8
RUSHES, SLOW = 6, 0.005  # at the same time in a worker; one, where an answer takes longer than this
RECOVERY = 10.0  # seconds to recover in, besides TTLs: for machines with more work than cores

Progress = Callable[[float, str], None]  # share done, what goes on


@dataclass(frozen=True, slots=True)
class Setup:
    """What to run; the seed decides the rest."""

    engine: str
    faults: tuple[str, ...]  # none: all that it promises to bear, as far as nothing is prepared
    seed: int
    seconds: float = 10.0
    ttl: float | None = None  # what suits the engine
    pace: float | None = None  # the unit of time for faults, waits and holds: a TTL
    quick: float = 0.8  # share of cycles that only take a lock and give it back
    rush: float = 60.0  # locks a second that each worker takes for an instant, beside the others
    patience: float = 60.0  # for workers to come to their end
    recovery: float = RECOVERY
    swarm: bool = False  # only a random part of the faults
    crew: tuple[str, ...] = CREW
    keys: tuple[str, ...] = KEYS


class Impossible(Exception):
    """This cannot be done here; the message says why, in words that follow a colon."""


def suitable_ttl(harness: Harness) -> float:
    """Return a TTL that makes much happen in a short time, and that the engine can keep."""
    return max(SHORTEST_LAB_TTL, 1.25 * harness.shortest_ttl)


def conduct(setup: Setup, progress: Progress | None = None) -> Report:
    """Run, and return the report; raises Impossible if a fault cannot be done to that engine."""
    wanted = find(setup.faults)
    harness = load_harness(setup.engine)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-lab-"))
        keep = stack.enter_context(_Folder(folder))
        stack.callback(harness.stop)
        nemeses = _start(harness, wanted)
        if setup.swarm:
            nemeses = swarm(setup.seed, nemeses)
        names = tuple(nemesis.name for nemesis in nemeses)
        run = Run(replace(setup, faults=names), nemeses, harness, folder, progress or _silent)
        report = run.conduct()
        if report.broken:
            keep.keep(harness)
    return report


def _silent(share: float, what: str) -> None:
    """Show nothing."""


def _start(harness: Harness, wanted: Sequence[Nemesis]) -> list[Nemesis]:
    """Start servers, ready for these faults; without any, for all that the engine promises to bear
    and that need no preparation. Return which they are."""
    missing = harness.missing()
    if missing:
        raise Impossible(missing)
    for nemesis in wanted:
        reason = why_impossible(nemesis, harness)
        if reason:
            raise Impossible(reason)
    possible = [
        nemesis
        for nemesis in NEMESES.values()
        if not nemesis.costly and not why_impossible(nemesis, harness)
    ]
    try:
        harness.equip("links", *(hook for one in wanted or possible for hook in one.needs))
    except ServerMissing as error:
        raise Impossible(str(error)) from None
    harness.start()
    if wanted:
        return list(wanted)
    ttl = suitable_ttl(harness)
    with connect(harness.lab_urls(ttl)[0], ttl=ttl) as client:
        return [nemesis for nemesis in possible if nemesis.promised(client.guarantees)]


def why_impossible(nemesis: Nemesis, harness: Harness) -> str:
    """Say why this cannot be done to that engine; empty if it can."""
    if nemesis.several and harness.nodes < 2:
        return "there is only one server"
    if not harness.bears(*nemesis.needs):
        return harness.why_not or f"its harness does not define {'() and '.join(nemesis.needs)}()"
    return ""


class _Folder:
    """The folder of a run, removed at the end unless somebody wants it kept."""

    def __init__(self, path: Path) -> None:
        self._path, self._kept = path, False

    def __enter__(self) -> _Folder:
        return self

    def keep(self, harness: Harness) -> None:
        """Keep it, with the logs of the servers."""
        self._kept = True
        for name, text in harness.logs().items():
            (self._path / name).write_text(text)

    def __exit__(self, *_: object) -> None:
        if not self._kept:
            shutil.rmtree(self._path, ignore_errors=True)


class Run:
    """One run on servers that are up."""

    def __init__(
        self,
        setup: Setup,
        nemeses: Sequence[Nemesis],
        harness: Harness,
        folder: Path,
        progress: Progress,
    ) -> None:
        self._setup, self._nemeses, self._harness = setup, nemeses, harness
        self._folder, self._progress = folder, progress
        self._ttl = setup.ttl or suitable_ttl(harness)
        self._pace = setup.pace or self._ttl
        self._rushes = (RUSHES if harness.moment <= SLOW else 1) if setup.rush else 0
        self._urls = harness.lab_urls(self._ttl)
        self._ways = itertools.cycle(self._urls)
        self._guarantees: Guarantees
        self._trouble: list[BaseException] = []

    def conduct(self) -> Report:
        """Go through all phases, and judge."""
        (self._folder / "setup.json").write_text(json.dumps(asdict(self._setup), indent=2))
        Register.create(self._folder / REGISTER)
        diary = Diary(self._folder, LAB)
        try:
            self._live(diary)
        finally:
            diary.close()
        if self._trouble:
            raise self._trouble[0]
        return self._judge()

    def _live(self, diary: Diary) -> None:
        fleet = Fleet(self._folder, diary, self._assign, os.environ)
        scene = Scene(self._harness, fleet, diary, self._pace)
        with ExitStack() as stack:
            stack.callback(fleet.end)
            witness = Witness(self._urls[0], self._ttl, diary)  # a missing driver is found here
            stack.callback(witness.close)
            self._guarantees = witness.guarantees
            self._progress(0.0, "starting workers")
            fleet.start(self._setup.crew)
            witness.start()
            diary.note("begin", ttl=self._ttl)
            with _Lanes(self._lane, scene, self._plan()):
                self._let_time_pass(scene)
            self._progress(0.9, "everything is healed: who recovers?")
            self._await_recovery(diary, fleet)
            late = fleet.finish(self._setup.patience)
            for name in late:
                diary.note("remains", text=f"the worker {name}, which did not come to its end")
            self._progress(0.97, "is anything left?")
            witness.rest()
            self._look_for_remains(diary, witness)
        self._look_for_connections(diary)

    def _plan(self) -> dict[str, list[Strike]]:
        setup = self._setup
        return make_plan(setup.seed, self._nemeses, self._pace, setup.seconds)

    def _assign(self, name: str, colour: str) -> Assignment:
        return Assignment(
            name=name,
            colour=colour,
            url=next(self._ways),
            ttl=self._ttl,
            pace=self._pace,
            quick=self._setup.quick,
            rush=self._setup.rush,
            rushes=self._rushes,
            keys=self._setup.keys,
            seed=str(self._setup.seed),
            folder=str(self._folder),
            tasks=tasks_of(colour),
        )

    # --- The faults. ---

    def _lane(self, scene: Scene, strikes: Iterable[Strike]) -> None:
        """Do one fault after the other until the run is over."""
        try:
            for strike in strikes:
                if scene.wait(strike.gap * self._pace):
                    return
                NEMESES[strike.nemesis].act(scene, strike.dice)
        except BaseException as error:
            self._trouble.append(error)
            scene.over.set()

    def _let_time_pass(self, scene: Scene) -> None:
        seconds, start = self._setup.seconds, time.monotonic()
        while not scene.wait(0.1):
            gone = time.monotonic() - start
            if gone >= seconds:
                break
            self._progress(0.9 * gone / seconds, "faults")

    # --- After the faults. ---

    def _await_recovery(self, diary: Diary, fleet: Fleet) -> None:
        """Write down that all is well now, and what must come of it, by when."""
        healed = diary.note("healed")
        longest = max(self._ttl, SHORTEST_TTL)
        by = healed + 2 * longest + self._harness.recovery + self._setup.recovery
        for member in fleet.victims():
            if member.colour == COMMAND:
                diary.note("due", whose=f"{member.name} gets {self._setup.keys[0]}", by=by + 5)
                continue
            for key in self._setup.keys:
                diary.note("due", whose=f"{member.name} gets {key}", by=by)
            if self._ttl < LONG:
                diary.note("due", whose=f"{member.name} is renewed", by=by + 2 * self._ttl)

    def _look_for_remains(self, diary: Diary, witness: Witness) -> None:
        patience = 2 * max(self._ttl, SHORTEST_TTL) + self._harness.recovery + self._setup.recovery
        for name in witness.wait_for_silence(patience):
            diary.note("remains", text=f"an entry of the engine: {name}")
        for lines in read_diaries(self._folder).values():
            for line in lines:
                if line["what"] in ("began", "started") and not is_gone(line["pid"]):
                    diary.note("remains", text=f"process {line['pid']}")

    def _look_for_connections(self, diary: Diary) -> None:
        end = time.monotonic() + self._setup.recovery
        gc.collect()  # the witness is a client, too: what only waits to be collected is not left
        while (left := self._harness.connections()) and time.monotonic() < end:
            time.sleep(0.02)
        if left:
            diary.note("remains", text=f"{left} connections to the servers")

    # --- The verdict. ---

    def _judge(self) -> Report:
        chronicle = read_chronicle(self._folder)
        on_a_log = self._harness.on_a_log
        verdicts = judge(chronicle, self._guarantees, self._nemeses, on_a_log=on_a_log)
        return Report.make(self._setup, self._ttl, verdicts, chronicle, self._folder)


class _Lanes:
    """Threads that do the faults; leaving the block undoes what is under way."""

    def __init__(
        self,
        lane: Callable[[Scene, Iterable[Strike]], None],
        scene: Scene,
        plan: dict[str, list[Strike]],
    ) -> None:
        self._scene = scene
        self._threads = [
            threading.Thread(target=lane, args=(scene, strikes), name=f"lab-{side}", daemon=True)
            for side, strikes in plan.items()
            if strikes
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._scene.over.set()
        for thread in self._threads:
            thread.join()
