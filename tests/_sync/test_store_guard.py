"""(Generated from _async/test_store_guard.py by tools/unasync.py: do not edit.) The store guard keeps old tokens out of any store that compares and sets (S22, S23)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast
from holdfast.events import Adopted
from holdfast.fencing import MOST
from tests._sync.store_suite import DOMAIN, NAME, StoreSuite, fence, shared


class TestTransaction(StoreSuite):
    """Recorded when the work begins, judged again when it is saved."""

    def test_what_was_written_is_read(self) -> None:
        """A holder reads what the one before it wrote; both are told as accepted."""
        self.write("one", 5)
        with self.guard.transaction(NAME, fence(7)) as item:
            assert item.read() == "one"
            item.write("two")
            assert item.read() == "two"
            assert self.shelf.data() == "one", "nothing is visible before the end"
        assert self.shelf.data() == "two"
        assert self.told() == [("Accepted", 5, 5), ("Accepted", 7, 7)]

    def test_an_old_token_does_not_come_in(self) -> None:
        """Who comes after a newer one is refused before it sees anything; equal tokens pass."""
        self.write("new", 7)
        self.write("newer", 7)
        with pytest.raises(holdfast.StaleToken, match="has seen token 7, yours is 6") as caught:
            self.write("old", 6)
        assert (caught.value.resource, caught.value.seen, caught.value.offered) == (NAME, 7, 6)
        assert self.shelf.data() == "newer"
        assert self.told()[-1] == ("Refused", 7, 6)

    def test_a_paused_holder_is_refused_when_it_saves(self) -> None:
        """Reading is enough to keep an older holder out, that read before and writes after."""
        with pytest.raises(holdfast.StaleToken):
            with self.guard.transaction(NAME, fence(6)) as paused:
                self.touch(7)
                paused.write("old")
        assert self.shelf.data() is None
        assert self.told() == [("Accepted", 7, 7), ("Refused", 7, 6)]

    def test_who_comes_between_load_and_save_wins(self) -> None:
        """The save itself is conditional: a newer token that comes just before it is seen."""
        with pytest.raises(holdfast.StaleToken):
            with self.guard.transaction(NAME, fence(6)) as paused:
                paused.write("old")
                self.shelf.before_save.append(lambda: self.write("new", 7))
        assert self.shelf.data() == "new"

    def test_nothing_is_saved_after_an_error(self) -> None:
        """The body's own error comes out, the data is as it was, the token stays recorded."""
        self.write("one", 5)
        with pytest.raises(KeyError, match="mine"):
            with self.guard.transaction(NAME, fence(6)) as item:
                item.write("two")
                raise KeyError("mine")
        assert self.shelf.data() == "one"
        assert self.told() == [("Accepted", 5, 5)]
        with pytest.raises(holdfast.StaleToken):
            self.write("old", 5)

    def test_readers_share_and_keep_older_writers_out(self) -> None:
        """Shared tokens pass in any order, only read, and are a floor for writers."""
        self.write("one", 5)
        for token in (8, 7):
            with self.guard.transaction(NAME, shared(token)) as item:
                assert item.read() == "one"
                with pytest.raises(holdfast.NotSupported, match="may only read 'orders/1'"):
                    item.write("two")
                with pytest.raises(holdfast.NotSupported, match="may only read 'orders/1'"):
                    item.once("key", self.fail)
        with pytest.raises(holdfast.StaleToken, match="seen token 8"):
            self.write("two", 7)
        self.write("two", 9)
        with pytest.raises(holdfast.StaleToken, match="nothing was read"):
            with self.guard.transaction(NAME, shared(8)):
                pass

    def test_a_second_transaction_costs_one_save(self) -> None:
        """A token that is recorded already is not recorded again."""
        self.touch(7)
        saves = self.shelf.saves
        self.touch(7)
        assert self.shelf.saves == saves
        self.write("one", 7)
        assert self.shelf.saves == saves + 1

    def test_two_threads_of_one_holder_lose_nothing(self) -> None:
        """What another with the same token wrote meanwhile is not overwritten."""
        with pytest.raises(holdfast.InProgress, match="written by another caller with your token"):
            with self.guard.transaction(NAME, fence(7)) as item:
                self.write("quick", 7)
                item.write("slow")
        assert self.shelf.data() == "quick"

    def test_tokens_are_kept_exactly(self) -> None:
        """The largest token is not rounded, by nobody: it is stored as a string of digits."""
        self.write("one", MOST)
        text = self.shelf.rows[NAME][1]
        assert text is not None
        assert json.loads(text)["exclusive"] == "9223372036854775807"
        assert text.isascii()
        with pytest.raises(holdfast.StaleToken):
            self.write("old", MOST - 1)

    def test_a_lease_is_as_good_as_a_fence(self) -> None:
        """What a client gives can be shown as it is; a semaphore of several cannot fence."""
        with holdfast.connect("memory://store-guard") as client:
            with client.lock("x") as lease:
                with self.guard.transaction(NAME, lease) as item:
                    item.write("mine")
            with client.semaphore("s", 2) as lease:
                with pytest.raises(holdfast.NotSupported, match="semaphore 's' cannot fence"):
                    self.guard.transaction(NAME, lease)
        assert self.shelf.data() == "mine"

    def test_it_is_over_when_it_is_over(self) -> None:
        """What would not be saved any more, or not yet, is an error."""
        transaction = self.guard.transaction(NAME, fence(7))
        with pytest.raises(RuntimeError, match="not open: read and write inside"):
            transaction.write("early")
        with transaction as item:
            pass
        with pytest.raises(RuntimeError, match="not open"):
            item.write("late")
        with pytest.raises(RuntimeError, match="not open"):
            item.read()

    def test_it_can_be_entered_again(self) -> None:
        """The same object twice is two transactions, each judged and saved."""
        transaction = self.guard.transaction(NAME, fence(7))
        for data in ("one", "two"):
            with transaction as item:
                item.write(data)
            assert self.shelf.data() == data
        self.touch(8)
        with pytest.raises(holdfast.StaleToken):
            with transaction:
                pass

    def fail(self) -> None:
        raise AssertionError("this must not run")


