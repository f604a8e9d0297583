"""How an item of DynamoDB carries its fence: attributes, expressions, and what errors say of them.

Rule 1: the fence is three attributes of the item, so it is judged and raised by the very request
        that writes the item. `PASSES` is the same for every request.
Rule 2: an exclusive token that passes is not below the shared floor, and from then on the
        exclusive floor alone decides: so what replaces an item may start with a shared floor of 0.
Rule 3: our attributes and placeholders begin with `holdfast_`; nobody else's may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from ..fencing import Fence, Floors
from ..model import Mode
from .store_state import plain_result

DOMAIN, EXCLUSIVE, SHARED = "holdfast_domain", "holdfast_exclusive", "holdfast_shared"
RESULT = "holdfast_result"
OWN = (DOMAIN, EXCLUSIVE, SHARED, RESULT)

# Placeholders: what they stand for is in `fence_values`.
PASSES = (
    f"attribute_not_exists({DOMAIN}) OR ({DOMAIN} = :holdfast_domain "
    f"AND {EXCLUSIVE} <= :holdfast_token AND {SHARED} <= :holdfast_token)"
)
RAISES = {
    Mode.EXCLUSIVE: f"{DOMAIN} = :holdfast_domain, {EXCLUSIVE} = :holdfast_token, "
    f"{SHARED} = if_not_exists({SHARED}, :holdfast_zero)",
    Mode.SHARED: f"{DOMAIN} = :holdfast_domain, {SHARED} = :holdfast_token, "
    f"{EXCLUSIVE} = if_not_exists({EXCLUSIVE}, :holdfast_zero)",
}
MOVES = f"SET {DOMAIN} = :holdfast_domain, {EXCLUSIVE} = :holdfast_zero, {SHARED} = :holdfast_zero"
IS_ELSEWHERE = f"attribute_not_exists({DOMAIN}) OR {DOMAIN} <> :holdfast_domain"
KEEPS = f"SET {RESULT} = :holdfast_result"
IS_FREE = f"attribute_not_exists({RESULT})"

# SET is a reserved word, so it stands nowhere else in an expression, unless in a placeholder.
_SET = re.compile(r"(?<![\w#:])SET(?=\s)", re.IGNORECASE)
_UNTYPED = "An item is named by its key, such as {'id': '7'}, not by"


Values = Callable[[str | int], Any]  # how a value of ours is spelled


def plain(value: str | int) -> Any:
    """Return a value as a boto3 Table takes it: Python's own."""
    return value


def typed(value: str | int) -> Any:
    """Return a value as a client takes it: {"N": "7"}, {"S": "text"}."""
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def bare(value: Any) -> Any:
    """Return what a value is, typed or not: errors show typed ones also to a Table."""
    return next(iter(value.values())) if isinstance(value, Mapping) else value


def check_key(key: Any) -> dict[str, Any]:
    """Return the key of an item if it can be one."""
    if not isinstance(key, Mapping):
        raise TypeError(f"{_UNTYPED} {type(key).__name__}.")
    if not key:
        raise ValueError(f"{_UNTYPED} {{}}.")
    return dict(key)


def name_of(table: str, key: Mapping[str, Any]) -> str:
    """Return what errors and events call an item: table and key."""
    name = "/".join([table, *(str(bare(value)) for value in key.values())])
    return name if name.isprintable() else ascii(name)


def floors_in(item: Mapping[str, Any]) -> Floors | None:
    """Return what an item remembers, None if nobody has touched it."""
    if DOMAIN not in item:
        return None
    exclusive, shared = (int(bare(item.get(name, 0))) for name in (EXCLUSIVE, SHARED))
    return Floors(bare(item[DOMAIN]), exclusive, shared)


