"""(Generated from _async/engines/redlock_voting.py by tools/unasync.py: do not edit.) Voting: how one claim gets a token from a majority of nodes, or learns why not.

Rule 1: one token is proposed to all nodes at once; whoever gets it from a majority holds. Two
        majorities share a node, and that node accepts only what is above its floor: tokens rise.
Rule 2: a claim without a majority gives back what it got; its ticket keeps its place everywhere.
Rule 3: a semaphore is as many locks as it has slots: a majority of counters would let in too many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ... import dice
from ...clocks import Clock, wall_micros
from ...errors import EngineUnavailable, LockError, LockMismatch, OutcomeUnknown
from ...lock_table import mismatch
from ...model import Claim, Family, Grant, Queued
from ...redis_link import Reply, Template, packed_word
from ...redis_record import (
    TERMS,
    Releases,
    claim_text,
    claim_words,
    keys_of,
    load_script,
    micros,
    path_text,
)
from ...redlock_tally import Tally, count_votes, free_slot, main_holder, trusted, undisputed
from ...rules import backoff, recheck_in, validity
from .redlock_node import RedlockNode
from .redlock_nodes import RedlockNodes
from .redlock_question import DEADLINE, Question
from .redlock_question import question as ask_once
from .redlock_roster import disagree, enrol, roster_key

VOTE = load_script("vote", "hinting")
YIELD = load_script("yield", "hinting")
RELEASE = load_script("release", "hinting")

# The last words of a vote: owner, proposed token, "queue? ticket"; then, for each node, what its
# roster must say, and wanted until; of a semaphore, the slot.
VOTE_TAIL = b"$%d\r\n%b\r\n$16\r\n%016d\r\n$18\r\n%d %016d\r\n"
LOOK_AGAIN = 1.0  # seconds after which the nodes' clocks are compared again
ROUNDS = 8  # of one claim: floors, slots and rosters are learnt one after the other
LATE = 2  # node time-outs after which a vote is not wanted any more
POLL = 1.0  # seconds after which a waiter asks again, hint or no hint
REMEMBERED = 1000
NO_VOTES = Tally()  # before the first round


class Attempt:
    """What all nodes must be told alike about one owner."""

    __slots__ = ("failures", "proposed", "slot", "spared", "ticket", "token", "until")

    def __init__(self, ticket: int, slot: int) -> None:
        self.ticket = ticket  # its place in every node's queue
        self.slot = slot  # which permit of a semaphore it wants
        self.token = 0  # what a majority granted
        self.until = 0.0  # and when it is over
        self.proposed = 0  # the highest so far: each is above it, so nodes can tell late copies
        self.spared: frozenset[int] | None = None  # nodes that were never asked for it
        self.failures = 0

    def spare(self, answers: Iterable[Reply]) -> None:
        """Take note of the nodes that were not asked now."""
        now = frozenset(number for number, answer in enumerate(answers) if answer is None)
        self.spared = now if self.spared is None else self.spared & now


def seat(claim: Claim, slot: int) -> tuple[str, str]:
    """Return the mode and path that a claim has on the nodes: of a semaphore, one slot."""
    if claim.limit:
        return "X", str(slot)
    return claim.mode.value, path_text(claim.path)


class Voting:
    """The claims of one client, put to the vote."""

    def __init__(
        self, nodes: RedlockNodes, clock: Clock, channel: str, max_ttl: float, patience: float
    ) -> None:
        self.attempts: dict[str, Attempt] = {}  # by owner, from its first claim to its release
        self.on_refusal: Callable[[str], None] = lambda owner: None  # of one that won all the same
        self._nodes = nodes
        self._clock = clock
        self._channel = channel
        self._max_ttl = max_ttl
        self._node_timeout = patience
        self._floors: dict[str, int] = {}
        self._packed: dict[tuple[object, ...], tuple[Template, Releases]] = {}
        self._ahead = 0.0  # how far the nodes' clocks are ahead of ours, as far as they agree
        self._ahead_until = -math.inf  # when to look at that again

    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """Ask all nodes, again with what they say if that may help."""
        started = sent = self._clock()
        attempt = self.attempts.get(claim.owner)
        proposal = self._propose(claim.key, sent)
        if attempt is None:
            slot = int(dice.chance() * claim.limit) if claim.limit else 0
            attempt = self.attempts[claim.owner] = Attempt(proposal, slot)
        tally, left = NO_VOTES, timeout
        for _ in range(ROUNDS):
            proposal = attempt.token or max(proposal, attempt.proposed + 1)
            attempt.proposed = proposal
            answers = self._vote(claim, attempt, proposal, sent, left)
            not_after = validity(sent, claim.ttl)
            if undisputed(answers, self._nodes.quorum) and self._clock() < not_after:
                if attempt.spared or None in answers:
                    attempt.spare(answers)
                return self._won(claim, attempt, proposal, not_after)
            tally = count_votes(answers, proposal)
            attempt.spare(answers)
            if len(tally.granted) >= self._nodes.quorum and self._clock() < not_after:
                if tally.strangers:
                    self._enrol_late(claim)
                if tally.busy or tally.floors:
                    self.on_refusal(claim.owner)
                return self._won(claim, attempt, proposal, not_after)
            if len(tally.granted) < self._nodes.quorum:
                answer = self._without_majority(claim, attempt, tally)
                if answer is not None:
                    return answer
            sent = self._clock()
            left = timeout - (sent - started)
            if left <= 0:
                break
            proposal = self._propose(claim.key, sent)
        self._yield(claim, attempt, tally)
        raise OutcomeUnknown(
            f"{self._nodes.location} came to no decision about {claim.name!r} in time.",
            name=claim.name,
            engine=self._nodes.location,
        )

    def _won(self, claim: Claim, attempt: Attempt, token: int, not_after: float) -> Grant:
        attempt.token, attempt.until, attempt.failures = token, not_after, 0
        self._remember_floor(claim.key, token)
        return Grant(token, not_after)

    def _vote(
        self, claim: Claim, attempt: Attempt, proposal: int, sent: float, left: float
    ) -> list[Reply]:
        owner, patience = claim.owner.encode(), self.patience(claim.ttl, left)
        tail = VOTE_TAIL % (len(owner), owner, proposal, claim.queue, attempt.ticket)
        slot = packed_word(" ".join(seat(claim, attempt.slot))) if claim.limit else b""
        end = sent + min(left, LATE * patience)

        def tail_for(node: RedlockNode) -> bytes:
            return tail + node.terms_word + DEADLINE % node.clock.latest(end) + slot

        question = Question(self._templates(claim, attempt.slot)[0], tail_for, yes_decides=True)
        nodes = self._nodes
        only = None
        if sent <= nodes.settled_at:
            only = self._may_vote(sent)
        answers = nodes.ask(question, patience, only)
        nodes.refuse_impostors()
        if sent <= nodes.settled_at:
            self._strike_out(answers, sent)
        return answers

    def _may_vote(self, now: float) -> list[RedlockNode] | None:
        """Return the nodes that may grant anything now; None = all."""
        nodes = self._nodes
        may_vote = [node for node in nodes.all if now >= node.out_until]
        if len(may_vote) < nodes.quorum:
            raise EngineUnavailable(
                f"{len(nodes.all) - len(may_vote)} of {len(nodes.all)} nodes are kept out because "
                "their clocks were set (on_clock_step='block').",
                engine=nodes.location,
            )
        return may_vote if len(may_vote) < len(nodes.all) else None

    def _strike_out(self, answers: list[Reply], sent: float) -> None:
        """Let not count what a node said that was asked as what it had been before.

        It was started again, and we learnt that only with this answer. Or its clock was set, and
        it is not to be counted on (on_clock_step='block').
        """
        for node in self._nodes.all:
            if node.changed_at >= sent and answers[node.number] is not None:
                answers[node.number] = [b"stranger", 0]
            elif node.out_until > sent and answers[node.number] is not None:
                answers[node.number] = node.kept_out(sent)

    def _without_majority(
        self, claim: Claim, attempt: Attempt, tally: Tally
    ) -> Queued | None:
        """Return what a failed round comes to; None = another round may do better."""
        nodes = self._nodes
        if tally.awaited:  # a yes was struck out: what do the others say?
            nodes.hear_all()
            return None
        if tally.roster is not None:
            raise disagree(tally.roster, self._max_ttl, len(nodes.all))
        self._remember_floor(claim.key, tally.floor)
        if tally.strangers:
            enrol(nodes, roster_key(claim.key), self._max_ttl, self._node_timeout)
            return None
        if tally.floors and tally.floor >= attempt.token:
            attempt.token = 0  # somebody came in between: what a majority once granted is over
        if tally.late or len(tally.granted) + len(tally.floors) >= nodes.quorum:
            return None  # clocks and floors are known now
        if len(tally.mismatches) >= nodes.blocking:
            nodes.ask(self.release_question(claim), self.patience(claim.ttl, math.inf))
            self.attempts.pop(claim.owner, None)
            family, limit = tally.mismatches[0]
            text = mismatch(claim, Family(family.decode()), limit)
            raise LockMismatch(text, name=claim.name, engine=nodes.location)
        if tally.barred >= nodes.blocking:
            return Queued(0, math.inf)
        if len(tally.silent) + len(tally.quarantined) + tally.ahead >= nodes.blocking:
            self._yield(claim, attempt, tally)
            raise self._no_quorum(tally)
        if claim.limit and attempt.failures < ROUNDS // 2:
            slot = free_slot(tally, claim.limit, nodes.quorum, len(nodes.all), dice.chance())
            if slot is not None:
                attempt.slot = slot
                attempt.failures += 1
                return None
        self._yield(claim, attempt, tally)
        if not claim.queue:
            self.attempts.pop(claim.owner, None)
        return self._queued(attempt, tally)

    def _yield(self, claim: Claim, attempt: Attempt, tally: Tally) -> None:
        """Give back votes that were too few; keep the place in the queue if it is wanted."""
        attempt.token = 0  # not even if they come back: some of them may have heard of this
        which = [self._nodes.all[number] for number in (*tally.granted, *tally.unsure)]
        if not which:
            return
        question = self.release_question(claim)
        if claim.queue:
            values = (claim.owner, micros(claim.ttl), self.text(claim), attempt.ticket)
            question = ask_once(YIELD, 2, *keys_of(claim.key), *values, attempt.proposed)
        patience = self.patience(claim.ttl, math.inf)
        self._nodes.ask(question, patience, which, claim.ttl, few=True)

    def _queued(self, attempt: Attempt, tally: Tally) -> Queued:
        """Return when to ask again: after a hint, or soon where votes were split."""
        position = min(tally.positions, default=0)
        holder = main_holder(tally, self._nodes.blocking)
        poll = POLL * (1 + 0.1 * dice.chance())
        if holder is not None:
            attempt.failures = 0
            return Queued(position, min(recheck_in(holder.expires_in, position), poll), holder)
        who = min(tally.holders, default=None)
        if position:  # free, but somebody is before us
            return Queued(position, poll, who)
        attempt.failures += 1
        pause = backoff(attempt.failures, dice.chance(), first=0.005, most=0.2)
        return Queued(position, pause, who)

    def _enrol_late(self, claim: Claim) -> None:
        """Get to know a node that came back, now that the others have decided without it."""
        try:
            enrol(self._nodes, roster_key(claim.key), self._max_ttl, self._node_timeout)
        except LockError:
            pass  # next time

    def _no_quorum(self, tally: Tally) -> Exception:
        if tally.ahead:
            return EngineUnavailable(
                f"The clocks of {tally.ahead} of {len(self._nodes.all)} nodes are more than a "
                "minute behind the last token; set the clocks of all nodes right.",
                engine=self._nodes.location,
            )
        if not tally.quarantined:
            return self._nodes.missing(
                [None if number in tally.silent else [] for number in range(len(self._nodes.all))]
            )
        return EngineUnavailable(
            f"{len(tally.quarantined)} of {len(self._nodes.all)} nodes have forgotten what they "
            f"granted and stay out for {max(tally.quarantined):.3g} s more, so that no lock is "
            f"given twice; {self._nodes.quorum} are needed.",
            engine=self._nodes.location,
        )

    def _propose(self, key: str, now: float) -> int:
        if now > self._ahead_until:
            ahead = [node.clock.middle(0.0) for node in self._nodes.all if node.clock.known]
            self._ahead = trusted(ahead or [wall_micros() / 1e6 - now])
            self._ahead_until = now + LOOK_AGAIN
        return max(self._floors.get(key, 0) + 1, int((now + self._ahead) * 1e6))

    def _remember_floor(self, key: str, floor: int) -> None:
        if len(self._floors) >= REMEMBERED and key not in self._floors:
            self._floors.clear()
        self._floors[key] = max(self._floors.get(key, 0), floor)

    def release_question(self, claim: Claim, linger: float = 0.0, sure: bool = False) -> Question:
        """Return what ends a claim on a node; `sure`: its holder still relies on it."""
        template, tail = self._templates(claim, 0)[1].of(claim.owner, linger, sure)
        return Question(template, tail, time_at=None, yes_decides=True)

    def text(self, claim: Claim) -> str:
        """Return what a node keeps of a claim."""
        return claim_text(claim, self._channel)

    def _templates(self, claim: Claim, slot: int) -> tuple[Template, Releases]:
        """Return how votes and releases of the same terms begin."""
        terms = (claim[:TERMS], slot)
        found = self._packed.get(terms)
        if found is None:
            if len(self._packed) >= REMEMBERED:
                self._packed.clear()
            keys, text = keys_of(claim.key), self.text(claim)
            words = claim_words(claim, text, *seat(claim, slot))
            found = self._packed[terms] = (
                Template(VOTE, 6 if claim.limit else 5, 2, *keys, *words),
                Releases(RELEASE, keys, words),
            )
        return found

    def patience(self, ttl: float, timeout: float) -> float:
        """Return how long one round may take: little beside the TTL, or validity suffers."""
        return max(0.001, min(self._node_timeout, ttl / 20, timeout))
