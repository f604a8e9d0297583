"""A flight: requests to ZooKeeper that go out together and are answered in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._concurrency import AsyncSignal
from ..errors import EngineUnavailable, OutcomeUnknown
from ..zookeeper_link import CERTAIN, Answer, explain, unanswered

if TYPE_CHECKING:
    from .zookeeper_session import AsyncSession


class AsyncFlight:
    """Some requests of one session: sent by `land`, which waits for all answers."""

    __slots__ = ("_answers", "_came", "_requests", "_session", "_signal", "_writes")

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._requests: list[tuple[Any, Answer]] = []
        self._answers: list[Answer] = []
        self._writes: list[Answer] = []
        self._came: list[Answer] = []
        self._signal = AsyncSignal()

    def add(self, request: Any) -> Answer:
        """Take a request along whose answer need not be yes or no."""
        answer = self._session.answer()
        self._requests.append((request, answer))
        return answer

    def send(self, request: Any) -> Answer:
        """Take a request along."""
        return self.join(self.add(request))

    def join(self, answer: Answer) -> Answer:
        """Wait for an answer too that somebody else has asked for."""
        self._answers.append(answer)
        return answer

    def write(self, request: Any) -> Answer:
        """Take a write along: answered, it proves that the session lives."""
        answer = self.send(request)
        self._writes.append(answer)
        return answer

    async def land(self, timeout: float) -> None:
        """Wait for all answers; what is neither yes nor no is raised."""
        for answer in self._answers:
            answer.rawlink(self._one)
        self._session.send_all(self._requests)
        if len(self._came) < len(self._answers):
            await self._signal.wait(timeout)
        session = self._session
        for answer in self._answers:
            if not answer.ready():
                raise unanswered(session.location, timeout)
            if answer.exception is not None and not isinstance(answer.exception, CERTAIN):
                raise explain(session.location, answer.exception)
        for answer in self._writes:
            session.prove(answer)

    async def read(self, timeout: float) -> None:
        """The same for requests that change nothing: without an answer there is no engine."""
        try:
            await self.land(timeout)
        except OutcomeUnknown as error:
            raise EngineUnavailable(str(error), engine=error.engine) from error

    def _one(self, answer: Answer) -> None:
        self._came.append(answer)
        if len(self._came) == len(self._answers):
            self._signal.set()
