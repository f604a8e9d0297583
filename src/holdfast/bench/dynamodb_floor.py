"""dynamodb:// beside two bare conditional updates through the same driver."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from .. import connect
from .floor import Row, Step
from .handle import Handle, pair_of
from .peers.dynamodb_ones import boto_client
from .redis_peers import repeated
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.dynamodb_harness import DynamoDBHarness

PAIRS = 50
TAKE = {
    "UpdateExpression": "SET o = :me, t = if_not_exists(t, :now) + :one, e = :ttl",
    "ConditionExpression": "attribute_not_exists(o)",
    "ReturnValues": "ALL_NEW",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
GIVE = {
    "UpdateExpression": "REMOVE o",
    "ConditionExpression": "o = :me",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


def bare_lock(client: Any, table: str, name: str) -> Handle:
    """The floor: a conditional update that returns a token, and one that takes the owner out."""
    place = {"TableName": table, "Key": {"space": {"S": "bare"}, "name": {"S": name}}}
    held: list[dict[str, str]] = []

    def take() -> None:
        me = {"S": os.urandom(16).hex()}
        values = {
            ":me": me,
            ":now": {"N": str(time.time_ns() // 1000)},
            ":one": {"N": "1"},
            ":ttl": {"N": "30"},
        }
        client.update_item(**place, **TAKE, ExpressionAttributeValues=values)
        held.append(me)

    def give() -> None:
        client.update_item(**place, **GIVE, ExpressionAttributeValues={":me": held.pop()})

    return Handle(take, give)


def pair(rounds: int, harness: DynamoDBHarness) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    with ExitStack() as stack:
        driver = boto_client(stack, f"127.0.0.1:{harness.server.port}")
        bare = repeated(PAIRS, pair_of(bare_lock(driver, harness.table, "pair")))
        client = stack.enter_context(connect(harness.url_of(harness.server.port)))
        lock = client.lock("pair", ttl=30)

        def ours() -> None:
            for _ in range(PAIRS):
                lease = lock.acquire()
                assert lease is not None
                lease.release()

        floor, mine = alternate(rounds, PAIRS, bare, ours)
    return [ratio("pair, sync / two bare conditional updates of boto3", floor, mine, 1.15)]


def units(names: int, turns: int, harness: DynamoDBHarness) -> list[Row]:
    """Capacity that names cycled again and again consume, as the server counts it."""
    spent = {"CapacityUnits": 0.0, "requests": 0.0}
    with connect(harness.url_of(harness.server.port), namespace="units") as client:
        client.ping()
        engine: Any = client.engine
        ask = engine.link.ask

        def count(method: str, arguments: dict[str, Any], timeout: float) -> Any:
            if method != "describe_table":
                arguments = {**arguments, "ReturnConsumedCapacity": "TOTAL"}
            answer = ask(method, arguments, timeout)
            spent["CapacityUnits"] += answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0)
            spent["requests"] += 1
            return answer

        engine.link.ask = count
        for _ in range(turns):
            for number in range(names):
                with client.lock(f"name/{number}", ttl=30):
                    pass
    total = names * turns
    note = f"{spent['requests'] / total:.2f} requests; {names:,} names, each {turns} times"
    return [Row("capacity units per pair", spent["CapacityUnits"] / total, "", None, note)]


def hand_overs(waiters: int, seconds: float, harness: DynamoDBHarness) -> list[Row]:
    """Waiters of one process on one key, who look now and then: there is no push."""
    counts = [0] * waiters
    with connect(harness.url_of(harness.server.port)) as client:
        end = time.monotonic() + seconds

        def work(number: int) -> None:
            while time.monotonic() < end:
                lease = client.lock("contest", ttl=30).acquire(timeout=10)
                if lease is not None:
                    counts[number] += 1
                    lease.release()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(waiters)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    share = max(counts) / max(1, min(counts))
    note = f"share max/min {share:.2f}, median {median(counts):.0f} each"
    return [Row(f"hand-overs/s, {waiters} waiters", sum(counts) / seconds, "/s", None, note)]


def _on_server(measure: Callable[[DynamoDBHarness], list[Row]]) -> list[Row]:
    from ..testing.dynamodb_harness import DynamoDBHarness
    from ..testing.servers import ServerMissing, dynamodb_program

    try:
        dynamodb_program()
    except ServerMissing as missing:
        return [Row("dynamodb", float("nan"), "", None, str(missing))]
    harness = DynamoDBHarness()
    harness.start()
    try:
        return measure(harness)
    finally:
        harness.stop()


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    rounds, names, turns, seconds = (7, 100, 3, 5.0) if quick else (31, 1_000, 100, 20.0)
    measures = (
        partial(pair, rounds),
        partial(units, names, turns),
        partial(hand_overs, 20, seconds),
    )
    return [partial(_on_server, measure) for measure in measures]
