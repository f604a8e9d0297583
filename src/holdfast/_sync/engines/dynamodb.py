"""(Generated from _async/engines/dynamodb.py by tools/unasync.py: do not edit.) dynamodb://region/table: a lock is an item, a verb one conditional update of it.

Rule 1: a claim of an idle lock, a renewal and a release that nobody waits for are one request each.
        One that is refused comes back with the item as it is; what is to be done then is decided
        on that image, and written on condition that it is still so (dynamodb_draft).
Rule 2 (S13): nobody's clock is asked. A holder is taken for dead when we have seen it unchanged for
        its whole lease, on our own clock, and it is removed only if it is unchanged still.
Rule 3: there is no push: waiters look at the item, the first one most often. Who finds that it
        holds renews before it relies on that, and its lease counts from there.
Rule 4 (S6): a request without an answer may come late. The owner of such a claim is buried in the
        item when it lets go, so that no copy grants anything to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ... import dice
from ...clocks import Clock, boot_clock, wall_micros
from ...dynamodb_draft import SILENT, Draft
from ...dynamodb_link import Link, Refused, from_client, from_url
from ...dynamodb_record import (
    Item,
    claim_request,
    in_use,
    key_of,
    number,
    raise_request,
    record_key_of,
    release_request,
    renew_request,
    touch_request,
)
from ...errors import EngineUnavailable, LockError, NotSupported, OutcomeUnknown
from ...model import (
    UNKNOWN,
    Claim,
    Fault,
    Grant,
    Guarantees,
    Outcome,
    Queued,
    Reason,
    Renewal,
    Snapshot,
    yes_or_no,
)
from ...rules import next_token, validity
from ..engine import Engine, Notice
from ..inbox import Inbox
from .dynamodb_change import Changer, new_version
from .dynamodb_table import Table

HELD_UNDER = frozenset(Fault) - {Fault.SERVER_DATA_LOSS}

LEAST = 1.0  # seconds to queue in, however late we heard that it is taken: else nobody is told
POLL = 0.075  # seconds between two looks of the first waiter, give or take a third
POLL_MOST = 0.5  # and of those far behind; well below the time in which a waiter must find out
LOOK = 2.0  # seconds that a look while waiting may take
BRIEF = 0.02  # seconds in which no look is worth while


class DynamoDBEngine(Engine):
    """Locks in a DynamoDB table. `held` is exclusive as long as the table keeps its data."""

    family = "dynamodb"
    places_expire = False
    url_options: ClassVar[Mapping[str, Callable[[str], Any]]] = {
        "endpoint": str,
        "create": yes_or_no,
        "connections": int,
    }

    def __init__(
        self,
        url: Any,
        *,
        max_ttl: float,
        clock: Clock = boot_clock,
        endpoint: str | None = None,
        table: str | None = None,
        create: bool = True,
        connections: int = 8,
    ) -> None:
        if connections < 1:
            raise ValueError(f"connections must be 1 or more, not {connections}.")
        read = from_url if isinstance(url, str) else from_client
        self.settings = read(url, endpoint, table)
        self.location = self.settings.location
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=HELD_UNDER,
            fair=True,
            push=False,
            crash_detection=False,
            expiry="lease",
            min_ttl=0.5,
            max_ttl=max_ttl,
            at_least=False,
        )
        self._clock = clock
        self.creates = create
        self.link = Link(self.settings, connections)
        self._start_over()

    def _start_over(self) -> None:
        """Know nothing yet."""
        self.table = Table(self.link, self.settings, self._clock, self.creates)
        self._inbox = Inbox()  # to sleep in
        self._changer = Changer(self.table, self._clock)
        self._places: set[str] = set()  # owners that we have seen in a queue
        self._doubts: set[str] = set()  # owners of claims without an answer
        self._crowds: dict[str, Item] = {}  # items that we hold and others wait for, as last seen
        self._owed: dict[str, Claim] = {}  # what we could not give back, by owner
        self._closed = False

    # --- Verbs. ---

    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See Engine."""
        end = self._clock() + timeout
        if claim.owner in self._places:
            item = self.table.look(key_of(claim.key), timeout)
            return self._enter(claim, item, end)
        token, sent = next_token(0, wall_micros()), self._clock()
        doubtful = claim.owner in self._doubts  # an earlier copy may still be on its way
        self._doubts.add(claim.owner)  # until there is an answer
        try:
            request = claim_request(claim, token, new_version())
            answer = self._changer.write(request, timeout)
        except Refused as refused:
            self._answered(claim, doubtful)
            return self._enter(claim, refused.item, max(end, self._clock() + LEAST))
        except EngineUnavailable:
            self._answered(claim, doubtful)
            raise
        if "c" not in answer.get("Attributes", {}):
            token = self._compare(claim, token, end)
        self._answered(claim, doubtful)
        return tuple.__new__(Grant, (token, validity(sent, claim.ttl)))

    def _answered(self, claim: Claim, doubtful: bool) -> None:
        """Know what became of a claim, unless it was in doubt before."""
        if not doubtful:
            self._doubts.discard(claim.owner)

    def _compare(self, claim: Claim, token: int, end: float) -> int:
        """See that a token of a new item is above the shared floor; return it, or a higher one."""
        left = self._changer.left
        try:
            floor = self.table.floor(claim.key, left(end))
            if floor < token:
                return token
            higher = next_token(floor, wall_micros())
            self._changer.write(raise_request(claim, token, higher, new_version()), left(end))
            return higher
        except EngineUnavailable as error:
            raise OutcomeUnknown(str(error), name=claim.name, engine=self.location) from error
        except Refused as error:
            raise self._changer.overtaken(claim.key) from error

    def _enter(self, claim: Claim, item: Item, end: float) -> Grant | Queued:
        """Claim on an image of the item that is in use, or was when we last looked."""
        owner, sent = claim.owner, 0.0
        known, doubtful = self._changer.knows(claim.key), owner in self._doubts

        def send() -> None:
            nonlocal sent
            sent = self._clock()
            self._doubts.add(owner)

        def decide(draft: Draft) -> int | Queued | None:
            self._pay(claim.key, draft)
            return None if draft.holds(owner) else draft.table.claim(claim, SILENT)

        while True:
            try:
                answer, draft, image = self._changer.change(
                    claim.key, item, end, decide, actor=owner, sent=send
                )
            except EngineUnavailable:
                self._answered(claim, doubtful)
                raise
            if answer is not None:
                break
            if owner in image.get("h", {}).get("M", {}):  # let in by somebody else
                grant = self._confirm(claim, image, end)
                if grant is not None:
                    return grant
            # Or by this very write, which gave back what we owed and moved the queue up.
            item = self.table.look(key_of(claim.key), self._changer.left(end))
        if isinstance(answer, int) and not image:
            answer = self._compare(claim, answer, end)
        self._answered(claim, doubtful)
        if isinstance(answer, int):
            return Grant(answer, validity(sent, claim.ttl))
        if draft.place(owner) is not None:
            self._places.add(owner)
        elif not known and not claim.queue:
            self._changer.leave_word(claim.key, image, end)
        return answer

    def _confirm(self, claim: Claim, item: Item, end: float) -> Grant | None:
        """Renew what we found to be ours (S13); None if it is not any more."""
        token = number(item["h"]["M"][claim.owner]["M"], "k")
        if "c" not in item:
            token = self._compare(claim, token, end)
        (renewal,) = self.renew([claim], self._changer.left(end))
        if renewal.outcome is Outcome.UNKNOWN:
            raise OutcomeUnknown(
                f"{self.location} gave no answer when {claim.name!r}, which is ours now, was to be "
                "confirmed.",
                name=claim.name,
                engine=self.location,
            )
        self._places.discard(claim.owner)
        if renewal.outcome is Outcome.LOST:
            return None
        return Grant(token, renewal.not_after)

    def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See Engine."""
        end = self._clock() + timeout
        position = queued.position
        while not self._closed:
            nap = min(POLL * (1 + position / 2), POLL_MOST) * dice.between(0.67, 1.33)
            self._inbox.wait(claim.owner, min(nap, end - self._clock()))
            left = end - self._clock()
            if self._closed or left < BRIEF:
                break
            limit = self._clock() + min(left, LOOK)
            item = self.table.look(key_of(claim.key), self._changer.left(limit))
            draft = self._changer.draft(claim.key, item)
            if draft.holds(claim.owner):
                return self._confirm(claim, item, limit)
            place = draft.place(claim.owner)
            if place is None:
                self._places.discard(claim.owner)
                break
            position = place
            if draft.stale or any(draft.knows(owner) for owner in list(self._owed)):
                answer = self._enter(claim, item, limit)
                if isinstance(answer, Grant):
                    return answer
                position = answer.position
        return None

    def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See Engine; a request for each, several at a time."""
        sent = self._clock()
        end = sent + timeout
        requests = [renew_request(claim) for claim in claims]
        answers = self.table.ask_all("update_item", requests, timeout)
        renewals = []
        for claim, answer in zip(claims, answers, strict=True):
            if isinstance(answer, Refused):
                renewals.append(self._not_renewed(claim, answer.item, end))
            elif isinstance(answer, LockError):
                renewals.append(UNKNOWN)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                self._remember(claim.key, answer["Attributes"])
                renewals.append(Renewal(Outcome.RENEWED, validity(sent, claim.ttl)))
        errors = [answer for answer in answers if isinstance(answer, LockError)]
        if len(errors) == len(claims):
            raise errors[0]
        return renewals

    def _not_renewed(self, claim: Claim, item: Item, end: float) -> Renewal:
        holders = item.get("h", {}).get("M", {})
        if claim.owner not in holders:
            self._crowds.pop(claim.key, None)
            return Renewal(Outcome.LOST, reason=Reason.STOLEN if holders else Reason.EXPIRED)
        sent = self._clock()  # an extend came before it: its TTL stays
        try:
            self._changer.write(touch_request(claim), self._changer.left(end))
        except Refused as refused:
            return self._not_renewed(claim, refused.item, end)
        except LockError:
            return UNKNOWN
        lease = min(claim.ttl, float(holders[claim.owner]["M"]["l"]["N"]))
        return Renewal(Outcome.RENEWED, validity(sent, lease))

    def _remember(self, key: str, item: Item) -> None:
        """Keep the image of an item that others wait for: its release will have to let one in."""
        if "q" in item:
            self._crowds[key] = item
        else:
            self._crowds.pop(key, None)

    def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See Engine."""
        if linger > 0:
            raise NotSupported(
                f"{self.location} has no clock by which a lock could stay taken after its release.",
                name=claim.name,
                engine=self.location,
            )
        end = self._clock() + timeout
        self._inbox.forget(claim.owner)
        try:
            held = self._release(claim, end)
        except LockError:
            self._owed[claim.owner] = claim
            raise
        self._owed.pop(claim.owner, None)
        self._doubts.discard(claim.owner)
        self._places.discard(claim.owner)
        self.table.released(claim.key, self._changer.left(end))
        return held

    def _release(self, claim: Claim, end: float) -> bool:
        owner, left = claim.owner, self._changer.left
        doubtful = owner in self._doubts
        item = self._crowds.pop(claim.key, None)
        if item is None and not doubtful and owner not in self._places:
            try:
                self._changer.write(release_request(claim, new_version()), left(end))
                return True
            except Refused as refused:
                item = refused.item
        if item is None:
            item = self.table.look(key_of(claim.key), left(end))

        def decide(draft: Draft) -> bool:
            held = draft.table.release(claim)
            if doubtful:
                draft.bury(owner)
            return held

        return (self._changer.change(claim.key, item, end, decide, sure=owner))[0]

    def _pay(self, key: str, draft: Draft) -> None:
        """Take out, along with whatever else is done, what we could not give back before."""
        for owner, claim in list(self._owed.items()):
            if claim.key == key and draft.knows(owner):
                draft.table.release(claim)
                draft.bury(owner)

    def inspect(self, key: str, timeout: float) -> Snapshot:
        """See Engine."""
        end = self._clock() + timeout
        item = self.table.look(key_of(key), timeout)
        return self._show(key, item, end)

    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See Engine."""
        end = self._clock() + timeout
        items = [item for item in self.table.find(prefix, timeout) if in_use(item)]
        shots = [self._show(record_key_of(item), item, end) for item in items]
        return [shot for shot in shots if shot.kind is not None]

    def _show(self, key: str, item: Item, end: float) -> Snapshot:
        """Return what an item shows; a holder whose time is over goes, as with any verb."""
        draft = self._changer.draft(key, item)
        if draft.stale:
            try:
                shot, _, _ = self._changer.change(
                    key, item, end, lambda draft: draft.table.inspect(key)
                )
                return shot
            except (EngineUnavailable, OutcomeUnknown):
                pass  # who may only look sees all the same that it is over
        return draft.table.inspect(key)

    def force(self, key: str, token: int | None, timeout: float) -> int:
        """See Engine."""
        end = self._clock() + timeout
        item = self.table.look(key_of(key), timeout)
        count, _, _ = self._changer.change(
            key, item, end, lambda draft: draft.table.force(key, token)
        )
        return count

    def ping(self, timeout: float) -> None:
        """See Engine."""
        self.table.describe(timeout)

    # --- The rest. ---

    def notices(self, callback: Notice) -> None:
        """See Engine; there is no push."""

    def stop_waiting(self) -> None:
        """See Engine."""
        self._closed = True
        self._inbox.close()

    def close(self) -> None:
        """See Engine."""
        self.stop_waiting()
        self.link.close()

    def after_fork(self) -> None:
        """See Engine."""
        self.link = self.link.abandon()
        self._start_over()
