"""After a loss: verify, compensate, alert, in this order, and nothing is hidden."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.aio import recovery as aio_recovery
from holdfast.recovery import Recovery, Report
from holdfast.testing import lose


class Steps:
    """Three steps that write down when they ran; one of them may fail."""

    def __init__(self, found: Any = None, fails: str = "") -> None:
        self.ran: list[str] = []
        self.reports: list[Report] = []
        self._found, self._fails = found, fails

    def verify(self) -> Any:
        self._run("verify")
        return self._found

    def compensate(self, found: Any) -> str:
        assert found == self._found
        self._run("compensate")
        return "refunded"

    def alert(self, report: Report) -> None:
        self.reports.append(report)
        self._run("alert")

    def _run(self, step: str) -> None:
        self.ran.append(step)
        if step == self._fails:
            raise RuntimeError(f"{step} broke")

    def recovery(self) -> Recovery:
        return Recovery(verify=self.verify, compensate=self.compensate, alert=self.alert)


LOSS = holdfast.LeaseLost("The lease of 'x' is over.", name="x")


@pytest.mark.parametrize(
    ("found", "ran"),
    [(["charge 7"], ["verify", "compensate", "alert"]), ([], ["verify", "alert"])],
)
def test_order(found: list[str], ran: list[str]) -> None:
    """What is wrong is put right before somebody is told; where nothing is, nothing is done."""
    steps = Steps(found)
    report = steps.recovery().run(LOSS)
    assert steps.ran == ran
    assert steps.reports == [report]
    assert report.incident is LOSS
    assert report.clean is not bool(found)
    assert report.compensated == ("refunded" if found else None)


@pytest.mark.parametrize(
    ("fails", "ran"),
    [
        ("verify", ["verify", "alert"]),
        ("compensate", ["verify", "compensate", "alert"]),
        ("alert", ["verify", "compensate", "alert"]),
    ],
)
def test_failed_step(fails: str, ran: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """A step that fails is in the alert and in the log, and is raised; nothing runs after it."""
    steps = Steps(["charge 7"], fails)
    with caplog.at_level(logging.CRITICAL, "holdfast"), pytest.raises(RuntimeError, match=fails):
        steps.recovery().run(LOSS)
    assert steps.ran == ran
    assert steps.reports[0].failed == ("" if fails == "alert" else fails)
    assert not steps.reports[0].clean
    assert "Recovery: " in caplog.text
    assert "The lease of 'x' is over." in caplog.text


def test_around_the_work() -> None:
    """A lease that is lost in the body starts it, and the loss goes on."""
    steps = Steps(["half a shipment"])
    with holdfast.connect("memory://recovery") as client:
        with pytest.raises(holdfast.LeaseLost):
            with steps.recovery(), client.lock("x") as lease:
                lose(lease, holdfast.Reason.EXPIRED)
    assert steps.ran == ["verify", "compensate", "alert"]
    assert isinstance(steps.reports[0].incident, holdfast.LeaseLost)


@pytest.mark.parametrize("error", [None, ValueError("unrelated"), KeyboardInterrupt()])
def test_only_after_a_loss(error: BaseException | None) -> None:
    """Success and other errors have nothing to recover from."""
    steps = Steps(["never looked at"])

    def work() -> None:
        with steps.recovery():
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    assert steps.ran == []


def test_awaitable() -> None:
    """The same in coroutines: the steps are awaited, in this order."""
    steps = Steps(["charge 7"])

    def later(function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            await asyncio.sleep(0)
            return function(*args)

        return call

    async def main() -> None:
        recovery = aio_recovery.Recovery(
            verify=later(steps.verify),
            compensate=later(steps.compensate),
            alert=later(steps.alert),
        )
        async with aio.connect("memory://recovery-aio") as client:
            async with recovery, client.lock("x") as lease:
                lose(lease, holdfast.Reason.STOLEN)
                await asyncio.sleep(5)

    with pytest.raises(holdfast.LeaseLost):
        asyncio.run(main())
    assert steps.ran == ["verify", "compensate", "alert"]
