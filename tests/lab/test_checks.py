"""The lab's own checkers: each condemns the smallest chronicle that is wrong, and no other.

Exclusion, tokens, the guard, loss and liveness are judged by the simulation's checkers, which have
tests of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.fencing import Fence
from holdfast.lab.checks import judge, lost_updates
from holdfast.lab.chronicle import Chronicle, read_chronicle
from holdfast.lab.diary import Diary
from holdfast.lab.nemeses import find
from holdfast.lab.register import GUARDED, KINDS, UNGUARDED, WRITE_ONLY, Register
from holdfast.model import Fault, Guarantees

START = 1000.0
PROMISING = Guarantees("test", True, frozenset(Fault), True, True, True, "lease", 0.1, 9.0, True)


class Book:
    """Writes diaries for processes that never were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        Register.create(folder / "register.db")
        self.write("lab", 0.0, "begin", ttl=8.0)

    def write(self, who: str, at: float, what: str, **more: object) -> None:
        """Add one line."""
        diary = Diary(self.folder, who)
        diary.note(what, at=START + at, **more)
        diary.close()

    def hold(self, who: str, token: int, start: float, end: float, **more: Any) -> None:
        """Let somebody hold `k` from start to end, with a deadline half a second later."""
        owner, deadline = f"{who}/{token}", START + end + more.get("slack", 0.5)
        asked, answer = START + start - 0.01, more.get("answer", True)
        facts = {"owner": owner, "token": token, "key": "k"}
        self.write(who, start, "got", **facts, asked=asked, deadline=deadline)
        self.write(who, end, "leaving", owner=owner, deadline=deadline)
        self.write(who, end + 0.001, "left", **facts, answer=answer, lost=False)

    def read(self) -> Chronicle:
        """Return the chronicle."""
        self.write("lab", 10.0, "healed")
        return read_chronicle(self.folder)

    def found(self) -> list[str]:
        """Return who complains."""
        verdicts = judge(self.read(), PROMISING, find(["pause"]))
        return [verdict.promise for verdict in verdicts if verdict.violations]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_orderly_history_is_not_condemned(book: Book) -> None:
    """Two holders one after the other, seen while they held: all promises are kept."""
    book.hold("a", 1, 1.0, 2.0)
    book.hold("b", 2, 2.1, 3.0)
    book.write("lab", 1.5, "seen", lock="k", token=1, label="a")
    book.write("a", 2.5, "closed", remains=[])
    assert book.found() == []


def test_overlap_and_tokens_are_judged(book: Book) -> None:
    """Two holders at once, the later with the lower token: E and T."""
    book.hold("a", 5, 1.0, 2.0)
    book.hold("b", 4, 1.5, 3.0)
    assert book.found() == ["E", "T"]


def test_a_lease_that_the_engine_dropped_too_early(book: Book) -> None:
    """V: released before its deadline, and the engine says that it was gone."""
    book.hold("a", 1, 1.0, 2.0, answer=False)
    assert book.found() == ["V"]


def test_a_lease_that_was_late_is_nobodys_fault(book: Book) -> None:
    """Released after its deadline, and gone: that is what deadlines are for. L1 wants to know why
    nobody was told, though."""
    book.hold("a", 1, 1.0, 2.0, answer=False, slack=-0.5)
    assert book.found() == ["L1"]


def test_engine_says_lost_before_the_deadline(book: Book) -> None:
    """V: stolen while it could be relied on. When the deadline is over, it is only lost."""
    for token, early, deadline in ((1, True, 1.9), (2, False, 2.4)):
        at = 1.5 if early else 2.41
        facts = {"owner": f"a/{token}", "token": token, "deadline": START + deadline}
        book.write("a", at - 0.4, "got", **facts, key="k", asked=START + at - 0.5)
        book.write("a", at, "lost", **facts, reason="stolen")
    chronicle = book.read()
    assert [broken.token for broken in chronicle.broken] == [1]


def test_a_lock_that_came_back(book: Book) -> None:
    """R: seen held after its release was certain; of another lock the same number is no matter."""
    book.hold("a", 1, 1.0, 2.0)
    book.write("lab", 2.5, "seen", lock="other", token=1, label="b")
    assert book.found() == []
    book.write("lab", 2.5, "seen", lock="k", token=1, label="a")
    assert book.found() == ["R"]


def test_a_lock_that_nobody_knows_of(book: Book) -> None:
    """R: seconds after healing, and before its TTL is over, the engine still keeps what no client
    was ever given; unless that client was killed."""
    book.write("lab", 9.0, "seen", lock="k", token=9, label="a")
    book.write("lab", 18.0, "seen", lock="k", token=9, label="a")
    assert book.found() == []
    book.write("lab", 15.0, "seen", lock="k", token=9, label="a")
    assert book.found() == ["R"]
    book.write("lab", 9.0, "killed", client="a", whole=False)
    assert book.found() == []


