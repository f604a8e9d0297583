"""Where an etcd cluster is and how to log in: from a URL, or a channel of grpcio's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import grpc

SCHEMES = ("etcd", "etcds")
OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_server_name")
DEFAULT_PORT = 2379

# No retries by the driver (S1); no proxy of the environment; subchannels of our own, because a
# forked child must not meet its parent's connection. etcd puts up with a ping every 5 s.
CHANNEL_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.primary_user_agent", "holdfast"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """One cluster; `location` is how messages name it, never with a password."""

    location: str
    endpoints: tuple[str, ...]  # host:port, tried in this order
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    tls: grpc.ChannelCredentials | None = field(default=None, repr=False)
    server_name: str | None = None  # in the servers' certificates, where it is not the host
    files: Mapping[str, str] = field(default_factory=dict)  # of certificates, by option
    channel: Any = field(default=None, repr=False)  # the user's own, instead of all of the above


def from_url(url: str) -> Settings:
    """Read `etcd://[user:password@]host[:port][,host[:port]…]`, or `etcds://` for TLS."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise ValueError(f"{_shown(url)} is not an etcd URL: use one of {', '.join(SCHEMES)}.")
    if parts.path.strip("/"):
        raise ValueError(
            f"{_shown(url)} has a path, and etcd none: connect(namespace=…) keeps locks apart."
        )
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    for name in options:
        if name not in OPTIONS:
            raise ValueError(
                f"{_shown(url)} has an unknown option {name!r}; known are: {', '.join(OPTIONS)}."
            )
    if options and scheme != "etcds":
        raise ValueError(f"{_shown(url)} has options of TLS without TLS: write etcds://….")
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    endpoints = tuple(dict.fromkeys(_endpoint(url, host) for host in hosts.split(",")))
    return Settings(
        location=f"{scheme}://{','.join(endpoints)}",
        endpoints=endpoints,
        username=unquote(username) or None,
        password=unquote(password),
        tls=_credentials(url, options) if scheme == "etcds" else None,
        server_name=options.pop("ssl_server_name", None),
        files=options,
    )


def from_channel(channel: Any) -> Settings:
    """Use the caller's own channel as it is: its targets, its TLS, its interceptors."""
    return Settings(location="etcd://(the channel given)", endpoints=("",), channel=channel)


def _endpoint(url: str, host: str) -> str:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):  # an IPv6 address without a port ends so
        name, port = host, str(DEFAULT_PORT)
    if not name and not colon:
        name = "localhost"
    if not name or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{_shown(url)} has a host or port that is none; write host:2379.")
    return f"{name}:{port}"


def _credentials(url: str, options: dict[str, str]) -> grpc.ChannelCredentials:
    def read(name: str) -> bytes | None:
        path = options.get(name)
        try:
            return Path(path).read_bytes() if path else None
        except OSError as error:
            raise ValueError(
                f"{_shown(url)}: {name} cannot be read ({error.strerror}: {path})."
            ) from error

    return grpc.ssl_channel_credentials(
        root_certificates=read("ssl_ca_certs"),
        private_key=read("ssl_keyfile"),
        certificate_chain=read("ssl_certfile"),
    )


def _shown(url: str) -> str:
    """Return a URL for a message, of which nothing where a password could be."""
    secretive = "@" in url or "?" in url
    return repr(url.partition("//")[0] + "//…" if secretive else url)


def channel_arguments(settings: Settings) -> list[tuple[str, Any]]:
    """Return the options of a new channel."""
    options = list(CHANNEL_OPTIONS)
    if settings.server_name:
        options.append(("grpc.ssl_target_name_override", settings.server_name))
    return options
