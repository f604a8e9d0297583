"""What each answer is called and how to start with it: a URL, or a line in place of a lock."""

from __future__ import annotations

TITLES = {
    "key": "No lock: use an idempotency key.",
    "version": "No lock: use a version column.",
    "split": "No lock at all: cut the work finer.",
    "memory": "Use memory://, locks inside the process.",
    "sqlite": "Use sqlite:///, the embedded engine.",
    "redis": "Use redis://, one Redis or Valkey.",
    "redlock": "Use redlock://, a majority of five Redis servers.",
    "zookeeper": "Use zookeeper://, three or five servers.",
    "etcd": "Use etcd://, three or five members.",
    "postgresql": "Use postgresql://, your database.",
    "dynamodb": "Use dynamodb://, a table in AWS.",
}

URLS = {
    "memory": "memory://",
    "sqlite": "sqlite:///var/lib/app/locks.db",
    "redis": "redis://redis.internal:6379/0",
    "redlock": "redlock://redis-1:6379,redis-2:6379,redis-3:6379,redis-4:6379,redis-5:6379",
    "zookeeper": "zookeeper://zk-1:2181,zk-2:2181,zk-3:2181",
    "etcd": "etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379",
    "postgresql": "postgresql://app@db.internal:5432/app",
    "dynamodb": "dynamodb://eu-west-1/locks",
}

START = {
    "key": 'SQLGuard(connection).once("payment/99999", charge)  # docs/guards.md, "At most once"',
    "version": "UPDATE orders SET state = 'paid', version = version + 1 "
    "WHERE id = 99999 AND version = 7  -- no row changed: read again, and decide anew",
    "split": 'holdfast.shard("stock", sku, 16)  # which of 16 owners has a key, on all machines',
}
