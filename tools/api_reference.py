"""Write docs/api.md from the docstrings of the public names; --check only compares."""

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holdfast

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"

HEAD = """# API reference

Made from the docstrings by `tools/api_reference.py` (`make sync`): do not edit.

`holdfast.aio` has the same names; there, whatever talks to the engine is awaited: `acquire`,
`try_acquire`, `locked`, `release`, `extend`, `ensure_held`, `inspect`, `locks`, `force_release`,
`ping`, `close`, `campaign`, `leader`, `observe`, `run`, and `lost.wait()`.
"""

# The objects a user gets in hand, in the order they are met.
CLASSES = [
    "Client",
    "Lock",
    "RWLock",
    "Tree",
    "Group",
    "Election",
    "Lease",
    "LeaseGroup",
    "Guarantees",
    "Snapshot",
    "Entry",
    "Leader",
]
FUNCTIONS = ["connect", "current_lease", "shard", "release_on_sigterm"]
HIDDEN = {"confirmed", "unanswered", "shorten", "nest", "nested", "leaf", "left", "watch_loss"}
HIDDEN |= {"error", "order"}


def text(thing: Any) -> str:
    """Return a docstring as one block of text."""
    return inspect.getdoc(thing) or ""


def signature(thing: Any) -> str:
    """Return how to call it, without types that say nothing here."""
    plain = str(inspect.signature(thing)).replace("self, ", "").replace("(self)", "()")
    return plain.replace("'", "").split(" -> ")[0]


def members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties of a class with their texts."""
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in HIDDEN or not text(member):
            continue
        if isinstance(member, property):
            yield f"`{name}`", text(member)
        elif inspect.isfunction(member):
            yield f"`{name}{signature(member)}`", text(member)


def page() -> str:
    """Return the whole page."""
    parts = [HEAD, "## Functions\n"]
    for name in FUNCTIONS:
        thing = getattr(holdfast, name)
        parts.append(f"### `{name}{signature(thing)}`\n\n{text(thing)}\n")
    for name in CLASSES:
        kind = getattr(holdfast, name)
        parts.append(f"## {name}\n\n{text(kind)}\n")
        for title, words in members(kind):
            parts.append(f"### {title}\n\n{words}\n")
    parts.append("## Errors\n\n| error | when |\n|---|---|")
    for name in sorted(holdfast.__all__):
        thing = getattr(holdfast, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            base = ", ".join(one.__name__ for one in thing.__bases__)
            parts.append(f"| `{name}` ({base}) | {text(thing).splitlines()[0]} |")
    parts.append("\n## Events\n\n| event | fields | when |\n|---|---|---|")
    for name, thing in inspect.getmembers(holdfast.events, inspect.isclass):
        if issubclass(thing, holdfast.events.Event):
            fields = ", ".join(thing.__dataclass_fields__)
            parts.append(f"| `{name}` | {fields} | {text(thing).splitlines()[0]} |")
    return "\n".join(parts) + "\n"


def main() -> int:
    """Write the page, or say that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
            print("docs/api.md does not say what the docstrings say: run make sync")
            return 1
        return 0
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
