"""A lock as an item of DynamoDB: what is in it, and the requests that change it.

An item has its key (space = namespace and record version, name) and these attributes:
    t  the last token of the name            v  a random word, new with every change but two
    h  who holds, by owner                   q  who waits, in order
    x  owners that must not enter any more   c  there once t was compared with the shared floor
    s  by host, since when one of its processes has seen the holders as they are

Rule 1: a request that nobody disputes carries its whole condition: an idle item for a claim, the
        one holder and no waiters for a release, the holder for a renewal.
Rule 2: any other change is made on an image of the item and is conditional on its `v`. A holder is
        taken for dead only under the further condition that it has not renewed since (S13).
Rule 3: a renewal changes `n` of its holder, a newcomer goes to the end of a queue that is there,
        and neither changes `v`: they disturb nobody, however many there are. So what an image says
        of the end of the queue is a condition by itself where it matters.
Rule 4: an item is deleted only when idle, and only after the shared floor of its namespace was
        raised to its token (S19). Who finds an item without `c` compares first: its token must be
        above that floor. The item was there when the floor was read, so nothing came between.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from .clocks import wall_micros
from .errors import EngineUnavailable
from .model import Claim, Family, Mode

Item = dict[str, Any]
Request = dict[str, Any]

SPACE, NAME = "space", "name"
MOST_HOSTS = 32  # whose sightings are kept
FLOOR = "."  # the name of the item with the shared floor: no encoded name has a dot

ONE = {"N": "1"}
SHOW_OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def key_of(key: str) -> Item:
    """Return the key of the item of a record."""
    space, _, name = key.rpartition("/")
    return {SPACE: {"S": space}, NAME: {"S": name}}


def floor_key(key: str) -> Item:
    """Return the key of the item with the floor that all names of a namespace share."""
    return {SPACE: {"S": key.rpartition("/")[0]}, NAME: {"S": FLOOR}}


def record_key_of(item: Item) -> str:
    """Return the key of the record that an item is."""
    return f"{item[SPACE]['S']}/{item[NAME]['S']}"


def number(item: Item, name: str) -> int:
    """Return a whole number of an item, 0 if it is not there."""
    return int(item[name]["N"]) if name in item else 0


def in_use(item: Item) -> bool:
    """Say whether anybody holds or waits."""
    return "h" in item or "q" in item


# --- Requests that nobody disputes. ---


def claim_request(claim: Claim, token: int, version: str) -> Request:
    """Take an idle lock: its token is above the last one, and its owner has not let go."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET h = :h, t = :t, v = :v",
        "ConditionExpression": "attribute_not_exists(h) AND attribute_not_exists(q) AND "
        "attribute_not_exists(x.#me) AND (attribute_not_exists(t) OR t < :t)",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {
            ":h": {"M": {claim.owner: holder(claim, token, claim.ttl)}},
            ":t": {"N": str(token)},
            ":v": {"S": version},
        },
        "ReturnValues": "ALL_OLD",
        **SHOW_OLD,
    }


def renew_request(claim: Claim) -> Request:
    """Let it last its TTL from now on, unless a newer word about that has come."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET h.#me.n = h.#me.n + :one, h.#me.l = :l, h.#me.r = :r, c = :one",
        "ConditionExpression": "h.#me.r <= :r",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {
            ":one": ONE,
            ":l": {"N": repr(claim.ttl)},
            ":r": {"N": str(claim.revision)},
        },
        "ReturnValues": "ALL_NEW",
        **SHOW_OLD,
    }


def touch_request(claim: Claim) -> Request:
    """Renew with the TTL that it has."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET h.#me.n = h.#me.n + :one",
        "ConditionExpression": "attribute_exists(h.#me)",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {":one": ONE},
        **SHOW_OLD,
    }


def raise_request(claim: Claim, old: int, new: int, version: str) -> Request:
    """Give the holder a token above the shared floor, before anybody has seen the old one."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET h.#me.k = :new, t = :new, v = :v, c = :one",
        "ConditionExpression": "h.#me.k = :old",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {
            ":old": {"N": str(old)},
            ":new": {"N": str(new)},
            ":v": {"S": version},
            ":one": ONE,
        },
        **SHOW_OLD,
    }


def release_request(claim: Claim, version: str) -> Request:
    """Give a lock back that nobody shares and nobody waits for."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET v = :v, c = :one REMOVE h, s",
        "ConditionExpression": "attribute_exists(h.#me) AND size(h) = :one AND "
        "attribute_not_exists(q)",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {":v": {"S": version}, ":one": ONE},
        **SHOW_OLD,
    }


def may_join(claim: Claim, item: Item) -> bool:
    """Say whether a claim is sure to wait, whatever else happens, as long as others do.

    Who wants just what the first one waits for cannot enter before it. In a tree it could enter
    along with it, and who let in the first may not have known of the second.
    """
    queue = item.get("q", {}).get("L", [])
    same = bool(queue) and queue[0]["M"]["d"]["S"].startswith(_kind(claim))
    return same and claim.family is not Family.TREE


def join_request(claim: Claim) -> Request:
    """Wait behind others who want the same, if they still wait."""
    return {
        "Key": key_of(claim.key),
        "UpdateExpression": "SET q = list_append(q, :me)",
        "ConditionExpression": "begins_with(q[0].d, :kind) AND attribute_not_exists(h.#me) AND "
        "attribute_not_exists(x.#me)",
        "ExpressionAttributeNames": {"#me": claim.owner},
        "ExpressionAttributeValues": {
            ":me": {"L": [waiter(claim)]},
            ":kind": {"S": _kind(claim)},
        },
        **SHOW_OLD,
    }


