"""Changing a record of DynamoDB on an image of its item: the lock table decides, one update writes.

Rule 1 (S13): how long a holder has been silent is counted on our own clock, from the receipt of the
        first image that showed it as it still is. No clock of anybody else is asked.
Rule 2: an update names only what it changes, so that it undoes no renewal that came meanwhile; and
        it is refused if anything else has changed since the image, or a holder that we take for
        dead has renewed.
Rule 3: a waiter that is let in by somebody else has a short lease until it says that it knows.
"""

from __future__ import annotations

import json
from typing import Any

from .clocks import wall_micros
from .dynamodb_record import (
    ONE,
    SHOW_OLD,
    Item,
    Request,
    claim_in,
    holder,
    join_request,
    key_of,
    may_join,
    number,
    waiter,
)
from .lock_table import Holding, LockTable, Record, Waiting
from .model import Claim, Reason

HANDOVER = 2.0  # seconds that a waiter has to find out that it holds now
BURIED = 900.0  # seconds; DynamoDB refuses requests that were signed longer ago than that
MOST_BURIED = 500

Seen = dict[str, tuple[str, str, float]]  # by owner: its token, its renewals, since when


class _Silent:
    """A channel that reaches nobody: who was let in finds out when it looks next."""

    def queued(self, claim: Claim) -> None:
        """See Channel."""

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """See Channel."""
        return True

    def revoked(self, owner: str, reason: Reason) -> None:
        """See Channel."""


SILENT = _Silent()


class Sight:
    """Since when each holder has been seen as it is, on the clock of this host (S13).

    What other processes of the same boot have seen, and left in the item, counts as ours: else a
    process that looks once and ends could never find out that a holder is dead.
    """

    MOST = 10_000  # records

    def __init__(self, host: str) -> None:
        self._host = host
        self._seen: dict[str, Seen] = {}

    def knows(self, key: str) -> bool:
        """Say whether this record was looked at before."""
        return key in self._seen

    def note(self, key: str, item: Item, received: float) -> dict[str, float]:
        """Take note of an image; return since when each of its holders is known to be like that."""
        holders = item.get("h", {}).get("M", {})
        known = self._seen.pop(key, {})
        if not holders:
            return {}
        left = item.get("s", {}).get("M", {}).get(self._host)
        earlier: dict[str, list[Any]] = json.loads(left["S"]) if left else {}
        seen: Seen = {}
        for owner, entry in holders.items():
            now = (entry["M"]["k"]["N"], entry["M"]["n"]["N"])
            since = received
            for before in (known.get(owner), earlier.get(owner)):
                if before is not None and tuple(before[:2]) == now:
                    since = min(since, before[2])
            seen[owner] = (*now, since)
        while len(self._seen) >= self.MOST:
            self._seen.pop(next(iter(self._seen)), None)  # to be counted anew: later, not wrong
        self._seen[key] = seen
        return {owner: entry[2] for owner, entry in seen.items()}

    def word(self, key: str) -> str:
        """Return what was seen of a record, to be left in its item."""
        return json.dumps(self._seen.get(key, {}), separators=(",", ":"))


class Draft:
    """An image of an item as a record of the lock table, and what was changed in it."""

    def __init__(
        self, key: str, item: Item, since: dict[str, float], now: float, sure: str = ""
    ) -> None:
        self._key = key
        self._item = item
        self._now = now
        self._wall = wall_micros()
        self._records: dict[str, Record] = {}
        self._judged: set[str] = set()  # holders whose time is over, as far as we can tell
        self._load(since, sure)
        self.table = LockTable(
            clock=lambda: self._now, micros=lambda: self._wall, records=self._records
        )
        self.table.floor = number(item, "t")
        graves = item.get("x", {}).get("M", {})
        self.table.tombstones = {
            owner: now + BURIED - (self._wall - int(at["N"])) / 1e6 for owner, at in graves.items()
        }

    def _load(self, since: dict[str, float], sure: str) -> None:
        record: Record | None = None
        for owner, packed in self._item.get("h", {}).get("M", {}).items():
            entry = packed["M"]
            claim = claim_in(self._key, owner, entry)
            record = record or Record(claim)
            holding = Holding(claim, int(entry["k"]["N"]), self._now, SILENT)
            holding.since = self._now - (self._wall - int(entry["w"]["N"])) / 1e6
            if owner != sure:
                holding.expires = since[owner] + claim.ttl
            if holding.expires <= self._now:
                self._judged.add(owner)
            record.holders[owner] = holding
            record.soonest = min(record.soonest, holding.expires)
        for packed in self._item.get("q", {}).get("L", []):
            entry = packed["M"]
            claim = claim_in(self._key, entry["o"]["S"], entry)
            record = record or Record(claim)
            waiting = Waiting(claim, self._now, SILENT)
            waiting.since = self._now - (self._wall - int(entry["w"]["N"])) / 1e6
            record.waiters[claim.owner] = waiting
        if record is not None:
            self._records[self._key] = record

    @property
    def stale(self) -> bool:
        """Whether something is to be done: a holder whose time is over, or nobody holds."""
        record = self._records.get(self._key)
        return bool(self._judged) or (record is not None and not record.holders)

    def holds(self, owner: str) -> bool:
        """Say whether somebody is among the holders."""
        record = self._records.get(self._key)
        return record is not None and owner in record.holders

    def knows(self, owner: str) -> bool:
        """Say whether somebody holds or waits."""
        return self.holds(owner) or self.place(owner) is not None

    def place(self, owner: str) -> int | None:
        """Return the place of a waiter in the queue."""
        record = self._records.get(self._key)
        waiters = [] if record is None else list(record.waiters)
        return waiters.index(owner) if owner in waiters else None

    def bury(self, owner: str) -> None:
        """Let an owner enter no more: copies of its claim may still be on their way (S6)."""
        self.table.tombstones.setdefault(owner, self._now + BURIED)

    def request(self, version: str, actor: str = "", compared: int | None = None) -> Request | None:
        """Return the request that makes the changes; None if there are none.

        `compared` is the shared floor, if this image was without `c`.
        """
        change = _Change(self._item)
        record = self._records.get(self._key)
        old = self._item.get("h", {}).get("M", {})
        holders = {} if record is None else record.holders
        gone = [owner for owner in old if owner not in holders]
        new = {
            owner: holder(
                one.claim,
                one.token,
                one.claim.ttl if owner == actor else min(one.claim.ttl, HANDOVER),
            )
            for owner, one in holders.items()
            if owner not in old
        }
        change.holders(gone, new, bool(holders))
        for owner in gone:
            if owner in self._judged:
                change.still(owner, old[owner]["M"]["n"])
        newcomers = change.waiters({} if record is None else record.waiters)
        change.graves(self.table.tombstones, self._now, self._wall)
        if not change.made:
            return None
        if len(newcomers) == 1 and change.sets_only_one and may_join(newcomers[0], self._item):
            return join_request(newcomers[0])
        floor = max(self.table.floor, compared or 0)
        if floor > number(self._item, "t"):
            change.set("t", {"N": str(floor)})
        if compared is not None:
            change.set("c", ONE)
        change.set("v", {"S": version})
        return change.request(self._key)


