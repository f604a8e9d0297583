"""Where a ZooKeeper ensemble is and how to log in: from a URL, or from a client of kazoo."""

from __future__ import annotations

import math
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.retry import KazooRetry  # type: ignore[import-untyped]
from kazoo.security import (  # type: ignore[import-untyped]
    ACL,
    CREATOR_ALL_ACL,
    OPEN_ACL_UNSAFE,
)

from ..model import yes_or_no
from .handler import Handler
from .order import insist_on_order
from .wiretap import Wiretap

SCHEME = "zookeeper"
DEFAULT_PORT = 2181
OPTIONS = (
    "tls",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_keyfile_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "sasl",
)
RETRY_FIRST, RETRY_MOST = 0.02, 0.5  # seconds between rounds through all servers

Acl = str | Sequence[ACL]


@dataclass(frozen=True, slots=True)
class Settings:
    """An ensemble; `location` is how messages name it, never with a password."""

    location: str
    hosts: tuple[tuple[str, int], ...]
    root: str = ""  # the path that everything is below, without a slash at its end
    acl: tuple[ACL, ...] = tuple(OPEN_ACL_UNSAFE)
    auth: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # scheme, credential
    sasl: Mapping[str, Any] | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def make_client(self, ttl: float, handler: Handler, wiretap: Wiretap) -> Any:
        """Return a client of kazoo for one session, which is not started yet."""
        client = KazooClient(
            hosts=",".join(map(_written, self.hosts)),
            timeout=(whole_millis(ttl) + 0.5) / 1000,  # it cuts off what is no whole one
            handler=handler,
            logger=wiretap,
            auth_data=set(self.auth),
            sasl_options=None if self.sasl is None else dict(self.sasl),
            connection_retry=KazooRetry(
                max_tries=-1,
                delay=RETRY_FIRST,
                max_delay=RETRY_MOST,
                sleep_func=handler.sleep_func,
            ),
        )
        insist_on_order(client)
        return client


def whole_millis(ttl: float) -> int:
    """Return a TTL in whole milliseconds, as ZooKeeper counts, and not less."""
    return math.ceil(round(ttl * 1000, 6))


def from_url(url: str) -> Settings:
    """Read `zookeeper://[user:password@]host[:port],host[:port][/root]`."""
    parts = urlsplit(url)
    if parts.scheme.lower() != SCHEME:
        raise ValueError(f"{_shown(url)} is not a ZooKeeper URL: it begins with {SCHEME}://.")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    for name in options:
        if name not in OPTIONS:
            raise ValueError(
                f"{_shown(url)} has an unknown option {name!r}; known are: {', '.join(OPTIONS)}."
            )
    login, _, netloc = parts.netloc.rpartition("@")
    user, _, password = (unquote(part) for part in login.partition(":"))
    hosts = tuple(_address(url, one) for one in netloc.split(","))
    root = _root(url, unquote(parts.path))
    sasl = None
    if "sasl" in options:
        sasl = {"mechanism": options["sasl"]}
        if user:
            sasl |= {"username": user, "password": password}
    return Settings(
        location=_location(hosts, root),
        hosts=hosts,
        root=root,
        acl=tuple(CREATOR_ALL_ACL if user or sasl else OPEN_ACL_UNSAFE),
        auth=(("digest", f"{user}:{password}"),) if user and not sasl else (),
        sasl=sasl,
        tls=_tls(options),
    )


def from_client(client: Any) -> Settings:
    """Take over the settings of a KazooClient; its session stays its own."""
    if not isinstance(client, KazooClient):
        raise TypeError(f"A KazooClient is needed, not {type(client).__name__}.")
    hosts = tuple((str(host), int(port)) for host, port in client.hosts)
    root = (client.chroot or "").rstrip("/")
    sasl = client._connection.sasl_options
    acl = client.default_acl or (CREATOR_ALL_ACL if client.auth_data or sasl else OPEN_ACL_UNSAFE)
    tls = None
    if client.use_ssl:
        own = (client.certfile, client.keyfile, client.keyfile_password)
        names = bool(getattr(client, "check_hostname", False))  # unknown to kazoo 2.10
        tls = _context(client.ca, own, client.verify_certs, names)
    return Settings(
        location=_location(hosts, root),
        hosts=hosts,
        root=root,
        acl=tuple(acl),
        auth=tuple(client.auth_data),
        sasl=sasl,
        tls=tls,
    )


def choose(settings: Settings, acl: Acl | None, sasl: Mapping[str, Any] | None) -> Settings:
    """Return settings with an ACL and a login by SASL that were given apart."""
    if sasl is not None:
        settings = replace(settings, sasl=sasl, auth=())
        if acl is None:
            acl = "creator"
    if acl is None:
        return settings
    named = {"open": OPEN_ACL_UNSAFE, "creator": CREATOR_ALL_ACL}
    if isinstance(acl, str):
        if acl not in named:
            raise ValueError(f"acl must be 'open', 'creator' or a list of ACL, not {acl!r}.")
        acl = named[acl]
    if not acl or not all(isinstance(one, ACL) for one in acl):
        raise ValueError("acl must be 'open', 'creator' or a list of ACL, of which one at least.")
    return replace(settings, acl=tuple(acl))


def _shown(url: str) -> str:
    """Return a URL for a message, of which nothing where a password could be."""
    secretive = "@" in url or "?" in url
    return repr(url.partition("//")[0] + "//…" if secretive else url)


def _address(url: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    host = host.strip("[]")
    if not host:
        raise ValueError(f"{_shown(url)} names no server: {SCHEME}://host:2181,host:2181[/root].")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{_shown(url)} has a port that is no number below 65536.")
    return host, int(port)


def _root(url: str, path: str) -> str:
    root = path.rstrip("/")
    segments = root.split("/")[1:]
    if any(segment in ("", ".", "..") for segment in segments) or root == "/zookeeper":
        raise ValueError(f"{_shown(url)} has a root that ZooKeeper does not take: {root!r}.")
    return root


def _written(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _location(hosts: Sequence[tuple[str, int]], root: str) -> str:
    return f"{SCHEME}://{','.join(map(_written, hosts))}{root}"


def _tls(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return how to check the servers' certificates; strict by default."""
    wanted = any(name.startswith("ssl_") for name in options)
    if not (yes_or_no(options["tls"]) if "tls" in options else wanted):
        return None
    verify = options.get("ssl_cert_reqs", "required").lower() not in ("none", "0")
    own = tuple(options.get(f"ssl_{name}") for name in ("certfile", "keyfile", "keyfile_password"))
    names = yes_or_no(options.get("ssl_check_hostname", "yes"))
    return _context(options.get("ssl_ca_certs"), own, verify, names)


def _context(
    authority: str | None, own: Sequence[str | None], verify: bool, names: bool
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority or None)
    context.check_hostname = verify and names
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    certificate, key, password = own
    if certificate:
        context.load_cert_chain(certificate, key, password)
    return context
