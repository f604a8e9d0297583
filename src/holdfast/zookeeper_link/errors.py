"""What ZooKeeper's and kazoo's errors mean, in our words: one table."""

from __future__ import annotations

from kazoo import exceptions as kazoo  # type: ignore[import-untyped]

from ..errors import EngineUnavailable, OutcomeUnknown

# What an answer may be besides yes.
MISSING = kazoo.NoNodeError
UNKNOWN = kazoo.UnimplementedError

# Errors that are answers: the request was looked at, and did nothing.
CERTAIN = (
    MISSING,
    UNKNOWN,
    kazoo.NodeExistsError,
    kazoo.BadVersionError,
    kazoo.NotEmptyError,
)

# By name, because not every version of kazoo has all of them.

# Errors after which nobody knows whether the request was heard.
DOUBTFUL = (
    *("ConnectionLoss", "SessionExpiredError", "ConnectionClosedError", "SessionMovedError"),
    *("OperationTimeoutError", "RequestTimeoutError"),
)

# Refusals, with what to do about them.
REFUSALS = {
    "NoAuthError": "this user has no right to do that there; give it all rights below the root "
    "(ACL), or connect as the user who made the nodes",
    "AuthFailedError": "it does not accept our login; check user, password and mechanism",
    "InvalidACLError": "it does not accept the ACL; without a user it must be 'open'",
    "EphemeralOnLocalSessionError": "its local sessions cannot become global ones; set "
    "localSessionsUpgradingEnabled=true",
    "QuotaExceededError": "a quota there is used up; raise it, or use another root",
    "ThrottledOpError": "it has too much to do and threw the request away; try later",
    "NotReadOnlyCallError": "it takes no writes now: it has lost the others; try later",
    "SASLException": 'SASL needs the package pure-sasl: pip install "kazoo[sasl]"',
    "SessionClosedRequireSaslError": "it wants a login by SASL; give sasl_options",
}


def explain(where: str, error: Exception) -> Exception:
    """Return our error for one of kazoo's."""
    name = type(error).__name__
    said = f"{name}: {error}" if str(error) else name
    if name in REFUSALS:
        return EngineUnavailable(f"{where} refuses: {REFUSALS[name]}.", engine=where)
    if name in DOUBTFUL or not isinstance(error, kazoo.KazooException):  # no server said that
        return OutcomeUnknown(
            f"{where} gave no answer ({said}); what was asked may have happened.", engine=where
        )
    return EngineUnavailable(f"{where} answered {said}.", engine=where)


def unanswered(where: str, timeout: float) -> OutcomeUnknown:
    """Return the error for a request that had no answer in time."""
    return OutcomeUnknown(
        f"{where} gave no answer within {max(0.0, timeout):.3g} s; what was asked may have "
        "happened.",
        engine=where,
    )
