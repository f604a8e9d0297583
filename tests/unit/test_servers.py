"""A test server starts, stops, stands still and comes back as told, and is never left over."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from holdfast.testing.servers import (
    CommandRefused,
    RedisServer,
    ServerFailed,
    ServerMissing,
    need,
    ports,
    process,
    programs,
    redis_program,
    valkey_program,
)
from holdfast.testing.servers.ports import LOOPBACK, listen, port_of, reserve
from tests.unit.waiting import PATIENCE, until


def is_gone(pid: int) -> bool:
    """Say whether no such process runs; one that nobody has waited for does not run either."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.fixture(autouse=True)
def program() -> str:
    """Redis itself: without it there is nothing to test."""
    return need(redis_program)


def test_stop_leaves_nothing() -> None:
    """A server that was stopped has no process, no directory and no port."""
    with RedisServer() as server:
        pid, directory, port = server.pid, server.directory, server.port
        assert server.running
        assert server.command("PING") == "PONG"
        assert server.url == f"redis://127.0.0.1:{port}/0"
        assert server.log_path.is_file()
    assert not server.running
    assert is_gone(pid)
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port))
    server.stop()


def test_starts_again_elsewhere() -> None:
    """After a stop it can be started again, and begins anew."""
    server = RedisServer(persist=True)
    with server:
        server.command("SET", "x", "1")
    with server:
        assert server.command("GET", "x") is None
        with pytest.raises(ServerFailed, match="running already"):
            server.start()


def test_stop_ends_a_paused_server() -> None:
    """A server that stands still is stopped no less quickly."""
    with RedisServer() as server:
        pid = server.pid
        server.pause()
        started = time.monotonic()
    assert is_gone(pid)
    assert time.monotonic() - started < server.stop_timeout


def test_stop_kills_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ignores the request to end is killed."""
    with RedisServer() as server:
        pid = server.pid
        server.stop_timeout = 0.1
        monkeypatch.setattr(server, "terminate", lambda: None)
    assert is_gone(pid)


def test_pause_and_resume() -> None:
    """A paused server takes connections and answers nothing; resumed, it answers them."""
    with RedisServer() as server:
        server.pause()
        assert server.running
        with socket.create_connection((LOOPBACK, server.port), timeout=0.1) as client:
            client.sendall(b"PING\r\n")
            with pytest.raises(TimeoutError):
                client.recv(100)
            server.resume()
            client.settimeout(PATIENCE)
            assert client.recv(100) == b"+PONG\r\n"


def test_kill_and_start() -> None:
    """A killed server keeps its directory, and is started again where it was."""
    with RedisServer(persist=True) as server:
        server.command("SET", "x", "1")
        port, pid, directory = server.port, server.pid, server.directory
        server.kill()
        assert not server.running
        assert is_gone(pid)
        assert directory.is_dir()
        server.start()
        assert (server.port, server.directory) == (port, directory)
        assert server.pid != pid
        assert server.command("GET", "x") == "1"


@pytest.mark.parametrize(
    ("persist", "keep_data", "left"),
    [(True, True, "1"), (True, False, None), (False, True, None), (False, False, None)],
)
def test_restart(persist: bool, keep_data: bool, left: str | None) -> None:
    """A restart keeps the port always, and the data if they are on disk and to be kept."""
    with RedisServer(persist=persist) as server:
        server.command("SET", "x", "1")
        port = server.port
        server.restart(keep_data=keep_data)
        assert server.port == port
        assert server.command("GET", "x") == left


def test_commands() -> None:
    """Replies of every kind are understood, and an error is raised."""
    with RedisServer() as server:
        assert server.command("SET", "x", b"\xff\x00") == "OK"
        assert server.command("GET", "x") == b"\xff\x00".decode(errors="surrogateescape")
        assert server.command("GET", "y") is None
        assert server.command("INCR", "z") == 1
        assert server.command("EVAL", "return {1, {'a', false}}", 0) == [1, ["a", None]]
        with pytest.raises(CommandRefused, match="unknown command"):
            server.command("NONSENSE")


def test_options(tmp_path: Path) -> None:
    """Options are lines of the configuration; a password is used by `command` too."""
    path = tmp_path / "socket"
    options = {"requirepass": "secret", "unixsocket": str(path), "save": "60 1"}
    with RedisServer(options=options) as server:
        assert server.password == "secret"
        assert server.command("CONFIG", "GET", "save") == ["save", "60 1"]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            assert client.recv(100).startswith(b"-NOAUTH")


def test_failure_shows_the_log() -> None:
    """A server that cannot start says why, and leaves nothing behind."""
    server = RedisServer(options={"maxmemory-policy": "nonsense"})
    with pytest.raises(ServerFailed, match=r"(?s)ended with code 1.*maxmemory-policy"):
        server.start()
    assert not server.running
    assert not server.directory.exists()


def test_failure_to_become_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never becomes ready is an error in time, and does not stay."""
    server = RedisServer()
    server.start_timeout = 0.1
    monkeypatch.setattr(server, "is_ready", lambda: False)
    with pytest.raises(ServerFailed, match=r"not ready within 0\.1 s"):
        server.start()
    assert not server.running


