"""The Redis scripts restate the rules: random schedules look the same there as on the reference."""

from collections.abc import Iterator

import pytest

from holdfast._sync.engines.redis import RedisEngine
from holdfast.testing.adapters import EngineAdapter
from holdfast.testing.model import run_model
from holdfast.testing.servers import RedisServer, need, redis_program


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Give a server whose clock can be set."""
    with RedisServer(need(redis_program), fake_clock=True) as server:
        yield server


def test_the_scripts(server: RedisServer) -> None:
    """Holders, queue, tokens and refusals are those of the reference, pushed grants included.

    Time passes by setting the server's clock: its scripts know no other.
    """
    passed = 0.0

    def advance(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        server.step_clock(passed)

    def make() -> EngineAdapter:
        server.command("FLUSHALL")
        return EngineAdapter(RedisEngine(server.url, max_ttl=300.0), advance, unit=4.0)

    run_model(make, examples=150)
