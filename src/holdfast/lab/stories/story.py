"""A story: what it is called, what it shows, and what came of it when it was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..chronicle import Chronicle
from ..picture import Hold, holds_of
from ..register import GUARDED, UNGUARDED, Entry
from ..stage import TTL, Contrast, Narrator, Stage, Told

STOPS = ("pause", "block", "cut")  # faults that outlast a TTL: the hazard is what is more


@dataclass(frozen=True, slots=True)
class Story:
    """A function that plays on a stage."""

    name: str
    title: str
    moral: str
    play: Callable[[Stage], None]


def story(name: str, title: str, moral: str) -> Callable[[Callable[[Stage], None]], Story]:
    """Make a story of a function."""
    return lambda play: Story(name, title, moral, play)


@dataclass(frozen=True)
class Telling:
    """A story that was told."""

    story: Story
    ttl: float
    lines: list[Told]
    chronicle: Chronicle
    contrast: Contrast
    hazard: Hazard | None

    @property
    def hazard_sentence(self) -> str:
        """The hazard window in words: how long, and of what it is the rest."""
        if self.hazard is None:
            return "Hazard window: none."
        text = f"Hazard window {self.hazard.seconds:.2f} s: {self.hazard.words}"
        for span in self.chronicle.faults:
            if span.name in STOPS and span.start <= self.hazard.start < span.end:
                left = self.hazard.start - span.start
                text += f" ({span.end - span.start:.2f} s of {span.name} − {left:.2f} s that were"
                text += " left of its TTL)"
        return f"{text}."

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "story": self.story.name,
            "title": self.story.title,
            "moral": self.story.moral,
            "ttl": self.ttl,
            "lines": [{"at": round(line.at, 3), "text": line.text} for line in self.lines],
            "hazard": None if self.hazard is None else round(self.hazard.seconds, 3),
            "hazard_words": "" if self.hazard is None else self.hazard.words,
            "without_guard": self.contrast.without,
            "with_guard": self.contrast.with_guard,
        }


@dataclass(frozen=True, slots=True)
class Hazard:
    """The time in which damage could be done."""

    start: float
    end: float
    words: str

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.start


def tell(story: Story, narrator: Narrator | None = None, ttl: float = TTL) -> Telling:
    """Play a story from beginning to end."""
    with Stage(narrator, ttl) as stage:
        story.play(stage)
        chronicle = stage.chronicle()
        contrast = stage.contrast or compare(chronicle)
    hazard = find_hazard(chronicle, stage.rank)
    return Telling(story, ttl, stage.lines, chronicle, contrast, hazard)


def compare(chronicle: Chronicle) -> Contrast:
    """Say what became of the resource, without and with a guard."""
    without = [entry for entry in chronicle.entries if entry.kind == UNGUARDED]
    lost = sum(1 for entry in without if entry.based_on != entry.found)
    taken = [e for e in chronicle.entries if e.kind == GUARDED and not e.refused]
    refused = sum(1 for entry in chronicle.entries if entry.kind == GUARDED and entry.refused)
    return Contrast(
        f"{len(without)} updates were acknowledged, {lost or 'none'} of them lost.",
        f"{len(taken)} {'update was' if len(taken) == 1 else 'updates were'} taken, "
        f"{refused or 'none'} refused, none lost.",
    )


def find_hazard(chronicle: Chronicle, rank: Callable[[str, int], int]) -> Hazard | None:
    """Return the longest time in which somebody could work under a lock that it had no more, or
    two could under the same."""
    holds = holds_of(chronicle)
    found = [*_late_writes(chronicle, holds, rank), *_overlaps(holds)]
    return max(found, key=lambda hazard: hazard.seconds, default=None)


def _late_writes(
    chronicle: Chronicle, holds: list[Hold], rank: Callable[[str, int], int]
) -> list[Hazard]:
    ends = {(hold.client, hold.lock, hold.token): hold.end for hold in holds}
    found = []
    for entry in chronicle.entries:
        end = ends.get((entry.client, entry.name, entry.token))
        if end is not None and entry.kind == UNGUARDED and entry.at > end:
            found.append(Hazard(end, entry.at, _words(entry, rank)))
    return found


def _words(entry: Entry, rank: Callable[[str, int], int]) -> str:
    number = rank(entry.name, entry.token)
    return f"so long after its lease was over, {entry.client} wrote with token #{number}"


def _overlaps(holds: list[Hold]) -> list[Hazard]:
    found = []
    for one in holds:
        for other in holds:
            start, end = max(one.start, other.start), min(one.end, other.end)
            same = one.lock == other.lock and one.client < other.client
            if same and start < end:
                words = f"so long {one.client} and {other.client} both relied on {one.lock}"
                found.append(Hazard(start, end, words))
    return found
