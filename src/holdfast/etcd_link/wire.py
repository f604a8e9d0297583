"""What is said to etcd, without any I/O: the calls, and errors as sentences.

Rule 1: an error of etcd's own that says so means that nothing happened; any other may mean both.
Rule 2: whoever is asked must have a leader ("hasleader"): a member that has none says so at once,
        instead of letting us wait, and ends our watches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc

from ..errors import EngineUnavailable, LockError, OutcomeUnknown
from .messages import CLASSES
from .settings import Settings

Metadata = tuple[tuple[str, str], ...]  # what goes with a request

LEADER = ("hasleader", "true")
TOKEN = "token"


class Method(NamedTuple):
    """One call: its path, and how both messages are written."""

    path: str
    request: Any
    response: Any


def _method(service: str, name: str, message: str = "") -> Method:
    path, message = f"/etcdserverpb.{service}/{name}", message or name
    return Method(path, CLASSES[f"{message}Request"], CLASSES[f"{message}Response"])


RANGE = _method("KV", "Range")
TXN = _method("KV", "Txn")
GRANT = _method("Lease", "LeaseGrant")
REVOKE = _method("Lease", "LeaseRevoke")
# A stream in etcd's words. One message each way, and it is a call like any other: with a time-out,
# an answer of its own, and no thread that reads.
KEEP_ALIVE = _method("Lease", "LeaseKeepAlive")
TIME_TO_LIVE = _method("Lease", "LeaseTimeToLive")
WATCH = _method("Watch", "Watch")
AUTHENTICATE = _method("Auth", "Authenticate")
STATUS = _method("Maintenance", "Status")
ALARM = _method("Maintenance", "Alarm")
MEMBERS = _method("Cluster", "MemberList")

CALLS = (RANGE, TXN, GRANT, REVOKE, KEEP_ALIVE, TIME_TO_LIVE, AUTHENTICATE, STATUS, ALARM, MEMBERS)


class LeaseGone(Exception):
    """The server knows no such lease: it has expired, or was revoked."""


# --- Errors, as sentences that say what to do. ---

_NOT_SENT = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "DNS resolution failed",
    "Name resolution failure",
    "etcdserver: no leader",
)
_REFUSALS = {
    "database space exceeded": "it has no space left; compact and defragment it, then "
    "'etcdctl alarm disarm'",
    "permission denied": "the user lacks rights (see 'Rights' in docs/engines/etcd.md)",
    "authentication failed": "it does not accept the user or password",
    "user name is empty": "it wants a user and a password; put them into the URL",
    "invalid auth token": "it does not accept the login any more",
    "too many requests": "it is overloaded; try again soon",
    "request is too large": "a name, label or value is too long for it",
    "too many operations": "its --max-txn-ops is below 128",
    "corrupt": "its members disagree (CORRUPT); look at their logs before you go on",
    "rpc not supported for learner": "it is a learner; name a voting member",
}
_NO_LOGIN = "authentication is not enabled"
_LOG_IN_AGAIN = ("invalid auth token", "revision in header is old", "user name is empty")


def details_of(error: grpc.RpcError) -> str:
    """Return what the server, or grpcio, says of an error."""
    return str(getattr(error, "details", lambda: "")() or "")


def wants_login(error: grpc.RpcError) -> bool:
    """Say whether the request was refused, undone, because our login is over."""
    return any(words in details_of(error) for words in _LOG_IN_AGAIN)


def needs_no_login(error: grpc.RpcError) -> bool:
    """Say whether the cluster knows no users at all."""
    return _NO_LOGIN in details_of(error)


def timed_out(error: grpc.RpcError) -> bool:
    """Say whether there was no answer in time."""
    return getattr(error, "code", lambda: None)() is grpc.StatusCode.DEADLINE_EXCEEDED


def in_doubt(error: grpc.RpcError) -> bool:
    """Say whether the connection is to be left: the server, or the way to it, is in trouble."""
    code = getattr(error, "code", lambda: None)()
    return code in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    )


def translate(settings: Settings, endpoint: str, error: grpc.RpcError, timeout: float) -> Exception:
    """Return the error to raise for a call that failed."""
    code, details = getattr(error, "code", lambda: None)(), details_of(error)
    if code is grpc.StatusCode.NOT_FOUND and "lease not found" in details:
        return LeaseGone(details)
    where = settings.location
    if any(words in details for words in _NOT_SENT):
        return unreachable(settings, endpoint, details)
    for words, remedy in _REFUSALS.items():
        if words in details:
            return EngineUnavailable(f"{where} refused: {remedy} ({details}).", engine=where)
    if in_doubt(error):
        why = f"within {timeout:.3g} s" if timed_out(error) else details or str(code)
        return silent(settings, endpoint, why)
    return EngineUnavailable(f"{where} refused: {details or code}.", engine=where)


def unreachable(settings: Settings, endpoint: str, why: str) -> EngineUnavailable:
    """Return the error for a request that was certainly not obeyed."""
    where = settings.location
    hint = "check that the servers run and the addresses are right"
    if "no leader" in why:
        hint = "most of its members must see each other"
    elif "CERTIFICATE_VERIFY_FAILED" in why or "andshake" in why:
        hint = (
            "name the authority that has signed its certificate by ssl_ca_certs, and use etcds://"
        )
    return EngineUnavailable(
        f"{where} cannot be used{_by(settings, endpoint)} ({why}); {hint}.", engine=where
    )


def silent(settings: Settings, endpoint: str, why: str) -> LockError:
    """Return the error for a request without an answer."""
    where = settings.location
    text = f"{where} gave no answer{_by(settings, endpoint)} ({why.rstrip('.')})."
    return OutcomeUnknown(text, engine=where)


def _by(settings: Settings, endpoint: str) -> str:
    return f" through {endpoint}" if len(settings.endpoints) > 1 else ""
