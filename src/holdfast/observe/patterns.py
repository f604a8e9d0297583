"""From a name to its pattern: orders/99999 is counted as orders/*, or labels would never end.

Rule 1: whatever the names are, there are at most `most` patterns, and one more for all the rest.
Rule 2: a rule of the user's that raises counts what it was asked for as the rest, and is reported
        once: no event is lost by it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import count

OTHER = "(other)"
MOST = 200

Rule = Callable[[str], str] | Sequence[str] | str

_SEGMENT = re.compile(r"[^/:.]+")
_NUMBERED = re.compile(r"([A-Za-z]+[-_])\d+")
_LONGEST = 40  # characters of a word that somebody has thought of

logger = logging.getLogger("holdfast")


def pattern_of(name: str) -> str:
    """Return the name with a star for every segment that looks like an id: number, UUID, hash.

    Segments end at a slash, colon or dot. One digit makes no id (`s3`, `oauth2`, `v1`), two do.
    """
    return _SEGMENT.sub(_star, name)


def _star(found: re.Match[str]) -> str:
    segment = found[0]
    numbered = _NUMBERED.fullmatch(segment)
    if numbered:
        return f"{numbered[1]}*"
    digits = sum(map(str.isdecimal, segment))
    is_id = digits > 1 or digits == len(segment) or len(segment) > _LONGEST or "@" in segment
    return "*" if is_id else segment


class Patterns:
    """Gives names their patterns by a rule, and no more patterns than allowed.

    The rule is a function, or globs that are tried in order before the rule that is built in.
    """

    def __init__(self, rule: Rule | None = None, most: int = MOST) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ValueError(f"most must be a whole number above 0, not {most!r}.")
        self._rule = _function(rule)
        self._most = most
        self._numbers = count()
        self._known: dict[str, int] = {}  # by number: those below `most` are let in
        self._reported = False

    def __call__(self, name: str) -> str:
        """Return the pattern of this name, or OTHER if there are too many."""
        try:
            pattern = self._rule(name)
            if not isinstance(pattern, str):
                raise TypeError(f"a pattern is a str, not {type(pattern).__name__}")
        except Exception:
            self._report(name)
            return OTHER
        number = self._known.get(pattern)
        if number is None:
            if len(self._known) >= self._most:
                return OTHER
            # A number is drawn once: of several threads that come here, `most` get in at most.
            number = self._known.setdefault(pattern, next(self._numbers))
        if number >= self._most:
            self._known.pop(pattern, None)
            return OTHER
        return pattern

    def _report(self, name: str) -> None:
        if not self._reported:
            self._reported = True
            logger.exception(
                "The pattern rule failed for %r, which counts as %s; it is not reported again.",
                name,
                OTHER,
            )


def _function(rule: Rule | None) -> Callable[[str], str]:
    if rule is None:
        return pattern_of
    if callable(rule):
        return rule
    globs = [rule] if isinstance(rule, str) else list(rule)
    if not all(isinstance(glob, str) for glob in globs):
        raise TypeError("A pattern rule is a function, or globs such as 'orders/*'.")

    def first_that_fits(name: str) -> str:
        return next((glob for glob in globs if fnmatchcase(name, glob)), "") or pattern_of(name)

    return first_that_fits
