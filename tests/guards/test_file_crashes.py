"""Whatever ends the file guard in the middle of its work: the old file or the new, no lower floor.

Two ways to end. A process that is killed, before and after each of its system calls, in truth. And
a power loss, as a model: what was not synchronised may be there or not, names in any combination.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StaleToken
from holdfast.guards import Fence, FileGuard

NAME = "report.json"
OLD, NEW = b"old" * 100, b"new" * 100
CALLS = ("open", "write", "fsync", "fchmod", "replace", "unlink", "close", "stat")


def work(path: Path, begun: Callable[[], object]) -> None:
    """Replace the old file by the new one, under a key and with token 6."""
    with FileGuard(path).transaction(Fence(6, "tests")) as file:
        begun()

        def replace() -> str:
            file.write(NEW)
            return "done"

        file.once("key", replace)


def prepare(path: Path) -> None:
    """Make the old file, written with token 5."""
    with FileGuard(path).transaction(Fence(5, "tests")) as file:
        file.write(OLD)


def check(path: Path, *, begun: bool, over: bool) -> str:
    """Look at what is left, as a plain reader and as the next holder; say which file it was."""
    plain = path.read_bytes()
    assert plain in (OLD, NEW)
    if over:
        assert plain == NEW, "it was said to be stored"
    with (
        pytest.raises(StaleToken),
        FileGuard(path).transaction(Fence(5 if begun else 4, "tests")),
    ):
        pass
    again: list[bytes] = []
    with FileGuard(path).transaction(Fence(7, "tests")) as file:
        found = file.read()
        assert found in (OLD, NEW)
        file.once("key", lambda: again.append(b"ran"))
    assert (found == NEW) is (not again), "the data and its key were stored apart"
    assert path.read_bytes() == found
    left = {name for name in os.listdir(path.parent) if not name.startswith(f"{NAME}.fence")}
    assert left == {NAME}
    return "new" if found == NEW else "old"


# --- Killed. ---

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.guards.test_file_crashes import CALLS, work
import fcntl

path, number = Path(sys.argv[2]), 0

def failing(call, last):
    def step(*arguments, **options):
        global number
        number += 1
        if number == last:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*arguments, **options)
        number += 1
        if number == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return step

def say(word):
    real["write"](1, f"{word}\\n".encode())

real = {name: getattr(os, name) for name in CALLS}
for line in sys.stdin:
    child = os.fork()
    if not child:
        for name, call in real.items():
            setattr(os, name, failing(call, int(line)))
        fcntl.flock = failing(fcntl.flock, int(line))
        work(path, lambda: say("begun"))
        say("over")
        os._exit(0)
    say("killed" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "ended")
"""


class Victim:
    """A process that forks, does the work in the fork and kills that at a given step."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(Path(__file__).parents[2]), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def work(self, last: int) -> set[str]:
        """Return what it said: begun, over, and killed or ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{last}\n")
        self._process.stdin.flush()
        said: set[str] = set()
        while not said & {"killed", "ended"}:
            line = self._process.stdout.readline()
            assert line, "the victim's parent has died"
            said.add(line.strip())
        return said

    def end(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)


def test_killed_at_any_step(tmp_path: Path) -> None:
    """Killed before or after any system call: the old file or the new one, and it goes on."""
    found = []
    folder = tmp_path / "folder"
    victim = Victim(folder / NAME)
    try:
        for last in itertools.count(1):
            folder.mkdir()
            prepare(folder / NAME)
            said = victim.work(last)
            found.append(check(folder / NAME, begun="begun" in said, over="over" in said))
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
            if "ended" in said:
                break
    finally:
        victim.end()
    assert len(found) > 60
    assert found == sorted(found, reverse=True), "once it is new it stays new"
    assert set(found) == {"old", "new"}


# --- Without power. ---


class Journal:
    """What of a folder is certain, and what may be lost with the power.

    Names are certain once the folder was synchronised, contents once their file was. After each
    step `told` is given everything that may be left.
    """

    def __init__(self, folder: Path, told: Callable[[dict[str, bytes]], None]) -> None:
        self.folder = folder
        self.told = told
        self.names = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.pending: list[tuple[str, str | None]] = []  # to, from; None: a new file
        self.sure: dict[str, bytes] = {}  # contents of new files
        self.unsure: dict[str, bytes] = {}
        self.open: dict[int, str] = {}

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hear of every step from now on."""
        for name in ("open", "write", "fsync", "replace"):
            step = self.heard(getattr(os, name), getattr(self, f"after_{name}"))
            monkeypatch.setattr(os, name, step)

    def heard(self, call: Callable[..., Any], after: Callable[..., None]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            result = call(*arguments)
            after(result, *arguments)
            self.tell()
            return result

        return step

    def tell(self) -> None:
        for state in self.losses():
            self.told(state)

    def after_open(self, descriptor: int, path: str, flags: int, mode: int = 0) -> None:
        name = os.path.basename(path)
        self.open[descriptor] = "" if path == str(self.folder) else name
        if flags & os.O_EXCL:
            self.pending.append((name, None))
            self.unsure[name] = b""

    def after_write(self, count: int, descriptor: int, content: Any) -> None:
        self.unsure[self.open[descriptor]] += bytes(content[:count])

    def after_fsync(self, _: None, descriptor: int) -> None:
        name = self.open[descriptor]
        if name:
            self.sure[name] = self.unsure.pop(name)
        else:
            self.names = self.left(full=True, kept=[True] * len(self.pending))
            self.pending.clear()

    def after_replace(self, _: None, old: str, new: str) -> None:
        self.pending.append((os.path.basename(new), os.path.basename(old)))

    def losses(self) -> Iterator[dict[str, bytes]]:
        """Yield what may be left of the folder now."""
        for full, *kept in itertools.product((True, False), repeat=1 + len(self.pending)):
            yield self.left(full, kept)

    def left(self, full: bool, kept: list[bool]) -> dict[str, bytes]:
        """Return the folder with these pending names, and unsure files whole or empty."""
        names = dict(self.names)
        for keep, (to, source) in zip(kept, self.pending, strict=True):
            if keep:
                name = to if source is None else source
                unsure = self.unsure.get(name, b"") if full else b""
                names[to] = self.names.get(name, self.sure.get(name, unsure))
                names.pop(source or "", None)
        return names


def test_power_lost_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever had not reached the disk is gone: the old file or the new one, and it goes on."""
    folder = tmp_path / "folder"
    folder.mkdir()
    prepare(folder / NAME)
    how_far = {"begun": False, "over": False}
    # What may be left, and how far the work had come when it was last possible.
    states: dict[tuple[tuple[str, bytes], ...], dict[str, bool]] = {}
    journal = Journal(
        folder, lambda left: states.update({tuple(sorted(left.items())): {**how_far}})
    )
    with monkeypatch.context() as patch:
        journal.watch(patch)
        work(folder / NAME, lambda: how_far.update(begun=True))
        how_far["over"] = True
        journal.tell()
    found = set()
    for number, (state, came) in enumerate(states.items()):
        place = tmp_path / str(number)
        place.mkdir()
        for name, content in state:
            (place / name).write_bytes(content)
        found.add(check(place / NAME, **came))
    assert len(states) > 8
    assert found == {"old", "new"}
