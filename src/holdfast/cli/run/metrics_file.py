"""`holdfast run --metrics-file`: what a run was like, for node-exporter's textfile collector."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ...errors import MissingDriver
from ...observe import globs_in, prometheus
from ...observe.patterns import Patterns
from ..base import say

SUFFIX = ".prom"


def check_path(path: Path) -> None:
    """Raise ValueError if node-exporter would not read this file, or nobody could write it."""
    if path.suffix != SUFFIX:
        raise ValueError(f"--metrics-file must end with {SUFFIX}: node-exporter reads no other.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(
            f"--metrics-file cannot be written: no such directory, or not ours: {path}"
        )


class MetricsFile:
    """Counts one run, and adds it to the file when it is over."""

    def __init__(self, path: Path) -> None:
        globs = globs_in(os.environ) or None
        try:
            from prometheus_client import CollectorRegistry
        except ImportError as error:
            raise MissingDriver(
                "--metrics-file needs prometheus_client, which is not installed: "
                'pip install "holdfast[prometheus]".'
            ) from error
        self._path = path
        self._registry = CollectorRegistry()
        self._patterns = Patterns(globs)
        self.listener = prometheus(pattern=globs, registry=self._registry)

    def write(self, name: str, code: int) -> None:
        """Add the run, which has ended with this code; a failure is said and changes nothing."""
        from ...observe.textfile import add_to_textfile, gauge

        labels = {"resource": self._patterns(name)}
        ended = gauge(
            "distributed_lock_run_end_timestamp_seconds",
            "When `holdfast run` last ended, as Unix time.",
            labels,
            time.time(),
        )
        exited = gauge(
            "distributed_lock_run_exit_code",
            "The exit code of the last `holdfast run`: 75 not acquired, 76 lost, 69 no engine.",
            labels,
            code,
        )
        try:
            add_to_textfile(self._path, self._registry, [ended, exited])
        except OSError as error:
            say(f"--metrics-file was not written: {error}.")
