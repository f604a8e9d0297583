"""Fixtures that several files of this folder use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.workers import Start, Worker


@pytest.fixture
def start() -> Iterator[Start]:
    workers: list[Worker] = []

    def begin(*arguments: object) -> Worker:
        workers.append(Worker(*arguments))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()
