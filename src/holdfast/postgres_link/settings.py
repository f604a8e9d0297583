"""Where a PostgreSQL server is and how to log in: from a URL, or from an object of psycopg."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from psycopg import ConnectionInfo, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ..errors import NotSupported

SCHEMES = ("postgresql", "postgres")
DEFAULT_PORT = "5432"

# What a session of ours is like, unless the user says otherwise in the URL. A row that somebody
# else keeps locked is given up after a while, also by a server whose client has gone.
OPTIONS = {
    "default_transaction_isolation": "read\\ committed",
    "lock_timeout": "2000",
    "statement_timeout": "10000",
    # Plans are kept; one from when the table was small would read all of it once it is large.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    # What has to be read as a whole then seems so dear that it is compiled: 90 ms, each time anew.
    "jit": "off",
}
DEFAULTS = {
    "client_encoding": "UTF8",
    "fallback_application_name": "holdfast",
    "target_session_attrs": "read-write",  # of several hosts, the one that is no standby
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}

Parameters = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Settings:
    """One server, or several of which one is the primary; `location` has no password in it."""

    location: str
    parameters: Parameters = field(repr=False)


class Address(NamedTuple):
    """One host of several."""

    host: str
    port: str
    parameters: Parameters


def from_url(url: str) -> Settings:
    """Read `postgresql://[user:password@]host[:port][,host…]/[database][?parameter=…]`."""
    if url.partition(":")[0].lower() not in SCHEMES:
        raise ValueError(f"{_shown(url)} is not a PostgreSQL URL: it begins with postgresql://.")
    try:
        found = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise ValueError(
            f"{_shown(url)} is not a URL that libpq understands ({_reason(url, error)}); write "
            "postgresql://user:password@host:5432/database."
        ) from None
    ports = str(found.get("port") or DEFAULT_PORT).split(",")
    if not all(port.isascii() and port.isdigit() and int(port) < 65536 for port in ports if port):
        raise ValueError(f"{_shown(url)} has a port that is no number below 65536.")
    return _settings(found)


def _shown(url: str) -> str:
    """Return a URL for a message, of which nothing where a password could be."""
    secretive = "@" in url or "?" in url
    return repr(url.partition("//")[0] + "//…" if secretive else url)


def _reason(url: str, error: ProgrammingError) -> str:
    """Return libpq's words, unless they could quote a password."""
    return "its parts" if "@" in url else " ".join(str(error).split())


def from_driver(thing: Any) -> Settings:
    """Take over the settings of a pool, a connection or its info; its connections stay its own."""
    if hasattr(thing, "conninfo") and hasattr(thing, "kwargs"):  # a pool of psycopg_pool
        info, extra = thing.conninfo, thing.kwargs
        info = info() if callable(info) else info
        extra = extra() if callable(extra) else extra
        if not isinstance(info, str) or not isinstance(extra, dict | None):
            raise NotSupported(
                "A pool whose connection settings are coroutines cannot lend them: give connect() "
                "a URL.",
            )
        known = {name: value for name, value in (extra or {}).items() if _is_parameter(name)}
        return _settings(conninfo_to_dict(info or "", **known))
    info = thing if isinstance(thing, ConnectionInfo) else getattr(thing, "info", None)
    if not isinstance(info, ConnectionInfo):
        raise NotSupported(
            f"A {type(thing).__name__} of psycopg does not name a server: use a URL, a connection "
            "or a pool."
        )
    told: dict[str, Any] = info.get_parameters()
    # What it does not call special: defaults of libpq, which may be others' where we connect.
    told |= {"host": info.host, "port": info.port, "user": info.user, "dbname": info.dbname}
    if info.password:
        told["password"] = info.password
    return _settings(told)


def _is_parameter(name: str) -> bool:
    try:
        make_conninfo("", **{name: "1"})
    except ProgrammingError:
        return False  # an argument of psycopg's own: autocommit, row_factory, …
    return True


def _settings(found: Mapping[str, Any]) -> Settings:
    given = {name: str(value) for name, value in found.items() if value is not None}
    parameters = {**DEFAULTS, **given}
    ours = " ".join(f"-c {name}={value}" for name, value in OPTIONS.items())
    parameters["options"] = f"{ours} {given.get('options', '')}".strip()
    for name in ("connect_timeout", "load_balance_hosts"):  # we time, and choose, ourselves
        parameters.pop(name, None)
    return Settings(_location(given), parameters)


def _location(given: Parameters) -> str:
    database = given.get("dbname", "")
    hosts = [
        f"[{one.host}]" if ":" in one.host else one.host for one in addresses(given) if one.host
    ]
    ports = [one.port or DEFAULT_PORT for one in addresses(given)]
    if any(host.startswith(("/", "@")) for host in hosts):
        return f"postgresql:///{database}?host={','.join(hosts)}&port={','.join(ports)}"
    where = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
    return f"postgresql://{where}/{database}"


def addresses(parameters: Parameters) -> list[Address]:
    """Return one set of parameters for each host."""
    hosts = parameters.get("host", "").split(",")
    numbers = parameters.get("hostaddr", "").split(",")
    ports = parameters.get("port", "").split(",")
    count = max(len(hosts), len(numbers))
    found = []
    for at in range(count):
        host, number = _at(hosts, at), _at(numbers, at)
        port = ports[0] if len(ports) == 1 else _at(ports, at)
        chosen = {"host": host, "hostaddr": number, "port": port}
        rest = {name: value for name, value in parameters.items() if name not in chosen}
        alone = rest | {name: value for name, value in chosen.items() if value}
        found.append(Address(host or number, port, alone))
    return found


def _at(list_: Sequence[str], at: int) -> str:
    return list_[at] if at < len(list_) else ""


def needs_lookup(where: Address) -> bool:
    """Say whether the host is a name that has to be looked up first."""
    if not where.host or "hostaddr" in where.parameters or where.host.startswith(("/", "@")):
        return False
    try:
        ipaddress.ip_address(where.host.partition("%")[0])
    except ValueError:
        return True
    return False


def looked_up(where: Address, found: Sequence[Any]) -> list[Parameters]:
    """Return one set of parameters for each address; the name stays, for certificates."""
    numbers = dict.fromkeys(str(one[4][0]) for one in found)
    return [{**where.parameters, "hostaddr": number} for number in numbers]
