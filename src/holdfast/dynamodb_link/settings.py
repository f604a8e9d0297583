"""Where a table is and how to log in: from a URL, a client of boto3, or a Table of boto3."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

DEFAULT_TABLE = "holdfast"

_REGION = re.compile(r"[A-Za-z0-9-]*")
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")


@dataclass(frozen=True, slots=True)
class Settings:
    """One table; `location` is how messages name it, never with a secret."""

    location: str
    table: str
    region: str | None  # None = what botocore finds in the environment
    endpoint: str | None  # None = Amazon's own, of the region
    # Of a server on this machine, which wants some key and does not look at it.
    keys: tuple[str, str] | None = field(default=None, repr=False)
    client: Any = field(default=None, repr=False)  # whose credentials and settings to use


def from_url(url: str, endpoint: str | None, table: str | None) -> Settings:
    """Read `dynamodb://region/table`; without a region it is that of the environment."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError(
            "A dynamodb:// URL takes no credentials: AWS finds them in the environment, in its "
            "files or at the instance; remove what stands before the @."
        )
    if parts.query or parts.fragment or not _REGION.fullmatch(parts.netloc):
        raise ValueError(f"{url!r} is not a DynamoDB URL; write dynamodb://region/table.")
    name = table or parts.path.strip("/")
    return _settings(parts.netloc or None, _checked(name, url), endpoint)


def from_client(client: Any, endpoint: str | None, table: str | None) -> Settings:
    """Use the settings of a client of boto3 (and `table=`), or those of a boto3 Table."""
    if endpoint is not None:
        raise ValueError("endpoint= goes with a URL; a client of boto3 has its own endpoint_url.")
    if hasattr(client, "table_name"):
        client, table = client.meta.client, table or client.table_name
    meta: Any = getattr(client, "meta", None)
    if getattr(getattr(meta, "service_model", None), "service_name", None) != "dynamodb":
        raise TypeError(
            "DynamoDB is named by a URL, by boto3.client('dynamodb') with table=…, or by a Table "
            f"of boto3.resource('dynamodb'), not by {type(client).__name__}."
        )
    name = _checked(table or DEFAULT_TABLE, "the client given")
    own = _settings(meta.region_name, name, None)
    return Settings(own.location, name, own.region, meta.endpoint_url, client=client)


def _settings(region: str | None, table: str, endpoint: str | None) -> Settings:
    location = f"dynamodb://{region or ''}/{table}"
    if endpoint is None:
        return Settings(location, table, region, None)
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("endpoint must look like https://host or http://host:8000, and no more.")
    location = f"{location}?endpoint={parts.scheme}://{parts.netloc}"
    if not _on_this_machine(parts.hostname):
        return Settings(location, table, region, endpoint)
    # DynamoDB Local. Looking for credentials of a real account could take seconds, in vain.
    own = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    keys = (own[0], own[1]) if own[0] and own[1] else ("holdfast", "holdfast")
    return Settings(location, table, region or "local", endpoint, keys=keys)


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _checked(table: str, where: str) -> str:
    if not _TABLE.fullmatch(table):
        raise ValueError(
            f"{where} names no table: write dynamodb://region/table, with 3 to 255 letters, "
            "digits, '_', '.' or '-'."
        )
    return table
