"""(Generated from _async/guards/dynamodb.py by tools/unasync.py: do not edit.) Items of DynamoDB, guarded by conditions: each request judges the token and writes in one step.

Rule 1 (S23): `begin` records the token before you read, and gives you the item as it is then.
              Every write judges again, in its own condition.
Rule 2: floors are never lost. What replaces an item brings the fence along; a delete leaves an
        item of nothing but key and fence. Real deletes, and writes to several items, are done by
        `transact`, behind the fence of another item.
Rule 3: a condition that fails shows the item as it was: whether the token or the caller's own
        condition refused is known without another request.
Rule 4: an answer that was lost is the client's own error, after it has repeated the request; equal
        tokens pass, so a write may be done twice. Transactions are not: DynamoDB knows a repeat.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from ...errors import InProgress
from ...fencing import Fence, Floors, check_domain, fence_of, must_write, passes
from ...guards import dynamodb_items as items
from ...model import Mode
from .guard import Guard

Key = Mapping[str, Any]
Item = dict[str, Any]
Writes = Iterable[Mapping[str, Any]]


class DynamoGuard(Guard):
    """Guards the items of a table: `DynamoGuard(client, "orders")`, or a boto3 Table alone.

    The client's methods are awaited; for a client of boto3, which blocks, pass
    `call=asyncio.to_thread`: every request is then made by `call(method, **arguments)`.
    """

    kind = "dynamodb"

    def __init__(
        self,
        client: Any,
        table: str | None = None,
        *,
        call: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        if table is None:
            if not hasattr(client, "table_name"):
                raise TypeError("DynamoGuard takes a client and a table's name, or a boto3 Table.")
            client, table, self._spell = client.meta.client, client.table_name, items.plain
        else:
            self._spell = items.typed
        if call is None:
            items.check_colour(client, iscoroutinefunction(self.begin))
        self._client, self._call = client, call
        self._table: str = table

    # --- The item itself. ---

    def begin(self, key: Key, lease: Any) -> Item | None:
        """Record the token and return the item as it is now, None if there is none.

        StaleToken if another holder came after you. An item of nothing but its key counts as none.
        """
        fence, place = fence_of(lease), self._place(key)
        request = {**place, "UpdateExpression": f"SET {items.RAISES[fence.mode]}"}
        try:
            answer = self._write(key, fence, request, {"ReturnValues": "ALL_NEW"})
            item = answer["Attributes"]
        except Exception as error:
            floors = items.floors_in(items.refusing_item(error) or {})
            if floors is None or fence.mode is Mode.EXCLUSIVE:
                raise
            # A shared token below another shared one: it may in, and there is nothing to raise.
            answer = self._ask("get_item", **place, ConsistentRead=True)
            item = items.without_fence(answer.get("Item", {}))
            self._accepted(self._name(key), floors, fence)
        return item if item.keys() - key.keys() else None

    def update(self, key: Key, lease: Any, **options: Any) -> Item:
        """Update the item as the client's `update_item` does, if the token passes.

        `options` are those of `update_item`; a condition of yours that fails is the client's error.
        """
        fence = self._writer(key, lease)
        items.check_options(options, "TableName", "Key")
        expression = options.pop("UpdateExpression", "")
        own = items.also_set(expression, items.RAISES[fence.mode])
        return self._write(key, fence, {**self._place(key), "UpdateExpression": own}, options)

    def put(self, key: Key, lease: Any, item: Mapping[str, Any], **options: Any) -> Item:
        """Replace the item as the client's `put_item` does, if the token passes."""
        fence = self._writer(key, lease)
        items.check_options(options, "TableName", "Item")
        whole = {**item, **key, **items.fence_attributes(self._spell, fence)}
        return self._write(key, fence, {"TableName": self._table, "Item": whole}, options)

    def delete(self, key: Key, lease: Any, **options: Any) -> Item:
        """Empty the item, if the token passes; key and fence stay, to keep old holders out.

        `options` are those of `put_item`, which is how it is done.
        """
        return self.put(key, lease, {}, **options)

    # --- Behind the item. ---

    def transact(self, key: Key, lease: Any, writes: Writes, **options: Any) -> None:
        """Write other items, all or none, if the token passes at the item of `key`.

        `writes` are TransactItems of the client's `transact_write_items`, `options` its others.
        That item itself is not among them: keep one for the fence.
        """
        fence = self._writer(key, lease)
        items.check_options(options, "TransactItems")
        own = {
            **self._place(key),
            "UpdateExpression": f"SET {items.RAISES[fence.mode]}",
            "ConditionExpression": items.PASSES,
            "ExpressionAttributeValues": items.fence_values(self._spell, fence),
        }
        try:
            self._transact(own, writes, options)
        except Exception as error:
            self._judge(error, key, fence)
            raise
        self._accepted(self._name(key), Floors(fence.domain, fence.token), fence)

    def once(
        self, key: Key, fn: Callable[[], tuple[Writes, Any]], **options: Any
    ) -> Any:
        """Do what `fn` returns unless that was done before; return its result, now or then.

        `key` is that of an item to keep the result, not one that you put or delete. `fn` returns
        writes, as for `transact`, and a result (JSON). Of two at the same time both may be asked,
        and one is thrown away: so it should do nothing else. One that raises, or whose writes fail,
        leaves the key free.
        """
        items.check_options(options, "TransactItems")
        place = self._place(key)
        answer = self._ask("get_item", **place, ConsistentRead=True)
        if items.RESULT in answer.get("Item", {}):
            return json.loads(items.bare(answer["Item"][items.RESULT]))
        writes, text = items.check_outcome(self._name(key), fn())
        own = {
            **place,
            "UpdateExpression": items.KEEPS,
            "ConditionExpression": items.IS_FREE,
            "ExpressionAttributeValues": items.placeholders(self._spell, result=text),
        }
        try:
            self._transact(own, writes, options)
        except Exception as error:
            if items.first_reason(error).get("Code") == "TransactionConflict":
                raise InProgress(
                    f"Another caller is at work on {self._name(key)!r} right now: ask again for "
                    "its result.",
                    name=self._name(key),
                ) from error
            item = items.refusing_item(error)
            if item is None:
                raise
            text = items.bare(item[items.RESULT])
        return json.loads(text)

    def adopt(self, key: Key, domain: str) -> None:
        """Move an item to tokens of another domain, once, while nobody writes.

        Its floors start again at 0; in its own domain nothing changes.
        """
        values = items.placeholders(self._spell, domain=check_domain(domain), zero=0)
        try:
            answer = self._ask(
                "update_item",
                **self._place(key),
                UpdateExpression=items.MOVES,
                ConditionExpression=items.IS_ELSEWHERE,
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ReturnValues="UPDATED_OLD",
            )
        except Exception as error:
            if items.refusing_item(error) is None:
                raise
            return
        previous = items.bare(answer.get("Attributes", {}).get(items.DOMAIN, ""))
        self._adopted(self._name(key), previous, domain)

    # --- Inside. ---

    def _place(self, key: Key) -> dict[str, Any]:
        return {"TableName": self._table, "Key": items.check_key(key)}

    def _name(self, key: Key) -> str:
        return items.name_of(self._table, key)

    def _writer(self, key: Key, lease: Any) -> Fence:
        fence = fence_of(lease)
        must_write(items.name_of(self._table, items.check_key(key)), fence)
        return fence

    def _write(
        self, key: Key, fence: Fence, request: dict[str, Any], options: dict[str, Any]
    ) -> Item:
        """Make one conditional write, tell how that went, and return the answer."""
        updates = "UpdateExpression" in request
        request |= items.guarded(self._spell, fence, options, updates=updates)
        try:
            answer = self._ask("update_item" if updates else "put_item", **request)
        except Exception as error:
            self._judge(error, key, fence)
            raise
        self._accepted(self._name(key), Floors(fence.domain, fence.token), fence)
        if "Attributes" in answer:
            answer = {**answer, "Attributes": items.without_fence(answer["Attributes"])}
        return dict(answer)

    def _judge(self, error: Exception, key: Key, fence: Fence) -> None:
        """Raise what it means if it was the fence that failed."""
        item = items.refusing_item(error)
        floors = None if item is None else items.floors_in(item)
        if floors is not None and not passes(floors, fence):
            self._refuse(self._name(key), floors, fence)

    def _transact(self, own: Item, writes: Writes, options: dict[str, Any]) -> None:
        first = {"Update": own | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}
        request = {**options, "TransactItems": [first, *writes]}
        self._ask("transact_write_items", **request)

    def _ask(self, method: str, **arguments: Any) -> Any:
        function = getattr(self._client, method)
        if self._call is not None:
            return self._call(function, **arguments)
        return function(**arguments)
