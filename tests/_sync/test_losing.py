"""(Generated from _async/test_losing.py by tools/unasync.py: do not edit.) `lose` makes a lease lost as if the engine had said so, for users' own tests."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.model import Reason
from holdfast.testing import lose
from holdfast.testing.running import Body
from tests._sync.faulty_suite import PATIENCE, FaultySuite


class TestLosing(FaultySuite):
    """On a client whose engine has nothing to do with it."""

    def test_everybody_hears_of_it(self) -> None:
        """`held`, `lost`, the callback and the error all say the reason."""
        for reason in Reason:
            told: list[Reason] = []
            lease = self.take(ttl=30, on_lost=lambda lease, why, told=told: told.append(why))
            lose(lease, reason)
            assert not lease.held
            assert lease.remaining() == 0
            assert lease.lost.is_set()
            assert lease.lost_reason == reason
            with pytest.raises(holdfast.LeaseLost) as caught:
                lease.ensure_held()
            assert caught.value.reason == reason
            assert lease.release() is (reason == "max_hold")
            self.until_free()
            self.until(lambda told=told, reason=reason: told == [reason])  # type: ignore[misc]

    def test_a_body_is_left_with_the_loss(self) -> None:
        """The body is told in the way of its colour, and LeaseLost comes out."""
        with pytest.raises(holdfast.LeaseLost, match="another owner"):
            with self.client.lock("x", ttl=30) as lease:
                lose(lease, "stolen")
                Body.work_on(lease)

    def test_who_waits_gets_the_lock(self) -> None:
        """For the engine it is over as well: a new lease has a higher token."""
        lease = self.take(ttl=30)
        lose(lease)
        successor = self.other.lock("x").acquire(timeout=PATIENCE)
        assert successor is not None
        assert successor.token > lease.token
        assert successor.release() is True

    def test_lost_is_final(self) -> None:
        """A lease that is over stays as it is; a reason that does not exist is refused."""
        lease = self.take(ttl=30)
        lose(lease, "forced")
        lose(lease, "stolen")
        assert lease.lost_reason == "forced"
        released = self.take("y")
        assert released.release() is True
        lose(released)
        assert released.lost_reason is None
        with pytest.raises(ValueError, match="tired"):
            lose(released, "tired")
