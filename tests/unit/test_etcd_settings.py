"""What an etcd URL means, and that it shows no password."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.etcd_link import from_url


@pytest.mark.parametrize(
    ("url", "endpoints"),
    [
        ("etcd://", ("localhost:2379",)),
        ("etcd://one", ("one:2379",)),
        ("etcd://one:1,two,three:3", ("one:1", "two:2379", "three:3")),
        ("etcd://one:1,one:1", ("one:1",)),
        ("etcd://[::1]", ("[::1]:2379",)),
        ("etcd://[::1]:1,[fe80::2]:2", ("[::1]:1", "[fe80::2]:2")),
        ("etcd://user:a%40b%2Cc@one/", ("one:2379",)),
        ("ETCD://one", ("one:2379",)),
    ],
)
def test_endpoints(url: str, endpoints: tuple[str, ...]) -> None:
    """Hosts in any number, with or without a port, once each."""
    settings = from_url(url)
    assert settings.endpoints == endpoints
    assert settings.location == f"etcd://{','.join(endpoints)}"
    assert settings.tls is None


def test_login() -> None:
    """User and password are decoded, and shown nowhere."""
    settings = from_url("etcds://some%40body:s3cr3t%2F@one:1")
    assert (settings.username, settings.password) == ("some@body", "s3cr3t/")
    assert settings.tls is not None
    for shown in (repr(settings), settings.location):
        assert "s3cr3t" not in shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://one", "not an etcd URL"),
        ("etcd://one/path", "namespace"),
        ("etcd://one?colour=red", "unknown option 'colour'"),
        ("etcd://one?ssl_ca_certs=x", "etcds://"),
        ("etcds://one?ssl_ca_certs=/no/such/file", "cannot be read"),
        ("etcd://one:many", "host or port"),
        ("etcd://one:70000", "host or port"),
        ("etcd://one,:5", "host or port"),
    ],
)
def test_nonsense(url: str, words: str) -> None:
    """What cannot be meant is refused in one sentence."""
    with pytest.raises(ValueError, match=words):
        from_url(url)


def test_errors_show_no_password() -> None:
    """Not even where the URL itself is wrong."""
    for url in ("etcd://me:s3cr3t@one:many", "etcd://me:s3cr3t@one?a=b", "etcd://me:s3cr3t@one/x"):
        with pytest.raises(ValueError, match="etcd:") as caught:
            from_url(url)
        assert "s3cr3t" not in str(caught.value)


def test_options_of_connect() -> None:
    """The largest TTL may stand in the URL; guarantees are known without a server."""
    with holdfast.connect("etcd://127.0.0.1:1?max_ttl=60") as client:
        guarantees = client.guarantees
        assert guarantees.max_ttl == 60
        guarantees.require("fencing", "fair", "push", "at_least", "failover", "partition")
        assert guarantees.expiry == "session"
        with pytest.raises(ValueError, match="at most 60"):
            client.lock("x", ttl=61)
