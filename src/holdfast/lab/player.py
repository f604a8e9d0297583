"""A player: an actor's process, as a story sees it. Each method is one sentence of the story."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..testing import Harness
from .assignment import Assignment
from .fleet import state_of
from .register import GUARDED, UNGUARDED

if TYPE_CHECKING:
    from .stage import Stage

WHY = {
    "StaleToken": "a newer token was there",
    "DomainMismatch": "its token is of another lock system",
}
PATIENCE = 60.0  # seconds for an answer; a machine may be slow


class Player:
    """One process of a story, and what it does."""

    def __init__(self, stage: Stage, assignment: Assignment, links: Sequence[Harness]) -> None:
        self.name, self.links = assignment.name, links
        self._stage = stage
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.lab.actor", assignment.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"lab-{self.name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line.decode())
        self._answers.put("")

    # --- Orders. ---

    def begin(self, do: str, **more: object) -> None:
        """Tell it what to do, and do not wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait until it has done that; return what came of it."""
        line = self._answers.get(timeout=PATIENCE)
        if not line:
            raise RuntimeError(f"The actor {self.name} has ended before it was told to.")
        return json.loads(line)

    def do(self, do: str, **more: object) -> Any:
        """Tell it what to do, and wait until it is done."""
        self.begin(do, **more)
        return self.answer()

    # --- What it does in a story. ---

    def acquire(self, name: str, timeout: float = 30.0, value: str | None = None) -> int | None:
        """Take the lock, or the lead."""
        self.ask_for(name, timeout, value)
        return self.gets(name)

    def ask_for(self, name: str, timeout: float = 30.0, value: str | None = None) -> None:
        """Queue for the lock, while the story goes on."""
        self.begin("acquire", name=name, timeout=timeout, value=value)

    def gets(self, name: str) -> int | None:
        """Wait until it has got the lock, or given up."""
        token: int | None = self.answer()
        if token is None:
            self._stage.say(f"{self.name} does not get {name}: somebody else has it.")
        else:
            rank = self._stage.rank(name, token)
            self._stage.say(f"{self.name} gets {name} with token #{rank} ({token}).")
        return token

    def read(self, name: str) -> None:
        """Begin its work on the resource."""
        found = self.do("read", name=name)
        if found[GUARDED] is None:
            self._stage.say(f"{self.name} begins; the guard refuses it: {WHY[found['why']]}.")
        else:
            self._stage.say(f"{self.name} reads the resource: {found[UNGUARDED]}.")

    def write(self, name: str) -> None:
        """End its work on the resource."""
        taken = self.do("write", name=name)
        guard = "takes it" if taken[GUARDED] else f"refuses it: {WHY[taken['why']]}"
        self._stage.say(f"{self.name} writes. Without a guard that is taken; the guard {guard}.")

    def work(self, name: str) -> None:
        """Read and write."""
        self.read(name)
        self.write(name)

    def look(self) -> bool:
        """Ask its lease whether it is held."""
        found = self.do("look")
        held = bool(found["held"])
        why = "" if held else f" ({found['reason']})"
        self._stage.say(f"{self.name} asks its lease: {'held' if held else f'lost{why}'}.")
        return held

    def release(self) -> bool | None:
        """Give the lock back."""
        answer: bool | None = self.do("release")
        words = {True: "done", False: "it was not its own any more", None: "no answer yet"}
        self._stage.say(f"{self.name} gives the lock back: {words[answer]}.")
        return answer

    # --- What happens to it. ---

    def stop(self) -> None:
        """Let it stand still."""
        self._process.send_signal(signal.SIGSTOP)
        while state_of(self._process.pid) not in ("T", ""):
            threading.Event().wait(0.001)

    def go_on(self) -> None:
        """Undo `stop`."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def leave(self) -> None:
        """Let it go, and see that it does."""
        self.go_on()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE / 4)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None and not os.path.exists(f"/proc/{self.pid}")
