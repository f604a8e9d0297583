"""One server as a child process: on a free loopback port, in a temporary directory of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from .errors import ServerFailed
from .ports import port_of, reserve
from .spawning import spawn

ADDRESS_IN_USE = "address already in use"

_ATTEMPTS = 5  # to be quicker at a free port than programs that do not reserve theirs
_TAIL = 2000  # characters of a log that an error shows
_started: set[ServerProcess] = set()


class ServerProcess:
    """Subclass it for a server: say how it is configured, called, and known to be ready.

    `start` and `stop`, or use it in a with statement. What was not stopped is stopped when the
    interpreter ends, and killed with it if it is killed (on Linux).
    """

    name: str = "server"
    start_timeout: float = 20.0
    stop_timeout: float = 5.0

    port: int  # after `start`
    directory: Path  # after `start`

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._place: socket.socket | None = None  # keeps its port while it is down
        self._home = 0  # the process that started it
        self.paused = False

    # --- What a subclass says. ---

    def prepare(self) -> None:
        """Write what the server needs into its directory, for its port."""

    def command_line(self) -> Sequence[str]:
        """Return the program and its arguments."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the server."""
        return os.environ

    def is_ready(self) -> bool:
        """Say whether it serves; better by its log than by its port, which may be another's."""
        raise NotImplementedError

    # --- What is known. ---

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process, also of one that has ended."""
        if self._process is None:
            raise ServerFailed(f"{self.name} was not started")
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """The file that holds what it has written since it was last started."""
        return self.directory / "log"

    def log(self) -> str:
        """Return what it has written since it was last started."""
        try:
            return self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    # --- Starting and stopping. ---

    def start(self) -> Self:
        """Start it and return when it is ready: anew, or after `kill` where it was."""
        if self.running:
            raise ServerFailed(f"{self.name} is running already")
        if self._process is not None:
            self._run()
            return self
        for attempt in range(_ATTEMPTS):
            self._place = reserve()
            self.port = port_of(self._place)
            self.directory = Path(tempfile.mkdtemp(prefix=f"holdfast-{self.name}-"))
            try:
                self.prepare()
                self._run()
            except BaseException as error:
                taken = ADDRESS_IN_USE in self.log().lower()
                self.stop()
                last = attempt == _ATTEMPTS - 1
                if last or not (taken and isinstance(error, ServerFailed)):
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End it, paused or not, and remove its directory; for a server that is gone, only that."""
        if self._process is not None and self._home != os.getpid():
            return  # a forked process, which is not to end what its parent still uses
        if self.running:
            self.terminate()
            assert self._process is not None
            try:
                self._process.wait(self.stop_timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None
        if self._place is not None:
            self._place.close()
        _started.discard(self)
        shutil.rmtree(getattr(self, "directory", ""), ignore_errors=True)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and do not wait: `stop` does. So many can end at once."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL) and keep its directory: `start` brings it back as it was."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop it, with its state and its connections, until `resume`."""
        self._signal(signal.SIGSTOP)
        self.paused = True
        # The signal is only on its way: return when the last thread stands still.
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)
        self.paused = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # --- Inside. ---

    def _run(self) -> None:
        self._home, self.paused = os.getpid(), False
        self._process = spawn(self.command_line(), self.environment(), self.log_path)
        _started.add(self)
        end = time.monotonic() + self.start_timeout
        while not self.is_ready():
            if not self.running:
                raise self._failure(f"ended with code {self._process.returncode}")
            if time.monotonic() > end:
                raise self._failure(f"was not ready within {self.start_timeout:g} s")
            time.sleep(0.003)

    def _failure(self, what: str) -> ServerFailed:
        return ServerFailed(f"{self.name} {what}; its log ends with:\n{self.log()[-_TAIL:]}")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise ServerFailed(f"{self.name} was not started")
        self._process.send_signal(number)


@atexit.register
def stop_all() -> None:
    """Stop whatever this process has started and not stopped."""
    mine = [server for server in _started if server._home == os.getpid()]
    for server in mine:
        if server.running:
            server.terminate()
    for server in mine:
        server.stop()
