"""A claim's transaction, packed: made once for each lock, then filled in.

To make the twenty messages of it takes longer than to send them. Of all that only owner, seat and
time change from claim to claim, and all are always of the same length: they are replaced in the
packed bytes of a form, where random words that nobody else uses stand for them.
"""

from __future__ import annotations

import random
import secrets
import time
from functools import lru_cache

from .etcd_record import claim_request
from .model import Claim

FORMS = 500  # locks whose forms are kept

OWNER = secrets.token_hex(16)
SEAT = secrets.token_hex(10)
SINCE = float(f"{random.SystemRandom().randrange(10**9, 2 * 10**9)}.123457")
_owner, _seat, _since = OWNER.encode(), SEAT.encode(), f"{SINCE:.6f}".encode()


@lru_cache(FORMS)
def _form(claim: Claim, lease: int) -> bytes:
    packed: bytes = claim_request(claim, SEAT, lease, SINCE).SerializeToString()
    return packed


def pack_claim(claim: Claim, seat: str, lease: int) -> bytes:
    """Return the transaction of `claim_request`, ready to be sent."""
    owner = claim.owner.encode()
    if len(owner) != len(_owner) or len(seat) != len(SEAT):  # no owner of ours; a very long queue
        packed: bytes = claim_request(claim, seat, lease, time.time()).SerializeToString()
        return packed
    form = _form(claim._replace(owner=OWNER), lease)
    form = form.replace(_owner, owner).replace(_seat, seat.encode())
    return form.replace(_since, b"%.6f" % time.time())
