"""An etcd record from our side: its keys, the transactions that move it, how it is read back.

`<record>` is `<namespace>/1/<encoded name>`. Below it stands one key per claim,
    <record>/<kind>/<mode>/<seat>  with kind lock, tree or semaphore-<limit>; mode X or S
and beside all records of a namespace
    <namespace>/1:sessions/<lease>  there as long as a client's lease; it hears of force_release
    <namespace>/1:gone/<owner>      who let go while a copy of its claim may still be on its way

Rule 1 (S18): create_revision is the place in the queue, and the token.
Rule 2: a claim that nobody disputes is one put, in the transaction which saw that nobody does; any
        other is put at the end of the queue by the same transaction.
Rule 3 (S2): kind and limit are part of the key, so the transaction itself refuses another kind.
Rule 4 (S6): a claim and its tombstone hang on the same lease: a late copy of the claim finds the
        tombstone, or no lease to be put under.
Rule 5: keys are used again. etcd looks at every key that ever was in a range until its history is
        compacted, so each client has seats below a record and takes another only if it must; who
        sits there, and where in a tree, is in the value, and which claim it is, the revision tells.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .etcd_link import messages as m
from .lock_table import mismatch
from .model import Claim, Entry, Family, Holder, Mode, Snapshot
from .names import decode
from .sorted_queue import divide, standing

ASCENDING, DESCENDING, BY_CREATION = 1, 2, 2
EQUAL, LESS = 0, 2
CREATED, MODIFIED, LEASE = 1, 2, 4
DELETED = 1  # type of an event
MOST_OPERATIONS = 128  # in one transaction, as servers are set up by default


# --- Keys. ---


def root_of(key: str) -> str:
    """Return what all records of a namespace begin with: `<namespace>/1`."""
    return key.rpartition("/")[0]


def session_key(root: str, lease: int) -> bytes:
    """Return the key that is there as long as a lease."""
    return f"{root}:sessions/{lease:x}".encode()


def gone_key(claim: Claim) -> bytes:
    """Return the key of an owner's tombstone."""
    return f"{root_of(claim.key)}:gone/{claim.owner}".encode()


def _kind(claim: Claim) -> str:
    return f"{claim.family}-{claim.limit}" if claim.limit else claim.family


def seat_of(lease: int, number: int) -> str:
    """Return the name of one of a session's seats below a record."""
    return f"{lease:016x}{number:04x}"


def claim_key(claim: Claim, seat: str) -> bytes:
    """Return the one key that this claim is."""
    return f"{claim.key}/{_kind(claim)}/{claim.mode.value}/{seat}".encode()


def below(text: str) -> tuple[bytes, bytes]:
    """Return the range of all keys below one; `0` is what follows `/`."""
    return f"{text}/".encode(), f"{text}0".encode()


def beginning_with(prefix: str) -> tuple[bytes, bytes]:
    """Return the range of all keys that begin so; no encoded key ends with the last character."""
    return prefix.encode(), f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}".encode()


class Contender(NamedTuple):
    """One key below a record, read back: somebody inside or waiting."""

    key: bytes
    kind: str
    mode: Mode
    path: tuple[str, ...]
    revision: int
    lease: int

    @property
    def limit(self) -> int:
        """How many may hold at once; 0 = no limit."""
        return int(self.kind.partition("-")[2] or 0)

    @property
    def family(self) -> Family:
        """What the record is used for."""
        return Family(self.kind.partition("-")[0])


def contender(kv: Any) -> Contender:
    """Read a key back."""
    _, _, _, kind, mode, _ = kv.key.decode().split("/")
    path = tuple(json.loads(kv.value)["path"]) if kind == Family.TREE else ()
    return Contender(kv.key, kind, Mode(mode), path, kv.create_revision, kv.lease)


# --- What is asked. ---


def look(key: bytes, end: bytes = b"", /, **options: Any) -> Any:
    """Return the operation that reads a key, or a range."""
    return m.RequestOp(request_range=m.RangeRequest(key=key, range_end=end, **options))


def put(key: bytes, value: bytes, lease: int = 0, **options: Any) -> Any:
    """Return the operation that writes a key."""
    request = m.PutRequest(key=key, value=value, lease=lease, **options)
    return m.RequestOp(request_put=request)


def delete(key: bytes) -> Any:
    """Return the operation that removes a key."""
    return m.RequestOp(request_delete_range=m.DeleteRangeRequest(key=key))


def reads(operations: Sequence[Any]) -> Any:
    """Return the transaction that only reads: it is answered without a write to the log."""
    return m.TxnRequest(success=operations)


def _absent(key: bytes, end: bytes = b"") -> Any:
    """Compare: there is no such key, or none in the range."""
    return m.Compare(target=CREATED, key=key, range_end=end)


