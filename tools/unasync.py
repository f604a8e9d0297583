"""Generate the blocking twin of every awaitable source tree, line by line.

1. The twin has the same number of lines as its source, in the same places: a traceback in
   either colour points at the same line.
2. What changes is in the two tables below and nowhere else. Comments and strings change too,
   so that they read right.
3. A rule that matches nothing is an error: the tables describe the sources as they are.
4. A twin is never edited. Without argument this writes all twins; --check only compares.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Where the sources are; the twin of a/_async is a/_sync.
TREES = ("src/holdfast/_async", "src/holdfast/testing/_async", "tests/_async")

# Paired names: the left one exists for coroutines, the right one does the same for threads.
NAMES = {
    # the language
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    # holdfast/_concurrency, holdfast/redis_link
    "acheck_function": "check_function",
    "afan_out": "fan_out",
    "ajoin": "join",
    "ashield": "shield",
    "asleep": "sleep",
    "current_task_key": "current_thread_key",
    # holdfast/postgres_link
    "adrive": "drive",
    "aresolve": "resolve",
    # holdfast/guards/sql_colours
    "acheck_connection": "check_connection",
    "aclose_connection": "close_connection",
    "aopen_cursor": "open_cursor",
}

# What stands between a pair of brackets, up to two pairs deep: dict[str, list[int]].
INSIDE = r"((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)"

# Patterns and what replaces them, in this order, before the names.
PATTERNS = {
    r"\basync def\b": "def",
    r"\basync with\b": "with",
    r"\basync for\b": "for",
    r"\bawait +": "",
    rf"\bAwaitable\[{INSIDE}\]": r"\1",
    # AsyncClient, _AsyncInbox, AsyncIterator, AbstractAsyncContextManager, StopAsyncIteration
    r"Async(?=[A-Z])": "",
    r"\b_async\b": "_sync",
    r"\bimport holdfast\.aio as holdfast\b": "import holdfast",
}

RULES = [(re.compile(pattern), new) for pattern, new in PATTERNS.items()] + [
    (re.compile(rf"\b{name}\b"), new) for name, new in NAMES.items()
]

CHECKED = ("differing", "missing", "stale")
WRITTEN = ("updated", "created", "removed")

DOCSTRING = '"""'
HEADER = '"""(Generated from {path} by tools/unasync.py: do not edit.) '


class SourceError(Exception):
    """Say which source file cannot have a twin, and why."""


@dataclass
class Difference:
    """What a tree of twins lacks, has too much of, or has wrong; and the rules nobody needs."""

    contents: dict[Path, str] = field(default_factory=dict)
    differing: list[Path] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    unused_rules: list[str] = field(default_factory=list)

    def lines(self, root: Path, words: Sequence[str]) -> Iterator[str]:
        """Yield one line per finding; `words` are for a differing, a missing and a stale twin."""
        for word, twins in zip(words, (self.differing, self.missing, self.stale), strict=True):
            for twin in twins:
                yield f"{word}: {twin.relative_to(root).as_posix()}"
        for rule in self.unused_rules:
            yield f"unused rule: {rule}"


def convert_line(line: str) -> str:
    """Return one line in the other colour."""
    for pattern, new in RULES:
        line = pattern.sub(new, line)
    return line


def to_sync(text: str, path: str) -> str:
    """Return the twin of a source file.

    `path` is the source's own, with forward slashes; the header shows it from `_async/` on.
    """
    if not text.startswith(DOCSTRING):
        raise SourceError(f"{path}: must start with a docstring: it takes the twin's header")
    first, *rest = (convert_line(line) for line in text.split("\n"))
    source = path[max(path.find("_async/"), 0) :]
    first = HEADER.format(path=source) + first.removeprefix(DOCSTRING)
    return "\n".join([first.rstrip(), *rest])


def unused_rules(texts: Iterable[str]) -> list[str]:
    """Return the patterns that change nothing in any of these sources."""
    waiting = dict.fromkeys(range(len(RULES)))
    for text in texts:
        for line in text.split("\n"):
            for number, (pattern, new) in enumerate(RULES):
                line, count = pattern.subn(new, line)
                if count:
                    waiting.pop(number, None)
    return [RULES[number][0].pattern for number in waiting]


def compare(root: Path = ROOT) -> Difference:
    """Compare all twins below `root` with what they should be."""
    found = Difference()
    texts: list[str] = []
    for tree in TREES:
        source_tree = root / tree
        twin_tree = source_tree.with_name("_sync")
        for source in sorted(source_tree.rglob("*.py")):
            texts.append(source.read_text(encoding="utf-8"))
            twin = twin_tree / source.relative_to(source_tree)
            found.contents[twin] = to_sync(texts[-1], source.relative_to(root).as_posix())
        for twin in sorted(twin_tree.rglob("*.py")):
            if twin not in found.contents:
                found.stale.append(twin)
    for twin, content in found.contents.items():
        if not twin.exists():
            found.missing.append(twin)
        elif twin.read_text(encoding="utf-8") != content:
            found.differing.append(twin)
    found.unused_rules = unused_rules(texts)
    return found


def write(found: Difference) -> None:
    """Bring the twins up to date. One that is right already keeps its modification time."""
    for twin in found.missing + found.differing:
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(found.contents[twin], encoding="utf-8", newline="\n")
    for twin in found.stale:
        twin.unlink()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description="Generate the _sync trees from the _async ones.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if in need")
    check = parser.parse_args(arguments).check
    try:
        found = compare(root)
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    if not check:
        write(found)
        print("\n".join(found.lines(root, WRITTEN)) or "twins: nothing to do")
        return 0
    findings = list(found.lines(root, CHECKED))
    print("\n".join(findings) or "twins: up to date")
    if findings:
        print("remedy: `make sync`; take an unused rule out of tools/unasync.py", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
