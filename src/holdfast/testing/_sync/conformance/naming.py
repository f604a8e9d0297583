"""(Generated from _async/conformance/naming.py by tools/unasync.py: do not edit.) Names: whatever may be typed is a lock of its own, and what may not be is refused (S5)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

import holdfast

from .base import Base

HOSTILE = [
    *("a", "A", "a b", " a", "a ", "a/b", "a//b", "/a", "a/", "/", "//", "a\\b", ".", "..", "../a"),
    *("a%2Fb", "%", "%%", "%41", "%00", "%61", "a%", "a+b", "a&b=c", "a?b", "a#b", "a:b", "a;b"),
    *("'", '"', "a'b", "a''b", "'; DROP TABLE locks; --", '" OR 1=1 --', "`a`", "$a", "${a}", "$1"),
    *("{a}", "}{", "{", "}", "{a}b", "[a]", "(a)", "<a>", "*", "a*", "?", "a_b", "a-b", "~", "^a$"),
    *("é", "ß", "ǆ", "ﬁ", "İ", "ı", "日本語", "العربية", "😀", "👩‍👩‍👧‍👦", "a\u200bb", "a\u00a0b"),
    *("nil", "NULL", "None", "true", "0", "-1", "1e9", "KEYS[1]", "%s", "%(a)s", "{0}", "x" * 255),
    *("é" * 127, "😀" * 63),
]
REFUSED: list[Any] = [
    *("", "x" * 256, "é" * 128, "😀" * 64, "\x00", "a\x00b", "a\nb", "a\rb", "\t", "\x7f"),
    *("\x1b[0m", "a\x85b", "\ud800", "a\udfff"),
    *(None, 5, b"bytes", ["list"], ("tuple",), {"a": 1}),
]

# So that a test's id is plain text, whatever the name.
refused = pytest.mark.parametrize(
    "name", REFUSED, ids=[f"refused-{number}" for number in range(len(REFUSED))]
)


class NamingTests(Base):
    """Lock names and namespaces."""

    def test_every_name_is_a_lock_of_its_own(self) -> None:
        """All hostile names are held at once, each under its own name, and none is confused."""
        other = self.connect()
        leases = {}
        for name in HOSTILE:
            lease = self.client.lock(name).try_acquire()
            assert lease is not None, f"{name!r} is taken for another name"
            leases[name] = lease
        assert all(lease.name == name for name, lease in leases.items())
        listed = {shot.name for shot in self.client.locks()}
        assert listed == {unicodedata.normalize("NFC", name) for name in HOSTILE}
        for name, lease in leases.items():
            assert other.lock(name).try_acquire() is None
            snapshot = other.inspect(name)
            assert [entry.token for entry in snapshot.holders] == [lease.token]
        for lease in leases.values():
            assert lease.release() is True
        assert list(self.client.locks()) == []

    def test_prefix_is_taken_literally(self) -> None:
        """A prefix is text, not a pattern: `*`, `%` and `_` stand for themselves."""
        names = ["a*b", "a%b", "a_b", "a{b", "axb", "a[b"]
        leases = [self.take(self.client.lock(name)) for name in names]
        for name in names:
            found = [shot.name for shot in self.client.locks(name[:2])]
            assert found == [name]
        assert list(self.client.locks("*")) == []
        assert list(self.client.locks("a?")) == []
        for lease in leases:
            lease.release()

    def test_one_text_is_one_lock(self) -> None:
        """Composed and decomposed spellings of the same text are the same lock (NFC)."""
        composed, decomposed = "caf\u00e9", "cafe\u0301"
        lease = self.take(self.client.lock(composed))
        assert self.connect().lock(decomposed).try_acquire() is None
        assert (self.client.inspect(decomposed)).holders[0].token == lease.token
        assert [shot.name for shot in self.client.locks(decomposed)] == [composed]
        lease.release()

    @refused
    def test_bad_name_is_refused(self, name: Any) -> None:
        """Empty, too long, control characters, lone surrogates, not a string: InvalidName."""
        client = self.client
        makers: list[Callable[[], object]] = [
            lambda: client.lock(name),
            lambda: client.rwlock(name).read(),
            lambda: client.semaphore(name, 2),
            lambda: client.tree(name),
            lambda: client.election(name, "value"),
            lambda: client.singleton(name),
        ]
        for make in makers:
            with pytest.raises(holdfast.InvalidName) as caught:
                make()
            assert isinstance(caught.value, ValueError)
            assert str(caught.value).endswith(".")
        self.raises(holdfast.InvalidName, client.inspect, name)
        self.raises(holdfast.InvalidName, client.force_release, name)

    def test_namespaces_are_separate(self) -> None:
        """The same name in two namespaces is two locks; listings show only one's own."""
        other = self.connect(namespace=f"{self.namespace}2")
        mine = self.take(self.client.lock("x"))
        theirs = other.lock("x").try_acquire()
        assert theirs is not None
        only_there = self.take(other.lock("y"))
        assert [shot.name for shot in self.client.locks()] == ["x"]
        assert [shot.name for shot in other.locks()] == ["x", "y"]
        assert self.client.force_release("y") == 0
        assert other.force_release("x", mine.token) == (mine.token == theirs.token)
        assert mine.held
        for lease in (mine, theirs, only_there):
            lease.release()

    def test_hostile_namespaces_are_separate(self) -> None:
        """A namespace may contain what a name may, and none reaches into another."""
        spaces = [
            f"{self.namespace}{end}" for end in ("/", "/1", "/1/x", "%2F", "{", "*", " ", "é")
        ]
        leases = []
        for space in spaces:
            client = self.connect(namespace=space)
            lease = client.lock("x").try_acquire()
            assert lease is not None, f"{space!r} is taken for another namespace"
            assert [shot.name for shot in client.locks()] == ["x"]
            leases.append(lease)
        assert list(self.client.locks()) == []
        for lease in leases:
            lease.release()

    @refused
    def test_bad_namespace_is_refused(self, name: Any) -> None:
        """What cannot be a name cannot be a namespace."""
        with pytest.raises(holdfast.InvalidName):
            self.connect(namespace=name)
