"""`holdfast run` on a terminal: the command has the foreground, Ctrl-C and Ctrl-Z work (S32)."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cli.conftest import Commands

PATIENCE = 20.0
RUN = f"{sys.executable} -m holdfast run"


class Screen:
    """A shell on a terminal of its own, as a user has it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noediting", "-i"], environment)
        self.text = ""

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self.file, text.encode())

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until something is to be read, and forget what was before it."""
        end = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.text)) is None:
            assert time.monotonic() < end, self.text
            if select.select([self.file], [], [], 0.1)[0]:
                with suppress(OSError):
                    self.text += os.read(self.file, 65536).decode(errors="replace")
        self.text = self.text[found.end() :]
        return found

    def end(self) -> None:
        """End the shell and what it started."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGHUP)
        os.close(self.file)  # hangs up: the kernel tells everybody on the terminal
        time.sleep(0.1)
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def screen(commands: Commands) -> Iterator[Screen]:
    """A shell that has shown its first prompt."""
    environment = {**commands.environment, "PS1": "ready> ", "TERM": "xterm", "HISTFILE": ""}
    del environment["PYTHONWARNINGS"]  # pty.fork is no business of ours
    it = Screen(environment)
    it.expect("ready> ")
    yield it
    it.end()


FOREGROUND = "ps -o pgid=,tpgid= -p $$"


def test_child_has_the_foreground_and_gives_it_back(screen: Screen) -> None:
    """The command's group is the terminal's foreground; afterwards the shell reads again."""
    screen.type(f"{RUN} job -- sh -c '{FOREGROUND}; read x; echo got=$x'\n")
    found = screen.expect(r"\n\s*(\d+)\s+(\d+)\s*\r\n")
    assert found[1] == found[2]
    screen.type("word\n")
    screen.expect("got=word")
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=0\r\n")


def test_ctrl_c_reaches_the_command_once(screen: Screen) -> None:
    """Ctrl-C is the command's business; if it dies of it, the code is 130."""
    screen.type(f"{RUN} job -- sh -c 'trap \"echo caught\" INT; echo on; sleep 9; echo off'\n")
    screen.expect(r"\non\r\n")
    screen.type("\x03")
    screen.expect(r"caught\r\n.*off\r\n")
    screen.expect("ready> ")
    screen.type(f"{RUN} job -- sh -c 'echo o''n; exec sleep 60'\n")
    screen.expect(r"\non\r\n")
    screen.type("\x03")
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=130\r\n")


def test_ctrl_c_while_waiting(screen: Screen, commands: Commands) -> None:
    """Who waits at a terminal is told for whom, and Ctrl-C gives up with 130."""
    holder = commands.start(
        "run", "--label", "nights\x1b", "job", "sh", "-c", "echo $$; read x", stdin=-1
    )
    commands.child_of(holder)
    screen.type(f"{RUN} job -- echo never\n")
    screen.expect(r"Waiting for 'job', which nights\\x1b with token \d+ holds")
    screen.type("\x03")
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=130\r\n")
    commands.ended(holder, 1)


def test_ctrl_z_and_fg(screen: Screen) -> None:
    """Ctrl-Z brings the shell back, fg the command, which has the terminal again."""
    script = f"sh -c 'echo o''n; read x; {FOREGROUND}; echo got=$x; exit 6'"
    screen.type(f"{RUN} --ttl 60 job -- {script}\n")
    screen.expect(r"\non\r\n")
    screen.type("\x1a")
    screen.expect("Stopped")
    screen.expect("ready> ")
    screen.type("fg\n")
    screen.expect("holdfast run")
    screen.type("again\n")
    found = screen.expect(r"\n\s*(\d+)\s+(\d+)\s*\r\n")
    assert found[1] == found[2]
    screen.expect("got=again")
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=6\r\n")


def test_ctrl_z_for_longer_than_the_ttl(screen: Screen) -> None:
    """A job that stays stopped has lost its lock; fg says so with 76."""
    screen.type(f"{RUN} --ttl 1 job -- sh -c 'echo o''n; exec sleep 60'\n")
    screen.expect(r"\non\r\n")
    screen.type("\x1a")
    screen.expect("Stopped")
    screen.expect("is being lost, because holdfast run was stopped")
    screen.type("fg\n")
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=76\r\n")


def test_command_in_a_pipe_gets_the_terminal_when_it_asks(screen: Screen) -> None:
    """In a pipe the command stays in the background, and still may read from /dev/tty."""
    screen.type(f"echo piped | {RUN} job -- sh -c 'cat; echo ask; read x </dev/tty; echo got=$x'\n")
    screen.expect(r"\npiped\r\nask\r\n")
    screen.type("word\n")
    screen.expect("got=word")
    screen.expect("ready> ")


def test_killed_command_leaves_a_sane_terminal(screen: Screen) -> None:
    """A command that dies without setting the terminal right does not leave it without echo."""
    screen.type(f"{RUN} job -- sh -c 'stty -echo -icanon; kill -9 $$'\n")
    screen.expect("ready> ")
    screen.type("stty -a | tr -d ';' | grep -ow -e '-*echo' -e '-*icanon' | xargs echo modes:\n")
    assert "-" not in screen.expect(r"\nmodes: ([^\r]*)")[1]


def test_tables_and_colours_on_a_terminal(screen: Screen, commands: Commands) -> None:
    """Tables are drawn, in colour unless NO_COLOR is set; text of strangers is inert."""
    label = "\x1b]0;\x07[b]"
    holder = commands.start("run", "--label", label, "job", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    for prefix, green in (("", "\x1b[32m"), ("NO_COLOR=1 ", "")):
        screen.type(f"{prefix}{RUN.removesuffix('run')}ls\n")
        screen.expect("──")
        text = screen.expect(r"(?s).*?ready> ")[0]
        assert r"\x1b]0;\x07[b]" in text
        assert "\x1b]0" not in text
        assert "\x07" not in text
        assert ("\x1b[32m" in text) == bool(green)
    commands.ended(holder, 1)


def test_live_view(screen: Screen, commands: Commands) -> None:
    """`watch` fills the screen, follows what happens, and leaves the terminal as it was."""
    screen.type(f"{RUN.removesuffix('run')}watch --interval 0.1\n")
    screen.expect("No lock is in use")
    holder = commands.start("run", "job", "sh", "-c", "echo $$; read x", stdin=-1)
    commands.child_of(holder)
    screen.expect("holds")
    screen.type("\x03")
    screen.expect(re.escape("\x1b[?1049l"))
    screen.expect("ready> ")
    screen.type("echo code=$?\n")
    screen.expect(r"code=0\r\n")
    commands.ended(holder, 1)
