"""Which servers a Redlock is made of: from one URL, or from a list of URLs and clients."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from .redis_link import Settings, from_client, from_url

FEWEST = 3

logger = logging.getLogger("holdfast")


def read_nodes(url: Any) -> list[Settings]:
    """Return the settings of every node; fewer than three, or the same twice, is refused."""
    if isinstance(url, str):
        nodes = [from_url(one) for one in _split(url)]
    elif isinstance(url, Sequence):
        nodes = [from_url(one) if isinstance(one, str) else from_client(one) for one in url]
    else:
        raise TypeError(f"A Redlock is a URL or a list of URLs, not {type(url).__name__}.")
    if len(nodes) < FEWEST:
        raise ValueError(
            f"A Redlock of {len(nodes)} nodes survives no failure; name at least {FEWEST}, "
            "usually 5, or use redis:// for one server."
        )
    seen: set[str] = set()
    for node in nodes:
        if node.location in seen:
            raise ValueError(f"{node.location} is named twice; every node must be another server.")
        seen.add(node.location)
    if len(nodes) % 2 == 0:
        logger.warning(
            "A Redlock of %d nodes survives no more failures than one of %d; use an odd number.",
            len(nodes),
            len(nodes) - 1,
        )
    return nodes


def _split(url: str) -> list[str]:
    """Return one redis:// URL per host of a redlock:// URL; they share user, password, database."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    query = f"?{parts.query}" if parts.query else ""
    scheme = "rediss" if parts.scheme.lower() == "redlocks" else "redis"
    return [f"{scheme}://{login}{at}{host}{parts.path}{query}" for host in hosts.split(",") if host]
