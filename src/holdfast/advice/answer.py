"""The answer: recommendation, reasons, promise, cost, URL and TTL to start with, what to watch.

Rule 1: where the resource does not compare tokens, the first line says that pauses can break it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..model import Guarantees
from . import measured, promises
from .needs import Needs
from .questions import missing, relevant
from .rules import SIMPLER, decide
from .starts import START, TITLES, URLS
from .ttl import Sized, size
from .watching import Watch, watch

PAUSES = (
    "Pauses can break this without a guard: a holder that stands still for longer than its TTL "
    "goes on while another has the lock, and no engine can stop it"
)
# How the first line ends, by what the lock is for.
BROKEN = {
    "efficiency": "; you say that a double run is harmless, and that is one.",
    "correctness": "; only a guard at the resource keeps it out (docs/guards.md).",
    "election": "; only a guard at the resource keeps an old leader out (docs/guards.md).",
    None: "; if two at once do damage, put a guard at the resource (docs/guards.md).",
}


@dataclass(frozen=True, slots=True)
class Note:
    """What else to know about an answer."""

    answer: str
    text: str
    when: Callable[[Needs], bool] = lambda needs: True


NOTES = (
    Note(
        "etcd",
        "Do not put locks into the etcd of Kubernetes itself without asking whoever runs it: three "
        "small members beside it are safer.",
        lambda needs: "kubernetes" in (needs.have or ()),
    ),
    Note(
        "zookeeper",
        "Kafka from version 4 on runs without ZooKeeper: look whether yours has one.",
        lambda needs: "kafka" in (needs.have or ()),
    ),
    Note(
        "redlock",
        "Take five servers that know nothing of each other, and give them no replicas. What is "
        "promised about servers holds for two of five at a time.",
    ),
    Note(
        "postgresql",
        "If the work is one transaction in that database, holdfast.postgres.transaction_lock needs "
        "no TTL, and no pause can break it.",
    ),
    Note(
        "dynamodb",
        "Nobody is told when a lock is free: the first waiter looks every 50 to 100 ms.",
    ),
)


@dataclass(frozen=True, slots=True)
class Advice:
    """One answer; `engine` is None where no lock is needed, and so is all that goes with one."""

    answer: str
    warning: str | None
    recommendation: str
    reasons: tuple[str, ...]
    start: str
    engine: str | None = None
    promise: Guarantees | None = None
    url: str | None = None
    ttl: Sized | None = None
    watch: tuple[Watch, ...] = ()

    @property
    def first_line(self) -> str:
        """What is said before anything else."""
        return self.warning or self.recommendation

    @property
    def cost(self) -> str | None:
        """What a lock costs there, or how to find out."""
        return None if self.engine is None else measured.cost(self.engine)

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        figures = measured.measured().get(self.engine or "")
        return {
            "answer": self.answer,
            "engine": self.engine,
            "first_line": self.first_line,
            "warning": self.warning,
            "recommendation": self.recommendation,
            "reasons": list(self.reasons),
            "promise": promises.document(self.promise) if self.promise else None,
            "measured": asdict(figures) if figures else None,
            "cost": self.cost,
            "url": self.url,
            "ttl": self.ttl.seconds if self.ttl else None,
            "ttl_reasons": list(self.ttl.reasons) if self.ttl else [],
            "start": self.start,
            "watch": [asdict(one) for one in self.watch],
        }


def advise(needs: Needs) -> Advice:
    """Return what to use, and all that goes with it; ValueError if a question is still open."""
    needs = relevant(needs)
    if (question := missing(needs)) is not None:
        raise ValueError(f"{question.flag} is not answered yet: {question.text}")
    rule = decide(needs)
    notes = [note.text for note in NOTES if note.answer == rule.answer and note.when(needs)]
    title = TITLES[rule.answer]
    if rule.answer in SIMPLER:
        return Advice(rule.answer, None, title, (rule.reason, *notes), START[rule.answer])
    promised = promises.promises()[rule.answer]
    sized = size(needs, promised)
    if needs.guarded or needs.strict:
        title = f"{title[:-1]}, with a guard at the resource."
    if needs.guarded:
        notes.append(
            "The guard refuses whoever is late, so a lock that is lost costs work, not data."
        )
    return Advice(
        rule.answer,
        None if needs.guarded else PAUSES + BROKEN[needs.need],
        title,
        (rule.reason, *notes),
        _connect(URLS[rule.answer], sized),
        engine=rule.answer,
        promise=promised,
        url=URLS[rule.answer],
        ttl=sized,
        watch=watch(needs, promised),
    )


def _connect(url: str, sized: Sized) -> str:
    longest = "" if sized.max_ttl is None else f", max_ttl={sized.max_ttl:g}"
    return f'holdfast.connect("{url}", ttl={sized.seconds:g}{longest})'
