"""A node of a tree and all below it: who conflicts with whom, by whole segments (S4)."""

from __future__ import annotations

import pytest

import holdfast.aio as holdfast

from .base import AsyncBase

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


class AsyncTreeTests(AsyncBase):
    """tree, from two clients."""

    def node(self, client: holdfast.Client, text: str) -> holdfast.Lock:
        """Return the lock that "read a/b" or "write a/b" describes."""
        mode, path = text.split(" ", 1)
        tree = client.tree(path)
        return tree.read() if mode == "read" else tree.write()

    @pytest.mark.parametrize(("held", "wanted"), CONFLICTS)
    async def test_overlap_is_excluded(self, held: str, wanted: str) -> None:
        """Where one path is a prefix of the other and one writes, the later one waits."""
        other = self.connect()
        lease = await self.take(self.node(self.client, held))
        lock = self.node(other, wanted)
        assert await lock.locked()
        assert await lock.try_acquire() is None
        await lease.release()
        await (await self.take(lock)).release()

    @pytest.mark.parametrize(("held", "wanted"), NO_CONFLICT)
    async def test_the_rest_goes_on_in_parallel(self, held: str, wanted: str) -> None:
        """Siblings, other trees, and readers of any overlap hold at the same time."""
        other = self.connect()
        lease = await self.take(self.node(self.client, held))
        lock = self.node(other, wanted)
        assert not await lock.locked()
        second = await lock.try_acquire()
        assert second is not None
        assert lease.held
        assert second.held
        await second.release()
        await lease.release()

    async def test_waiting_for_the_root_holds_back_what_is_below(self) -> None:
        """A waiting writer of the root is not overtaken by later claims below it."""
        if not self.promises("fair"):
            return
        other = self.connect()
        leaf = await self.take(self.node(self.client, "write a/b"))
        root = await self.queue(other, self.node(other, "write a"))
        assert await self.node(self.client, "read a/c").try_acquire() is None
        assert not root.done
        await leaf.release()
        await (await root.result()).release()
        await (await self.take(self.node(self.client, "read a/c"))).release()

    async def test_waiting_for_a_branch_holds_back_only_that_branch(self) -> None:
        """While a branch is waited for, its siblings come and go."""
        other = self.connect()
        held = await self.take(self.node(self.client, "write a/b"))
        waiter = await self.queue(other, self.node(other, "write a/b/c"))
        sibling = await self.node(self.client, "write a/d").try_acquire()
        assert sibling is not None
        await sibling.release()
        assert not waiter.done
        await held.release()
        await (await waiter.result()).release()

    async def test_one_sequence_of_tokens_per_tree(self) -> None:
        """Tokens of `a`, of `a/b` and of `a/c` can be compared: each new one is larger."""
        tokens = []
        for text in ("write a", "write a/b", "read a/c", "write a", "read a/b/c", "write a/b"):
            lease = await self.take(self.node(self.client, text))
            tokens.append(lease.token)
            await lease.release()
        assert tokens == sorted(set(tokens))

    async def test_inspect_shows_the_whole_tree(self) -> None:
        """Under its first segment a tree shows every holder with the path it asked for."""
        leases = [
            await self.take(self.node(self.client, text)) for text in ("read a/b", "write a/c")
        ]
        snapshot = await self.client.inspect("a")
        assert snapshot.kind == "tree"
        assert {(one.name, one.path) for one in snapshot.holders} == {
            ("a/b", ("b",)),
            ("a/c", ("c",)),
        }
        for lease in leases:
            await lease.release()

    @pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", "a/\x00", "a/" + "b" * 255])
    async def test_bad_path_is_refused(self, path: str) -> None:
        """An empty segment, a control character or too long a path raises InvalidName."""
        with pytest.raises(holdfast.InvalidName):
            self.client.tree(path)