class _Change:
    """One update of an item, as it is put together."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self.made = False
        self._sets: list[str] = []
        self._removes: list[str] = []
        self._conditions = ["attribute_not_exists(v)"]
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        if "v" in item:
            self._conditions = [f"v = {self._value(item['v'])}"]

    def _name(self, name: str) -> str:
        alias = f"#a{len(self._names)}"
        self._names[alias] = name
        return alias

    def _value(self, value: Item) -> str:
        alias = f":a{len(self._values)}"
        self._values[alias] = value
        return alias

    @property
    def sets_only_one(self) -> bool:
        """Whether nothing else has been changed so far."""
        return len(self._sets) == 1 and not self._removes

    def set(self, path: str, value: Item) -> None:
        """Set an attribute."""
        self._sets.append(f"{path} = {self._value(value)}")

    def still(self, owner: str, beat: Item) -> None:
        """Let this be done only if the holder has not renewed since."""
        self._conditions.append(f"h.{self._name(owner)}.n = {self._value(beat)}")

    def holders(self, gone: list[str], new: dict[str, Item], any_left: bool) -> None:
        """Take holders out and put others in; those who stay are not touched."""
        if not gone and not new:
            return
        self.made = True
        if "s" in self._item:
            self._removes.append("s")
        if not any_left:
            self._removes.append("h")
        elif "h" not in self._item:
            self.set("h", {"M": new})
        else:
            self._removes += [f"h.{self._name(owner)}" for owner in gone]
            for owner, entry in new.items():
                self.set(f"h.{self._name(owner)}", entry)

    def waiters(self, waiters: dict[str, Waiting]) -> list[Claim]:
        """Let these wait, in this order; return who is new."""
        entries = self._item.get("q", {}).get("L", [])
        old = [entry["M"]["o"]["S"] for entry in entries]
        gone = [at for at, owner in enumerate(old) if owner not in waiters]
        newcomers = [one.claim for owner, one in waiters.items() if owner not in old]
        new = [waiter(claim) for claim in newcomers]
        if not gone and not new:
            return []
        self.made = True
        if gone and (new or not waiters):  # the queue is written anew: nobody may have joined it
            self._conditions.append(f"size(q) = {self._value({'N': str(len(old))})}")
        if not waiters:
            self._removes.append("q")
        elif not old:
            self.set("q", {"L": new})
        elif not gone:
            self._sets.append(f"q = list_append(q, {self._value({'L': new})})")
        elif not new:
            self._removes += [f"q[{at}]" for at in gone]
        else:
            stay = [entry for at, entry in enumerate(entries) if at not in gone]
            self.set("q", {"L": [*stay, *new]})
        return newcomers

    def graves(self, tombstones: dict[str, float], now: float, wall: int) -> None:
        """Add new tombstones; drop old ones when there is something to write anyway."""
        old = self._item.get("x", {}).get("M", {})
        new = [owner for owner in tombstones if owner not in old]
        self.made = self.made or bool(new)
        if not self.made:
            return
        live = sorted((at, owner) for owner, at in tombstones.items() if at > now)
        kept = {owner for _, owner in live[-MOST_BURIED:]}
        if kept == old.keys():
            return
        graves = {owner: old.get(owner, {"N": str(wall)}) for owner in kept}
        if graves:
            self.set("x", {"M": graves})
        elif old:
            self._removes.append("x")

    def request(self, key: str) -> Request:
        """Return the whole."""
        expression = f"SET {', '.join(self._sets)}"
        if self._removes:
            expression += f" REMOVE {', '.join(self._removes)}"
        request = {
            "Key": key_of(key),
            "UpdateExpression": expression,
            "ConditionExpression": " AND ".join(self._conditions),
            "ExpressionAttributeValues": self._values,
            **SHOW_OLD,
        }
        if self._names:
            request["ExpressionAttributeNames"] = self._names
        return request
