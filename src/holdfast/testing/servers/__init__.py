"""Real servers for tests and for the lab: started, stopped, paused and cut off at will."""

from .errors import CommandRefused, ServerFailed, ServerMissing
from .process import ServerProcess
from .programs import redis_program, valkey_program
from .proxy import Proxy
from .redis import RedisServer
from .requirement import need
from .sentinel import RedisSentinel

__all__ = [
    "CommandRefused",
    "Proxy",
    "RedisSentinel",
    "RedisServer",
    "ServerFailed",
    "ServerMissing",
    "ServerProcess",
    "need",
    "redis_program",
    "valkey_program",
]