def test_taken_port_is_left_to_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """If somebody else was quicker, the server takes another port."""
    with listen() as listener:
        taken = listener.getsockname()[1]
        given = iter([taken, taken])
        monkeypatch.setattr(process, "port_of", lambda place: next(given, None) or port_of(place))
        with RedisServer() as server:
            assert server.port != taken
            assert server.command("PING") == "PONG"


@pytest.fixture
def one_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port, the only one that there is."""
    with reserve() as place:
        port = port_of(place)
    monkeypatch.setattr(ports, "_FIRST", port)
    monkeypatch.setattr(ports, "_BEYOND", port + 1)
    return port


def test_port_of_a_server_that_is_down_is_its_own(one_port: int) -> None:
    """Nobody else is given the port of a server: before it listens, and while it is killed."""
    with RedisServer() as server:
        server.kill()
        with pytest.raises(OSError, match="is free"):
            reserve()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, one_port))
        server.start()
        assert server.command("PING") == "PONG"
    with reserve() as place:
        assert port_of(place) == one_port


# --- Nothing outlives the process that started it. ---

BEGIN = """
import os, signal, sys, threading
from holdfast.testing.servers import RedisServer
server = RedisServer().start()
print(server.pid, server.directory, flush=True)
"""


def run(script: str) -> tuple[int, Path]:
    """Run a script that starts a server, to its end; return the server's id and directory."""
    command = [sys.executable, "-W", "ignore", "-c", BEGIN + script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode in (0, -signal.SIGKILL)
    pid, directory = output.split()
    return int(pid), Path(directory)


def test_end_of_the_interpreter_stops_servers() -> None:
    """A server that was forgotten is stopped and cleaned up at exit, paused or not."""
    pid, directory = run("server.pause()")
    assert is_gone(pid)
    assert not directory.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a child with its parent")
def test_killed_process_takes_its_servers_along() -> None:
    """A server dies with a process that had no time to stop it."""
    pid, directory = run("os.kill(os.getpid(), signal.SIGKILL)")
    until(lambda: is_gone(pid))
    shutil.rmtree(directory)  # for which there was no time either


def test_forked_process_stops_nothing_of_its_parent() -> None:
    """Neither stop nor the exit of a forked process touches the server of the parent."""
    run(
        "if os.fork() == 0:\n"
        "    server.stop()\n"
        "    sys.exit()\n"
        "os.wait()\n"
        "assert server.command('PING') == 'PONG'\n"
    )


def test_thread_that_starts_a_server_may_end() -> None:
    """A server outlives the thread that started it."""
    server = RedisServer()
    thread = Thread(target=server.start)
    thread.start()
    thread.join()
    try:
        assert server.command("PING") == "PONG"
    finally:
        server.stop()


def test_no_signal_of_the_terminal_reaches_a_server() -> None:
    """It has a session of its own, so Ctrl-C is for the tests alone."""
    with RedisServer() as server:
        assert os.getsid(server.pid) == server.pid


# --- What is installed. ---


def test_valkey() -> None:
    """Valkey is Redis by its commands and says its own name."""
    with RedisServer(need(valkey_program)) as server:
        assert "server_name:valkey" in server.command("INFO", "server")


def test_valkey_is_made_executable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installer that has dropped the mode of the program does no harm."""

    class File:
        name = "valkey-server"

        def locate(self) -> Path:
            return tmp_path / self.name

    File().locate().touch(0o644)
    monkeypatch.setattr(programs, "files", lambda _: [File()])
    assert os.stat(valkey_program()).st_mode & 0o111 == 0o111


def test_redis_under_the_name_that_debian_gives_it(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The package redis-tools alone is enough."""
    (tmp_path / "redis-check-rdb").symlink_to(Path(program).resolve())
    monkeypatch.setenv("PATH", str(tmp_path))
    with RedisServer() as server:
        assert server.command("PING") == "PONG"


@pytest.mark.parametrize("find", [redis_program, valkey_program, programs.openssl_program])
def test_missing_program_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, find: Callable[[], str]
) -> None:
    """What is not installed is named, with the command that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "files", lambda _: [])
    with pytest.raises(ServerMissing, match=r"is not installed: .* install"):
        find()


def test_missing_server_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop need not have every server; in CI a skipped test would go unnoticed."""

    def find() -> str:
        raise ServerMissing("it is not here")

    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="not here"):
        need(find)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not here"):
        need(find)


def test_a_program_under_another_name_outlives_the_test_that_needed_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a test keeps below a folder of its own goes with it, and the next one needs the link."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    link = Path(programs._link("some-server", "/bin/true"))
    assert link.resolve() == Path("/bin/true").resolve()
    assert tmp_path not in link.parents
