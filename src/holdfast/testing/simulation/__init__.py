"""Deterministic simulation: the real client code, in a world that one seed decides."""

from .runner import Report, run_seed

__all__ = ["Report", "run_seed"]
