"""Which engine a URL means: scheme -> module, class and the extra that installs its driver."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from .errors import MissingDriver

ENTRY_POINTS = "holdfast.engines"


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """Where an engine lives: `module` below each colour's package, or a third party's full path."""

    module: str
    engine: str  # the sync class; the async one has "Async" before it
    page: str  # its page in docs/engines
    extra: str | None = None


ENGINES: dict[str, EngineEntry] = {
    "memory": EngineEntry("engines.memory", "MemoryEngine", "memory"),
    "sqlite": EngineEntry("engines.sqlite", "SqliteEngine", "sqlite"),
    **{
        scheme: EngineEntry("engines.redis", "RedisEngine", "redis", "redis")
        for scheme in ("redis", "rediss", "redis+unix", "redis+sentinel", "valkey")
    },
    **{
        scheme: EngineEntry("engines.redlock", "RedlockEngine", "redlock", "redis")
        for scheme in ("redlock", "redlocks")
    },
    "zookeeper": EngineEntry("engines.zookeeper", "ZooKeeperEngine", "zookeeper", "zookeeper"),
    **{
        scheme: EngineEntry("engines.etcd", "EtcdEngine", "etcd", "etcd")
        for scheme in ("etcd", "etcds")
    },
    **{
        scheme: EngineEntry("engines.postgres", "PostgresEngine", "postgresql", "postgresql")
        for scheme in ("postgresql", "postgres")
    },
    "dynamodb": EngineEntry("engines.dynamodb", "DynamoDBEngine", "dynamodb", "dynamodb"),
}


# The package that a driver's own client comes from -> the scheme that it stands for.
DRIVERS = {
    "redis": "redis",
    "kazoo": "zookeeper",
    "grpc": "etcd",
    "psycopg": "postgresql",
    "psycopg_pool": "postgresql",
    "botocore": "dynamodb",
    "boto3": "dynamodb",
}


def scheme_of(url: object) -> str:
    """Return the scheme of a URL, or of what stands for one; or raise one clear sentence."""
    if isinstance(url, list | tuple):
        return "redlock"
    if not isinstance(url, str):
        packages = {kind.__module__.partition(".")[0] for kind in type(url).__mro__}
        for package, scheme in DRIVERS.items():
            if package in packages:
                return scheme
        raise TypeError(
            "An engine is named by a URL, a client of redis-py, a list of those, a KazooClient, a "
            "channel of grpcio (for etcd), a pool or connection of psycopg, or a client or Table "
            f"of boto3 (for DynamoDB), not by {type(url).__name__}."
        )
    scheme, colon, _ = url.partition(":")
    if not colon or not scheme:
        raise ValueError(
            f"{_without_secrets(url)!r} is not an engine URL; it looks like 'scheme://…' with one "
            f"of these schemes: {', '.join(sorted(ENGINES))}."
        )
    return scheme.lower()


def _without_secrets(url: str) -> str:
    """Cut a URL before anything that could be a password."""
    head, at, tail = url.rpartition("@")
    return f"…@{tail}" if at else head or tail


def load_engine(url: object, colour: str) -> Any:
    """Return the engine class for what names one, in one colour (`_async` or `_sync`)."""
    scheme = scheme_of(url)
    entry = ENGINES.get(scheme) or _third_party(scheme)
    if entry is None:
        raise ValueError(
            f"No engine is called {scheme!r}; known schemes are: {', '.join(sorted(ENGINES))}."
        )
    inside = "." not in entry.module or entry.module.startswith("engines.")
    path = f"{__package__}.{colour}.{entry.module}" if inside else entry.module
    try:
        module = importlib.import_module(path)
    except ImportError as error:
        if entry.extra is None or (error.name or "").startswith(str(__package__)):
            raise
        raise MissingDriver(
            f"The {scheme} engine needs {error.name}, which is not installed: "
            f'pip install "holdfast[{entry.extra}]".',
            engine=scheme,
        ) from error
    return getattr(module, entry.engine if colour == "_sync" else f"Async{entry.engine}")


def split_options(
    url: object, kinds: Mapping[str, Callable[[str], Any]]
) -> tuple[object, dict[str, Any]]:
    """Take the engine's own options out of a URL's query: the command line has no other way."""
    if not isinstance(url, str) or "?" not in url:
        return url, {}
    head, _, query = url.partition("?")
    found: dict[str, Any] = {}
    rest: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in kinds:
            rest.append((name, value))
            continue
        try:
            found[name] = kinds[name](value)
        except ValueError:
            raise ValueError(f"{name}={value!r} in an engine URL is not what it must be.") from None
    return f"{head}?{urlencode(rest, quote_via=quote)}" if rest else head, found


def load_observers(environ: Mapping[str, str]) -> list[Callable[[Any], object]]:
    """Return the listeners that $HOLDFAST_OBSERVE names; imports nothing if it names none."""
    if not environ.get("HOLDFAST_OBSERVE"):
        return []
    observe = importlib.import_module(f"{__package__}.observe")
    found: list[Callable[[Any], object]] = observe.from_environ(environ)
    return found


def _third_party(scheme: str) -> EngineEntry | None:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for point in entry_points(group=ENTRY_POINTS, name=scheme):
        entry = point.load()
        if isinstance(entry, EngineEntry):
            return entry
    return None
