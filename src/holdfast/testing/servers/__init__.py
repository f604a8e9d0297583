"""Real servers for tests and for the lab: started, stopped, paused and cut off at will."""

from .dynamodb import DynamoDBServer
from .errors import CommandRefused, ServerFailed, ServerMissing
from .etcd import EtcdServer
from .etcd_cluster import EtcdCluster
from .mariadb import MariaDBServer
from .postgres import PostgresServer
from .process import ServerProcess
from .programs import (
    dynamodb_program,
    etcd_program,
    mariadb_program,
    postgres_program,
    prometheus_program,
    promtool_program,
    redis_program,
    valkey_program,
    zookeeper_program,
)
from .prometheus import PrometheusServer
from .proxy import Proxy
from .redis import RedisServer
from .requirement import need
from .sentinel import RedisSentinel
from .zookeeper import ZooKeeperServer
from .zookeeper_ensemble import ZooKeeperEnsemble

__all__ = [
    "CommandRefused",
    "DynamoDBServer",
    "EtcdCluster",
    "EtcdServer",
    "MariaDBServer",
    "PostgresServer",
    "PrometheusServer",
    "Proxy",
    "RedisSentinel",
    "RedisServer",
    "ServerFailed",
    "ServerMissing",
    "ServerProcess",
    "ZooKeeperEnsemble",
    "ZooKeeperServer",
    "dynamodb_program",
    "etcd_program",
    "mariadb_program",
    "need",
    "postgres_program",
    "prometheus_program",
    "promtool_program",
    "redis_program",
    "valkey_program",
    "zookeeper_program",
]
