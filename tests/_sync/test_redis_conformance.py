"""(Generated from _async/test_redis_conformance.py by tools/unasync.py: do not edit.) The Redis engine does what every engine must do, on Redis and on Valkey."""

import pytest

from holdfast.testing import Conformance
from holdfast.testing.redis_harness import RedisHarness, ValkeyHarness


class TestRedis(Conformance):
    """All of it."""

    harness = RedisHarness()


@pytest.mark.slow
class TestValkey(Conformance):
    """All of it."""

    harness = ValkeyHarness()
