"""The questions, in the order in which they are asked; each only where its answer matters.

Rule 1: what needs no lock comes first: a key, a version or finer work is better than any engine.
Rule 2: a question with `optional` has an answer for those who do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .needs import Needs


@dataclass(frozen=True, slots=True)
class Question:
    """One question: `name` in Needs, `flag` on the command line, answers with meanings."""

    name: str
    flag: str
    text: str
    answers: Mapping[str, str] = field(default_factory=dict)  # none: a number of seconds
    when: Callable[[Needs], bool] = lambda needs: True
    many: bool = False
    optional: str | None = None  # what not answering means

    @property
    def choices(self) -> str:
        """What may be answered, as a sentence names it."""
        words = ", ".join(self.answers)
        return f"any of {words}, with commas" if self.many else f"one of {words}"


def _between_machines(needs: Needs) -> bool:
    return needs.simpler == "no" and needs.reach == "machines"


def _new_matters(needs: Needs) -> bool:
    """Say whether what runs already leaves it open which engine it will be."""
    if not needs.engines or needs.only_aws:
        return False
    enough = {"etcd", "zookeeper"} if needs.strict else {"redis"}
    return _between_machines(needs) and not needs.engines & enough


YES_NO = {"yes": "", "no": ""}

QUESTIONS = (
    Question(
        "simpler",
        "--simpler",
        "Would something simpler than a lock do?",
        {
            "key": "the same request may come twice, and must count once: an idempotency key",
            "version": "one row or object is read, changed and written back: a version column",
            "split": "the work can be cut so fine that no two ever touch the same thing",
            "no": "none of these: it takes a lock",
        },
    ),
    Question(
        "reach",
        "--reach",
        "Who must be kept apart?",
        {
            "process": "threads and tasks of one process",
            "host": "processes of one machine",
            "machines": "processes of several machines",
        },
        lambda needs: needs.simpler == "no",
    ),
    Question(
        "need",
        "--need",
        "What is the lock for?",
        {
            "efficiency": "to save work: running twice now and then is harmless",
            "correctness": "money, stock, files: running twice does damage",
            "election": "one leader among many",
        },
        _between_machines,
    ),
    Question(
        "single",
        "--single-server",
        "May everybody go without locks while one server is away?",
        YES_NO,
        lambda needs: _between_machines(needs) and needs.need == "efficiency",
    ),
    Question(
        "short",
        "--short",
        "Is every hold shorter than 30 seconds?",
        YES_NO,
        lambda needs: _between_machines(needs) and needs.single == "no",
    ),
    Question(
        "idempotent",
        "--idempotent",
        "Does running the work twice leave the same result as running it once?",
        YES_NO,
        lambda needs: _between_machines(needs) and needs.single == "no" and needs.short == "yes",
    ),
    Question(
        "have",
        "--have",
        "What do you run already?",
        {
            "redis": "Redis or Valkey",
            "kubernetes": "Kubernetes",
            "etcd": "etcd by itself",
            "kafka": "Kafka with ZooKeeper",
            "hadoop": "Hadoop",
            "zookeeper": "ZooKeeper by itself",
            "postgresql": "PostgreSQL",
            "aws": "AWS; if it is all you name, locks go into DynamoDB",
            "nothing": "none of these",
        },
        _between_machines,
        many=True,
    ),
    Question(
        "new",
        "--new-system",
        "May locks bring another system to run?",
        YES_NO,
        _new_matters,
    ),
    Question(
        "contention",
        "--contention",
        "How many want the same lock at the same time?",
        {"low": "a few, now and then", "high": "many, all the time"},
        lambda needs: _new_matters(needs) and needs.new == "no" and "postgresql" in needs.engines,
    ),
    Question(
        "guard",
        "--guard",
        "Can what you write to compare tokens: SQL, Redis, DynamoDB, a file, your HTTP service?",
        YES_NO,
        lambda needs: needs.simpler == "no",
    ),
    Question(
        "pause",
        "--pause",
        "How many seconds is the longest pause or outage that a holder must ride out?",
        when=lambda needs: needs.simpler == "no",
        optional="not known",
    ),
    Question(
        "work",
        "--work",
        "Does somebody wait for the result?",
        {"interactive": "yes, a person or a request", "batch": "no, it is a job"},
        lambda needs: needs.simpler == "no" and needs.pause is None,
        optional="interactive",
    ),
)


def relevant(needs: Needs) -> Needs:
    """Return the answers that matter: those to questions that would have been asked."""
    kept = Needs()
    for question in QUESTIONS:
        if question.when(kept):
            kept = replace(kept, **{question.name: getattr(needs, question.name)})
    return kept


def missing(needs: Needs, optional: bool = False) -> Question | None:
    """Return the next question without an answer, None if all that matter have one.

    Those that need no answer count only with `optional`.
    """
    for question in QUESTIONS:
        if question.optional is not None and not optional:
            continue
        if getattr(needs, question.name) is None and question.when(needs):
            return question
    return None
