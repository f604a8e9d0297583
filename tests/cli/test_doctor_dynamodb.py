"""The doctor on DynamoDB: the way there, the table, and what we may do with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast.doctor import Finding, Level, Patient, dynamodb, examine
from holdfast.testing.dynamodb_harness import TABLE, DynamoDBHarness
from tests.cli.redis_findings import bad, complete, levels
from tests.guards.dynamo import connect


@pytest.fixture(scope="module")
def harness() -> Iterator[DynamoDBHarness]:
    """A server with a table for locks."""
    running = DynamoDBHarness()
    running.start()
    yield running
    running.stop()


def findings(url: str, **options: Any) -> list[Finding]:
    """Return all findings at a URL, each of which must be whole sentences."""
    with holdfast.connect(url, connect_timeout=30, **options) as client:
        return complete(examine(Patient(client)))


def own(url: str, **options: Any) -> list[Finding]:
    """Return what the checks of this engine find."""
    with holdfast.connect(url, connect_timeout=30, **options) as client:
        return complete(dynamodb.check(Patient(client)))


def refusing(engine: Any, *methods: str) -> Any:
    """Let an engine's link be denied some requests, as IAM does."""
    ask = engine.link.ask

    def deny(method: str, arguments: dict[str, Any], timeout: float) -> Any:
        if method in methods:
            raise holdfast.EngineUnavailable("The engine refused: AccessDeniedException.")
        return ask(method, arguments, timeout)

    engine.link.ask = deny
    return engine


def titled(found: Iterable[Finding], title: str) -> Finding:
    """Return the one finding of that title."""
    (finding,) = [one for one in found if one.title == title]
    return finding


def test_healthy_table(harness: DynamoDBHarness) -> None:
    """Nothing is wrong with a table that holdfast has made."""
    found = findings(harness.url)
    assert bad(found) == []
    for title in ("encryption", "table", "capacity", "expiry", "rights", "lock", "tokens"):
        assert levels(found, title) == [Level.OK]


def test_missing_table_is_made_by_fix(harness: DynamoDBHarness) -> None:
    """Whether it may be made on first use or not; the doctor alone makes nothing."""
    url = harness.url.replace(f"/{TABLE}?", "/doctor-makes-it?")
    finding = titled(own(url), "table")
    assert finding.level is Level.INFO
    with holdfast.connect(url, create=False) as client:
        finding = titled(dynamodb.check(Patient(client)), "table")
        assert finding.level is Level.CRITICAL
        assert finding.fix is not None
        finding.fix()
    assert levels(own(url, create=False), "table") == [Level.OK]


def test_table_of_something_else(harness: DynamoDBHarness) -> None:
    """It is named, and nothing more is examined."""
    raw = connect(harness.server.url)
    raw.create_table(
        TableName="doctor-elsewhere",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    raw.close()
    found = own(harness.url.replace(f"/{TABLE}?", "/doctor-elsewhere?"))
    assert levels(found, "table") == [Level.CRITICAL]


def test_provisioned_capacity_and_indexes() -> None:
    """What throttles renewals, or makes them dearer, is a warning."""
    table = {
        "TableStatus": "ACTIVE",
        "KeySchema": [
            {"AttributeName": "space", "KeyType": "HASH"},
            {"AttributeName": "name", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "space", "AttributeType": "S"},
            {"AttributeName": "name", "AttributeType": "S"},
        ],
        "ProvisionedThroughput": {"WriteCapacityUnits": 5},
        "GlobalSecondaryIndexes": [{}],
    }
    found = complete(dynamodb.check_description("here", table))
    assert bad(found) == ["capacity", "indexes"]
    table["Replicas"] = [{"RegionName": "eu-west-1"}]
    assert bad(dynamodb.check_description("here", table)) == ["table"]
    table["MultiRegionConsistency"] = "STRONG"
    assert levels(dynamodb.check_description("here", table), "regions") == [Level.OK]


@pytest.mark.parametrize(
    ("endpoint", "level"),
    [
        (None, Level.OK),
        ("http://127.0.0.1:8000", Level.OK),
        ("https://vpce.example.invalid", Level.OK),
        ("http://192.0.2.1:8000", Level.WARNING),
    ],
)
def test_who_can_listen_in(endpoint: str | None, level: Level) -> None:
    """Locks in the clear are for this machine only."""
    assert levels(dynamodb.check_way("here", endpoint), "encryption") == [level]


@pytest.mark.parametrize(
    ("method", "level"),
    [
        ("get_item", Level.CRITICAL),
        ("update_item", Level.CRITICAL),
        ("delete_item", Level.WARNING),
        ("query", Level.WARNING),
    ],
)
def test_missing_right_is_named(harness: DynamoDBHarness, method: str, level: Level) -> None:
    """With what it costs, and where the policy is."""
    with holdfast.connect(harness.url) as client:
        engine = refusing(client.engine, method)
        found = complete(dynamodb.check_rights(engine, "test"))
    assert [finding.level for finding in found] == [level]
    assert "IAM policy" in found[0].remedy


def test_expiry_by_an_attribute_of_ours(harness: DynamoDBHarness) -> None:
    """DynamoDB's own TTL on our attributes would end locks and forget tokens."""
    url = harness.url.replace(f"/{TABLE}?", "/doctor-expires?")
    with holdfast.connect(url) as client:
        client.ping()
    raw = connect(harness.server.url)
    specification = {"Enabled": True, "AttributeName": "t"}
    raw.update_time_to_live(TableName="doctor-expires", TimeToLiveSpecification=specification)
    raw.close()
    assert levels(own(url), "expiry") == [Level.CRITICAL]
