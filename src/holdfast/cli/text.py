"""Text that is safe and good to read: names and labels are written by strangers."""

from __future__ import annotations

import unicodedata

# Joiners inside words and emoji are harmless; every other format character can hide or reorder.
_HARMLESS_FORMAT = "\u200c\u200d"
_DANGEROUS = ("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn")


def safe(text: str) -> str:
    """Return the text with everything escaped that a terminal could take for a command.

    Control and escape characters (C0, C1), line separators, lone surrogates, and marks that turn
    the direction of writing around become `\\x1b`-like escapes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if unicodedata.category(character) not in _DANGEROUS or character in _HARMLESS_FORMAT
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in text
    )


def duration(seconds: float) -> str:
    """Return a time span in the two units that matter: `3.2 s`, `4 min 10 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {name}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def count(number: int, what: str) -> str:
    """Return `1 holder`, `2 holders`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
