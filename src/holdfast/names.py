"""One encoder of lock names for every engine (S5): whatever a user types becomes a safe key.

Rule 1: a name is NFC text of 1 to 255 UTF-8 bytes without control characters or surrogates.
Rule 2: every byte outside [A-Za-z0-9_-] is percent-encoded, so a key injects nothing anywhere and
        an encoded prefix is a prefix of the encoded name.
Rule 3: a record key is `<namespace>/<record version>/<encoded name>`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import sha256
from urllib.parse import unquote

from .errors import InvalidName

RECORD_VERSION = "1"
MAX_BYTES = 255

_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")
_SHOWN = 60


def _show(name: object) -> str:
    text = repr(name)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…'"


def _normal(name: str, what: str) -> bytes:
    """Return the checked NFC bytes of a name, or raise InvalidName in one sentence."""
    if not isinstance(name, str):
        raise InvalidName(f"A {what} must be a string, not {type(name).__name__}: {_show(name)}.")
    text = unicodedata.normalize("NFC", name)
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidName(
                f"The {what} {_show(name)} contains {_show(character)}: control characters and "
                "lone surrogates are not allowed, remove them.",
                name=name,
            )
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise InvalidName(
            f"The {what} {_show(name)} is {len(data)} bytes long in UTF-8; {MAX_BYTES} is the "
            "most: use an id or a hash instead of the whole text.",
            name=name,
        )
    return data


def encode(name: str, what: str = "lock name") -> str:
    """Encode a name; the result holds only [A-Za-z0-9_%-]."""
    if type(name) is not str:
        name = str(_normal(name, what), "utf-8")  # refuses what is no text, hashable or not
    return _encode(name, what)


@lru_cache(maxsize=4096)
def _encode(name: str, what: str) -> str:
    data = _normal(name, what)
    if not data:
        raise InvalidName(f"A {what} must not be empty.", name=name)
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], data).decode("ascii")


def encode_prefix(prefix: str) -> str:
    """Encode the beginning of a name; unlike a name it may be empty."""
    return encode(prefix) if prefix else ""


def decode(encoded: str) -> str:
    """Give back the text that was encoded."""
    return unquote(encoded, errors="strict")


def encode_path(path: str) -> tuple[str, ...]:
    """Split a tree path at `/` into encoded segments; the first one names the record (S4)."""
    encode(path, "tree path")  # the limit of 255 bytes is on the whole path
    segments = path.split("/")
    if "" in segments:
        raise InvalidName(
            f"The tree path {_show(path)} has an empty segment: write it as 'a/b/c', without "
            "a slash at either end.",
            name=path,
        )
    return tuple(encode(segment, "tree path segment") for segment in segments)


def shard(name: str, key: str, parts: int) -> str:
    """Return one of `parts` narrower names for a hot one: the same for a key on every machine.

    `shard("stock", "sku-4711", 16)` is one of `stock/0` … `stock/15`; writers of different keys
    then mostly do not wait for each other.
    """
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise ValueError(f"parts must be a whole number from 1 up, not {parts!r}.")
    digest = sha256(_normal(key, "key")).digest()
    return f"{name}/{int.from_bytes(digest[:8], 'big') % parts}"


def record_key(namespace: str, encoded: str) -> str:
    """Return the key of a record: namespace, record version, encoded name."""
    return f"{encode(namespace, 'namespace')}/{RECORD_VERSION}/{encoded}"
