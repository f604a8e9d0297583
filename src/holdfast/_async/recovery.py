"""After a loss: look what happened, put it right, tell somebody. Always in this order.

Rule 1: `verify` comes first and changes nothing; what it returns is what is wrong (falsy: nothing).
Rule 2: `compensate` runs only if something is wrong, and is handed what that is.
Rule 3: `alert` comes last and in any case, also after a step that failed, with the whole report.
Rule 4: nothing is hidden: a failed step is raised once the alert is out, and so is the loss.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..errors import LeaseLost, StaleToken

logger = logging.getLogger("holdfast")

LOSSES = (LeaseLost, StaleToken)


@dataclass(frozen=True, slots=True)
class AsyncReport:
    """What a recovery knows when it alerts."""

    incident: BaseException | None  # the loss that began it, if any
    found: Any = None  # what `verify` returned
    compensated: Any = None  # what `compensate` returned, if it ran
    failed: str = ""  # the step that raised, if any
    error: Exception | None = None  # what it raised

    @property
    def clean(self) -> bool:
        """Whether the look found nothing wrong."""
        return not self.failed and not self.found

    def __str__(self) -> str:
        began = "" if self.incident is None else f" after: {self.incident}"
        if self.failed:
            return f"Recovery: {self.failed} failed ({self.error!r}){began}"
        if self.clean:
            return f"Recovery: nothing is wrong{began}"
        return f"Recovery: found {self.found!r}, compensated: {self.compensated!r}{began}"


class AsyncRecovery:
    """The steps after a loss; run them yourself, or put the work into `with recovery`.

    As a context manager it acts on LeaseLost and StaleToken of the body, and lets them go on. The
    steps may run twice (two holders may both be told), so what `compensate` does must bear that:
    `guard.once(...)` is made for it.
    """

    def __init__(
        self,
        *,
        verify: Callable[[], Awaitable[Any]],
        compensate: Callable[[Any], Awaitable[Any]],
        alert: Callable[[AsyncReport], Awaitable[object]],
    ) -> None:
        self._verify = verify
        self._compensate = compensate
        self._alert = alert

    async def run(self, incident: BaseException | None = None) -> AsyncReport:
        """Verify, compensate, alert; return the report, or raise what a step raised."""
        found = compensated = None
        step = "verify"
        try:
            found = await self._verify()
            if found:
                step = "compensate"
                compensated = await self._compensate(found)
        except Exception as error:
            report = AsyncReport(incident, found, compensated, step, error)
            await self._tell(report)
            raise
        report = AsyncReport(incident, found, compensated)
        await self._tell(report)
        return report

    async def _tell(self, report: AsyncReport) -> None:
        """Alert; the log has it even if that fails."""
        level = logging.WARNING if report.clean else logging.CRITICAL
        logger.log(level, "%s", report)
        await self._alert(report)

    async def __aenter__(self) -> AsyncRecovery:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, LOSSES):
            await self.run(error)
