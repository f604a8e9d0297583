"""The lock file of sqlite:///: made safely, replaced, rolled back, broken, in the wrong place."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import filesystems
from holdfast.host_sockets import HostSockets
from holdfast.model import Renewal


def connect(path: Path, **options: object) -> holdfast.Client:
    return holdfast.connect(f"sqlite://{path}", **options)  # type: ignore[arg-type]


def test_file_and_folder_are_for_the_owner_only(tmp_path: Path) -> None:
    """Mode 0600 for the file and the sockets, 0700 for the folders that were made."""
    path = tmp_path / "new" / "locks.db"
    with connect(path) as client, client.lock("x"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        folder = path.with_name("locks.db.d")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert list(folder.iterdir()) == [], "closing removes the sockets"


def test_default_file_follows_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL the lock file is in the state directory; a relative one is ignored."""
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with holdfast.connect() as client, client.lock("x"):
        assert (tmp_path / "holdfast" / "locks.db").exists()
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert filesystems.default_path() == f"{tmp_path}/.local/state/holdfast/locks.db"


def test_nothing_happens_before_the_first_use(tmp_path: Path) -> None:
    """connect() and lock() touch no file."""
    client = connect(tmp_path / "locks.db")
    client.lock("x")
    assert list(tmp_path.iterdir()) == []
    client.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    """A lock file that was deleted is made anew; a lease in the old one is lost, not held twice."""
    path = tmp_path / "locks.db"
    with connect(path, ttl=0.6) as client, connect(path) as other:
        lease = client.lock("x").acquire()
        assert lease is not None
        for file in tmp_path.glob("locks.db*"):
            if file.is_file():
                file.unlink()
        second = other.lock("x").try_acquire()
        assert second is not None
        assert second.token > lease.token
        assert lease.lost.wait(5), "its renewal does not find it in the new file"
        second.release()


def test_tokens_rise_over_a_file_rolled_back_to_an_older_copy(tmp_path: Path) -> None:
    """Power loss and restored backups lose the last commits; tokens follow the clock."""
    path = tmp_path / "locks.db"
    tokens = []
    with connect(path) as client:
        for _ in range(3):
            with client.lock("x") as lease:
                tokens.append(lease.token)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("locks.db*"):
        if file.is_file():
            shutil.copy(file, copy)
    with connect(path) as client:
        for _ in range(50):
            with client.lock("x") as lease:
                tokens.append(lease.token)
    for file in tmp_path.glob("locks.db*"):
        if file.is_file():
            file.unlink()
    for file in copy.iterdir():
        shutil.copy(file, tmp_path)
    with connect(path) as client, client.lock("x") as lease:
        tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


def test_tokens_rise_over_a_truncated_log(tmp_path: Path) -> None:
    """A write-ahead log cut short by a crash takes commits with it, but no token comes twice."""
    path = tmp_path / "locks.db"
    script = f"""
import holdfast, os
client = holdfast.connect("sqlite://{path}")
for _ in range(20):
    with client.lock("x") as lease:
        print(lease.token, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30
    )
    tokens = [int(line) for line in done.stdout.split()]
    assert len(tokens) == 20
    log = tmp_path / "locks.db-wal"
    os.truncate(log, log.stat().st_size // 3)
    with connect(path) as client, client.lock("x") as lease:
        tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


def test_a_holder_of_another_boot_is_void_only_after_a_ttl_of_ours(tmp_path: Path) -> None:
    """A lease from before a reboot, or from a container with another clock, gets its full TTL."""
    path = tmp_path / "locks.db"
    with connect(path, ttl=0.6) as client:
        engine = client.engine
        engine._boot = engine._me.boot = "another/1"  # type: ignore[attr-defined]
        engine._records._boot = "another/1"  # type: ignore[attr-defined]
        lease = client.lock("x", ttl=0.6).acquire()
        assert lease is not None
        with sqlite3.connect(path, isolation_level=None) as database:
            database.execute("UPDATE record SET expires = 1e12")  # its clock says nothing to us
        database.close()

        def unreachable(claims: object, timeout: float) -> list[Renewal]:
            raise holdfast.EngineUnavailable("The test has cut the link.")

        client.engine.renew = unreachable  # type: ignore[method-assign]
        with connect(path) as other:
            assert other.lock("x").try_acquire() is None
            taken = other.lock("x").acquire(timeout=0.3)
            assert taken is None
            taken = other.lock("x").acquire(timeout=10)
            assert taken is not None
            taken.release()
        lease._returned = True


def test_another_format_is_refused(tmp_path: Path) -> None:
    """A file of a later holdfast is left alone."""
    path = tmp_path / "locks.db"
    with connect(path) as client, client.lock("x"):
        pass
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    with connect(path) as client:
        with pytest.raises(holdfast.EngineUnavailable, match="format 9") as caught:
            client.lock("x").acquire(timeout=0.2)
    assert str(caught.value).endswith(".")


BROKEN = {
    "some other file": b"this is not a database at all, but long enough to look like something\n"
    * 90,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_clear_sentence(tmp_path: Path, content: bytes) -> None:
    """What lies there is named, with what to do, and is not touched."""
    path = tmp_path / "locks.db"
    path.write_bytes(content)
    with connect(path) as client:
        with pytest.raises(
            holdfast.EngineUnavailable, match="some other file, or damaged"
        ) as caught:
            client.lock("x").try_acquire()
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_damaged_database_is_one_clear_sentence(tmp_path: Path) -> None:
    """Pages full of garbage are called damaged."""
    path = tmp_path / "locks.db"
    with connect(path) as client:
        for number in range(300):
            with client.lock(f"name-{number}"):
                pass
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(path) - 4096))
    with connect(path) as client:
        with pytest.raises(holdfast.EngineUnavailable, match="damaged; move it away"):
            client.lock("name-1").try_acquire()


def test_a_folder_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    """No permission: the path, and what to check."""
    closed = tmp_path / "closed"
    closed.mkdir()
    script = f"""
