"""The nodes of a Redlock: asked all at once; one that is silent is left alone for a while.

Rule 1: a round takes as long as the slowest node, and never longer than the node time-out; where a
        majority of plain yeses decides, as long as that takes, and the other answers come late.
Rule 2: a late answer counts for all but the round itself: a node's clock, its health, what it is
        owed. If it is no plain yes, or a node is in trouble, all are heard in the next vote.
Rule 3: a node that did not answer is not asked for a growing while, unless a majority needs it; it
        is used again as soon as it answers.
Rule 4: two addresses of one server, a member of a Cluster, and a replica are refused: a majority of
        those is none. Where one turns up later, nothing is granted, and what is held is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from ...clocks import Clock
from ...errors import EngineUnavailable, LockError, NotSupported, OutcomeUnknown
from ...redis_link import (
    LATE,
    AsyncLink,
    Late,
    Reply,
    Settings,
    afan_out,
    check,
    forgotten,
    pack,
)
from ...redis_record import time_in
from .redlock_node import AsyncRedlockNode
from .redlock_question import Inquiry, Question

PAID_AT_ONCE = 20  # debts, so that nobody waits long for those of others
ANSWERS = frozenset((int, list))  # the types of what a node says; what is said for it is neither
WELL = ANSWERS | {Late}  # what there is where nothing is wrong


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
        self._attentive = False  # somebody was late, and did not simply say yes
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
        enough, silent nodes are left alone even if there is no majority without them. LATE stands
        for the answer of a node without which a majority has said yes.
        """
        sent = self._clock()
        wanted = nodes = self.all if only is None else only
        links = self._links
        if self._trouble or only is not None:
            nodes = self.likely(wanted, timeout, few)
            links = [node.link for node in nodes]
        until = sent + owed if owed else -math.inf
        inquiry = Inquiry(question, nodes, timeout, sent, until, spared)
        answers = await self._fan_out(inquiry, links)
        if not WELL.issuperset(map(type, answers)):
            self._trouble = True
            await self._sort_out(inquiry, answers)
        if question.time_at is not None:
            received = self._clock()
            for node, answer in zip(nodes, answers, strict=True):
                if type(answer) in ANSWERS:
                    node.observe(sent, time_in(answer, question.time_at), received)
        if nodes is not self.all:
            answers = self._by_number(nodes, answers)
        if self._trouble:  # also if somebody was connected to anew
            answers = self._without_impostors(answers)
            await self._mend(inquiry, answers)
            self._owe(inquiry, wanted, answers)
        return answers

    async def _fan_out(self, inquiry: Inquiry, links: Sequence[AsyncLink]) -> list[Reply]:
        question = inquiry.question
        enough = self.quorum if question.yes_decides else 0
        if question.time_at is not None:  # a vote: whoever has something to say will say it again
            if self._trouble and any(node.troubled for node in inquiry.nodes):
                enough = 0
            if self._attentive:
                self._attentive, enough = False, 0
        requests = question.requests(inquiry.nodes)
        late = partial(self._come_late, inquiry)
        return await afan_out(links, requests, inquiry.timeout, enough, late)

    def hear_all(self) -> None:
        """Let the next vote wait for all answers."""
        self._attentive = True

    def _come_late(self, inquiry: Inquiry, number: int, answer: Reply) -> None:
        """Take note of an answer, or of its absence, after the round was decided without it."""
        node, time_at = inquiry.nodes[number], inquiry.question.time_at
        if type(answer) is not int:
            self._attentive = True
        if is_answer(answer):
            if not isinstance(node.error, NotSupported):  # else it said so before we knew
                node.answered()
            if time_at is not None:
                node.observe(inquiry.sent, time_in(answer, time_at), self._clock())
            return
        self._trouble = True
        node.owe(inquiry)
        if forgotten(answer):
            node.scripts.clear()
        else:
            try:
                self.note(node, answer, inquiry.timeout)
            except NotSupported:
                pass  # whoever asks next hears it again, and is told

    def _owe(
        self, inquiry: Inquiry, wanted: Sequence[AsyncRedlockNode], answers: Sequence[Reply]
    ) -> None:
        """Keep what these could not be told for the time when they are back."""
        for node in wanted:
            answer = answers[node.number]
            if answer is not LATE and not is_answer(answer) and node.owe(inquiry):
                self._trouble = True

    def likely(
        self, wanted: Sequence[AsyncRedlockNode], patience: float, few: bool = False
    ) -> list[AsyncRedlockNode]:
        """Return those that are likely to answer in time; all, if they are no majority."""
        now = self._clock()
        patience = min(patience, self.node_timeout)
        nodes = [node for node in wanted if not node.away(now, patience)]
        return nodes if few or len(nodes) >= self.quorum else list(wanted)

    def _by_number(
        self, nodes: Sequence[AsyncRedlockNode], answers: Sequence[Reply]
    ) -> list[Reply]:
        """Return the answers of some nodes, each in its place; None for the others."""
        result: list[Reply] = [None] * len(self.all)
        for node, answer in zip(nodes, answers, strict=True):
            result[node.number] = answer
        return result

    async def _mend(self, inquiry: Inquiry, answers: Sequence[Reply]) -> None:
        """Take note of who is well again, and tell them what they are owed."""
        for node in inquiry.nodes:
            if node.troubled and is_answer(answers[node.number]):
                node.answered()
                await self._pay(node, inquiry.sent, inquiry.timeout)
        self._trouble = any(node.troubled for node in self.all)

    async def _pay(self, node: AsyncRedlockNode, now: float, timeout: float) -> None:
        """Tell a node that is back what it could not be told before, the latest first."""
        for _ in range(PAID_AT_ONCE):
            if node.error is not None or (debt := node.debt(now)) is None:
                return
            answer = (await afan_out([node.link], debt.question.requests([node]), timeout))[0]
            if not is_answer(answer):
                if forgotten(answer):
                    node.scripts.clear()
                node.owe(debt)
                return

    async def _sort_out(self, inquiry: Inquiry, answers: list[Reply]) -> None:
        """Ask those again that do not know the script; take note of who did not answer."""
        which = [number for number, answer in enumerate(answers) if forgotten(answer)]
        if which:
            some = [inquiry.nodes[number] for number in which]
            for node in some:
                node.scripts.clear()
            links, requests = [node.link for node in some], inquiry.question.requests(some)
            again = await afan_out(links, requests, inquiry.timeout)
            for number, answer in zip(which, again, strict=True):
                answers[number] = answer
        for number, answer in enumerate(answers):
            if type(answer) not in WELL:
                answers[number] = self.note(inquiry.nodes[number], answer, inquiry.timeout)

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
