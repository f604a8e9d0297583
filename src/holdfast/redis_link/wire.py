"""What is said on the wire, without any I/O: requests, the greeting, errors as sentences.

Rule 1: an error that the server answers means that the request was refused.
Rule 2: a request that may have reached the server, and has no answer, has an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1
from ssl import SSLCertVerificationError
from typing import Any

import hiredis
from hiredis import ReplyError

from ..errors import EngineUnavailable, LockError, NotSupported, OutcomeUnknown
from .settings import Settings

Reply = Any
Word = str | bytes | int
Follow = Callable[[Reply], bytes]  # what to send next, after a reply; b"" for nothing

CLOSED = "the connection was closed"

# hiredis says that it takes tuples of one word.
pack: Callable[[tuple[Word, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]


class Script:
    """A script by name: called by its digest, or by its text where the server forgot it."""

    __slots__ = ("digest", "name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text.encode()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()

    def call(self, keys: int, *values: Word) -> bytes:
        """Return the usual request: the first `keys` values are keys."""
        return pack((b"EVALSHA", self.digest, keys, *values))

    def call_in_full(self, keys: int, *values: Word) -> bytes:
        """Return the same for a server that does not know the script yet; it will then."""
        return pack((b"EVAL", self.text, keys, *values))


class Template:
    """A call of a script of which only the last words differ: packed once, finished by `tail`."""

    __slots__ = ("_keys", "_more", "_script", "_values", "head")

    def __init__(self, script: Script, more: int, keys: int, *values: Word) -> None:
        self.head = _open_end(script.call(keys, *values), more)
        self._script = script
        self._more = more
        self._keys = keys
        self._values = values

    @property
    def digest(self) -> bytes:
        """By which name the script is called."""
        return self._script.digest

    def in_full(self) -> bytes:
        """Return the head for a server that does not know the script."""
        return _open_end(self._script.call_in_full(self._keys, *self._values), self._more)


def packed_word(text: str) -> bytes:
    """Return one word of a request."""
    word = text.encode()
    return b"$%d\r\n%b\r\n" % (len(word), word)


def _open_end(request: bytes, more: int) -> bytes:
    """Return a packed request to which that many words can be added."""
    count, _, body = request.partition(b"\r\n")
    return b"*%d\r\n%b" % (int(count[1:]) + more, body)


def forgotten(reply: Reply) -> bool:
    """Say whether the server does not know the script: after a restart, or SCRIPT FLUSH."""
    return isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT")


def forbidden(reply: Reply) -> bool:
    """Say whether the user has no right to what was asked, and so never will."""
    return isinstance(reply, ReplyError) and str(reply).startswith("NOPERM")


def demoted(reply: Reply) -> bool:
    """Say whether the server is no master any more: another one is, under the same address."""
    return isinstance(reply, ReplyError) and str(reply).startswith("READONLY")


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server said of itself when the connection was made; empty where it may not say."""

    run_id: str = ""
    version: str = ""
    uptime: float = 0.0  # seconds, at least
    role: str = ""
    cluster: bool = False
    micros: int = 0


def hello(settings: Settings) -> tuple[bytes, int]:
    """Return the first bytes of a connection, and how many replies they get."""
    requests: list[tuple[Word, ...]] = []
    if settings.password is not None:
        if settings.username is not None:
            requests.append(("AUTH", settings.username, settings.password))
        else:
            requests.append(("AUTH", settings.password))
    if settings.database:
        requests.append(("SELECT", settings.database))
    must = len(requests)
    requests += [("CLIENT", "SETNAME", "holdfast"), ("INFO", "server"), ("INFO", "replication")]
    requests.append(("TIME",))
    return b"".join(pack(request) for request in requests), must + 4


def read_greeting(settings: Settings, replies: list[Reply]) -> Greeting:
    """Return what the server said of itself, or raise why we may not go on."""
    *must, _, server, replication, time = replies
    for reply in must:
        check(settings, reply)
    if isinstance(time, ReplyError) and str(time).startswith(("NOAUTH", "LOADING", "MASTERDOWN")):
        check(settings, time)
    facts = _facts(server) | _facts(replication)
    micros = int(time[0]) * 1_000_000 + int(time[1]) if isinstance(time, list) else 0
    return Greeting(
        run_id=facts.get("run_id", ""),
        version=facts.get("valkey_version") or facts.get("redis_version", ""),
        # The difference of two clocks that were cut to whole seconds: up to one too many.
        uptime=max(0.0, float(facts.get("uptime_in_seconds", 0)) - 1.0),
        role=facts.get("role", ""),
        cluster=facts.get("redis_mode") == "cluster" or facts.get("server_mode") == "cluster",
        micros=micros,
    )


def _facts(reply: Reply) -> dict[str, str]:
    if not isinstance(reply, bytes):
        return {}
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and line[0] != "#")


# --- Errors, as sentences that say what to do. ---

_REFUSALS = {
    "NOAUTH": "it wants a password; put it into the URL",
    "WRONGPASS": "it does not accept the user or password",
    "NOPERM": "the user lacks rights (see 'ACL' in docs/engines/redis.md)",
    "READONLY": "it is a replica now; name the master, or use Sentinel",
    "OOM": "it has no memory left; raise maxmemory or remove data",
    "LOADING": "it is still loading its data; try again soon",
    "MASTERDOWN": "it is a replica that lost its master",
    "MISCONF": "it cannot save to disk and refuses writes; look at its log",
    "NOREPLICAS": "it has too few replicas and refuses writes (min-replicas-to-write)",
    "BUSY": "it is busy with somebody's script; try again soon",
    "CLUSTERDOWN": "its cluster is down",
    "CLOCK": "its clock is beyond the year 2255; set it right",
}
_NEVER = {"MOVED", "ASK", "CROSSSLOT"}


def check(settings: Settings, reply: Reply) -> Reply:
    """Return a reply that is no error, or raise the error in one sentence."""
    if not isinstance(reply, ReplyError):
        return reply
    where, text = settings.location, str(reply)
    word = text.partition(" ")[0]
    if word in _NEVER:
        raise NotSupported(
            f"{where} is a member of a Redis Cluster, whose failover forgets locks that were "
            "granted; name a server of its own, or use redlock:// with several.",
            engine=where,
        )
    why = _REFUSALS.get(word)
    detail = f"{why} ({text})" if why else text
    raise EngineUnavailable(f"{where} refused: {detail}.", engine=where)


def unreachable(settings: Settings, error: BaseException | str) -> EngineUnavailable:
    """Return the error for a connection that could not be made: nothing was sent."""
    if isinstance(error, EngineUnavailable):
        return error  # it says why already
    where = settings.location
    why = str(error) or type(error).__name__
    hint = "check that the server runs and the address is right"
    if isinstance(error, SSLCertVerificationError):
        hint = "name the authority that has signed its certificate by ssl_ca_certs"
    return EngineUnavailable(f"{where} cannot be reached ({why}); {hint}.", engine=where)


def silent(settings: Settings, why: str) -> LockError:
    """Return the error for a request without an answer."""
    where = settings.location
    return OutcomeUnknown(f"{where} gave no answer ({why}).", engine=where)
