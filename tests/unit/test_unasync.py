"""The committed twins are what tools/unasync.py makes, and its rules do what they say."""

from pathlib import Path

import pytest

from tools import unasync

SOURCE = '''"""Wait for a lock.

Second paragraph.
"""

from collections.abc import AsyncIterator


class AsyncWaiter:
    async def __aenter__(self) -> "AsyncWaiter":
        await self.ready()
        return self
'''

TWIN = '''"""(Generated from _async/waiter.py by tools/unasync.py: do not edit.) Wait for a lock.

Second paragraph.
"""

from collections.abc import Iterator


class Waiter:
    def __enter__(self) -> "Waiter":
        self.ready()
        return self
'''

# No example names a pair of _concurrency.py: that table follows the code, these rules do not.
LINES = [
    ("    async def acquire(self) -> None:", "    def acquire(self) -> None:"),
    ("async with a as x, b as y:", "with a as x, b as y:"),
    ("    async for leader in election.observe():", "    for leader in election.observe():"),
    ("found = [x async for x in y if await x.held()]", "found = [x for x in y if x.held()]"),
    ("return await self.engine.claim(claim)", "return self.engine.claim(claim)"),
    ("if not await a() and (await b()).held:", "if not a() and (b()).held:"),
    ("value = await (", "value = ("),
    # words that only look like the ones above
    ("awaited = self.awaiting", "awaited = self.awaiting"),
    ("x = is_async or async_definition", "x = is_async or async_definition"),
    ("def test_closes_async() -> None: ...", "def test_closes_async() -> None: ..."),
    ("self.enclosed = disclose", "self.enclosed = disclose"),
    # strings and comments change as well
    ('raise LockError("await lock.acquire() first")', 'raise LockError("lock.acquire() first")'),
    ("# The AsyncLease of `async with`.", "# The Lease of `with`."),
    ('SNIPPET = "await "', 'SNIPPET = ""'),
    # types
    ("def observe() -> AsyncIterator[Leader | None]:", "def observe() -> Iterator[Leader | None]:"),
    ("Callable[[Lease], Awaitable[None]]", "Callable[[Lease], None]"),
    ("Awaitable[dict[str, list[int]]] | None", "dict[str, list[int]] | None"),
    ("f: Awaitable[A[B]], g: Awaitable[C]", "f: A[B], g: C"),
    ("raise StopAsyncIteration from None", "raise StopIteration from None"),
    ("AbstractAsyncContextManager[AsyncLease]", "AbstractContextManager[Lease]"),
    ("class _AsyncInbox(AsyncThreadLock):", "class _Inbox(ThreadLock):"),
    # modules
    ("from holdfast._async.engine import AsyncEngine", "from holdfast._sync.engine import Engine"),
    ('path = "tests/_async/test_lock.py"', 'path = "tests/_sync/test_lock.py"'),
    ("import holdfast.aio as holdfast", "import holdfast"),
    # decorators
    ('@pytest.mark.parametrize("a", [AsyncLock])', '@pytest.mark.parametrize("a", [Lock])'),
]


def test_committed_twins_are_up_to_date() -> None:
    """Regenerating would change no file, make none and delete none."""
    found = unasync.compare()
    found.unused_rules.clear()
    findings = list(found.lines(unasync.ROOT, unasync.CHECKED))
    assert not findings, "run `make sync`:\n" + "\n".join(findings)


def test_no_rule_is_unused() -> None:
    """Each rule changes at least one line of the sources, so the tables describe them."""
    unused = unasync.compare().unused_rules
    assert not unused, "take these out of tools/unasync.py:\n" + "\n".join(unused)


def test_twins_keep_line_numbers() -> None:
    """A committed twin has as many lines as its source."""
    for tree in unasync.TREES:
        source_tree = unasync.ROOT / tree
        for source in source_tree.rglob("*.py"):
            twin = source_tree.with_name("_sync") / source.relative_to(source_tree)
            assert twin.exists(), f"run `make sync`: {twin} is missing"
            counts = [len(path.read_bytes().splitlines()) for path in (source, twin)]
            assert counts[0] == counts[1], f"run `make sync`: {twin}"


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_line(line: str, expected: str) -> None:
    """One line in, the same line in the other colour out."""
    assert unasync.convert_line(line) == expected


@pytest.mark.parametrize(("name", "expected"), unasync.NAMES.items())
def test_name_is_replaced_only_as_a_whole_word(name: str, expected: str) -> None:
    """A paired name changes where it stands alone, and inside a longer one it does not."""
    line = f"{name}(self.{name}, my{name}, {name}s)"
    assert unasync.convert_line(line) == f"{expected}(self.{expected}, my{name}, {name}s)"


def test_file() -> None:
    """The header joins the first line, and every other line stays where it was."""
    assert unasync.to_sync(SOURCE, "src/holdfast/_async/waiter.py") == TWIN


def test_header_of_a_one_line_docstring() -> None:
    """A module that only says its job still closes its docstring on the same line."""
    twin = unasync.to_sync('"""Engines."""\n', "tests/_async/engines/__init__.py")
    header = "(Generated from _async/engines/__init__.py by tools/unasync.py: do not edit.)"
    assert twin == f'"""{header} Engines."""\n'


@pytest.mark.parametrize("text", ["", "import re\n", "# comment\n", "'''Wrong quotes.'''\n"])
def test_source_without_docstring_is_refused(text: str) -> None:
    """The header has nowhere to go, so the tool says which file to mend."""
    with pytest.raises(unasync.SourceError, match=r"_async/x\.py"):
        unasync.to_sync(text, "_async/x.py")


def test_command_writes_checks_and_removes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check finds what write mends, write leaves right files alone and deletes stale ones."""
    source_tree, twin_tree = tmp_path / "tests/_async", tmp_path / "tests/_sync"
    for name in ("deep/waiter.py", "same.py"):
        (source_tree / name).parent.mkdir(parents=True, exist_ok=True)
        (source_tree / name).write_text(SOURCE)

    assert unasync.main(["--check"], tmp_path) == 1
    assert "missing: tests/_sync/deep/waiter.py" in capsys.readouterr().out
    assert not twin_tree.exists()

    assert unasync.main([], tmp_path) == 0
    assert "created: tests/_sync/same.py" in capsys.readouterr().out
    before = (twin_tree / "same.py").stat().st_mtime_ns

    (twin_tree / "stale.py").write_text("")
    (twin_tree / "deep/waiter.py").write_text("edited by hand")
    assert unasync.main(["--check"], tmp_path) == 1
    out = capsys.readouterr().out
    assert "stale: tests/_sync/stale.py" in out
    assert "differing: tests/_sync/deep/waiter.py" in out

    assert unasync.main([], tmp_path) == 0
    assert not (twin_tree / "stale.py").exists()
    assert (twin_tree / "deep/waiter.py").read_text().startswith('"""(Generated from _async/deep/')
    assert (twin_tree / "same.py").stat().st_mtime_ns == before


def test_check_fails_for_an_unused_rule_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right twins are not enough: with one rule too many the check is red, without it green."""
    source = tmp_path / "tests/_async/waiter.py"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    unused = unasync.unused_rules([SOURCE])
    needed = [rule for rule in unasync.RULES if rule[0].pattern not in unused]
    assert unused
    assert needed

    unasync.main([], tmp_path)
    assert unasync.main(["--check"], tmp_path) == 1
    assert f"unused rule: {unused[0]}" in capsys.readouterr().out
    monkeypatch.setattr(unasync, "RULES", needed)
    assert unasync.main(["--check"], tmp_path) == 0