def without_fence(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's part of an item."""
    return {name: value for name, value in item.items() if name not in OWN}


def fence_attributes(spell: Values, fence: Fence) -> dict[str, Any]:
    """Return the fence of an item that is replaced as a whole (Rule 2)."""
    return {
        DOMAIN: spell(fence.domain),
        EXCLUSIVE: spell(fence.token),
        SHARED: spell(0),
    }


def placeholders(spell: Values, **named: str | int) -> dict[str, Any]:
    """Return what our placeholders stand for."""
    return {f":holdfast_{name}": spell(value) for name, value in named.items()}


def fence_values(spell: Values, fence: Fence) -> dict[str, Any]:
    """Return what the placeholders of `PASSES` and `RAISES` stand for."""
    return placeholders(spell, domain=fence.domain, token=fence.token, zero=0)


def also_set(expression: str, ours: str) -> str:
    """Return an update expression that sets something more."""
    if _SET.search(expression):
        return _SET.sub(lambda found: f"{found[0]} {ours},", expression, count=1)
    return f"{expression} SET {ours}".lstrip()


def check_options(options: Mapping[str, Any], *taken: str) -> None:
    """Refuse what is ours to say, or would be taken for ours."""
    for name in taken:
        if name in options:
            raise TypeError(f"The guard itself says {name}: leave it out.")
    for name in options.get("ExpressionAttributeValues") or {}:
        if name.startswith(":holdfast_"):
            raise ValueError(f"The placeholder {name} is the guard's own: call yours otherwise.")


def guarded(
    spell: Values, fence: Fence, options: Mapping[str, Any], *, updates: bool
) -> dict[str, Any]:
    """Return the options of a write with the fence in its condition, and the caller's beside it.

    A request that `updates` has our placeholders in its expression too.
    """
    request = {**options, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    own = request.pop("ConditionExpression", None)
    needed = fence_values(spell, fence)
    if own is None or isinstance(own, str):
        request["ConditionExpression"] = f"({PASSES}) AND ({own})" if own else PASSES
        if not updates:
            del needed[":holdfast_zero"]  # DynamoDB refuses what no expression uses
    else:
        request["ConditionExpression"] = _condition_object(fence) & own
        if not updates:
            needed = {}
    named = {**(request.pop("ExpressionAttributeValues", None) or {}), **needed}
    return {**request, "ExpressionAttributeValues": named} if named else request


def _condition_object(fence: Fence) -> Any:
    """Return `PASSES` as boto3 builds conditions, to be joined with one that was built so."""
    from boto3.dynamodb.conditions import Attr  # type: ignore[import-untyped]

    own = Attr(DOMAIN).eq(fence.domain)
    passes = own & Attr(EXCLUSIVE).lte(fence.token) & Attr(SHARED).lte(fence.token)
    return Attr(DOMAIN).not_exists() | passes


def check_outcome(name: str, outcome: Any) -> tuple[Any, str]:
    """Return the writes of some work and its result as it is kept."""
    if not (isinstance(outcome, tuple) and len(outcome) == 2):
        raise TypeError(
            f"What runs once for {name!r} must return (writes, result): nothing was written."
        )
    return outcome[0], json.dumps(plain_result(name, outcome[1]))


def code_of(error: Exception) -> str:
    """Return what DynamoDB calls an error, empty for errors of other kinds."""
    response = getattr(error, "response", None) or {}
    code: str = response.get("Error", {}).get("Code", "")
    return code


def refusing_item(error: Exception) -> Mapping[str, Any] | None:
    """Return the item whose condition refused our own part of a request, None if none did."""
    response = getattr(error, "response", None) or {}
    match code_of(error):
        case "ConditionalCheckFailedException":
            item: Mapping[str, Any] = response.get("Item") or {}
            return item
        case "TransactionCanceledException":
            reason = first_reason(error)
            if reason.get("Code") == "ConditionalCheckFailed":
                item = reason.get("Item") or {}
                return item
    return None


def first_reason(error: Exception) -> Mapping[str, Any]:
    """Return why a transaction was cancelled, as far as our own part of it is concerned."""
    response = getattr(error, "response", None) or {}
    reasons = response.get("CancellationReasons") or [{}]
    reason: Mapping[str, Any] = reasons[0]
    return reason


def check_colour(client: Any, awaitable: bool) -> None:
    """Refuse a client that a guard of this colour cannot call."""
    calls = (getattr(client, "update_item", None), getattr(client, "_make_api_call", None))
    if calls[0] is None:
        raise TypeError(f"DynamoGuard takes a client of boto3, not {type(client).__name__}.")
    if any(iscoroutinefunction(call) for call in calls) is not awaitable:
        raise TypeError(
            "This DynamoDB client blocks: pass call=asyncio.to_thread with it, or take a client of "
            "aiobotocore."
            if awaitable
            else "This DynamoDB client is awaitable: use it with holdfast.aio.guards."
        )