def _created(key: bytes, revision: int) -> Any:
    """Compare: it is the key that was created then, not another of the same name."""
    return m.Compare(target=CREATED, key=key, create_revision=revision)


def _outside(claim: Claim, kind: str) -> tuple[Any, Any]:
    """Compare: nothing below the record but what is below `kind`."""
    (first, end), (inner, inner_end) = below(claim.key), below(f"{claim.key}/{kind}")
    return _absent(first, inner), _absent(inner_end, end)


def first_of(key: str, **options: Any) -> Any:
    """Return the operation that reads who came first of all who are there."""
    order = {"sort_order": ASCENDING, "sort_target": BY_CREATION, "limit": 1}
    return look(*below(key), **order, **options)


def value_of(claim: Claim, ttl: float | None = None, since: float | None = None) -> bytes:
    """Return what a claim's key says of it; times are always written in the same length."""
    terms = {
        "name": claim.name,
        "label": claim.label,
        "owner": claim.owner,
        "path": claim.path,
        "value": claim.value,
        "ttl": claim.ttl if ttl is None else ttl,
    }
    since = time.time() if since is None else since
    return f'{json.dumps(terms, ensure_ascii=False)[:-1]}, "since": {since:.6f}}}'.encode()


def claim_request(claim: Claim, seat: str, lease: int, since: float) -> Any:
    """Return the transaction that enters at once, or queues, or only looks (`read_refusal`)."""
    mine, gone = claim_key(claim, seat), gone_key(claim)
    write = put(mine, value_of(claim, since=since), lease)
    if claim.mode is Mode.SHARED and claim.family is Family.LOCK:  # other readers do no harm
        free = [*_outside(claim, f"{_kind(claim)}/S"), _absent(mine)]
    else:
        free = [_absent(*below(claim.key))]
    refusal = [look(mine, keys_only=True), look(gone, keys_only=True), first_of(claim.key)]
    if not claim.queue:
        otherwise = [*refusal, ahead_of(claim)]
    else:
        inner = m.TxnRequest(
            compare=[_absent(mine), _absent(gone), *_outside(claim, _kind(claim))],
            success=[write, first_of(claim.key), ahead_of(claim)],
            failure=refusal,
        )
        otherwise = [m.RequestOp(request_txn=inner)]
    return m.TxnRequest(compare=[*free, _absent(gone)], success=[write], failure=otherwise)


def join_request(claim: Claim, mine: bytes, lease: int, seen: int) -> Any:
    """Return the transaction that enters if nobody has come since revision `seen`."""
    first, end = below(claim.key)
    unchanged = m.Compare(
        result=LESS, target=MODIFIED, key=first, range_end=end, mod_revision=seen + 1
    )
    return m.TxnRequest(
        compare=[unchanged, _absent(gone_key(claim))],
        success=[put(mine, value_of(claim), lease)],
    )


class Departure(NamedTuple):
    """Who left, whom a claim had waited for: when, and under which lease it was."""

    revision: int
    lease: int


def look_request(
    claim: Claim, mine: bytes, revision: int, departure: Departure | None = None
) -> Any:
    """Return the transaction that shows where a claim of that revision stands now.

    And, of one who left, whether its session was still there then: else it did not leave by itself.
    """
    shown = [look(mine, keys_only=True), first_of(claim.key)]
    shown.append(ahead_of(claim, revision))
    if departure is not None:
        session = session_key(root_of(claim.key), departure.lease)
        shown.append(look(session, keys_only=True, revision=departure.revision))
    return reads(shown)


def ahead_of(claim: Claim, before: int = 0) -> Any:
    """Return the operation that reads whom a claim of revision `before`, or a new one, waits for.

    Who conflicts with everybody is kept out by whoever stands right before it, a reader by the last
    writer: the rest of a long queue need not be read.
    """
    options: dict[str, Any] = {"keys_only": claim.family is not Family.TREE}  # else for its path
    if before:
        options["max_create_revision"] = before - 1
    if claim.limit:
        kind = below(f"{claim.key}/{_kind(claim)}")
        return look(*kind, **options) if before else look(*kind, count_only=True)
    options |= {"sort_order": DESCENDING, "sort_target": BY_CREATION}
    if claim.family is Family.TREE:
        return look(*below(f"{claim.key}/{_kind(claim)}"), **options)
    mode = "" if claim.mode is Mode.EXCLUSIVE else "/X"
    return look(*below(f"{claim.key}/{_kind(claim)}{mode}"), limit=1 if before else 2, **options)


def release_request(mine: bytes, revision: int) -> Any:
    """Return the transaction that removes a claim if it is the one that was granted then."""
    return m.TxnRequest(compare=[_created(mine, revision)], success=[delete(mine)])


