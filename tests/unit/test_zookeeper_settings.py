"""zookeeper:// URLs and kazoo's own clients, read: no server needed, and no password shown."""

from __future__ import annotations

import ssl
import subprocess
import sys
from typing import Any

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE  # type: ignore[import-untyped]

import holdfast
from holdfast.zookeeper_link import choose, from_client, from_url, whole_millis


@pytest.mark.parametrize(
    ("url", "hosts", "root"),
    [
        ("zookeeper://a", [("a", 2181)], ""),
        ("zookeeper://a:1,b:2,c", [("a", 1), ("b", 2), ("c", 2181)], ""),
        ("ZooKeeper://a:1/", [("a", 1)], ""),
        ("zookeeper://a:1,b:2/x/y/", [("a", 1), ("b", 2)], "/x/y"),
        ("zookeeper://[::1]:7,[fe80::2]/x", [("::1", 7), ("fe80::2", 2181)], "/x"),
        ("zookeeper://u:p@a:1/a%20b", [("a", 1)], "/a b"),
    ],
)
def test_addresses(url: str, hosts: list[tuple[str, int]], root: str) -> None:
    """Any number of servers, each with or without a port, and one root."""
    settings = from_url(url)
    assert list(settings.hosts) == hosts
    assert settings.root == root
    assert settings.location.endswith(root)


def test_location_names_every_server() -> None:
    """Messages show where, in the form of a URL."""
    assert from_url("zookeeper://a,[::1]:7/x").location == "zookeeper://a:2181,[::1]:7/x"


@pytest.mark.parametrize(
    "url",
    [
        *("zookeeper://", "zookeeper://:2181", "zookeeper://a,,b", "zookeeper://a:x"),
        *("zookeeper://a:70000", "zookeeper://u:secret@a/x//y", "zookeeper://a/..", "zk://a"),
        *("zookeeper://u:secret@a/zookeeper", "zookeeper://u:secret@a?nonsense=1"),
        *("zookeeper://u:secret@a?tls=perhaps", "zookeeper://u:secret@a?tick_time=0"),
    ],
)
def test_nonsense_is_refused(url: str) -> None:
    """One sentence, and no password in it."""
    with pytest.raises(ValueError, match=r".") as caught:
        holdfast.connect(url)
    assert "secret" not in str(caught.value)


def test_login() -> None:
    """A user logs in by digest, and what it makes is its own; SASL takes its place where asked."""
    plain, user = from_url("zookeeper://a"), from_url("zookeeper://u:p%40@a")
    assert (plain.auth, list(plain.acl)) == ((), OPEN_ACL_UNSAFE)
    assert (user.auth, list(user.acl)) == ((("digest", "u:p@"),), CREATOR_ALL_ACL)
    sasl = from_url("zookeeper://u:p@a?sasl=DIGEST-MD5")
    assert sasl.auth == ()
    assert sasl.sasl == {"mechanism": "DIGEST-MD5", "username": "u", "password": "p"}
    assert list(sasl.acl) == CREATOR_ALL_ACL
    ticket = from_url("zookeeper://a?sasl=GSSAPI")
    assert ticket.sasl == {"mechanism": "GSSAPI"}


def test_no_password_is_shown() -> None:
    """Neither by the settings nor by what is made of them."""
    settings = from_url("zookeeper://u:geheim@a?sasl=DIGEST-MD5")
    assert "geheim" not in f"{settings!r} {settings.location}"
    client = holdfast.connect("zookeeper://u:geheim@a/root")
    assert "geheim" not in f"{client!r} {client.engine.location}"


@pytest.mark.parametrize(
    ("options", "verified", "named"),
    [
        ("tls=yes", True, True),
        ("tls=yes&ssl_check_hostname=no", True, False),
        ("ssl_cert_reqs=none", False, False),
    ],
)
def test_tls(options: str, verified: bool, named: bool) -> None:
    """It is strict unless told otherwise; any word about it turns it on."""
    context = from_url(f"zookeeper://a?{options}").tls
    assert context is not None
    assert (context.verify_mode is ssl.CERT_REQUIRED) is verified
    assert context.check_hostname is named


def test_tls_is_off_by_default() -> None:
    """And can be said to be."""
    assert from_url("zookeeper://a").tls is None
    assert from_url("zookeeper://a?tls=no").tls is None


def test_kazoo_s_client() -> None:
    """Servers, root, login, rights and TLS are taken over, started or not."""
    acl = list(OPEN_ACL_UNSAFE)
    kazoo = KazooClient(
        "a:1,b:2/root",
        auth_data=[("digest", "u:p")],
        use_ssl=True,
        verify_certs=False,
        default_acl=acl,
    )
    settings = from_client(kazoo)
    assert settings.location == "zookeeper://a:1,b:2/root"
    assert settings.auth == (("digest", "u:p"),)
    assert list(settings.acl) == acl
    assert settings.tls is not None
    assert settings.tls.verify_mode is ssl.CERT_NONE
    assert holdfast.connect(kazoo).engine.location == settings.location
    assert list(from_client(KazooClient("a", auth_data=[("digest", "u:p")])).acl) == CREATOR_ALL_ACL
    with pytest.raises(TypeError):
        from_client(object())


@pytest.mark.parametrize("acl", ["everybody", [], ["world"], 5])
def test_nonsense_rights_are_refused(acl: Any) -> None:
    """What is no ACL is an error at once."""
    with pytest.raises((ValueError, TypeError)):
        choose(from_url("zookeeper://a"), acl, None)


def test_what_the_engine_promises() -> None:
    """It can be read without a server: sessions, fair, push, tokens, no marker of jobs."""
    guarantees = holdfast.connect("zookeeper://a").guarantees
    guarantees.require("fencing", "fair", "push", "partition", "failover", "server_clock_step")
    assert guarantees.expiry == "session"
    for name in ("at_least", "crash_detection", "server_data_loss"):
        with pytest.raises(holdfast.NotSupported):
            guarantees.require(name)


@pytest.mark.parametrize(
    ("ttl", "millis"), [(1, 1000), (0.3, 300), (1.1, 1100), (2.0001, 2001), (29.9999999, 30000)]
)
def test_whole_millis(ttl: float, millis: int) -> None:
    """ZooKeeper counts in milliseconds: never less than was asked, and no more than one."""
    assert whole_millis(ttl) == millis


def test_missing_driver_says_what_to_install() -> None:
    """Without kazoo the engine is known, and says which extra brings it."""
    script = (
        "import sys; sys.modules['kazoo'] = None\n"
        "import holdfast\n"
        "try:\n"
        "    holdfast.connect('zookeeper://a')\n"
        "except holdfast.MissingDriver as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert 'pip install "holdfast[zookeeper]"' in done.stdout, done.stderr
