"""The other half of the checkers: what the faults left behind.

G  guard: no update of a guarded register is lost, no acknowledged one is missing.
L2 liveness: after healing every waiter ends, every key can be taken, every client renews, in time.
W  withdrawal (S6, S7): an attempt without a lease is given back, and never enters afterwards; so is
   every lease, unless the server said itself that it is gone.
R  renewal: the server keeps nobody who has left, and revives nobody.
X  leaks and surprises: nothing is left in the end, and no error came that no rule foresees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .checkers import ROUNDING, Records, Violation, exclusion, loss, tokens, validity
from .history import (
    Acquired,
    Answered,
    Awaited,
    Called,
    Ended,
    Kept,
    Killed,
    Left,
    Minted,
    Record,
    Recovered,
    Remains,
    Unexpected,
    Wrote,
)

FORGOTTEN = ("stolen", "forced")  # the server has no such owner: there is nothing to give back


def check(history: Sequence[Record]) -> list[Violation]:
    """Return everything that is wrong with a history, earliest first."""
    records = Records(history)
    checkers = (exclusion, validity, tokens, loss, guard, liveness, withdrawal, renewal, leaks)
    found = [violation for checker in checkers for violation in checker(records)]
    return sorted(found, key=lambda violation: violation.at)


def guard(records: Records) -> Iterator[Violation]:
    """G: each write was based on the one before, and what was acknowledged was written."""
    written = set()
    for write in records.of(Wrote):
        if not write.guarded:
            continue
        written.add((write.register, write.token))
        if write.based_on != write.found:
            yield Violation(
                "G",
                write.at,
                f"{write.register}: token {write.token} wrote over {write.found}, having read "
                f"{write.based_on}: an update is lost.",
            )
    for answer in records.of(Answered):
        if answer.acknowledged and (answer.register, answer.token) not in written:
            yield Violation("G", answer.at, f"{answer.register}: {answer.token} was not written.")


def unguarded_losses(history: Sequence[Record]) -> int:
    """Count the updates that the register without a guard has lost: information, no violation."""
    writes = Records(history).of(Wrote)
    return sum(1 for write in writes if not write.guarded and write.based_on != write.found)


def liveness(records: Records) -> Iterator[Violation]:
    """L2: what must come after healing, comes in time."""
    came = {record.what: record.at for record in records.of(Recovered)}
    for awaited in records.of(Awaited):
        at = came.get(awaited.what)
        if at is None or at > awaited.by + ROUNDING:
            when = "never" if at is None else f"at {at:.6f}"
            sentence = f"{awaited.what}: due by {awaited.by:.6f} after healing, came {when}."
            yield Violation("L2", awaited.by, sentence)


def withdrawal(records: Records) -> Iterator[Violation]:
    """W: whoever asked and did not stay gives back, and a withdrawn owner never enters."""
    claimed: dict[str, Called] = {}
    returned: set[str] = set()
    for call in records.of(Called):
        if call.verb == "claim":
            claimed[call.owner] = call
            returned.discard(call.owner)
        else:  # a release, or a definite busy
            returned.add(call.owner)
    killed = {record.client for record in records.of(Killed)}
    gone = {end.owner for end in records.of(Ended) if end.reason in FORGOTTEN}
    for owner, call in claimed.items():
        if owner not in returned and call.client not in killed and owner not in gone:
            yield Violation("W", call.at, f"{call.client} never gave back its claim {owner}.")
    buried: dict[str, int] = {}
    for record in records.all:
        if type(record) is Left and not record.known:
            buried.setdefault(record.owner, record.epoch)
        elif type(record) is Minted and buried.get(record.owner) == record.epoch:
            yield Violation("W", record.at, f"{record.owner} entered after it was withdrawn.")


def renewal(records: Records) -> Iterator[Violation]:
    """R: only a holder that has not left, and whose time is not over, is kept."""
    expires: dict[tuple[str, int], float] = {}
    for record in records.all:
        if type(record) is Minted:
            expires[record.owner, record.epoch] = record.expires
        elif type(record) is Left:
            expires.pop((record.owner, record.epoch), None)
        elif type(record) is Kept:
            until = expires.get((record.owner, record.epoch))
            if until is None or record.at > until + ROUNDING:
                yield Violation("R", record.at, f"{record.owner} was kept after it had left.")
            expires[record.owner, record.epoch] = record.expires


def leaks(records: Records) -> Iterator[Violation]:
    """X: nothing remains, nobody was surprised."""
    for left in records.of(Remains):
        yield Violation("X", left.at, f"After everybody had closed there was still {left.what}.")
    for surprise in records.of(Unexpected):
        yield Violation("X", surprise.at, surprise.what)
    for lease in records.of(Acquired):
        if lease.token <= 0:
            yield Violation("X", lease.at, f"{lease.token} is no token.")
