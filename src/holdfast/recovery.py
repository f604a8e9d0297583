"""The way back after a loss: verify, compensate, alert. `holdfast.aio.recovery` is awaitable."""

from ._sync.recovery import Recovery, Report

__all__ = ["Recovery", "Report"]