class TestBadInput(StoreSuite):
    """One sentence, and nothing is written."""

    @pytest.mark.parametrize(
        ("token", "kind", "words"),
        [
            (-1, ValueError, "positive number below 2**63, not -1"),
            (0, ValueError, "positive number"),
            (2**63, ValueError, "positive number"),
            (1.5, TypeError, "A token is an int, not float"),
            ("7", TypeError, "A token is an int, not str"),
            (True, TypeError, "A token is an int, not bool"),
            (None, TypeError, "A token is an int, not NoneType"),
        ],
    )
    def test_token(self, token: Any, kind: type[Exception], words: str) -> None:
        """Only a positive integer below 2**63 is a token."""
        with pytest.raises(kind) as caught:
            self.guard.transaction(NAME, fence(token))
        assert words in str(caught.value)
        assert not self.shelf.rows

    def test_no_lease_at_all(self) -> None:
        """A bare number says nothing of its domain."""
        with pytest.raises(TypeError, match="takes a lease, or a Fence"):
            self.guard.transaction(NAME, 7)

    @pytest.mark.parametrize("name", ["", "x" * 256, "a\nb"])
    def test_resource(self, name: str) -> None:
        """A name that not every store can carry is refused."""
        with pytest.raises(ValueError, match="1 to 255 printable bytes"):
            self.guard.transaction(name, fence(7))

    def test_domain(self) -> None:
        """Tokens of two domains are not compared: both are named, and nothing is written."""
        self.write("one", 7)
        with pytest.raises(holdfast.DomainMismatch, match=r"'tests'.*'elsewhere'"):
            self.write("two", 9, domain="elsewhere")
        assert self.shelf.data() == "one"
        assert self.told()[-1] == ("Refused", 7, 9)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{}", "[]", "null", "7", '{"format": 1}', '{"format": 1, "domain": ""'),
            '{"format": 1, "domain": "d", "exclusive": 7, "shared": "0", "writes": 0}',
            '{"format": 1, "domain": "d", "exclusive": "7.5", "shared": "0", "writes": 0}',
        ],
    )
    def test_unreadable_fence(self, text: str) -> None:
        """What cannot be read is never taken for a resource that nobody has touched."""
        self.shelf.rows[NAME] = ("data", text, 1)
        with pytest.raises(holdfast.LockError, match="fence of 'orders/1' cannot be read"):
            self.write("two", 7)
        assert self.shelf.rows[NAME] == ("data", text, 1)

    def test_newer_format(self) -> None:
        """A fence of a later version is left alone."""
        self.shelf.rows[NAME] = ("data", '{"format": 2, "domain": ["a", "b"]}', 1)
        with pytest.raises(holdfast.NotSupported, match=r"has format 2.*Upgrade"):
            self.write("two", 7)
        assert self.shelf.data() == "data"


