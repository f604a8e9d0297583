"""Both of redis-py's clients under paired names, without their types."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio

AsyncRedis: Any = redis.asyncio.Redis
Redis: Any = redis.Redis
