"""Where a Redis server is and how to log in: from a URL, or from a client of redis-py."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import EngineUnavailable, MissingDriver, NotSupported

SCHEMES = ("redis", "rediss", "redis+unix", "valkey", "redis+sentinel")
OPTIONS = (
    "db",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_cert_reqs",
    "ssl_check_hostname",
)
DEFAULT_PORT = 6379
SENTINEL_PORT = 26379
SENTINEL_TIMEOUT = 1.0  # seconds for each of them

Resolve = Callable[[], tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Settings:
    """One server; `location` is how messages name it, never with a password."""

    location: str
    host: str = "localhost"
    port: int = DEFAULT_PORT
    path: str = ""  # of a Unix socket
    database: int = 0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    resolve: Resolve | None = field(default=None, repr=False)  # asks Sentinel who is master

    def address(self) -> tuple[str, int]:
        """Return where to connect to now; may ask Sentinel, and then blocks."""
        return (self.host, self.port) if self.resolve is None else self.resolve()


def from_url(url: str) -> Settings:
    """Read `redis://[user:password@]host[:port][/db]` and its relatives."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise ValueError(f"{_shown(url)} is not a Redis URL: use one of {', '.join(SCHEMES)}.")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    for name in options:
        if name not in OPTIONS:
            raise ValueError(
                f"{_shown(url)} has an unknown option {name!r}; known are: {', '.join(OPTIONS)}."
            )
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if scheme == "redis+sentinel":
        return _sentinel(url, username, password)
    if scheme == "redis+unix":
        path = unquote(parts.path)
        database = _database(url, options.get("db", "0"))
        return Settings(
            location=f"redis+unix://{path}" + (f"?db={database}" if database else ""),
            path=path,
            database=database,
            username=username,
            password=password,
        )
    try:
        host, port = parts.hostname or "localhost", parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError(f"{_shown(url)} has a port that is no number below 65536.") from None
    database = _database(url, options.get("db") or parts.path.strip("/") or "0")
    shown = f"[{host}]" if ":" in host else host
    return Settings(
        location=f"{scheme}://{shown}:{port}/{database}",
        host=host,
        port=port,
        database=database,
        username=username,
        password=password,
        tls=tls_context(options) if scheme == "rediss" else None,
    )


def _shown(url: str) -> str:
    """Return a URL for a message, of which nothing where a password could be."""
    secretive = "@" in url or "?" in url
    return repr(url.partition("//")[0] + "//…" if secretive else url)


def _database(url: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{_shown(url)} names the database {text!r}, which is no number.")
    return int(text)


def tls_context(options: Mapping[str, Any]) -> ssl.SSLContext:
    """Return how to check a server's certificate, in redis-py's words; strict by default."""
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs") or None)
    required = str(options.get("ssl_cert_reqs") or "required").lower().removeprefix("cert_")
    if str(options.get("ssl_check_hostname", "true")).lower() in ("false", "0", "no"):
        context.check_hostname = False
    if required in ("none", "0", "verifymode.cert_none"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.get("ssl_certfile"):
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
    return context


def from_client(client: Any) -> Settings:
    """Take over the settings of a redis.Redis or redis.asyncio.Redis; its connections stay its own.

    One that Sentinel gave keeps asking Sentinel.
    """
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        raise NotSupported(
            f"A {type(client).__name__} of redis-py does not name one server: use the client of a "
            "server, or what master_for() of a Sentinel gives."
        )
    options: dict[str, Any] = dict(pool.connection_kwargs)
    resolve = _through_sentinel(pool) if hasattr(pool, "sentinel_manager") else None
    host, port = options.get("host") or "localhost", int(options.get("port") or DEFAULT_PORT)
    username, password = options.get("username"), options.get("password")
    provider = options.get("credential_provider")
    if provider is not None:
        username, password = (*provider.get_credentials(), None)[:2] if provider else (None, None)
    path = options.get("path") or ""
    database = int(options.get("db") or 0)
    secure = "SSL" in getattr(pool.connection_class, "__name__", "") or bool(options.get("ssl"))
    where = f"//{host}:{port}/{database}"
    if path:
        where = f"//{path}" + (f"?db={database}" if database else "")
    if resolve is not None:
        where = f"//{pool.service_name}/{database}"
    kind = (
        "redis+unix" if path else "redis+sentinel" if resolve else "rediss" if secure else "redis"
    )
    return Settings(
        location=f"{kind}:{where}",
        host=host,
        port=port,
        path=path,
        database=database,
        username=username or None,
        password=password or None,
        tls=tls_context(options) if secure else None,
        resolve=resolve,
    )


# --- Sentinel, asked through redis-py. ---


def _sentinel(url: str, username: str | None, password: str | None) -> Settings:
    parts = urlsplit(url)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError(
            f"{_shown(url)} names no service: redis+sentinel://host:26379,host:26379/service[/db]."
        )
    hosts = []
    for one in parts.netloc.rpartition("@")[2].split(","):
        host, _, port = one.rpartition(":") if ":" in one else (one, "", str(SENTINEL_PORT))
        if not port.isascii() or not port.isdigit():
            raise ValueError(f"{_shown(url)} has a port that is no number.")
        hosts.append((host, int(port)))
    number = _database(url, database or "0")
    return Settings(
        location=f"redis+sentinel://{','.join(f'{h}:{p}' for h, p in hosts)}/{service}/{number}",
        database=number,
        username=username,
        password=password,
        resolve=lambda: ask_sentinel(hosts, service, {}),
    )


def _through_sentinel(pool: Any) -> Resolve:
    pools = [one.connection_pool for one in pool.sentinel_manager.sentinels]
    known = [(one.connection_kwargs["host"], one.connection_kwargs["port"]) for one in pools]
    login: dict[str, Any] = {"ssl": "SSL" in pools[0].connection_class.__name__}
    for name, value in pools[0].connection_kwargs.items():
        if name in ("username", "password", "credential_provider") or name.startswith("ssl_"):
            login[name] = value
    return lambda: ask_sentinel(known, pool.service_name, login)


def ask_sentinel(
    hosts: list[tuple[str, int]], service: str, login: Mapping[str, Any]
) -> tuple[str, int]:
    """Return the address of the master that Sentinel names now; `login` is for the Sentinels."""
    try:
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError
        from redis.retry import Retry
        from redis.sentinel import Sentinel
    except ImportError as error:
        raise MissingDriver(
            f"Sentinel is asked through {error.name}, which is not installed: "
            'pip install "holdfast[redis]".'
        ) from error

    options = {"socket_timeout": SENTINEL_TIMEOUT, "retry": Retry(NoBackoff(), 0), **login}
    sentinel: Any = Sentinel(hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]
    try:
        host, port = sentinel.discover_master(service)
    except RedisError as error:
        # Not its own words: in some versions they show the password of the Sentinels.
        asked = ", ".join(f"{host}:{port}" for host, port in hosts)
        raise EngineUnavailable(
            f"Sentinel names no master for {service!r} ({type(error).__name__} at {asked}); check "
            "the Sentinels and the name."
        ) from None
    finally:
        for one in sentinel.sentinels:
            one.close()
    return str(host), int(port)
