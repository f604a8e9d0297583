"""docs/reliability.md, written from a matrix that was measured: nothing in it is typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .nemeses import NEMESES
from .verdict import BROKEN, DOCUMENTED, HELD, IMPOSSIBLE, PROMISES

Cell = Mapping[str, Any]

HEAD = """\
# What holds when things go wrong

Every cell below was measured: real servers, clients in processes of their own (threads, tasks,
and `holdfast run`), and one kind of fault, again and again, while they took locks and wrote to a
resource. All of them kept diaries, and the diaries were judged afterwards. `holdfast lab matrix`
does the same on your machine, `holdfast lab matrix --html FILE` draws each history, and `holdfast
lab run --engine E --fault F` goes deeper into one cell.

- **held**: every promise was kept.
- **held\\***: the same, though the engine does not promise exclusion under this fault. Do not
  count on it.
- **broken as documented**: two clients relied on the same lock at the same time, and the engine
  says that this can happen (`client.guarantees.exclusive`). Use a [guard](concepts.md), or an
  engine that bears this fault.
- –: this engine has nothing that could fail in that way.

{broken}
"""

NONE_BROKEN = (
    "There is no cell that says *broken*: that would be a bug, and the command would end with "
    "code 1."
)
BROKEN_CELLS = "**A promise was broken, which is a bug: {cells}.**"


GUARD = """\
## With a guard

The same histories on a resource that compares tokens, and on one that does not. *Lost without*
are updates that were acknowledged and then overwritten by somebody who had lost the lock;
*refused* is what the guard kept out; *lost with* is what got past it. A guard that looks at the
token only when it writes, and not when it reads, is in the third column.
"""

HOW = """\
## How it is judged

| promise | what it says |
|---|---|
{promises}

Exclusion is judged on the time during which each client could rely on its lease: from the moment
it had it in hand until it released it, was told of its loss, or its own deadline passed, all on
one clock that never steps. A process that is stopped beyond its deadline does not break
exclusion, as its lease says *lost* the moment it asks; what it writes without asking is what
guards are for. A busy machine gets more time to recover, but a broken exclusion, token or guard
is never tried again.

Measured on {made} with holdfast {version}, Python {python}, seed {seed}, {seconds:g} s of faults
for each cell. This page was written by `holdfast lab page docs/reliability/matrix.json`, from
what `holdfast lab matrix --json` had printed.
"""


def write_page(matrix: Mapping[str, Any]) -> str:
    """Return the page."""
    cells = {(cell["engine"], cell["fault"]): cell for cell in matrix["cells"]}
    promises = "\n".join(f"| {one.name} | {one.says} |" for one in PROMISES.values())
    parts = [
        HEAD.format(broken=_broken(matrix)),
        "\n".join(_table(matrix, cells)),
        "",
        "\n".join(_engines(matrix, cells)),
        GUARD,
        "\n".join(_losses(matrix, cells)),
        "",
        HOW.format(promises=promises, **{key: matrix[key] for key in KEYS}),
    ]
    return "\n".join(parts)


KEYS = ("made", "version", "python", "seed", "seconds")


def _table(matrix: Mapping[str, Any], cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    engines = matrix["engines"]
    yield f"| fault | {' | '.join(engines)} |"
    yield "|---" * (len(engines) + 1) + "|"
    for fault in matrix["faults"]:
        words = (_word(cells[engine, fault]) for engine in engines)
        yield f"| **{fault}**: {NEMESES[fault].says} | {' | '.join(words)} |"


def _broken(matrix: Mapping[str, Any]) -> str:
    cells = [f"{c['engine']} under {c['fault']}" for c in matrix["cells"] if c["outcome"] == BROKEN]
    return BROKEN_CELLS.format(cells=", ".join(cells)) if cells else NONE_BROKEN


def _word(cell: Cell) -> str:
    if cell["outcome"] == IMPOSSIBLE:
        return "–"
    if cell["outcome"] == HELD:
        return "held" if _promised(cell) else "held\\*"
    return f"**{cell['outcome']}**"


def _promised(cell: Cell) -> bool:
    return any(one["promise"] == "E" and one["promised"] for one in cell["verdicts"])


def _engines(matrix: Mapping[str, Any], cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """Say for each engine what it bears, what it does not, and what still held then."""
    yield "## Engine by engine"
    for engine in matrix["engines"]:
        own = [cells[engine, fault] for fault in matrix["faults"]]
        run = [cell for cell in own if cell["outcome"] != IMPOSSIBLE]
        bears = [cell["fault"] for cell in run if _promised(cell)]
        not_promised = [cell["fault"] for cell in run if not _promised(cell)]
        seen = [cell["fault"] for cell in run if cell["outcome"] == DOCUMENTED]
        leases, faults = sum(c["leases"] for c in run), sum(_faults(c) for c in run)
        yield ""
        yield f"### {engine}"
        yield ""
        yield f"{leases} leases under {faults} faults. It promises exclusion under {_list(bears)}."
        if not_promised:
            yield f"It does not under {_list(not_promised)}."
            yield f"It was seen broken under {_list(seen)}."
            kept = [one["name"] for one in _kept(run)]
            yield f"In all of these runs still held: {_list(kept)}."
        reasons = sorted({cell["reason"] for cell in own if cell["outcome"] == IMPOSSIBLE})
        for reason in reasons:
            yield f"Not possible: {reason}."
    yield ""


def _kept(run: list[Cell]) -> list[dict[str, Any]]:
    """Return the promises that were kept in every run."""
    broken = {one["promise"] for cell in run for one in cell["verdicts"] if one["violations"]}
    verdicts: list[dict[str, Any]] = run[0]["verdicts"]
    return [one for one in verdicts if one["promise"] not in broken]


def _losses(matrix: Mapping[str, Any], cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    yield "| fault | lost without | refused | lost with one that looks late | lost with |"
    yield "|---|---|---|---|---|"
    for fault in matrix["faults"]:
        run = [cells[engine, fault] for engine in matrix["engines"]]
        run = [cell for cell in run if cell["outcome"] != IMPOSSIBLE]
        lost = [
            sum(cell["lost_updates"][kind] for cell in run)
            for kind in ("unguarded", "write-only", "guarded")
        ]
        refused = sum(cell["refused"] for cell in run)
        if any((*lost, refused)):
            yield f"| {fault} | {lost[0]} | {refused} | {lost[1]} | {lost[2]} |"


def _faults(cell: Cell) -> int:
    return sum(cell["struck"].values())


def _list(words: list[str]) -> str:
    return ", ".join(words) if words else "none of them"
