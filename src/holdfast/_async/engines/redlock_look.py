"""Looking at a Redlock: what a majority of its nodes shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import EngineUnavailable
from ...model import Entry, Family, Mode, Snapshot
from ...redis_link import Reply, afan_out, pack
from ...redis_record import key_in, keys_of, load_script, read_snapshot, scan_pattern
from .redlock_nodes import AsyncRedlockNodes, is_answer
from .redlock_question import question

INSPECT = load_script("inspect", "hinting")
SCAN = 500


async def look(nodes: AsyncRedlockNodes, keys: Sequence[str], timeout: float) -> list[Snapshot]:
    """Show records; a holder counts where a majority knows it."""
    both = [one for key in keys for one in keys_of(key)]
    looking = question(INSPECT, len(both), *both, time_at=0)
    answers = await nodes.ask(looking, timeout)
    heard = [answer for answer in answers if is_answer(answer)]
    if len(heard) < nodes.quorum:
        raise EngineUnavailable(str(nodes.missing(answers)), engine=nodes.location)
    return [
        merge([read_snapshot(key, int(one[0]), one[number]) for one in heard], nodes.quorum)
        for number, key in enumerate(keys, 1)
    ]


def merge(shots: Sequence[Snapshot], quorum: int) -> Snapshot:
    """Return what the nodes agree on; waiters stand where any node has them."""
    holders: dict[str, list[Entry]] = {}
    waiters: dict[str, Entry] = {}
    for shot in shots:
        for entry in shot.holders:
            holders.setdefault(entry.owner, []).append(entry)
        for entry in shot.waiters:
            waiters.setdefault(entry.owner, entry)
    inside = []
    for seen in holders.values():
        if len(seen) >= quorum:
            lasting = sorted((entry.expires_in for entry in seen), reverse=True)
            inside.append(replace(seen[0], expires_in=lasting[quorum - 1]))
    kinds = [shot for shot in shots if shot.kind is not None]
    outside = [entry for owner, entry in waiters.items() if owner not in {i.owner for i in inside}]
    if not inside and not outside:
        return Snapshot(shots[0].name, None, 0, (), ())
    if kinds[0].kind is Family.SEMAPHORE:
        inside = [replace(entry, mode=Mode.SHARED, path=()) for entry in inside]
    inside.sort(key=lambda entry: entry.token or 0)
    outside.sort(key=lambda entry: entry.since)
    return Snapshot(shots[0].name, kinds[0].kind, kinds[0].limit, tuple(inside), tuple(outside))


async def names(nodes: AsyncRedlockNodes, prefix: str, timeout: float) -> list[str]:
    """Return the keys of all records that start with `prefix`, on any node."""
    cursors = {node.number: b"0" for node in nodes.likely(nodes.all, timeout)}
    found: set[str] = set()
    heard: set[int] = set()
    while cursors:
        some = [nodes.all[number] for number in cursors]
        requests = [
            pack(("SCAN", cursors[node.number], "MATCH", scan_pattern(prefix), "COUNT", SCAN))
            for node in some
        ]
        answers: list[Reply] = await afan_out([node.link for node in some], requests, timeout)
        for node, answer in zip(some, answers, strict=True):
            if type(answer) is not list:
                nodes.note(node, answer, timeout)
                del cursors[node.number]
                continue
            cursors[node.number], keys = answer
            found.update(key_in(key) for key in keys)
            if cursors[node.number] == b"0":
                heard.add(node.number)
                del cursors[node.number]
    if len(heard) < nodes.quorum:
        answers = [[] if node.number in heard else None for node in nodes.all]
        raise EngineUnavailable(str(nodes.missing(answers)), engine=nodes.location)
    return sorted(found)