import holdfast, os
client = holdfast.connect("sqlite://{closed}/locks.db")
if os.getuid() == 0:  # root may write everywhere
    os.setgid(65534)
    os.setuid(65534)
try:
    client.lock("x").try_acquire()
except holdfast.EngineUnavailable as error:
    print(error)
"""
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    closed.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30
    )
    assert "check" in done.stdout, done.stdout + done.stderr
    assert "closed/locks.db cannot be used" in done.stdout


def test_a_full_disk_is_one_clear_sentence(tmp_path: Path) -> None:
    """SQLite's own limit on the file stands for the disk: same error, same sentence."""
    path = tmp_path / "locks.db"
    with connect(path, connect_timeout=0.3) as client:
        with client.lock("x"):
            pass
        database = client.engine._file._connection  # type: ignore[attr-defined]
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(holdfast.EngineUnavailable, match="free some space"):
            for number in range(500):
                with client.lock(f"{'n' * 200}{number}"):
                    pass


def test_a_network_filesystem_is_refused_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not on the list of local filesystems is refused by name."""
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:20 / / rw - ext4 /dev/sda rw\n"
        f"23 22 0:21 / {tmp_path} rw,relatime shared:1 - nfs4 server:/export rw\n"
    )
    find = filesystems.filesystem_of
    assert find(str(tmp_path / "locks.db"), str(table)) == "nfs4"
    assert find("/etc", str(table)) == "ext4"
    monkeypatch.setattr(filesystems, "filesystem_of", lambda path: find(path, str(table)))
    with connect(tmp_path / "locks.db") as client:
        with pytest.raises(holdfast.NotSupported, match="nfs4 filesystem"):
            client.lock("x").try_acquire()
    with connect(tmp_path / "locks.db", any_filesystem=True) as client, client.lock("x"):
        pass


def test_without_sockets_waiters_look_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where AF_UNIX is missing locks work all the same, by polling."""
    monkeypatch.setattr("holdfast._sync.engines.sqlite_mail.SUPPORTED", False)
    with connect(tmp_path / "locks.db") as client, connect(tmp_path / "locks.db") as other:
        with client.lock("x"):
            assert other.lock("x").acquire(timeout=0.3) is None
        with other.lock("x", timeout=5):
            pass
    assert not (tmp_path / "locks.db.d").exists()


def test_idle_names_are_forgotten_after_a_day(tmp_path: Path) -> None:
    """The file does not grow with the number of names ever used (S19), and tokens still rise."""
    path = tmp_path / "locks.db"
    with connect(path) as client:
        tokens = []
        for number in range(100):
            with client.lock(f"n{number}") as lease:
                tokens.append(lease.token)
        database = client.engine._file._connection  # type: ignore[attr-defined]
        database.execute("UPDATE record SET floor = floor - 90000 * 1000000 WHERE key LIKE '%n1%'")
        for _ in range(1000):
            with client.lock("busy"):
                pass
        (rows,) = database.execute("SELECT count(*) FROM record").fetchone()
        assert rows == 100 - 11 + 1
        with client.lock("n1") as lease:
            assert lease.token > tokens[1]


def test_old_sockets_of_the_dead_are_swept_away(tmp_path: Path) -> None:
    """Files that a killed process left go when the next one comes, those of the living stay."""
    folder = tmp_path / "sockets"
    living = HostSockets(str(folder))
    script = f"""
import os
from holdfast.host_sockets import HostSockets
from holdfast.model import Renewal
HostSockets({str(folder)!r})
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], timeout=30)
    assert len(list(folder.iterdir())) == 4
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    another = HostSockets(str(folder))
    assert len(list(folder.iterdir())) == 4
    assert not another.dead(living.address)
    another.close()
    living.close()
    assert list(folder.iterdir()) == []


def test_a_url_without_a_path_is_refused() -> None:
    """The three slashes are explained."""
    for url in ("sqlite://", "sqlite://host/file.db"):
        with pytest.raises(ValueError, match="three slashes"):
            holdfast.connect(url)