def withdraw_request(claim: Claim, mine: bytes, lease: int) -> Any:
    """Return the transaction that removes a claim and bars its late copies."""
    return reads([delete(mine), put(gone_key(claim), b"", lease)])


def linger_request(
    claim: Claim, mine: bytes, revision: int, session: int, lease: int, linger: float, *, bar: bool
) -> Any:
    """Return the transaction that leaves a claim, nobody's now, under a lease of its own (S31).

    It has done so before if the claim hangs on another lease than the session's. `bar`: late copies
    of the claim are to be refused when it is gone.
    """
    tomb = [put(gone_key(claim), b"", session)] if bar else []
    return m.TxnRequest(
        compare=[_created(mine, revision), m.Compare(target=LEASE, key=mine, lease=session)],
        success=[put(mine, value_of(claim, linger), lease), *tomb],
    )


def force_request(root: str, holder: Contender) -> Any:
    """Return the transaction that removes one holder, and tells its client."""
    session = session_key(root, holder.lease)
    tell = m.TxnRequest(
        compare=[m.Compare(result=3, target=CREATED, key=session)],
        success=[put(session, b"%d" % holder.revision, ignore_lease=True)],
    )
    return m.TxnRequest(
        compare=[_created(holder.key, holder.revision)],
        success=[delete(holder.key), m.RequestOp(request_txn=tell)],
    )


# --- What is answered. ---


class Wait(NamedTuple):
    """What one in the queue waits for: deletes in a range."""

    key: bytes
    end: bytes
    surplus: int  # how many deletes it takes until it is worth looking again
    position: int


def read_ahead(
    claim: Claim, mine: bytes, found: Any, *, before: int = 0, joined: bool = False
) -> Wait | None:
    """Return what a claim waits for by the answer to `ahead_of`; None = it is, or would be, inside.

    `joined`: it was put into the queue by the same transaction, so its own key was counted.
    """
    if claim.limit:
        at = len(found.kvs) if before else found.count - joined
        if at < claim.limit:
            return None
        ahead = at - claim.limit
        return Wait(*below(f"{claim.key}/{_kind(claim)}"), ahead + 1, ahead)
    earlier = sorted(
        (contender(kv) for kv in found.kvs if kv.key != mine), key=lambda one: one.revision
    )
    me = Contender(mine, "", claim.mode, claim.path, 0, 0)
    stands = standing([*earlier, me], len(earlier))
    if stands.inside:
        return None
    position = stands.position
    if claim.family is not Family.TREE and not before:  # only the last of them was read
        position = found.count - (joined and claim.mode is Mode.EXCLUSIVE) - 1
    return Wait(stands.blockers[-1].key, b"", 1, position)


def read_holder(found: Any) -> Holder | None:
    """Return who is in the way, by the answer to `first_of`.

    etcd tells a lease's rest only when asked for it: what is shown is all it can be.
    """
    for kv in found.kvs:
        terms = json.loads(kv.value)
        return Holder(terms["label"], kv.create_revision, terms["ttl"])
    return None


def refuse_mismatch(claim: Claim, found: Any) -> str:
    """Say why a claim does not fit who is there, by the answer to `first_of`; empty if it does."""
    for kv in found.kvs:
        first = contender(kv)
        if first.kind != _kind(claim):
            return mismatch(claim, first.family, first.limit)
    return ""


def read_snapshot(key: str, kvs: Iterable[Any]) -> Snapshot:
    """Return a record from all its keys."""
    name = decode(key.rpartition("/")[2])
    found = sorted(kvs, key=lambda kv: kv.create_revision)
    if not found:
        return Snapshot(name, None, 0, (), ())
    first = contender(found[0])
    inside, waiting = divide([_entry(kv) for kv in found], first.limit)
    return Snapshot(
        name,
        first.family,
        first.limit,
        tuple(inside),
        tuple(_without_token(entry) for entry in waiting),
    )


def _entry(kv: Any) -> Entry:
    one, terms = contender(kv), json.loads(kv.value)
    return Entry(
        name=terms["name"],
        token=one.revision,
        owner=terms["owner"],
        label=terms["label"],
        mode=one.mode,
        since=terms["since"],
        expires_in=terms["ttl"],
        value=terms["value"],
        path=one.path,
    )


def _without_token(entry: Entry) -> Entry:
    return replace(entry, token=None)


def by_record(kvs: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the keys of several records, sorted out."""
    found: dict[str, list[Any]] = {}
    for kv in kvs:
        record = "/".join(kv.key.decode().split("/", 3)[:3])
        found.setdefault(record, []).append(kv)
    return found
