"""What a run must say of the machine and of everybody's versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .document import Machine


def this_machine() -> Machine:
    """Return what counts for speed here; nothing that says whose it is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores or 1,
        "cpu": _cpu(),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each distribution; those that are missing are left out."""
    found = {}
    for name in sorted(set(packages) - {""}):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found
