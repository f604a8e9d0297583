"""The nodes of a Redlock: asked all at once; one that is silent is left alone for a while.

Rule 1: a round takes as long as the slowest node, and never longer than the node time-out.
Rule 2: a node that did not answer is not asked for a growing while, unless a majority needs it; it
        is used again as soon as it answers.
Rule 3: two addresses of one server, a member of a Cluster, and a replica are refused: a majority of
        those is none. Where one turns up later, nothing is granted, and what is held is kept.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ... import events
from ...clocks import Clock
from ...errors import EngineUnavailable, LockError, NotSupported, OutcomeUnknown
from ...redis_link import (
    Greeting,
    Reply,
    Settings,
    afan_out,
    check,
    forgotten,
    pack,
    packed_word,
)
from ...redis_record import micros, time_in
from ..redis_node import AsyncRedisNode
from .redlock_question import Question

AWAY_FIRST = 0.5  # seconds a silent node is left alone, doubling
AWAY_MOST = 5.0
OWED_MOST = 1000
PAID_AT_ONCE = 20  # debts, so that nobody waits long for those of others
ANSWERS = frozenset((int, list))  # the types of what a node says; what is said for it is neither


class AsyncRedlockNode(AsyncRedisNode):
    """One node, and how it has answered lately."""

    def __init__(self, settings: Settings, clock: Clock, **rules: Any) -> None:
        super().__init__(settings, clock, quarantine=False, **rules)
        self.number = 0
        self.errors = 0  # requests without an answer, in all
        self.error: Exception | None = None  # why there was none, if the last one had none
        self.greeted_at = 0.0
        self.changed_at = -math.inf  # when it was last found to be another run than before
        self.run_word = b"$0\r\n\r\n"  # its run id, packed
        self.terms_word = b"$0\r\n\r\n"  # what its roster must say: max_ttl, nodes, its run id
        self.companions = 0  # how many nodes there are in all
        self.on_new: Callable[[], None] = lambda: None
        self._failures = 0
        self._away_until = 0.0
        self._silent_for = 0.0  # the longest time-out that it has not kept since it last answered
        # What it must still be told, and until when that counts; the latest is at the end.
        self._owed: deque[tuple[Question, float]] = deque(maxlen=OWED_MOST)

    def _greeted(self, greeting: Greeting, sent: float, received: float) -> None:
        super()._greeted(greeting, sent, received)
        self.greeted_at = received
        word = packed_word(greeting.run_id)
        if word != self.run_word:
            self.run_word, self.changed_at = word, received
        terms = f"{micros(self._max_ttl)} {self.companions} {greeting.run_id}"
        self.terms_word = packed_word(terms)
        self.on_new()

    def _keep_out(self, until: float, why: str) -> None:
        super()._keep_out(until, why)
        self.on_new()

    def uptime(self) -> float:
        """Return for how many seconds the server has been running, at least."""
        return self.greeting.uptime + self._clock() - self.greeted_at

    def latest(self, ahead: float) -> int:
        """Return what its clock says at most in `ahead` seconds, in microseconds."""
        return self.clock.latest(self._clock() + ahead)

    def away(self, now: float, patience: float = 0.0) -> bool:
        """Say whether it is better not to ask now.

        Who is more patient than those who had no answer asks all the same.
        """
        return now < self._away_until and patience <= self._silent_for

    @property
    def latency(self) -> float:
        """How many seconds its last answer took, about; infinity if there was none yet."""
        return self.link.latency

    def answered(self) -> None:
        """Take note of an answer."""
        self.error = None
        self._failures = 0
        self._away_until = self._silent_for = 0.0

    def complaint(self, now: float) -> str:
        """Return why its answer does not count."""
        if self.error is None and self.out(now):
            return str(self.kept_out(now))
        return str(self.error or f"{self.location} was not asked")

    @property
    def troubled(self) -> bool:
        """Whether it needs more than to be asked."""
        return self.error is not None or bool(self._owed) or not self.greeting.run_id

    def owe(self, question: Question, until: float) -> None:
        """Keep what this node could not be told, for the time when it is back."""
        self._owed.append((question, until))

    def debt(self, now: float) -> tuple[Question, float] | None:
        """Return the latest that is still owed, and owe it no longer."""
        while self._owed:
            question, until = self._owed.pop()
            if now < until:
                return question, until
        return None

    def failed(self, now: float, error: Exception, patience: float) -> None:
        """Take note that there was no answer in that many seconds."""
        self._silent_for = max(self._silent_for, patience)
        self.errors += 1
        self.error = error
        if now >= self._away_until:  # else many have asked at the same time
            self._away_until = now + min(AWAY_MOST, AWAY_FIRST * 2**self._failures)
            self._failures += 1
        if self.report is not None:
            self.report(events.NodeFailed, node=self.location, error=str(error))


def is_answer(answer: Reply) -> bool:
    """Say whether a node answered, whatever it said."""
    return type(answer) in ANSWERS


class AsyncRedlockNodes:
    """All nodes, in the order in which they were named."""

    def __init__(self, settings: Sequence[Settings], clock: Clock, quorum: int, **rules: Any):
        self.all = [AsyncRedlockNode(one, clock, **rules) for one in settings]
        self.quorum = quorum
        self.location = f"redlock of {len(self.all)} nodes"
        self.node_timeout = math.inf  # how long they usually have
        self._clock = clock
        self._links = [node.link for node in self.all]
        self._unchecked = True
        self._impostor: NotSupported | None = None  # what is no independent server, and why
        self._trouble = True  # until all have answered
        self.settled_at = math.inf  # from then on, no node is new or kept out
        for number, node in enumerate(self.all):
            node.number, node.companions = number, len(self.all)
            node.on_new = self._has_news

    def _has_news(self) -> None:
        self._unchecked = self._trouble = True
        self.settled_at = max(max(node.changed_at, node.out_until) for node in self.all)

    @property
    def blocking(self) -> int:
        """How many nodes that say no make a majority impossible."""
        return len(self.all) - self.quorum + 1

    async def greet(self, timeout: float) -> None:
        """Get to know every node that can be reached."""
        nodes = self.likely(self.all, timeout)
        ping = pack(("PING",))
        answers = await afan_out([node.link for node in nodes], [ping] * len(nodes), timeout)
        for node, answer in zip(nodes, answers, strict=True):
            self.note(node, answer if isinstance(answer, Exception) else [], timeout)
        self._check_identities()
        self.refuse_impostors()

    async def ask(
        self,
        question: Question,
        timeout: float,
        only: Sequence[AsyncRedlockNode] | None = None,
        owed: float = 0.0,
        spared: Collection[int] = (),
        few: bool = False,
    ) -> list[Reply]:
        """Return each node's answer, a list, or the error instead of it, in the order of nodes.

        None stands for the answer of a node that was not asked. One that cannot be told now is
        told when it is back, within `owed` seconds, unless it is to be `spared`. Where `few` are
        enough, silent nodes are left alone even if there is no majority without them.
        """
        if self._trouble or only is not None:
            nodes = self.likely(self.all if only is None else only, timeout, few)
            answers = await self._ask_some(question, timeout, nodes)
            if owed:
                self._owe(question, only or self.all, answers, owed, spared)
            return answers
        sent = self._clock()
        answers = await afan_out(self._links, question.requests(self.all), timeout)
        received = self._clock()
        if not ANSWERS.issuperset(map(type, answers)):
            self._trouble = True
            answers = await self._sort(question, timeout, self.all, answers, sent)
            if owed:
                self._owe(question, self.all, answers, owed, spared)
            return answers
        time_at = question.time_at
        if time_at is not None:
            for node, answer in zip(self.all, answers, strict=True):
                node.observe(sent, time_in(answer, time_at), received)
        if self._unchecked:  # somebody was connected to anew
            return self._without_impostors(answers)
        return answers

    def _owe(
        self,
        question: Question,
        nodes: Sequence[AsyncRedlockNode],
        answers: Sequence[Reply],
        owed: float,
        spared: Collection[int],
    ) -> None:
        until = self._clock() + owed
        for node in nodes:
            if not is_answer(answers[node.number]) and node.number not in spared:
                node.owe(question, until)
                self._trouble = True

    def likely(
        self, wanted: Sequence[AsyncRedlockNode], patience: float, few: bool = False
    ) -> list[AsyncRedlockNode]:
        """Return those that are likely to answer in time; all, if they are no majority."""
        now = self._clock()
        patience = min(patience, self.node_timeout)
        nodes = [node for node in wanted if not node.away(now, patience)]
        return nodes if few or len(nodes) >= self.quorum else list(wanted)

    async def _ask_some(
        self, question: Question, timeout: float, nodes: Sequence[AsyncRedlockNode]
    ) -> list[Reply]:
        """Ask these nodes, and tell them what they are owed."""
        sent = self._clock()
        links = [node.link for node in nodes]
        answers = await afan_out(links, question.requests(nodes), timeout)
        result = await self._sort(question, timeout, nodes, answers, sent)
        for node in nodes:
            await self._pay(node, sent, timeout)
        self._trouble = any(node.troubled for node in self.all)
        return result

    async def _pay(self, node: AsyncRedlockNode, now: float, timeout: float) -> None:
        """Tell a node that is back what it could not be told before, the latest first."""
        for _ in range(PAID_AT_ONCE):
            if node.error is not None or (debt := node.debt(now)) is None:
                return
            question, until = debt
            requests = question.requests([node], in_full=True)
            answer = (await afan_out([node.link], requests, timeout))[0]
            if not is_answer(answer):
                node.owe(question, until)
                return

    async def _sort(
        self,
        question: Question,
        timeout: float,
        nodes: Sequence[AsyncRedlockNode],
        answers: list[Reply],
        sent: float,
    ) -> list[Reply]:
        """Take note of who answered and who did not."""
        if any(forgotten(answer) for answer in answers):
            answers = await self._tell_in_full(question, nodes, answers, timeout)
        result: list[Reply] = [None] * len(self.all)
        for node, answer in zip(nodes, answers, strict=True):
            result[node.number] = answer = self.note(node, answer, timeout)
            if is_answer(answer) and question.time_at is not None:
                node.observe(sent, time_in(answer, question.time_at), self._clock())
        return self._without_impostors(result)

    async def _tell_in_full(
        self,
        question: Question,
        nodes: Sequence[AsyncRedlockNode],
        answers: list[Reply],
        timeout: float,
    ) -> list[Reply]:
        """Ask those again that do not know the script."""
        which = [number for number, answer in enumerate(answers) if forgotten(answer)]
        some = [nodes[number] for number in which]
        links = [node.link for node in some]
        again = await afan_out(links, question.requests(some, in_full=True), timeout)
        for number, answer in zip(which, again, strict=True):
            answers[number] = answer
        return answers

    def note(self, node: AsyncRedlockNode, answer: Reply, timeout: float) -> Reply:
        """Take note that a node answered, or did not."""
        if not is_answer(answer):
            try:
                check(node.settings, answer)
            except LockError as error:
                answer = error
            if isinstance(answer, NotSupported) or not isinstance(answer, Exception):
                raise NotSupported(f"{node.location}: {answer}", engine=node.location)
            node.failed(self._clock(), answer, timeout)
            return answer
        node.answered()
        return answer

    def _check_identities(self) -> None:
        """Find what only looks like independent servers."""
        self._unchecked, self._impostor = False, None
        seen: dict[str, AsyncRedlockNode] = {}
        for node in self.all:
            greeting = node.greeting
            if greeting.cluster:
                self._unmask(node, "is a member of a Redis Cluster")
            elif greeting.role == "slave":
                self._unmask(node, "is a replica")
            elif greeting.run_id in seen:
                self._unmask(node, f"is the same server as {seen[greeting.run_id].location}")
            elif greeting.run_id:
                seen[greeting.run_id] = node

    def _unmask(self, node: AsyncRedlockNode, why: str) -> None:
        error = NotSupported(
            f"{node.location} {why}, so it cannot be a node of a Redlock: name servers that share "
            "nothing with each other.",
            engine=node.location,
        )
        self._impostor, self._trouble = self._impostor or error, True
        if not isinstance(node.error, NotSupported):
            node.failed(self._clock(), error, math.inf)
            node.link.leave()  # the next connection may find what should be there

    def _without_impostors(self, answers: list[Reply]) -> list[Reply]:
        if self._unchecked:
            self._check_identities()
        if self._impostor is not None:
            for node in self.all:
                if isinstance(node.error, NotSupported):
                    answers[node.number] = node.error
        return answers

    def refuse_impostors(self) -> None:
        """Raise if what was named as a node is none."""
        if self._impostor is not None:
            raise NotSupported(str(self._impostor), engine=self._impostor.engine)

    def missing(self, answers: Sequence[Reply]) -> OutcomeUnknown:
        """Return the error for a round that too few nodes answered."""
        silent = [
            node for node, answer in zip(self.all, answers, strict=True) if not is_answer(answer)
        ]
        now = self._clock()
        why = "; ".join(node.complaint(now).rstrip(".") for node in silent)
        return OutcomeUnknown(
            f"Only {len(self.all) - len(silent)} of {len(self.all)} nodes answered, {self.quorum} "
            f"are needed ({why}).",
            engine=self.location,
        )

    async def close(self) -> None:
        """Close all connections."""
        for node in self.all:
            await node.link.close()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's connections."""
        for node in self.all:
            node.link.abandon()


def unavailable_nodes(error: OutcomeUnknown) -> EngineUnavailable:
    """Return the error for a look that too few nodes answered."""
    return EngineUnavailable(str(error), engine=error.engine)
