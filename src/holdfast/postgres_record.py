"""Lock records in PostgreSQL from our side: how they are made, asked for and read back.

The tables, and the rules that move them, are in scripts/postgres.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from .model import Claim, Entry, Family, Holder, Mode, Snapshot
from .names import decode
from .postgres_link import Rows, Statement, Word

VERSION = "holdfast 1"  # of tables and functions together, as the table's comment says it
MICROS = 1_000_000
TOMBSTONE = b"300000000"  # microseconds
TERMS = 9  # fields of a claim that are its terms
NOBODY = 0  # the client that listens to nothing
PARTS = (
    *("schema", "record", "queue", "fold"),
    *("claim", "renew", "release", "force", "look", "transaction"),
)
CREATION = 7233174049331164  # the advisory lock of whoever makes the tables

_SCHEMA = re.compile(r"\bholdfast\.|(?<=SCHEMA IF NOT EXISTS )holdfast\b")


class TransactionLock(NamedTuple):
    """What a transaction holds until it ends; guards take it as they take a lease."""

    name: str
    token: int
    domain: str
    mode: Mode = Mode.EXCLUSIVE


@dataclass(frozen=True, slots=True)
class Statements:
    """What a client asks; each is one statement, and so one transaction."""

    schema: str
    greet: Statement
    claim: Statement
    renew: Statement
    release: Statement
    force: Statement
    look: Statement


@lru_cache(maxsize=16)
def statements(schema: str) -> Statements:
    """Return the statements for tables in that schema."""
    inside = quoted(schema)

    def call(name: str, count: int) -> Statement:
        words = ", ".join(f"${number}" for number in range(1, count + 1))
        text = f"SELECT * FROM {inside}.{name}({words})"
        return Statement(f"holdfast.{name}".encode(), text.encode())

    greet = (
        "SELECT pg_backend_pid(), (date_part('epoch', clock_timestamp()) * 1000000)::bigint, "
        "pg_is_in_recovery(), obj_description(to_regclass($1), 'pg_class')"
    )
    return Statements(
        schema=schema,
        greet=Statement(b"holdfast.greet", greet.encode()),
        claim=call("claim", 11),
        renew=call("renew", 5),
        release=call("release", 4),
        force=call("force", 2),
        look=call("look", 2),
    )


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def check_schema(schema: str) -> str:
    """Return the name of a schema, or raise one clear sentence."""
    if not isinstance(schema, str) or not schema or "\0" in schema or len(schema.encode()) > 63:
        raise ValueError(f"schema must be a name of 1 to 63 bytes, not {schema!r}.")
    return schema


def creation(schema: str) -> str:
    """Return the script that makes tables and functions, harmless where they are: one transaction.

    Whoever comes second waits for the first.
    """
    folder = files(__package__) / "scripts" / "postgres"
    inside = quoted(schema)
    text = "\n".join((folder / f"{part}.sql").read_text("utf-8") for part in PARTS)
    text = _SCHEMA.sub(lambda found: inside + ("." if found[0].endswith(".") else ""), text)
    return (
        f"SET LOCAL client_min_messages = warning;\nSELECT pg_advisory_xact_lock({CREATION});\n"
        f"{text}\nCOMMENT ON TABLE {inside}.record IS '{VERSION}';"
    )


# --- What is sent. ---


def micros(seconds: float) -> int:
    """Return whole microseconds."""
    return round(seconds * MICROS)


def number(value: int) -> bytes:
    """Return a number as the server reads it."""
    return b"%d" % value


def path_text(path: tuple[str, ...]) -> str:
    """Return a path in one word; each segment ends with a slash."""
    return "".join(f"{segment}/" for segment in path)


def claim_words(claim: Claim, client: int) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return what `holdfast.claim` is told before and after the owner, the same for all claims."""
    rest = json.dumps([claim.name, claim.label, claim.value], separators=(",", ":"))
    return (claim.key.encode(),), (
        claim.family.value.encode(),
        number(claim.limit),
        claim.mode.value.encode(),
        path_text(claim.path).encode(),
        number(micros(claim.ttl)),
        number(client),
        rest.encode(),
    )


def renewal_words(claims: Sequence[Claim], client: int) -> tuple[Word, ...]:
    """Return what `holdfast.renew` is told: arrays of words without commas, braces or quotes."""
    return (
        _array([claim.key for claim in claims]),
        _array([claim.owner for claim in claims]),
        _array([str(claim.revision) for claim in claims]),
        _array([str(micros(claim.ttl)) for claim in claims]),
        number(client),
    )


def _array(words: Sequence[str]) -> bytes:
    return ("{" + ",".join(words) + "}").encode()


# --- What comes back. ---


def whole(word: Word) -> int:
    """Return a number from an answer, which must be there."""
    assert word is not None
    return int(word)


def read_holder(at: int, token: Word, expires: Word, rest: Word) -> Holder | None:
    """Return who is in the way, from a busy answer; None for a transaction."""
    if expires is None or rest is None:
        return None
    return Holder(_label(rest), whole(token), (int(expires) - at) / MICROS)


@lru_cache(maxsize=256)
def _label(rest: bytes) -> str:
    return str(json.loads(rest)[1])


def read_renewals(word: Word) -> list[int]:
    """Return the answers to renewals."""
    return [int(one) for one in (word or b"{}")[1:-1].split(b",") if one]


def read_snapshots(rows: Rows) -> list[Snapshot]:
    """Return records as `inspect` shows them, in the order of their keys."""
    rows.sort(key=lambda row: row[2] or b"")  # stable: holders, then waiters in their order
    found = []
    for key, entries in groupby(rows, key=lambda row: row[2] or b""):
        shown = [(row, _entry(row)) for row in entries]
        _, _, _, family, bound, *_ = shown[0][0]
        found.append(
            Snapshot(
                decode(key.decode().rsplit("/", 1)[-1]),
                Family((family or b"").decode()),
                whole(bound),
                tuple(entry for row, entry in shown if row[1] != b"W"),
                tuple(entry for row, entry in shown if row[1] == b"W"),
            )
        )
    return found


def nothing(key: str) -> Snapshot:
    """Return the snapshot of a record that nobody uses."""
    return Snapshot(decode(key.rsplit("/", 1)[-1]), None, 0, (), ())


def _entry(row: Sequence[Word]) -> Entry:
    at, _, key, _, _, owner, token, mode, path, since, expires, rest = row
    name, label, value = json.loads(rest or b'["","",""]')
    return Entry(
        name=name or decode((key or b"").decode().rsplit("/", 1)[-1]),
        token=None if token is None else int(token),
        owner=(owner or b"").decode(),
        label=label,
        mode=Mode((mode or b"X").decode()),
        since=whole(since) / MICROS,
        expires_in=float("inf") if expires is None else (int(expires) - whole(at)) / MICROS,
        value=value,
        path=tuple((path or b"").decode().split("/")[:-1]),
    )
