"""Every contestant on the real server of its engine: it takes a lock, and gives it back."""

from __future__ import annotations

import pytest

from holdfast.bench.async_contestant import AsyncContestant
from holdfast.bench.compare.crew import AnyContestant, Crew, CrewFailed
from holdfast.bench.compare.floors import FLOORS
from holdfast.bench.compare.grounds import GROUNDS, Ground, NoGround, ground_of
from holdfast.bench.compare.load import TASKS, THREADS, Load
from holdfast.bench.compare.ours import AsyncOurs, Ours
from holdfast.bench.peers import PEERS
from holdfast.bench.peers.async_ones import ASYNC_PEERS
from holdfast.testing.servers import ServerMissing, need


@pytest.mark.slow
@pytest.mark.parametrize("engine", GROUNDS)
def test_contestants_work(engine: str) -> None:
    """Floor, ours and peers, blocking and awaited; one may be missing, none may fail."""
    kinds: list[AnyContestant] = [FLOORS[engine], Ours, *PEERS[engine]]
    kinds += [AsyncOurs, *ASYNC_PEERS.get(engine, ())]
    try:
        with ground_of(engine) as ground, Crew(1) as crew:
            assert engine == "memory" or ground.version
            failed = {kind.name: why for kind in kinds if (why := used(crew, kind, ground))}
    except NoGround as missing:
        why_none = str(missing)

        def find() -> None:
            raise ServerMissing(why_none)

        need(find)
    else:
        assert not failed


def used(crew: Crew, kind: AnyContestant, ground: Ground) -> str:
    """Use a contestant; return what went wrong, if anything."""
    style = TASKS if issubclass(kind, AsyncContestant) else THREADS
    try:
        sample = crew.run(kind, ground.place, Load(style, turns=2), 0.0)
    except CrewFailed as failed:
        return "" if "is not installed here" in str(failed) else str(failed)
    return "" if len(sample.histograms["pair"]) == 2 else "it did nothing"
