"""Guards: the resource refuses a writer whose lock is another's by now (S22 to S24).

A lock cannot stop a holder that was paused past its TTL; the resource can, by the token. There is
one guard per kind of resource; `holdfast.aio.guards` has the same names, awaitable.
"""

from .._sync.guards.dynamodb import DynamoGuard
from .._sync.guards.file import FileGuard
from .._sync.guards.redis import FencedScript, RedisGuard
from .._sync.guards.sql import SQLGuard
from .._sync.guards.store import StoreGuard
from ..fencing import Fence, Floors, fence_from_environ, fence_of
from .asgi import FencedASGI
from .http import FenceAuth, fence_headers, raise_for_fence
from .sql_dialects import sql_schema
from .sql_row import Row
from .wsgi import FencedWSGI

__all__ = [
    "DynamoGuard",
    "Fence",
    "FenceAuth",
    "FencedASGI",
    "FencedScript",
    "FencedWSGI",
    "FileGuard",
    "Floors",
    "RedisGuard",
    "Row",
    "SQLGuard",
    "StoreGuard",
    "fence_from_environ",
    "fence_headers",
    "fence_of",
    "raise_for_fence",
    "sql_schema",
]
