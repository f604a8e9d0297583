"""Clients of boto3 and tables for tests on DynamoDB Local; imports little, for many processes."""

from __future__ import annotations

from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]

TABLE = "things"
FENCES = "fences"


def connect(url: str, attempts: int = 1) -> Any:
    """Return a client that makes each request so often at most if it has no answer."""
    return boto3.client("dynamodb", **_options(url, attempts))


def table(url: str, name: str = TABLE) -> Any:
    """Return the table, as boto3's resource."""
    return boto3.resource("dynamodb", **_options(url, attempts=1)).Table(name)


def _options(url: str, attempts: int) -> dict[str, Any]:
    retries = {"total_max_attempts": attempts}
    config = Config(retries=retries, read_timeout=30, connect_timeout=30)
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    return {"endpoint_url": url, "region_name": "local", "config": config, **keys}


def create_table(client: Any, name: str) -> None:
    """Create a table whose items are known by their `id`."""
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
