"""The worker processes, seen from the lab: started, stopped, killed, each by its own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..testing.servers.spawning import spawn
from .assignment import ASYNC, COMMAND, SYNC, Assignment
from .diary import SUFFIX, Diary, read_lines
from .orders import FINISH, give
from .wall_clock import make_clock, set_clock

START_PATIENCE = 60.0  # seconds; Python starts slowly where many do
KILL_PATIENCE = 5.0
ASYNC_TASKS = 3


class Member:
    """One worker process."""

    def __init__(self, assignment: Assignment, environment: Mapping[str, str]) -> None:
        self.assignment = assignment
        self.name, self.colour = assignment.name, assignment.colour
        make_clock(assignment.home, self.name)
        command = [sys.executable, "-m", "holdfast.lab.worker", assignment.to_json()]
        self._process: subprocess.Popen[bytes] = spawn(
            command, environment, assignment.home / f"{self.name}.log"
        )
        self._stopped: list[int] = []  # pids
        self.killed = False

    @property
    def alive(self) -> bool:
        """Whether it runs, or is stopped."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, do: str, **more: object) -> None:
        """Give it an order."""
        give(self.assignment.home, self.name, do, **more)

    def set_clock(self, seconds: float) -> None:
        """Set its wall clock that far from the real one; 0 sets it right."""
        set_clock(self.assignment.home, self.name, seconds)

    def last(self, what: str) -> dict[str, object] | None:
        """Return the last line of its diary that says `what`."""
        path = self.assignment.home / f"{self.name}{SUFFIX}"
        if not path.exists():
            return None
        found = [line for line in read_lines(path) if line["what"] == what]
        return found[-1] if found else None

    def heart(self, choice: float) -> int | None:
        """Return the process to hit: its own, of a command the front or the one behind it."""
        if self.colour != COMMAND:
            return self.pid if self.alive else None
        started = self.last("started")
        if started is None:
            return None
        front = int(str(started["pid"]))
        family = [pid for pid in (front, *children_of(front)) if not is_gone(pid)]
        return family[int(choice * len(family))] if family else None

    def stop(self, pid: int) -> None:
        """Let one of its processes stand still."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        self._stopped.append(pid)

    def go_on(self) -> None:
        """Let all go on that stand still."""
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stopped.clear()
        if self.colour != COMMAND and self.alive:
            self._process.send_signal(signal.SIGCONT)  # it may have stopped itself

    def stands_still(self) -> bool:
        """Say whether it was stopped, or has stopped itself."""
        return bool(self._stopped) or state_of(self.pid) in ("", "T")

    def kill(self) -> None:
        """End it at once, and with it what it runs under `holdfast run`."""
        self.killed = True
        family = descendants_of(self.pid) if self.colour == COMMAND else []
        self._process.kill()
        self._process.wait()
        end_all(family)


class Fleet:
    """All workers of a run, and those that came after the killed ones."""

    def __init__(
        self,
        folder: Path,
        diary: Diary,
        make: Callable[[str, str], Assignment],
        environment: Mapping[str, str],
    ) -> None:
        self._folder, self._diary, self._make = folder, diary, make
        self._environment = environment
        self._mutex = threading.Lock()
        self.members: list[Member] = []

    def start(self, crew: Sequence[str]) -> None:
        """Start one worker for each colour named, and return when all are at work."""
        self.members = [
            self._member(f"{colour}-{number}", colour) for number, colour in enumerate(crew, 1)
        ]
        end = time.monotonic() + START_PATIENCE
        for member in self.members:
            while member.last("ready") is None:
                if not member.alive or time.monotonic() > end:
                    log = (self._folder / f"{member.name}.log").read_text(errors="replace")
                    raise RuntimeError(f"The worker {member.name} did not start:\n{log[-2000:]}")
                time.sleep(0.02)

    def _member(self, name: str, colour: str) -> Member:
        return Member(self._make(name, colour), self._environment)

    def victims(self, *colours: str) -> list[Member]:
        """Return those that live and are of these colours, of all without any."""
        wanted = colours or (SYNC, ASYNC, COMMAND)
        with self._mutex:
            return [one for one in self.members if one.alive and one.colour in wanted]

    def kill(self, member: Member, pid: int) -> None:
        """Kill a worker, or one process of a command; write down beforehand that it will be."""
        self._diary.note("killed", client=member.name, whole=pid == member.pid)
        if pid == member.pid:
            member.kill()
        else:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def replace(self, member: Member) -> None:
        """Start another in the place of one that was killed."""
        base, _, number = member.name.partition("+")
        name = f"{base}+{int(number or 0) + 1}"
        with self._mutex:
            self.members.append(self._member(name, member.colour))

    def finish(self, seconds: float) -> list[str]:
        """Let all come to their end; return who did not in that time, and was killed."""
        for member in self.members:
            if member.alive:
                member.tell(FINISH)
        end = time.monotonic() + seconds
        while any(member.alive for member in self.members) and time.monotonic() < end:
            for member in self.members:
                member.go_on()  # again and again: an order to stop may have been on its way
            time.sleep(0.05)
        late = [member for member in self.members if member.alive]
        for member in late:
            member.kill()
        return [member.name for member in late]

    def end(self) -> None:
        """Leave nothing behind, whatever the state."""
        for member in self.members:
            member.go_on()
            if member.alive:
                member.kill()


def tasks_of(colour: str) -> int:
    """Return how many tasks a worker of this colour has."""
    return ASYNC_TASKS if colour == ASYNC else 1


def state_of(pid: int) -> str:
    """Return the letter that Linux has for what a process does; empty if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def is_gone(pid: int) -> bool:
    """Say whether a process has ended."""
    return state_of(pid) in ("", "Z", "X")


def end_all(pids: Sequence[int]) -> None:
    """Kill processes one after the other, each once those before it had time to end it."""
    for pid in pids:
        end = time.monotonic() + KILL_PATIENCE
        while not is_gone(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                break
            time.sleep(0.01)


def descendants_of(pid: int) -> list[int]:
    """Return the children of a process and theirs, parents before children."""
    found = children_of(pid)
    return [*found, *(one for child in found for one in descendants_of(child))]


def children_of(pid: int) -> list[int]:
    """Return the children of a process, whichever of its threads started them."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            found.extend(int(word) for word in path.read_text().split())
    return found