def sighting_request(key: str, item: Item, host: str, sighting: str) -> Request:
    """Leave what this host has seen in the item, for processes of it that come later."""
    others = item.get("s", {}).get("M", {})
    word = {"S": sighting}
    request: Request = {
        "Key": key_of(key),
        "UpdateExpression": "SET s = :s",
        "ConditionExpression": "v = :v",
        "ExpressionAttributeValues": {":s": {"M": {host: word}}, ":v": item["v"]},
    }
    if 0 < len(others) < MOST_HOSTS:
        request["UpdateExpression"] = "SET s.#host = :s"
        request["ExpressionAttributeValues"][":s"] = word
        request["ExpressionAttributeNames"] = {"#host": host}
    return request


def look_request(key: Item) -> Request:
    """Read an item as it is now."""
    return {"Key": key, "ConsistentRead": True}


def list_request(prefix: str) -> Request:
    """Read all items of a namespace whose names start so."""
    space, _, start = prefix.rpartition("/")
    request: Request = {
        "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": SPACE},
        "ExpressionAttributeValues": {":s": {"S": space}},
        "ConsistentRead": True,
    }
    if start:
        request["KeyConditionExpression"] += " AND begins_with(#n, :n)"
        request["ExpressionAttributeNames"]["#n"] = NAME
        request["ExpressionAttributeValues"][":n"] = {"S": start}
    return request


def raise_floor_request(space: str, floor: int) -> Request:
    """Raise the shared floor of a namespace; refused if it is there or higher."""
    return {
        "Key": {SPACE: {"S": space}, NAME: {"S": FLOOR}},
        "UpdateExpression": "SET f = :f",
        "ConditionExpression": "attribute_not_exists(f) OR f < :f",
        "ExpressionAttributeValues": {":f": {"N": str(floor)}},
        **SHOW_OLD,
    }


def cursor_request(key: Item, name: Item | None) -> Request:
    """Remember up to which name idle items were looked for; None = to the end."""
    if name is None:
        return {"Key": key, "UpdateExpression": "REMOVE n"}
    return {
        "Key": key,
        "UpdateExpression": "SET n = :n",
        "ExpressionAttributeValues": {":n": name},
    }


def delete_request(item: Item) -> Request:
    """Forget an idle item that is still as it was."""
    return {
        "Key": {SPACE: item[SPACE], NAME: item[NAME]},
        "ConditionExpression": "v = :v AND attribute_not_exists(h) AND attribute_not_exists(q)",
        "ExpressionAttributeValues": {":v": item["v"]},
    }


# --- Entries of an item. ---


@lru_cache(maxsize=1024)
def _terms(
    name: str, family: str, mode: str, path: tuple[str, ...], limit: int, label: str, value: str
) -> str:
    parts = [name, family, mode, path, limit, label, value]
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def _kind(claim: Claim) -> str:
    """Return how the terms of all begin who want the same."""
    return _terms(*claim[1:6], "", "").removesuffix('"",""]')


def holder(claim: Claim, token: int, lease: float) -> Item:
    """Return what an item keeps of a holder."""
    return {
        "M": {
            "k": {"N": str(token)},
            "n": {"N": "0"},
            "l": {"N": repr(lease)},
            "r": {"N": str(claim.revision)},
            "w": {"N": str(wall_micros())},
            "d": {"S": _terms(*claim[1:6], *claim[7:9])},
        }
    }


def waiter(claim: Claim) -> Item:
    """Return what an item keeps of a waiter."""
    return {
        "M": {
            "o": {"S": claim.owner},
            "l": {"N": repr(claim.ttl)},
            "w": {"N": str(wall_micros())},
            "d": {"S": _terms(*claim[1:6], *claim[7:9])},
        }
    }


def claim_in(key: str, owner: str, entry: Item) -> Claim:
    """Return the claim behind an entry."""
    name, family, mode, path, limit, label, value = json.loads(entry["d"]["S"])
    ttl = float(entry["l"]["N"])
    revision = number(entry, "r")
    kind, how = Family(family), Mode(mode)
    return Claim(key, name, kind, how, tuple(path), limit, ttl, label, value, owner, True, revision)


# --- The table. ---

_KEYS = {SPACE: "HASH", NAME: "RANGE"}


def table_request(table: str) -> Request:
    """Make a table: pay per request, nothing to be planned."""
    return {
        "TableName": table,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in (SPACE, NAME)
        ],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in _KEYS.items()],
        "BillingMode": "PAY_PER_REQUEST",
    }


def check_table(table: Item, where: str) -> bool:
    """Say whether a table can be used now; raise if it never can."""
    keys = {one["AttributeName"]: one["KeyType"] for one in table["KeySchema"]}
    kinds = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    if keys != _KEYS or {kinds[name] for name in keys} != {"S"}:
        raise EngineUnavailable(
            f"{where} is a table for something else: its key is {', '.join(keys)}, and locks need "
            f"{SPACE} (hash) and {NAME} (range), both strings; name another table.",
            engine=where,
        )
    if table.get("Replicas") and table.get("MultiRegionConsistency") != "STRONG":
        raise EngineUnavailable(
            f"{where} is a global table with eventual consistency, in which two regions may grant "
            "the same lock; use a table of one region, or multi-region strong consistency.",
            engine=where,
        )
    return str(table["TableStatus"]) in ("ACTIVE", "UPDATING")