def test_a_forked_child_that_believes(book: Book) -> None:
    """E: the child of a fork looked at its parent's lease, and it seemed held."""
    book.hold("a", 1, 1.0, 2.0)
    book.write("a-fork-7", 1.2, "look", owner="a/1", token=1, held=False)
    assert book.found() == []
    book.write("a-fork-7", 1.3, "look", owner="a/1", token=1, held=True)
    assert book.found() == ["E"]


def test_commands_hold_while_they_show_signs_of_life(book: Book) -> None:
    """E: an errand is alive while another holds; before its first and after its last sign it is
    not held against it."""
    facts: dict[str, Any] = {"key": "k", "token": 1}
    book.write("c-errand", 1.0, "began", **facts, asked=START + 0.9, pid=1)
    book.write("c-errand", 1.5, "alive", **facts)
    book.hold("a", 2, 1.6, 2.0)
    assert book.found() == []
    book.write("c-errand", 1.7, "alive", **facts)
    assert book.found() == ["E"]


def test_commands_are_told_apart_by_their_locks(book: Book) -> None:
    """Two locks may have given the same token: the later errand is no sign of life of the first.
    After a clock was far ahead tokens only count up, each lock for itself (found by a soak)."""
    for start, key in ((1.0, "k"), (2.0, "other")):
        facts: dict[str, Any] = {"key": key, "token": 1}
        book.write("c-errand", start, "began", **facts, asked=START + start, pid=1)
        book.write("c-errand", start + 0.5, "alive", **facts)
    book.hold("a", 2, 1.6, 2.2)
    assert book.found() == []


def test_killed_holders_hold_until_they_were_killed(book: Book) -> None:
    """Nobody is held to a lease after its death, and everybody is until then."""
    for who, token, start in (("a", 1, 1.0), ("b", 2, 1.5)):
        facts = {"owner": f"{who}/{token}", "token": token, "key": "k"}
        book.write(who, start, "got", **facts, asked=START + start, deadline=START + 5.0)
    book.write("lab", 1.4, "killed", client="a", whole=True)
    book.write("lab", 4.0, "killed", client="b", whole=True)
    assert book.found() == []
    book.hold("c", 3, 3.9, 4.5)
    assert book.found() == ["E"]


def test_killed_holders_live_until_their_last_word(book: Book) -> None:
    """A kill is written down before it is done: what the victim does meanwhile is no lie."""
    facts = {"owner": "a/1", "token": 1, "key": "k"}
    book.write("lab", 1.4, "killed", client="a", whole=True)
    book.write("a", 1.41, "got", **facts, asked=START + 1.4, deadline=START + 5.0)
    book.write("a", 1.42, "look", owner="a/1", held=True, lost=False)
    assert book.found() == []
    book.hold("b", 2, 1.415, 2.0)
    assert book.found() == ["E"]


def test_who_does_not_recover_and_what_remains(book: Book) -> None:
    """L2 and X: due and never come; a thread that stayed."""
    book.write("lab", 10.0, "due", whose="a gets k", by=START + 12)
    book.write("a", 11.0, "closed", remains=["thread holdfast-clock"])
    assert book.found() == ["L2", "X"]


def test_unpromised_faults_are_documented(book: Book) -> None:
    """The same overlap under a fault that nobody promises to bear is not called broken."""
    book.hold("a", 1, 1.0, 2.0)
    book.hold("b", 2, 1.5, 3.0)
    chronicle = book.read()
    outcomes = {
        fault: judge(chronicle, PROMISING, find([fault]))[0].outcome for fault in ("pause", "evict")
    }
    assert outcomes == {"pause": "broken", "evict": "broken as documented"}


def test_half_a_line_is_left_out(book: Book) -> None:
    """What was being written when the machine died does not spoil the rest."""
    with (book.folder / "a.jsonl").open("w") as file:
        file.write(json.dumps({"at": START + 1, "what": "missed", "why": "busy"}) + '\n{"at": 10')
    assert book.read().missed == {"busy": 1}


def test_three_registers_and_what_each_loses(tmp_path: Path) -> None:
    """33 reads and is paused; 34 reads; 33 writes; 34 writes. Only who recorded 34 when it read
    refuses 33."""
    path = tmp_path / "register.db"
    Register.create(path)
    register = Register(path, "a")
    old, new = Fence(33, "d"), Fence(34, "d")
    read_old = register.begin("k", old)
    read_new = register.begin("k", new)
    assert register.write("k", old, read_old) == {UNGUARDED: True, WRITE_ONLY: True, GUARDED: False}
    assert all(register.write("k", new, read_new).values())
    assert {kind: register.value("k", kind) for kind in KINDS} == dict.fromkeys(KINDS, 1)
    assert register.begin("k", old)[GUARDED] is None
    assert register.begin("k", Fence(99, "elsewhere"))[GUARDED] is None
    assert register.refusal == "DomainMismatch"
    register.close()
    book = Book.__new__(Book)
    book.folder = tmp_path
    book.write("lab", 0.0, "begin", ttl=1.0)
    assert lost_updates(book.read()) == {UNGUARDED: 1, WRITE_ONLY: 1, GUARDED: 0}
