"""What a server refuses, and what it does not answer, as sentences that say what to do."""

from __future__ import annotations

from ..errors import EngineUnavailable, LockError, NotSupported, OutcomeUnknown
from .session import Refusal
from .settings import Settings

# By SQLSTATE, or by its first two characters.
_REFUSALS = {
    "28": "it does not accept the user or password; check the URL",
    "3D000": "there is no such database; check the URL",
    "42501": "the user lacks rights (see 'Rights' in docs/engines/postgresql.md)",
    "25006": "it is a standby, or read-only, now; name all hosts in the URL to find the primary",
    "53300": "it has no connection left; raise max_connections or put a pooler before it",
    "53": "it has not enough memory or disk; look at its log",
    "55P03": "another transaction keeps the row of this lock: look for sessions that are idle in "
    "transaction (holdfast doctor shows them)",
    "57014": "the statement took longer than statement_timeout allows; look for what blocks it",
    "57P03": "it is starting up or shutting down; try again soon",
    "40001": "its default_transaction_isolation is not 'read committed'; set that for this user",
    "40P01": "the statement was part of a deadlock; try again",
    "26000": "a pooler stands before it and mixes up sessions; say listen=no in the URL",
}
_DOUBTFUL = ("08", "57P01", "57P02", "57P04", "57P05")  # the connection is going down
MISSING = ("3F000", "42P01", "42883")  # schema, table, function


def suspect(refusal: Refusal) -> bool:
    """Say whether connections that are open are of no more use.

    They end, or another server is the primary now, or the tables are gone: a new connection looks
    for all of that.
    """
    return refusal.state.startswith((*_DOUBTFUL, *MISSING, "25006", "26000"))


def refused(settings: Settings, refusal: Refusal) -> LockError:
    """Return the error for a statement that was refused: it has done nothing, as a rule."""
    where, state = settings.location, refusal.state
    if state.startswith(_DOUBTFUL):
        return silent(settings, refusal)
    if state in MISSING:
        return EngineUnavailable(
            f"{where} lacks the tables or functions of holdfast ({refusal}); make them with "
            "holdfast doctor --fix, or connect with create=True.",
            engine=where,
        )
    why = _REFUSALS.get(state) or _REFUSALS.get(state[:2])
    detail = f"{why} ({refusal})" if why else f"{refusal} (SQLSTATE {state})"
    return EngineUnavailable(f"{where} refused: {detail}.", engine=where)


def unreachable(settings: Settings, error: BaseException | str) -> EngineUnavailable:
    """Return the error for a connection that could not be made: nothing was sent."""
    if isinstance(error, EngineUnavailable):
        return error  # it says why already
    where = settings.location
    why = str(error) or type(error).__name__
    return EngineUnavailable(
        f"{where} cannot be reached ({why}); check that the server runs, and the URL.",
        engine=where,
    )


def silent(settings: Settings, why: object) -> OutcomeUnknown:
    """Return the error for a statement without an answer."""
    where = settings.location
    return OutcomeUnknown(f"{where} gave no answer ({why}).", engine=where)


def outdated(settings: Settings, schema: str, found: str, wanted: str) -> NotSupported:
    """Return the error for tables of another version (S5)."""
    where = settings.location
    return NotSupported(
        f"The tables in schema {schema!r} of {where} are of {found!r}, this is {wanted!r}: let all "
        "clients use one version of holdfast, or give this one another schema=.",
        engine=where,
    )
