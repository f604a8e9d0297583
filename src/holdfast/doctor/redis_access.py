"""Checks of the way to a Redis server: who can listen in, what we may do there, are we heard?"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence

from .._concurrency import Event, Reader
from ..clocks import boot_clock
from ..errors import EngineUnavailable, LockError
from ..names import encode, record_key
from ..redis_link import Link, Settings
from ..redis_record import keys_of, scan_pattern
from .finding import Finding, Level
from .general import PROBE
from .redis_facts import TIMEOUT, Node

CHANNELS = "holdfast:"
OUTSIDE = ("PING", "EVAL", "EVALSHA", "SUBSCRIBE", "SCAN", "INFO")

# What scripts call, each as a call that leaves nothing behind: KEY is a name of our own.
LOOKING = (
    *("TIME", "EXISTS KEY", "HMGET KEY f", "HGET KEY f", "HGETALL KEY"),
    *("ZSCORE KEY:q x", "ZRANK KEY:q x", "ZRANGE KEY:q 0 -1", "ZCARD KEY:q"),
)
CHANGING = (
    *("HDEL KEY f", "ZREM KEY:q x", "ZPOPMIN KEY:q", "PEXPIREAT KEY 1"),
    f"PUBLISH {CHANNELS}doctor x",
)
CREATING = ("SET KEY:x:x 1 PX 1", "HSET KEY f 0", "ZADD KEY:q 0 x")
REMOVING = CHANGING[:2]
# Only Redlock's call these.
IN_REDLOCK = ("ZRANGEBYSCORE KEY:q -inf 0", "PEXPIRE KEY 1", "PERSIST KEY")

# What locks can do without.
MISSED = {
    "SCAN": "nobody can list locks",
    "PUBLISH": "waiters are not told of their turn, and holders not of a lock that was broken",
}

CALL = "return redis.call(unpack(ARGV))"
NOTHING = "return 1"
NOTHING_DIGEST = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
FORBIDDEN = (  # how servers say it, inside scripts and outside
    *("NOPERM", "ACL failure", "user executing the script"),
    *("nknown command", "nknown Redis command"),
)


# --- Who can listen in. ---


def check_way(settings: Settings) -> Iterator[Finding]:
    """Whoever reads what we send can log in as we do; whoever can connect may break locks."""
    where, near = settings.location, _is_near(settings)
    if near:
        yield Finding(Level.OK, "encryption", f"{where} is on this machine.")
    elif settings.tls is None:
        open_password = settings.password is not None
        what = "the password and all locks" if open_password else "all locks"
        yield Finding(
            Level.WARNING if open_password else Level.INFO,
            "encryption",
            f"{where} is another machine, and {what} can be read and changed on the way there.",
            "Let the server speak TLS, and use rediss://.",
        )
    elif settings.tls.verify_mode == ssl.CERT_NONE or not settings.tls.check_hostname:
        yield Finding(
            Level.WARNING,
            "encryption",
            f"{where} could be anybody: its certificate, or the name in it, is not checked.",
            "Give the certificate of its authority by ssl_ca_certs=, and check both.",
        )
    else:
        yield Finding(
            Level.OK, "encryption", f"{where} is reached by TLS, and has to prove itself."
        )
    if settings.password is None and not settings.path:
        yield Finding(
            Level.INFO if near else Level.WARNING,
            "password",
            f"{where} wants no password: whoever can connect to it can break locks.",
            "Make a user for locks, with a password and few rights: see 'ACL' in "
            "docs/engines/redis.md.",
        )


def _is_near(settings: Settings) -> bool:
    if settings.path:
        return True
    try:
        found = socket.getaddrinfo(*settings.address(), type=socket.SOCK_STREAM)
    except (OSError, EngineUnavailable):
        return False
    addresses = [str(address[0]).partition("%")[0] for *_, address in found]
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


# --- What we may do there. ---


def commands(*, waits: bool = False, redlock: bool = False) -> list[str]:
    """Return all commands that locks need; `waits` is for replicas=."""
    calls = (*LOOKING, *CHANGING, *CREATING, *(IN_REDLOCK if redlock else ()))
    return [*OUTSIDE, *(["WAIT"] if waits else []), *(call.split()[0] for call in calls)]


def rules(namespace: str, words: Iterable[str]) -> str:
    """Return the rules of ACL SETUSER for these commands on the keys and channels of locks."""
    rights = " ".join(f"+{word.lower()}" for word in words)
    return f"~{{{encode(namespace, 'namespace')}/* &{CHANNELS}* {rights}"


def check_rights(
    node: Node, namespace: str, *, waits: bool = False, redlock: bool = False
) -> Iterator[Finding]:
    """Run each command that locks need, on a name of our own, as scripts or as the client do."""
    needed = commands(waits=waits, redlock=redlock)
    refused = list(_refused(node, namespace, needed))
    if not refused:
        yield Finding(Level.OK, "rights", f"{node.location} lets us do all that locks need.")
        return
    user = node.settings.username or "default"
    fatal = [word for word in refused if word not in MISSED]
    result = "locks do not work there" if fatal else "; ".join(MISSED[word] for word in refused)
    yield Finding(
        Level.CRITICAL if fatal else Level.WARNING,
        "rights",
        f"{node.location} does not let user {user!r} run {', '.join(refused)}: {result}.",
        f"ACL SETUSER {user} {rules(namespace, needed)}",
    )


def _refused(node: Node, namespace: str, needed: Sequence[str]) -> Iterator[str]:
    key = record_key(namespace, encode(f"{PROBE}/{secrets.token_hex(8)}"))
    record = keys_of(key)[0]
    plain: dict[str, tuple[str | int, ...]] = {
        "PING": (),
        "EVAL": (NOTHING, 1, record),
        "EVALSHA": (NOTHING_DIGEST, 1, record),
        "SCAN": (0, "MATCH", scan_pattern(key), "COUNT", 1),
        "WAIT": (0, 1),
    }
    asked = [word for word in needed if word in plain]
    refused = [word for word in asked if _is_refused(node, word, *plain[word])]
    yield from refused
    if "EVAL" in refused:
        return

    def in_script(calls: Iterable[str]) -> list[str]:
        """Return what is refused of them."""
        wanted = [call for call in calls if call.split()[0] in needed]
        given = [call.replace("KEY", record).split() for call in wanted]
        return [one[0] for one in given if _is_refused(node, "EVAL", CALL, 1, record, *one)]

    missing = in_script((*LOOKING, *IN_REDLOCK, *CHANGING))
    if not missing:  # what is created can be removed
        missing = in_script(CREATING)
        in_script(REMOVING)
    yield from missing


def _is_refused(node: Node, *words: str | int) -> bool:
    """Say whether we may not; other reasons for an error are for other checks to find."""
    try:
        node.command(*words, timeout=TIMEOUT)
    except LockError as error:
        return forbidden(error)
    return False


def forbidden(error: LockError) -> bool:
    """Say whether this is an answer, and the answer is that we may not."""
    return any(word in str(error) for word in FORBIDDEN)


# --- Are we heard? ---


def check_messages(node: Node) -> Iterator[Finding]:
    """Send ourselves a message, as a waiter gets its lock; without them waiters have to look."""
    heard, deaf = Event(), ""
    channel = f"{CHANNELS}{secrets.token_hex(8)}"
    link, reader = Link(node.settings, boot_clock), Reader("holdfast-doctor")
    try:
        link.listen(reader, channel.encode(), lambda _: heard.set(), lambda: None, TIMEOUT)
        node.command("EVAL", CALL, 0, "PUBLISH", channel, "x", timeout=TIMEOUT)
        if not heard.wait(TIMEOUT):
            deaf = "the message did not arrive"
    except LockError as error:
        deaf = str(error).removeprefix(f"{node.location} ").rstrip(".")
    finally:
        reader.close()
        link.close()
    if not deaf:
        yield Finding(Level.OK, "messages", f"{node.location} tells waiters when it is their turn.")
        return
    yield Finding(
        Level.WARNING,
        "messages",
        f"{node.location} cannot tell waiters when it is their turn ({deaf}): they look four "
        "times a second, and one that has died holds up the others for its TTL.",
        f"Allow SUBSCRIBE and PUBLISH on {CHANNELS}*, and leave room for connections (maxclients).",
    )
