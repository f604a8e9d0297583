"""The command line of the simulation: what one seed did, or how a range of them went."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from multiprocessing import get_context

from .aftermath import unguarded_losses
from .checkers import Violation
from .runner import Report, run_seed

AROUND = 40  # records shown before a violation


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if nothing was violated, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing.simulation",
        description="Run the real client code in a simulated world that a seed decides.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="run this one")
    which.add_argument("--seeds", metavar="A:B", help="run from A up to, not including, B")
    parser.add_argument("--jobs", type=int, default=1, help="processes for a range")
    parser.add_argument("--verbose", action="store_true", help="print the whole history")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _show(run_seed(options.seed), options.verbose)
    first, _, last = options.seeds.partition(":")
    return _run_range(range(int(first), int(last)), options.jobs)


def _show(report: Report, verbose: bool) -> int:
    records = report.history.records
    shown = {id(record) for record in records} if verbose else set()
    for violation in report.violations[:3]:
        until = [record for record in records if record.at <= violation.at]
        shown.update(id(record) for record in until[-AROUND:])
    for record in records:
        if id(record) in shown:
            print(f"{record.at:12.6f}  {record}")
    print(f"seed {report.seed}: {_totals([_summary(report)])}")
    print(f"fingerprint {report.history.fingerprint()}")
    for violation in report.violations:
        print(f"VIOLATION {violation.checker} at {violation.at:.6f}: {violation.sentence}")
    return 1 if report.violations else 0


Summary = tuple[int, Counter[str], Counter[str], Counter[str], list[Violation], int, str]


def _summary(report: Report) -> Summary:
    lost = unguarded_losses(report.history.records)
    return (
        *(report.seed, report.calls, report.verbs, report.faults),
        *(report.violations, lost, report.replay),
    )


def summarise(seed: int) -> Summary:
    """Run a seed and return what a range needs to know of it: small enough to travel."""
    return _summary(run_seed(seed))


def _run_range(seeds: Sequence[int], jobs: int) -> int:
    summaries: list[Summary] = []
    failures = 0
    with get_context("spawn").Pool(jobs) as pool:
        for summary in pool.imap_unordered(summarise, seeds, chunksize=8):
            summaries.append(summary)
            if summary[4]:
                failures += 1
                first = summary[4][0]
                print(f"\nseed {summary[0]}: {first.checker}: {first.sentence}\n  {summary[6]}")
            if len(summaries) % 50 == 0 or len(summaries) == len(seeds):
                done = f"{len(summaries)}/{len(seeds)} seeds, {failures} failed"
                print(f"\r{done}, {_totals(summaries)}", end="", flush=True)
    print()
    for fault, number in _add(summary[3] for summary in summaries).most_common():
        print(f"  {fault}: {number}")
    return 1 if failures else 0


def _totals(summaries: list[Summary]) -> str:
    calls = _add(summary[1] for summary in summaries).total()
    verbs = _add(summary[2] for summary in summaries).total()
    faults = _add(summary[3] for summary in summaries).total()
    lost = sum(summary[5] for summary in summaries)
    return (
        f"{calls} public calls, {verbs} engine verbs, {faults} faults, "
        f"{lost} updates lost without a guard"
    )


def _add(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total
