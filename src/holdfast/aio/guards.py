"""The same names as `holdfast.guards`, awaitable."""

from .._async.guards.dynamodb import AsyncDynamoGuard as DynamoGuard
from .._async.guards.file import AsyncFileGuard as FileGuard
from .._async.guards.redis import AsyncFencedScript as FencedScript
from .._async.guards.redis import AsyncRedisGuard as RedisGuard
from .._async.guards.sql import AsyncSQLGuard as SQLGuard
from .._async.guards.store import AsyncStoreGuard as StoreGuard
from ..fencing import Fence, Floors, fence_from_environ, fence_of
from ..guards.asgi import FencedASGI
from ..guards.http import FenceAuth, fence_headers, raise_for_fence
from ..guards.sql_dialects import sql_schema
from ..guards.sql_row import Row

__all__ = [
    "DynamoGuard",
    "Fence",
    "FenceAuth",
    "FencedASGI",
    "FencedScript",
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
