"""Checks of DynamoDB: who can listen in, is the table fit for locks, what may we do there?"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from .._sync.engines.dynamodb import DynamoDBEngine
from ..dynamodb_link import NoTable, Refused
from ..dynamodb_record import (
    check_table,
    key_of,
    list_request,
    look_request,
    table_request,
)
from ..errors import EngineUnavailable, LockError
from ..names import encode, record_key
from .finding import Finding, Level, Patient

TIMEOUT = 5.0
PAGE = "docs/engines/dynamodb.md"
OURS = ("t", "v", "h", "q", "x", "c", "s", "f")  # attributes of items

# What locks can do without.
MISSED = {
    "query": "nobody can list locks, and idle names are never forgotten",
    "delete_item": "idle names are never forgotten, so the table grows with every new name",
}


def check(patient: Patient) -> Iterator[Finding]:
    """Examine the way to the table, the table itself, and our rights on it."""
    engine = patient.client.engine
    assert isinstance(engine, DynamoDBEngine)
    yield from check_way(engine.settings.location, engine.settings.endpoint)
    table = describe(engine)
    if table is None:
        yield missing(engine)
        return
    yield from check_description(engine.location, table)
    yield from check_expiry(engine)
    yield from check_rights(engine, patient.client.namespace)


def check_way(where: str, endpoint: str | None) -> Iterator[Finding]:
    """Whoever can read or change what we send can break locks."""
    parts = urlsplit(endpoint or "https://amazonaws.com")
    if parts.scheme == "https":
        yield Finding(Level.OK, "encryption", f"{where} is reached by TLS.")
    elif parts.hostname in ("localhost", "127.0.0.1", "::1"):
        yield Finding(Level.OK, "encryption", f"{where} is on this machine.")
    else:
        yield Finding(
            Level.WARNING,
            "encryption",
            f"{where} is another machine, and all locks can be read and changed on the way there.",
            "Use an endpoint that starts with https://.",
        )


def describe(engine: DynamoDBEngine) -> dict[str, Any] | None:
    """Return the description of the table, None if there is none; nothing is made."""
    name = {"TableName": engine.settings.table}
    try:
        table: dict[str, Any] = engine.link.ask("describe_table", name, TIMEOUT)["Table"]
    except NoTable:
        return None
    return table


def missing(engine: DynamoDBEngine) -> Finding:
    """Say that there is no table yet."""
    request = table_request(engine.settings.table)

    def make() -> None:
        engine.link.ask("create_table", request, TIMEOUT)

    where = engine.location
    if engine.creates:
        detail, remedy = f"{where} is not there yet.", "It is made on first use, or by --fix."
        return Finding(Level.INFO, "table", detail, remedy, make)
    return Finding(
        Level.CRITICAL,
        "table",
        f"{where} does not exist, and create=False.",
        f"Make it by --fix, or as {PAGE} says.",
        make,
    )


def check_description(where: str, table: dict[str, Any]) -> Iterator[Finding]:
    """The table has the right key, one region, and enough capacity; nobody deletes it lightly."""
    try:
        ready = check_table(table, where)
    except EngineUnavailable as error:
        remedy = "Name another table in the URL."
        yield Finding(Level.CRITICAL, "table", str(error), remedy)
        return
    status = table["TableStatus"]
    if ready:
        yield Finding(Level.OK, "table", f"{where} has the keys that locks need.")
    else:
        remedy = "Wait until it is ACTIVE."
        yield Finding(Level.WARNING, "table", f"{where} is {status} at the moment.", remedy)
    if table.get("Replicas"):
        yield Finding(
            Level.OK, "regions", f"{where} is in several regions with strong consistency."
        )
    mode = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    if mode == "PAY_PER_REQUEST":
        yield Finding(Level.OK, "capacity", f"{where} is paid for by request.")
    else:
        units = table.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
        yield Finding(
            Level.WARNING,
            "capacity",
            f"{where} has {units} write units a second: what exceeds them is throttled, renewals "
            "too, and leases are lost.",
            "Switch the table to on-demand capacity.",
        )
    if not table.get("DeletionProtectionEnabled", False):
        yield Finding(
            Level.INFO,
            "deletion",
            f"{where} is not protected against deletion, which would end all locks at once.",
            "Enable deletion protection for the table.",
        )
    if table.get("LocalSecondaryIndexes") or table.get("GlobalSecondaryIndexes"):
        yield Finding(
            Level.WARNING,
            "indexes",
            f"{where} has indexes: each makes every write of a lock dearer.",
            "Keep locks in a table of their own, without indexes.",
        )


def check_expiry(engine: DynamoDBEngine) -> Iterator[Finding]:
    """DynamoDB itself must delete nothing: tokens would be forgotten with the items."""
    name = {"TableName": engine.settings.table}
    try:
        answer = engine.link.ask("describe_time_to_live", name, TIMEOUT)
    except LockError as error:
        yield Finding(
            Level.INFO,
            "expiry",
            f"Whether DynamoDB deletes items of this table by itself cannot be told: {error}",
            "Allow dynamodb:DescribeTimeToLive, for the doctor.",
        )
        return
    found = answer["TimeToLiveDescription"]
    if found.get("AttributeName") in OURS and found["TimeToLiveStatus"] != "DISABLED":
        yield Finding(
            Level.CRITICAL,
            "expiry",
            f"DynamoDB deletes items by their attribute {found['AttributeName']!r}, which is ours: "
            "locks would end, and tokens fall.",
            "Disable TTL for the table; holdfast forgets idle names itself.",
        )
    else:
        yield Finding(Level.OK, "expiry", "DynamoDB deletes no locks by itself.")


def check_rights(engine: DynamoDBEngine, namespace: str) -> Iterator[Finding]:
    """Try each request that locks need, in a way that changes nothing."""
    key = record_key(namespace, encode(f"holdfast doctor {secrets.token_hex(4)}"))
    never = {"Key": key_of(key), "ConditionExpression": "attribute_exists(v)"}
    values = {":v": {"S": "doctor"}}
    change = {**never, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": values}
    requests: dict[str, dict[str, Any]] = {
        "get_item": look_request(key_of(key)),
        "update_item": change,
        "delete_item": never,
        "query": list_request(key),
    }
    refused = {}
    for method, request in requests.items():
        try:
            engine.link.ask(method, {"TableName": engine.settings.table, **request}, TIMEOUT)
        except Refused:
            pass  # as it should be: nothing is there
        except LockError as error:
            refused[method] = str(error)
    for method, why in refused.items():
        action = "dynamodb:" + "".join(word.capitalize() for word in method.split("_"))
        missed = MISSED.get(method, "no lock can be taken")
        yield Finding(
            Level.WARNING if method in MISSED else Level.CRITICAL,
            "rights",
            f"{action} is not possible, so {missed}: {why}",
            f"Allow it: see 'IAM policy' in {PAGE}.",
        )
    if not refused:
        yield Finding(Level.OK, "rights", "All that locks need is allowed.")