class TestUnknownOutcome(StoreSuite):
    """A save that gives no answer, or a strange one."""

    @pytest.mark.parametrize("stored", [False, True])
    def test_a_save_that_raises(self, stored: bool) -> None:
        """Its own error comes out, and nobody is told "accepted", whether it was stored or not."""

        def no_answer() -> None:
            raise ConnectionError("no answer")

        def lost_answer() -> bool:
            raise ConnectionError("no answer")

        self.touch(7)
        self.events.clear()
        with pytest.raises(ConnectionError, match="no answer"):
            with self.guard.transaction(NAME, fence(7)) as item:
                item.write("one")
                if stored:
                    self.shelf.after_save.append(lost_answer)
                else:
                    self.shelf.before_save.append(no_answer)
        assert self.shelf.data() == ("one" if stored else None)
        assert self.told() == []
        self.write("two", 7)

    def test_a_save_that_was_sent_twice(self) -> None:
        """False because our own first attempt had moved the version is not taken for another's."""
        self.touch(7)
        self.shelf.after_save.append(lambda: False)
        self.write("one", 7)
        assert self.shelf.data() == "one"
        assert self.told()[-1] == ("Accepted", 7, 7)

    def test_a_save_that_never_succeeds(self) -> None:
        """A store that always says no is not asked for ever."""
        self.shelf.rows[NAME] = ("data", None, 3)
        tries: list[int] = []

        def refuse() -> None:
            tries.append(1)
            data, text, version = self.shelf.rows[NAME]
            self.shelf.rows[NAME] = (data, text, version + 1)
            self.shelf.before_save.append(refuse)

        self.shelf.before_save.append(refuse)
        with pytest.raises(holdfast.InProgress, match=r"changed by others .* nothing was written"):
            self.touch(7)
        assert 1 < len(tries) < 100
        assert self.shelf.data() == "data"


class TestAdopt(StoreSuite):
    """Moving to other locks, for good (S22)."""

    def test_floors_start_again(self) -> None:
        """Small tokens of the new domain pass, those of the old one do not; it is told."""
        self.write("one", 700)
        self.guard.adopt(NAME, "elsewhere")
        self.write("two", 1, domain="elsewhere")
        with pytest.raises(holdfast.DomainMismatch):
            self.write("three", 701)
        assert self.shelf.data() == "two"
        moved = [event for event in self.events if isinstance(event, Adopted)]
        assert [(one.name, one.previous, one.domain) for one in moved] == [
            (NAME, DOMAIN, "elsewhere")
        ]

    def test_its_own_domain_changes_nothing(self) -> None:
        """Adopting twice lowers no floor, and is told once."""
        self.write("one", 7)
        self.events.clear()
        self.guard.adopt(NAME, DOMAIN)
        with pytest.raises(holdfast.StaleToken):
            self.write("two", 6)
        assert self.told() == [("Refused", 7, 6)]

    def test_who_is_at_work_is_kept_out(self) -> None:
        """A transaction of the old domain that is under way saves nothing."""
        with pytest.raises(holdfast.DomainMismatch):
            with self.guard.transaction(NAME, fence(7)) as item:
                self.guard.adopt(NAME, "elsewhere")
                item.write("old")
        assert self.shelf.data() is None

    def test_bad_domain(self) -> None:
        """A domain has a name."""
        with pytest.raises(ValueError, match="1 to 255 printable"):
            self.guard.adopt(NAME, "")
