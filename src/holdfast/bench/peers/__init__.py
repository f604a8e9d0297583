"""Locks that others have written, by the engine they work on: one small class each."""

from __future__ import annotations

from ..contestant import Contestant
from .dynamodb_ones import PythonDynamoDBLock
from .etcd_ones import Etcd3gw, ToozEtcd
from .file_ones import Filelock, Portalocker, SherlockFile, ToozFile
from .postgres_ones import Advisory, Pals
from .redis_ones import Pottery, PythonRedisLock, RedisPy, RedlockPy, SherlockRedis, ToozRedis
from .zookeeper_ones import Kazoo, ToozZooKeeper

PEERS: dict[str, tuple[type[Contestant], ...]] = {
    "memory": (),
    "sqlite": (Filelock, Portalocker, SherlockFile, ToozFile),
    "redis": (RedisPy, PythonRedisLock, Pottery, RedlockPy, SherlockRedis, ToozRedis),
    "valkey": (RedisPy, PythonRedisLock),
    "redlock": (RedlockPy, Pottery),
    "zookeeper": (Kazoo, ToozZooKeeper),
    "etcd": (Etcd3gw, ToozEtcd),
    "postgresql": (Advisory, Pals),
    "dynamodb": (PythonDynamoDBLock,),
}
