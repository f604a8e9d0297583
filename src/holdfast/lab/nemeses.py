"""All nemeses, N1 to N13 and N17 of reliability.md §3.2, in the order in which one meets them."""

from __future__ import annotations

from collections.abc import Iterable

from ..model import Fault
from . import client_faults as clients
from . import network_faults as network
from . import server_faults as servers
from .nemesis import CLIENTS, Nemesis

LOSS = frozenset({Fault.SERVER_RESTART, Fault.SERVER_DATA_LOSS})

_ALL = (
    Nemesis(
        "pause",
        "N1",
        "a client stands still (SIGSTOP), as a rule with a lock in its hands",
        clients.pause,
        frozenset({Fault.CLIENT_PAUSE}),
        side=CLIENTS,
    ),
    Nemesis(
        "block",
        "N10",
        "one call keeps a client's event loop, or its interpreter, for longer than a TTL",
        clients.block,
        frozenset({Fault.CLIENT_PAUSE}),
        side=CLIENTS,
    ),
    Nemesis(
        "kill",
        "N2",
        "a client is killed (SIGKILL), and another starts",
        clients.kill,
        frozenset({Fault.CLIENT_CRASH}),
        side=CLIENTS,
    ),
    Nemesis(
        "fork",
        "N11",
        "a client forks with a lock in its hands, and the child looks at it",
        clients.fork,
        frozenset(),
        side=CLIENTS,
    ),
    Nemesis(
        "client-clock",
        "N8",
        "wall clocks of clients are set, by up to an hour either way",
        clients.step_clock,
        frozenset({Fault.CLIENT_CLOCK_STEP}),
    ),
    Nemesis(
        "cut",
        "N6",
        "nothing passes between clients and some or all servers",
        network.cut,
        frozenset({Fault.PARTITION}),
        ("cut", "heal"),
    ),
    Nemesis(
        "one-way",
        "N6",
        "requests arrive, answers are lost",
        network.lose_replies,
        frozenset({Fault.PARTITION}),
        ("lose_replies", "heal"),
    ),
    Nemesis(
        "reset",
        "N7",
        "connections are reset, again and again",
        network.reset,
        frozenset({Fault.PARTITION}),
        ("reset",),
    ),
    Nemesis(
        "slow",
        "N9",
        "answers take up to a third of a TTL longer",
        network.slow,
        frozenset({Fault.PARTITION}),
        ("slow", "heal"),
    ),
    Nemesis(
        "kick",
        "N17",
        "an administrator closes all connections and forgets all scripts",
        servers.kick,
        frozenset({Fault.PARTITION}),
        ("kick",),
    ),
    Nemesis(
        "server-pause",
        "N5",
        "servers stand still (SIGSTOP)",
        servers.pause,
        frozenset({Fault.SERVER_PAUSE}),
        ("pause", "resume"),
    ),
    Nemesis(
        "restart",
        "N3",
        "a server, or a minority of several, is killed and comes back with its data",
        servers.restart,
        frozenset({Fault.SERVER_RESTART}),
        ("restart",),
    ),
    Nemesis(
        "forget",
        "N3",
        "a server, or a minority of several, is killed and comes back with nothing",
        servers.forget,
        LOSS,
        ("forget",),
        forgets=True,
    ),
    Nemesis(
        "forget-all",
        "N3",
        "all of several servers are killed at the same time and come back with nothing",
        servers.forget_all,
        LOSS,
        ("forget",),
        bearable=False,
        several=True,
        forgets=True,
    ),
    Nemesis(
        "roll-back",
        "N4",
        "a server, or a minority of several, comes back with an older copy of its data",
        servers.roll_back,
        frozenset({Fault.SERVER_DATA_LOSS}),
        ("keep_copy", "roll_back"),
        forgets=True,
    ),
    Nemesis(
        "flush",
        "N17",
        "an administrator deletes everything on a server, or a minority of several",
        servers.flush,
        frozenset({Fault.SERVER_DATA_LOSS}),
        ("flush",),
        forgets=True,
    ),
    Nemesis(
        "evict",
        "N12",
        "a server's memory is full, and it throws out what it likes",
        servers.evict,
        frozenset({Fault.SERVER_DATA_LOSS}),
        ("evict",),
        bearable=False,
        forgets=True,
    ),
    Nemesis(
        "server-clock",
        "N8",
        "the wall clock of a server is set, by a TTL or an hour, either way",
        servers.step_clock,
        frozenset({Fault.SERVER_CLOCK_STEP}),
        ("step_clock",),
        costly=True,
        steps_clock=True,
    ),
    Nemesis(
        "failover",
        "N13",
        "a server dies, and a replica takes over that missed its last writes",
        servers.fail_over,
        frozenset({Fault.FAILOVER}),
        ("part_replica", "fail_over"),
        costly=True,
        forgets=True,
    ),
)

NEMESES = {nemesis.name: nemesis for nemesis in _ALL}


def find(names: Iterable[str]) -> list[Nemesis]:
    """Return the nemeses of these names; ValueError, in one sentence, for a name nobody has."""
    unknown = [name for name in names if name not in NEMESES]
    if unknown:
        raise ValueError(
            f"There is no fault called {', '.join(unknown)}; known are: {', '.join(NEMESES)}."
        )
    return [NEMESES[name] for name in names]
