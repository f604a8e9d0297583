"""The same names as `holdfast.recovery`, awaitable."""

from .._async.recovery import AsyncRecovery as Recovery
from .._async.recovery import AsyncReport as Report

__all__ = ["Recovery", "Report"]
