"""What a guard keeps with the data of a resource, as one short text: pure, the same everywhere.

Rule 1: tokens are written as strings of digits: a number above 2**53 is a double to many readers.
Rule 2: the text is ASCII and one line, so that a header, a column or a JSON field can carry it.
Rule 3: what cannot be read is never taken for "nothing seen yet".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, NamedTuple

from ..errors import InProgress, LockError, NotSupported
from ..fencing import MOST, Fence, Floors, check_domain, check_resource, judge

FORMAT = 1


class Mark(NamedTuple):
    """Who is at work on a key of `once`: the token it came with, and which transaction it is."""

    token: int
    owner: str


class State(NamedTuple):
    """The floors of a resource, who wrote it last, and the keys of `once`."""

    floors: Floors | None = None  # None: nobody has come yet
    writes: int = 0  # how often the data was written
    writer: str = ""  # the transaction that wrote it last
    running: Mapping[str, Mark] = {}
    done: Mapping[str, Any] = {}  # the results

    def admit(self, resource: str, fence: Fence) -> State:
        """Return it with this fence recorded; StaleToken or DomainMismatch if it must not in."""
        return self._replace(floors=judge(resource, self.floors, fence))

    def claim(self, resource: str, key: str, mark: Mark) -> State:
        """Return it with the key marked as running; InProgress if another is at work on it.

        A newer token takes over what an older one left running: whoever left it can store nothing
        any more. With the same token that is not so, and nobody knows whether the other lives.
        """
        other = self.running.get(key, mark)
        if other.token == mark.token and other.owner != mark.owner:
            raise InProgress(
                f"Another caller with your token {mark.token} is at work on {key!r} of "
                f"{resource!r}: ask again for its result. If it has died, take the lock again: a "
                "newer token takes over.",
                name=resource,
            )
        return self._replace(running={**self.running, key: mark})

    def free(self, keys: Iterable[str], owner: str) -> State:
        """Return it without the marks that this transaction has set on these keys."""
        keys = set(keys)
        left = {
            key: mark
            for key, mark in self.running.items()
            if key not in keys or mark.owner != owner
        }
        return self if len(left) == len(self.running) else self._replace(running=left)

    def finish(self, results: Mapping[str, Any], owner: str) -> State:
        """Return it with these keys done."""
        freed = self.free(results, owner)
        return freed._replace(done={**freed.done, **results}) if results else freed

    def wrote(self, owner: str) -> State:
        """Return it after the data was written by this transaction."""
        return self._replace(writes=self.writes + 1, writer=owner)

    def move(self, domain: str) -> State:
        """Return it with floors at 0 in another domain, and nobody at work."""
        return self._replace(floors=Floors(domain), running={})


def dump(state: State) -> str:
    """Return the text that stands for a state."""
    floors = state.floors
    values = {
        "format": FORMAT,
        "domain": floors and floors.domain,
        "exclusive": str(floors.exclusive if floors else 0),
        "shared": str(floors.shared if floors else 0),
        "writes": state.writes,
        "writer": state.writer,
        "running": {key: [str(mark.token), mark.owner] for key, mark in state.running.items()},
        "done": state.done,
    }
    return json.dumps({key: value for key, value in values.items() if value not in ({}, None)})


def parse(resource: str, text: str | None) -> State:
    """Return the state that a text stands for; None is a resource that nobody has touched."""
    if text is None:
        return State()
    try:
        values = json.loads(text)
        if values["format"] != FORMAT:
            raise NotSupported(
                f"The fence of {resource!r} has format {values['format']!r}, and this version of "
                f"holdfast knows {FORMAT}: nothing was touched. Upgrade holdfast here.",
                name=resource,
            )
        return _read(values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LockError(
            f"The fence of {resource!r} cannot be read ({error!r}), and without it nobody knows "
            "which tokens are old: nothing was touched. Restore it, or delete it while nobody "
            "holds the lock.",
            name=resource,
        ) from None


def _read(values: Mapping[str, Any]) -> State:
    floors = None
    if "domain" in values:
        floors = Floors(
            check_domain(values["domain"]), _floor(values["exclusive"]), _floor(values["shared"])
        )
    return State(
        floors,
        index(values["writes"]),
        str(values["writer"]),
        {key: Mark(_floor(token), owner) for key, (token, owner) in _items(values, "running")},
        dict(_items(values, "done")),
    )


def _items(values: Mapping[str, Any], name: str) -> Any:
    return values.get(name, {}).items()


def _floor(text: str) -> int:
    """Return a floor that was written out: as a token, or 0."""
    if not (text.isascii() and text.isdecimal() and int(text) <= MOST):
        raise ValueError(f"{text[:40]!r} is no token")
    return int(text)


def check_key(key: Any) -> str:
    """Return the key of `once` if it can be one: what names a resource can name a key."""
    if not isinstance(key, str):
        raise TypeError(f"A key of once() is a str, not {type(key).__name__}.")
    return check_resource(key)


def plain_result(key: str, result: Any) -> Any:
    """Return the result as every later caller will get it: what JSON makes of it."""
    try:
        return json.loads(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The result of {key!r} cannot be stored as JSON ({error}), so nothing was stored: "
            "return plain values."
        ) from None
