"""A Redis record from our side: its keys, how a claim is written into it, how it is read back.

The layout, and the rules that move it, are in scripts/redis/record.lua.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

from .model import Claim, Entry, Family, Holder, Mode, Snapshot
from .names import decode
from .redis_link import Reply, Script, Template, packed_word

NO_PATH = "."
MICROS = 1_000_000
LONGEST_TTL = 86_400.0  # what a record outlives its last token by, at least (S19)
TERMS = 9  # fields of a claim that are its terms


def check_rules(max_ttl: float, on_clock_step: str) -> None:
    """Refuse options that no Redis engine can keep, in one sentence."""
    if on_clock_step not in ("tell", "block"):
        raise ValueError(f"on_clock_step must be 'tell' or 'block', not {on_clock_step!r}.")
    if not 0 < max_ttl <= LONGEST_TTL:
        raise ValueError(f"max_ttl must be at most {LONGEST_TTL:g} s on Redis, not {max_ttl:g}.")


def load_script(name: str, queue: str = "granting") -> Script:
    """Return a script: the clock, the verb's shortcut, the record, its queue, the verb itself."""
    folder = files(__package__) / "scripts" / "redis"
    names = (f"{name}_sure", "clock", f"{name}_alone", "record", queue, name)
    parts = [folder / f"{part}.lua" for part in names]
    return Script(name, "\n".join(part.read_text("utf-8") for part in parts if part.is_file()))


def micros(seconds: float) -> int:
    """Return whole microseconds."""
    return round(seconds * MICROS)


def keys_of(key: str) -> tuple[str, str]:
    """Return the keys of a record and of its queue: one hash tag, so one slot."""
    return f"{{{key}}}", f"{{{key}}}:q"


def scan_pattern(prefix: str) -> str:
    """Return the pattern of record keys that start with `prefix`, which has no wildcards (S5)."""
    return f"{{{prefix}*}}"


def key_in(found: bytes) -> str:
    """Return the key inside a record's key."""
    return found[1:-1].decode()


def path_text(path: tuple[str, ...]) -> str:
    """Return a path in one word."""
    return "/".join(path) or NO_PATH


def claim_text(claim: Claim, channel: str) -> str:
    """Return what a record keeps of a claim besides its owner and TTL."""
    rest = json.dumps([claim.name, claim.label, claim.value], separators=(",", ":"))
    return f"{claim.mode.value} {channel} {path_text(claim.path)} {rest}"


def claim_words(claim: Claim, text: str, mode: str, path: str) -> tuple[str, str]:
    """Return the summary (`m`) of a record that only this claim holds, and TTL and text of it."""
    counts = "0 0 1 0" if path != NO_PATH else "1 1 0 0" if mode == "X" else "1 0 0 0"
    return f"{claim.family.value} {claim.limit} 0 1 {counts}", f"{micros(claim.ttl)} {text}"


class Releases:
    """Releases of the same terms: with a word less if the holder still relies on its lock."""

    __slots__ = ("_sure", "_usual")

    def __init__(self, script: Script, keys: tuple[str, str], words: tuple[str, str]) -> None:
        self._usual = Template(script, 2, 2, *keys, *words)
        self._sure = Template(script, 1, 2, *keys, *words)

    def of(self, owner: str, linger: float, sure: bool) -> tuple[Template, bytes]:
        """Return one of them and its last words: owner, and linger unless it is `sure`."""
        if sure and not linger:
            return self._sure, packed_word(owner)
        return self._usual, packed_word(owner) + packed_word(str(micros(linger)))


def granted(answer: Reply) -> bool:
    """Say whether a claim or a vote was granted: the time alone says so, a list may."""
    return type(answer) is int or (type(answer) is list and answer[0] == b"granted")


def time_in(answer: Reply, at: int) -> int:
    """Return the server's time: the whole of an answer, or the part of a list at `at`."""
    return answer if type(answer) is int else answer[at]


def read_holder(now: int, token: bytes, expires: bytes, rest: bytes) -> Holder:
    """Return who is in the way, from a busy answer."""
    return Holder(_label(rest), int(token), (int(expires) - now) / MICROS)


@lru_cache(maxsize=256)
def _label(rest: bytes) -> str:
    return str(json.loads(rest)[1])


def read_snapshot(key: str, now: int, shown: Reply) -> Snapshot:
    """Return a record as `inspect` shows it."""
    kind, limit, holders, waiters = shown
    name = decode(key.rsplit("/", 1)[-1])
    if not kind:
        return Snapshot(name, None, 0, (), ())
    inside = [_holder(now, holders[at], holders[at + 1]) for at in range(0, len(holders), 2)]
    inside.sort(key=lambda entry: entry.token or 0)
    outside = [_waiter(waiters[at], waiters[at + 1]) for at in range(0, len(waiters), 2)]
    return Snapshot(name, Family(kind.decode()), int(limit), tuple(inside), tuple(outside))


def _holder(now: int, owner: bytes, text: bytes) -> Entry:
    token, start, since, _, _, ttl, mode, _, path, rest = text.decode().split(" ", 9)
    left = (int(start) + int(ttl) - now) / MICROS
    return _entry(owner.decode(), int(token), int(since), left, mode, path, rest)


def _waiter(text: bytes, score: bytes) -> Entry:
    owner, _, mode, _, path, rest = text.decode().split(" ", 5)
    return _entry(owner, None, int(float(score)), float("inf"), mode, path, rest)


def _entry(
    owner: str, token: int | None, since: int, left: float, mode: str, path: str, rest: str
) -> Entry:
    name, label, value = json.loads(rest)
    return Entry(
        name=name,
        token=token,
        owner=owner,
        label=label,
        mode=Mode(mode),
        since=since / MICROS,
        expires_in=left,
        value=value,
        path=() if path == NO_PATH else tuple(path.split("/")),
    )
