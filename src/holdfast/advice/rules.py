"""The rules that pick an engine, as a table: the first that fits decides, the last always fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .needs import Needs

SIMPLER = ("key", "version", "split")  # answers that are no engine


@dataclass(frozen=True, slots=True)
class Rule:
    """`answer` is an engine, or one of SIMPLER."""

    answer: str
    when: Callable[[Needs], bool]
    reason: str


def _lenient(needs: Needs) -> bool:
    return not needs.strict and needs.single == "yes"


def _available(needs: Needs) -> bool:
    return not needs.strict and needs.single == "no"


RULES = (
    Rule(
        "key",
        lambda needs: needs.simpler == "key",
        "A key that is stored with the result stops the second run for good. A lock only stops it "
        "while it is held.",
    ),
    Rule(
        "version",
        lambda needs: needs.simpler == "version",
        "A write that names the version it has read is refused if somebody was faster. Nobody "
        "waits, nothing expires, and no pause can break it.",
    ),
    Rule(
        "split",
        lambda needs: needs.simpler == "split",
        "What no two ever touch needs no lock: give each worker its own part.",
    ),
    Rule(
        "memory",
        lambda needs: needs.reach == "process",
        "All who compete are in one process: nothing has to leave it.",
    ),
    Rule(
        "sqlite",
        lambda needs: needs.reach == "host",
        "All who compete are on one machine: a file there is enough, there is nothing to run, and "
        "a crashed holder is replaced in milliseconds.",
    ),
    Rule(
        "dynamodb",
        lambda needs: needs.only_aws,
        "AWS is all you have: DynamoDB has nothing to run, and trusts nobody's clock.",
    ),
    # Two at a time must not happen, or long holds must survive any one server.
    Rule(
        "etcd",
        lambda needs: needs.strict and "etcd" in needs.engines,
        "This is work for a system with consensus, and you run etcd already, or Kubernetes, which "
        "brings one.",
    ),
    Rule(
        "zookeeper",
        lambda needs: needs.strict and "zookeeper" in needs.engines,
        "This is work for a system with consensus, and you run ZooKeeper already, or Kafka or "
        "Hadoop, which bring one.",
    ),
    Rule(
        "postgresql",
        lambda needs: (
            needs.strict
            and needs.new == "no"
            and "postgresql" in needs.engines
            and needs.contention == "low"
        ),
        "No new system, and few who compete: PostgreSQL is there, and what it has granted is on "
        "its disk.",
    ),
    Rule(
        "dynamodb",
        lambda needs: needs.strict and needs.new == "no" and "dynamodb" in needs.engines,
        "No new system: of what you run, DynamoDB is the one that loses no lock by a failover.",
    ),
    Rule(
        "postgresql",
        lambda needs: needs.strict and needs.new == "no" and "postgresql" in needs.engines,
        "No new system: of what you run, PostgreSQL is the one that keeps its grants on disk. With "
        "many who compete, measure it first.",
    ),
    Rule(
        "redis",
        lambda needs: (
            needs.strict and needs.new == "no" and "redis" in needs.engines and needs.guarded
        ),
        "No new system, and the guard refuses whoever is late: the engine only decides how often "
        "that happens, not whether the data is right.",
    ),
    Rule(
        "etcd",
        lambda needs: needs.strict and needs.new == "no",
        "Nothing that you run keeps two apart whatever fails, so this takes a new system after "
        "all. With a guard at the resource the Redis that you have would do.",
    ),
    Rule(
        "etcd",
        lambda needs: needs.strict,
        "This is work for a system with consensus. You run none yet; of the two, etcd is the "
        "smaller one to run.",
    ),
    # A double run is harmless, but no single server may be needed.
    Rule(
        "redlock",
        lambda needs: _available(needs) and (needs.new != "no" or "redis" in needs.engines),
        "A double run is harmless, holds are short and the work is idempotent, and no single "
        "server may be needed: a majority of independent Redis servers.",
    ),
    Rule(
        "etcd",
        lambda needs: _available(needs) and "etcd" in needs.engines,
        "No new system, and no single server may be needed: your etcd is more than the work asks "
        "for, and it is there.",
    ),
    Rule(
        "zookeeper",
        lambda needs: _available(needs) and "zookeeper" in needs.engines,
        "No new system, and no single server may be needed: your ZooKeeper is more than the work "
        "asks for, and it is there.",
    ),
    Rule(
        "dynamodb",
        lambda needs: _available(needs) and "dynamodb" in needs.engines,
        "No new system, and no single server may be needed: DynamoDB is there, and has none.",
    ),
    Rule(
        "postgresql",
        _available,
        "No new system: PostgreSQL is what you have. It is a single server unless a standby takes "
        "over, and one that is not synchronous may have missed the last grants.",
    ),
    # A double run is harmless, and so is an outage.
    Rule(
        "redis",
        lambda needs: _lenient(needs) and (needs.new != "no" or "redis" in needs.engines),
        "A double run now and then is harmless: one Redis is the fastest engine between machines, "
        "and the least to run.",
    ),
    Rule(
        "postgresql",
        lambda needs: "postgresql" in needs.engines and needs.contention == "low",
        "No new system, and few who compete: PostgreSQL is there, and fast enough for that.",
    ),
    Rule(
        "etcd",
        lambda needs: "etcd" in needs.engines,
        "No new system: your etcd is more than the work asks for, and it is there.",
    ),
    Rule(
        "zookeeper",
        lambda needs: "zookeeper" in needs.engines,
        "No new system: your ZooKeeper is more than the work asks for, and it is there.",
    ),
    Rule(
        "dynamodb",
        lambda needs: "dynamodb" in needs.engines,
        "No new system: DynamoDB is there, and takes many who compete.",
    ),
    Rule(
        "postgresql",
        lambda needs: True,
        "No new system: PostgreSQL is what you have. With many who compete, measure it first.",
    ),
)


def decide(needs: Needs) -> Rule:
    """Return the first rule that fits."""
    return next(rule for rule in RULES if rule.when(needs))
