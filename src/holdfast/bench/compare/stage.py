"""What a step has to work with: the servers, the processes, the time, and what came before."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from .. import cores
from ..async_contestant import AsyncContestant
from ..contestant import Contestant
from ..peers import PEERS
from ..peers.async_ones import ASYNC_PEERS
from .crew import AnyContestant, Crew
from .document import Settings
from .floors import FLOORS
from .grounds import Ground
from .load import PROCESSES, Load
from .ours import AsyncOurs, Ours
from .sample import Sample

QUICK_PEERS = 2  # of each engine
FEW = 10  # clients


@dataclass
class Result:
    """What one contestant came to in one step; `problem` says why it has no samples that count."""

    kind: AnyContestant
    samples: list[Sample] = field(default_factory=list)
    problem: str = ""
    note: str = ""


@dataclass
class Stage:
    """One engine, ready to be measured."""

    settings: Settings
    ground: Ground
    crew: Crew
    second: Crew | None = None  # for every other round: processes of the same kind differ too
    free: dict[str, float] = field(default_factory=dict)  # acquire p99, uncontended, µs
    rate: float = 0.0  # pairs/s of ours, one client

    @property
    def engine(self) -> str:
        """Its name."""
        return self.ground.place.engine

    @property
    def quick(self) -> bool:
        """Whether it is to be over soon."""
        return self.settings["quick"]

    @property
    def peers(self) -> tuple[type[Contestant], ...]:
        """The locks of others, if they are wanted; if it is to be over soon, the best known."""
        peers = PEERS.get(self.engine, ()) if self.settings["peers"] else ()
        return peers[:QUICK_PEERS] if self.quick else peers

    def all(self, *, peers: bool = True) -> list[AnyContestant]:
        """Return the floor, ours and the peers."""
        return [FLOORS[self.engine], Ours, *(self.peers if peers else ())]

    def waiting(self) -> list[AnyContestant]:
        """Return those that can be waited for."""
        return [kind for kind in self.all() if kind.waits]

    def with_modes(self) -> list[AnyContestant]:
        """Return those that have a read-write lock."""
        return [Ours, *(peer for peer in self.peers if peer.modes is not Contestant.modes)]

    def awaited(self) -> list[AnyContestant]:
        """Return those whose calls are awaited."""
        others: tuple[type[AsyncContestant], ...] = ()
        if self.settings["peers"]:
            others = ASYNC_PEERS.get(self.engine, ())
        return [AsyncOurs, *others]

    def crews(self, load: Load) -> list[Crew]:
        """Return who works in even rounds, and who in odd ones; a crowd is there only once."""
        return [self.crew, self.second if self.second and load.clients <= FEW else self.crew]

    def dismiss(self) -> None:
        """Let nobody go on."""
        for crew in filter(None, (self.crew, self.second)):
            crew.dismiss()

    def apart(self, load: Load) -> AbstractContextManager[str]:
        """Keep servers and clients on different cores, if one process has all clients."""
        if load.style == PROCESSES:
            return nullcontext("")
        clients = {crew.first.process.pid for crew in self.crews(load)}
        return cores.apart(self.ground.pids, sorted(clients))
