"""`holdfast lab` as its users see it: output, exit codes, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.lab.fleet import descendants_of, is_gone
from holdfast.lab.network import PRIVATE, SHARED
from holdfast.lab.planting import VARIABLE
from holdfast.lab.verdict import PROMISES
from holdfast.testing.servers import need, redis_program
from tests.lab.test_stories import Balanced

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
LAB = [sys.executable, "-m", "holdfast", "lab"]


def lab(*args: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the lab to its end."""
    done = subprocess.run(
        [*LAB, *args], capture_output=True, text=True, timeout=110, env={**os.environ, **more}
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def eventually(what: partial[bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "this has not happened in time"
        time.sleep(0.02)


@pytest.mark.slow
def test_matrix_as_json_and_as_a_page(tmp_path: Path) -> None:
    """One cell that is held, one that cannot be; the page has a picture of the history, and all of
    it is well formed."""
    page = tmp_path / "matrix.html"
    faults = ["--fault", "fork", "--fault", "cut"]
    options = ["--engine", "sqlite", *faults, "--seconds", "2", "--seed", "4", "--json"]
    done = lab("matrix", *options, "--html", str(page))
    assert done.stderr.startswith("holdfast: seed 4\n")
    found = json.loads(done.stdout)
    assert (found["seed"], found["engines"], found["faults"]) == (4, ["sqlite"], ["fork", "cut"])
    held, impossible = found["cells"]
    assert held["outcome"] == "held"
    assert [one["promise"] for one in held["verdicts"]] == list(PROMISES)
    assert held["leases"] > 0
    assert impossible["outcome"] == "not possible"
    assert "no network" in impossible["reason"]
    text = page.read_text()
    Balanced().feed(text)
    picture = text[text.index("<svg") : text.index("</svg>") + len("</svg>")]
    ElementTree.fromstring(picture)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("holdfast-lab")]


@pytest.mark.slow
def test_a_broken_promise_ends_with_1_and_keeps_what_happened(tmp_path: Path) -> None:
    """A library that is broken on purpose: the verdict says so, and the diaries, the logs of the
    server and the command that does it again are there."""
    need(redis_program)
    bug = "tests.lab.planted:fork_keeps_lease"
    options = ["--engine", "redis", "--fault", "fork", "--seconds", "3", "--ttl", "0.5"]
    done = lab("run", *options, "--seed", "9", code=1, **{VARIABLE: bug, "PYTHONPATH": str(ROOT)})
    assert "seed 9" in done.stderr.splitlines()[0]
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "broken" in lines["exclusion"]
    assert "held" in lines["tokens"]
    replay = "holdfast lab run --engine redis --fault fork --seconds 3 --ttl 0.5 --seed 9"
    assert replay in done.stderr
    (folder,) = tmp_path.glob("holdfast-lab-*")
    assert str(folder) in done.stderr
    names = {path.name for path in folder.iterdir()}
    assert {"lab.jsonl", "sync-1.jsonl", "register.db", "setup.json", "server-0.log"} <= names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_nothing_survives_the_lab(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """Ctrl-C in the middle of faults: servers, workers and their commands are gone, and so are all
    folders. Even after a kill -9 no process stays."""
    need(redis_program)
    options = ["--engine", "redis", "--fault", "server-pause", "--fault", "pause"]
    process = subprocess.Popen(
        [*LAB, "run", *options, "--seconds", "600"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # A server, four workers, and the command that one of them runs.
        eventually(partial(_has, process.pid, 6))
        family = descendants_of(process.pid)
        process.send_signal(number)
        assert process.stderr is not None
        errors = process.stderr.read()
        assert process.wait(PATIENCE) == code
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in errors
    for pid in family:
        eventually(partial(is_gone, pid))
    if number != signal.SIGKILL:
        assert "was stopped, too" in errors
        left = [path for path in tmp_path.iterdir() if path.name.startswith("holdfast-")]
        assert [path for path in left if not path.name.startswith("holdfast-programs")] == []


def _has(pid: int, many: int) -> bool:
    return len(descendants_of(pid)) >= many


def test_soak_reports_what_it_did(tmp_path: Path) -> None:
    """Seeds, faults and leases are counted, as a page."""
    page = tmp_path / "soak.md"
    options = ["--engine", "sqlite", "--minutes", "0", "--seconds", "1", "--seed", "11"]
    done = lab("soak", *options, "--report", str(page))
    assert "sqlite, seed 11: held" in done.stdout
    text = page.read_text()
    assert "seeds 11 to 11" in text
    assert "| sqlite | 1 |" in text
    assert "No promise was broken" in text


def test_stories_are_listed() -> None:
    """Without a name all stories are shown, with a wrong one the way to them."""
    assert "paused-holder" in lab("tell").stdout
    assert "`holdfast lab tell` lists them" in lab("tell", "nothing", code=64).stderr


@pytest.mark.slow
def test_a_story_in_the_terminal(tmp_path: Path) -> None:
    """The sentences, the drawing, the hazard window and both outcomes."""
    page = tmp_path / "story.html"
    done = lab("tell", "two-systems", "--html", str(page))
    for words in (
        "█",
        "Hazard window",
        "Without a guard: ",
        "With a guard:",
        "another lock system",
    ):
        assert words in done.stdout
    Balanced().feed(page.read_text())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "--fault", "earthquake"], "no fault called earthquake; known are: pause"),
        (["run", "--engine", "nothing"], "no engine called 'nothing'"),
        (["run", "--engine", "memory"], "one process"),
        (["run", "--seconds", "0"], "0.0 is not in the range"),
        (["nothing"], "No such command"),
    ],
)
def test_wrong_usage(args: list[str], words: str) -> None:
    """One sentence, and 64."""
    assert words in lab(*args, code=64).stderr


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    """A fault that an engine cannot have is no error, but it is not passed over in silence."""
    done = lab("run", "--engine", "sqlite", "--fault", "failover")
    assert "sqlite: cannot be done here: there is no server and no network" in done.stderr


def test_help_names_every_fault() -> None:
    """`run --help` explains all faults."""
    text = CliRunner().invoke(main, ["lab", "run", "--help"]).output
    assert "server-clock" in text
    assert "SIGSTOP" in text


def test_private_network() -> None:
    """As root on Linux the lab has a network of its own in which servers can be reached, and
    nothing else; elsewhere it says that it shares the loopback interface."""
    script = (
        "import socket, os\n"
        "from holdfast.lab.network import isolate\n"
        "print(isolate())\n"
        "with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    socket.create_connection(server.getsockname(), 5).close()\n"
        "print(open('/proc/net/dev').read() if os.path.exists('/proc/net/dev') else '')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    kind, *rest = done.stdout.splitlines()
    assert kind in (PRIVATE, SHARED)
    if kind == PRIVATE:
        interfaces = [line.split(":")[0].strip() for line in rest if ":" in line]
        assert interfaces == ["lo"]
