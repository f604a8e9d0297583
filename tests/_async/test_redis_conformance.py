"""The Redis engine does what every engine must do, on Redis and on Valkey."""

import pytest

from holdfast.testing import AsyncConformance
from holdfast.testing.redis_harness import RedisHarness, ValkeyHarness


class TestRedis(AsyncConformance):
    """All of it."""

    harness = RedisHarness()


@pytest.mark.slow
class TestValkey(AsyncConformance):
    """All of it."""

    harness = ValkeyHarness()
