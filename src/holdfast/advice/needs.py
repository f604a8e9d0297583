"""What somebody needs of a lock: the answers given so far; None is not answered."""

from __future__ import annotations

from dataclasses import dataclass

# What runs already, as people call it -> the engine that comes with it.
BRINGS = {
    "redis": "redis",
    "kubernetes": "etcd",
    "etcd": "etcd",
    "kafka": "zookeeper",
    "hadoop": "zookeeper",
    "zookeeper": "zookeeper",
    "postgresql": "postgresql",
    "aws": "dynamodb",
    "nothing": "",
}


@dataclass(frozen=True, slots=True)
class Needs:
    """Answers, each by the word that its question offers."""

    simpler: str | None = None  # key, version, split: no lock is needed; no: one is
    reach: str | None = None  # process, host, machines
    need: str | None = None  # efficiency, correctness, election
    single: str | None = None  # yes: no lock while one server is away is bearable
    short: str | None = None  # yes: every hold is below 30 s
    idempotent: str | None = None
    have: frozenset[str] | None = None  # words of BRINGS
    new: str | None = None  # yes: another system may be run
    contention: str | None = None  # low, high
    guard: str | None = None  # yes: the resource compares tokens
    pause: float | None = None  # seconds; None: not known
    work: str | None = None  # interactive, batch

    @property
    def engines(self) -> frozenset[str]:
        """The engines that are there already."""
        return frozenset(BRINGS[word] for word in self.have or ()) - {""}

    @property
    def only_aws(self) -> bool:
        """Whether AWS is all there is."""
        return self.engines == {"dynamodb"}

    @property
    def strict(self) -> bool:
        """Whether two at a time must not happen, or no single server may be needed for long holds.

        That is what consensus is for.
        """
        if self.need in ("correctness", "election"):
            return True
        return self.single == "no" and "no" in (self.short, self.idempotent)

    @property
    def guarded(self) -> bool:
        """Whether a writer that was paused is refused by the resource."""
        return self.guard == "yes"
