"""What goes out for a claim is what its messages say, whoever claims and whatever its label is."""

import pytest

from holdfast.etcd_form import pack_claim
from holdfast.etcd_link import messages as m
from holdfast.etcd_record import claim_request, seat_of
from holdfast.model import Claim, Family, Mode

LEASE = 7_587_000_000_000_000_001


def claim(owner: str, *, queue: bool = True, mode: Mode = Mode.EXCLUSIVE, label: str = "") -> Claim:
    """Return one."""
    return Claim(
        key="shop/1/x",
        name="x",
        family=Family.LOCK,
        mode=mode,
        path=(),
        limit=0,
        ttl=10.0,
        label=label,
        value="",
        owner=owner,
        queue=queue,
        revision=0,
    )


@pytest.mark.parametrize("queue", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("label", ["host:7", "a" * 32, "1234567890.123457", "ü"])
def test_form_says_the_same(
    queue: bool, mode: Mode, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for the second owner and seat, on the form of the first."""
    monkeypatch.setattr("time.time", lambda: 1794813961.5)
    for owner in ("0" * 31 + "1", "f" * 32, "short"):
        one = claim(owner, queue=queue, mode=mode, label=label)
        for number in (0, 7, 70_000):
            seat = seat_of(LEASE, number)
            sent = m.TxnRequest.FromString(pack_claim(one, seat, LEASE))
            assert sent == claim_request(one, seat, LEASE, 1794813961.5)


def test_forms_are_per_lease_and_terms() -> None:
    """Another lease, or another label, is another form."""
    owner = "0" * 32
    packed = {
        pack_claim(claim(owner, label=label), seat_of(lease, 0), lease)
        for label in "ab"
        for lease in (LEASE, 5)
    }
    assert len(packed) == 4
