"""(Generated from _async/conformance/tree.py by tools/unasync.py: do not edit.) A node of a tree and all below it: who conflicts with whom, by whole segments (S4)."""

from __future__ import annotations

import pytest

import holdfast

from .base import Base

CONFLICTS = [
    ("write a", "write a"),
    ("write a/b", "write a/b"),
    ("write a/b", "write a/b/c"),
    ("write a/b", "read a/b/c/d"),
    ("write a/b", "read a"),
    ("write a/b", "write a"),
    ("write a", "read a/b"),
    ("read a", "write a/b/c"),
    ("read a/b/c", "write a"),
    ("write a/é b%", "read a/é b%/c"),
]
NO_CONFLICT = [
    ("write a/b", "write a/bc"),
    ("write a/bc", "write a/b"),
    ("write a/b", "write a/c"),
    ("write a/b/c", "write a/b/d"),
    ("write a/b", "write ab"),
    ("write a", "write b"),
    ("read a", "read a/b"),
    ("read a/b", "read a"),
    ("read a/b", "write a/c"),
    ("write a/B", "write a/b"),
]


class TreeTests(Base):
    """tree, from two clients."""

    def node(self, client: holdfast.Client, text: str) -> holdfast.Lock:
        """Return the lock that "read a/b" or "write a/b" describes."""
        mode, path = text.split(" ", 1)
        tree = client.tree(path)
        return tree.read() if mode == "read" else tree.write()

    @pytest.mark.parametrize(("held", "wanted"), CONFLICTS)
    def test_overlap_is_excluded(self, held: str, wanted: str) -> None:
        """Where one path is a prefix of the other and one writes, the later one waits."""
        other = self.connect()
        lease = self.take(self.node(self.client, held))
        lock = self.node(other, wanted)
        assert lock.locked()
        assert lock.try_acquire() is None
        lease.release()
        (self.take(lock)).release()

    @pytest.mark.parametrize(("held", "wanted"), NO_CONFLICT)
    def test_the_rest_goes_on_in_parallel(self, held: str, wanted: str) -> None:
        """Siblings, other trees, and readers of any overlap hold at the same time."""
        other = self.connect()
        lease = self.take(self.node(self.client, held))
        lock = self.node(other, wanted)
        assert not lock.locked()
        second = lock.try_acquire()
        assert second is not None
        assert lease.held
        assert second.held
        second.release()
        lease.release()

    def test_waiting_for_the_root_holds_back_what_is_below(self) -> None:
        """A waiting writer of the root is not overtaken by later claims below it."""
        if not self.promises("fair"):
            return
        other = self.connect()
        leaf = self.take(self.node(self.client, "write a/b"))
        root = self.queue(other, self.node(other, "write a"))
        assert self.node(self.client, "read a/c").try_acquire() is None
        assert not root.done
        leaf.release()
        (root.result()).release()
        (self.take(self.node(self.client, "read a/c"))).release()

    def test_waiting_for_a_branch_holds_back_only_that_branch(self) -> None:
        """While a branch is waited for, its siblings come and go."""
        other = self.connect()
        held = self.take(self.node(self.client, "write a/b"))
        waiter = self.queue(other, self.node(other, "write a/b/c"))
        sibling = self.node(self.client, "write a/d").try_acquire()
        assert sibling is not None
        sibling.release()
        assert not waiter.done
        held.release()
        (waiter.result()).release()

    def test_one_sequence_of_tokens_per_tree(self) -> None:
        """Tokens of `a`, of `a/b` and of `a/c` can be compared: each new one is larger."""
        tokens = []
        for text in ("write a", "write a/b", "read a/c", "write a", "read a/b/c", "write a/b"):
            lease = self.take(self.node(self.client, text))
            tokens.append(lease.token)
            lease.release()
        assert tokens == sorted(set(tokens))

    def test_inspect_shows_the_whole_tree(self) -> None:
        """Under its first segment a tree shows every holder with the path it asked for."""
        leases = [
            self.take(self.node(self.client, text)) for text in ("read a/b", "write a/c")
        ]
        snapshot = self.client.inspect("a")
        assert snapshot.kind == "tree"
        assert {(one.name, one.path) for one in snapshot.holders} == {
            ("a/b", ("b",)),
            ("a/c", ("c",)),
        }
        for lease in leases:
            lease.release()

    @pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", "a/\x00", "a/" + "b" * 255])
    def test_bad_path_is_refused(self, path: str) -> None:
        """An empty segment, a control character or too long a path raises InvalidName."""
        with pytest.raises(holdfast.InvalidName):
            self.client.tree(path)
