"""(Generated from _async/engines/etcd_look.py by tools/unasync.py: do not edit.) Looking at records on etcd, and breaking them: what operators do, apart from what locks do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...clocks import Clock
from ...errors import EngineUnavailable, LockError, OutcomeUnknown
from ...etcd_link import RANGE, TIME_TO_LIVE, TXN, Link, LeaseGone, Method
from ...etcd_link import messages as m
from ...etcd_record import (
    ASCENDING,
    BY_CREATION,
    beginning_with,
    below,
    by_record,
    contender,
    force_request,
    read_snapshot,
    root_of,
)
from ...model import Snapshot
from ...sorted_queue import divide

PAGE = 2_000  # keys in one answer
LEASES = 8  # whose rest is asked for, when one record is looked at


class EtcdLook:
    """Reads and repairs, over the link of an engine."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock

    def read(self, method: Method, request: Any, timeout: float) -> Any:
        """Ask what changes nothing, one member after another; each has its share of the time."""
        end = self._clock() + timeout
        for members in range(len(self._link.settings.endpoints), 0, -1):
            try:
                left = max(0.0, end - self._clock())
                return self._link.call(method, request, left / members)
            except (EngineUnavailable, OutcomeUnknown) as error:
                problem = error
        raise EngineUnavailable(str(problem), engine=problem.engine) from problem

    def _queue(self, key: str, timeout: float) -> list[Any]:
        first, end = below(key)
        request = m.RangeRequest(
            key=first, range_end=end, sort_order=ASCENDING, sort_target=BY_CREATION
        )
        return list((self.read(RANGE, request, timeout)).kvs)

    def inspect(self, key: str, timeout: float) -> Snapshot:
        """Show one record, with what is left of the holders' leases."""
        end = self._clock() + timeout
        kvs = self._queue(key, timeout)
        shot = read_snapshot(key, kvs)
        leases = {kv.create_revision: kv.lease for kv in kvs}
        wanted = dict.fromkeys(leases[entry.token or 0] for entry in shot.holders)
        left: dict[int, float] = {}
        for lease in list(wanted)[:LEASES]:
            left[lease] = self._time_left(lease, end - self._clock())
        holders = tuple(
            replace(one, expires_in=min(one.expires_in, left.get(leases[one.token or 0], math.inf)))
            for one in shot.holders
        )
        return replace(shot, holders=holders)

    def _time_left(self, lease: int, timeout: float) -> float:
        """Return what etcd says is left of a lease, in whole seconds; infinity if it does not."""
        try:
            request = m.LeaseTimeToLiveRequest(ID=lease)
            answer = self._link.call(TIME_TO_LIVE, request, timeout)
        except (LockError, LeaseGone):
            return math.inf
        return max(float(answer.TTL), 0.001)

    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """Show all records in use whose key begins so, as of one revision."""
        stop = self._clock() + timeout
        (first, end), found, revision = beginning_with(prefix), [], 0
        while True:
            request = m.RangeRequest(key=first, range_end=end, limit=PAGE, revision=revision)
            page = self.read(RANGE, request, stop - self._clock())
            found += page.kvs
            if not page.more:
                break
            first, revision = page.kvs[-1].key + b"\0", page.header.revision
        return [read_snapshot(key, kvs) for key, kvs in sorted(by_record(found).items())]

    def force(self, key: str, token: int | None, timeout: float) -> int:
        """Remove all holders of a record, or the one with that token; return how many."""
        stop = self._clock() + timeout
        queue = [contender(kv) for kv in self._queue(key, timeout)]
        holders, _ = divide(queue, queue[0].limit if queue else 0)
        broken = 0
        for holder in holders:
            if token in (None, holder.revision):
                request = force_request(root_of(key), holder)
                broken += (self._link.call(TXN, request, stop - self._clock())).succeeded
        return broken
