"""What keeping leases costs: CPU of the client and of the servers, for 1,000 renewals."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ..cores import offspring
from .crew import GRACE, CrewFailed, order_for
from .load import Load
from .ours import Ours
from .sample import Sample
from .stage import Result, Stage

TTL, QUICK_TTL = 6.0, 1.5  # seconds; leases are renewed every third of it
LEASES, QUICK_LEASES = 1_000, 100
LONG = 30.0  # the usual TTL


def keep_leases(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Hold many leases and look what that takes; as many as can be had in time."""
    ttl, leases = (QUICK_TTL, QUICK_LEASES) if stage.quick else (TTL, LEASES)
    result, member = Result(Ours), stage.crew.first
    patience = max(0.5, seconds / 3)
    try:
        order = order_for(Ours, stage.ground.place, ttl, do="keep")
        # A whole number of periods: what is due is due in every one of them.
        watch = ttl / 3 if stage.quick else ttl * 2 / 3
        member.order({**order, "leases": leases, "patience": patience, "seconds": watch})
        member.answer(patience + 4 * GRACE)
        before = cpu_seconds(stage.ground.pids)
        member.tell("go")
        said = member.answer(watch + GRACE)
        server = cpu_seconds(stage.ground.pids) - before
        member.answer(4 * GRACE)
        if said["kept"] < said["leases"]:
            raise CrewFailed(f"failed: only {said['kept']} of {said['leases']} leases lasted")
        renewals = said["leases"] * said["passed"] / (ttl / 3)
        client = said["busy"] / renewals * 1e6
        extra = {"client CPU": client, "server CPU": server / renewals * 1e6}
        extra["client share"] = client / 1e3 / (LONG / 3) * 100
        result.samples.append(Sample(1.0, [0], extra=extra))
        result.note = f"{said['leases']:,} leases, ttl={ttl:g} s, renewed every third of it"
    except CrewFailed as failed:
        stage.crew.dismiss()
        result.problem = stage.ground.problem() or str(failed)
    return [result]


def cpu_seconds(processes: list[int]) -> float:
    """Return the CPU time that processes, and those they have started, have used so far.

    NaN where the system does not say it this way.
    """
    if not Path("/proc/self/stat").is_file():
        return math.nan
    total = 0
    for process in processes:
        for one in (process, *offspring(process)):
            try:
                fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")
