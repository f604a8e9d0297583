"""The file guard replaces a file whole, or not at all if a newer token has come (S22, S23)."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast import guards
from holdfast._async.guards.file import AsyncFileGuard
from holdfast.events import Event
from holdfast.fencing import MOST
from holdfast.model import Mode
from holdfast.testing import MemoryHarness
from holdfast.testing.collecting import collect
from holdfast.testing.running import AsyncRunner
from tests.guards.fences import BAD_FENCES

DOMAIN = "tests"


def fence(token: int, domain: str = DOMAIN, mode: Mode = Mode.EXCLUSIVE) -> guards.Fence:
    """Return what a holder shows."""
    return guards.Fence(token, domain, mode)


class AsyncFileSuite:
    """A test with a guarded file in a folder of its own."""

    path: Path
    guard: AsyncFileGuard

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        collect(cls, MemoryHarness(), AsyncRunner.plain)

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        await test(self, **arguments)

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        """Make the guard; there is no file yet."""
        self.path = tmp_path / "report.json"
        self.guard = AsyncFileGuard(self.path)
        self.events: list[Event] = []
        self.guard.listen(self.events.append)

    @property
    def sidecar(self) -> Path:
        """The fence beside the file."""
        return self.path.with_name("report.json.fence")

    def files(self) -> set[str]:
        """Return all that is in the folder, without what is always there."""
        return set(os.listdir(self.path.parent)) - {"report.json.fence", "report.json.fence.lock"}

    def content(self) -> bytes | None:
        """Return what a plain reader finds."""
        return self.path.read_bytes() if self.path.exists() else None

    async def write(self, data: bytes, token: int, domain: str = DOMAIN) -> None:
        """Write in a transaction of its own."""
        async with self.guard.transaction(fence(token, domain)) as file:
            file.write(data)


class TestReplacing(AsyncFileSuite):
    """What is on the disk, and when."""

    async def test_read_and_write(self) -> None:
        """A file that is not there is None; what was written is visible when the `with` is left."""
        async with self.guard.transaction(fence(5)) as file:
            assert file.read() is None
            file.write(b"one")
            assert file.read() == b"one"
            assert self.content() is None
        assert self.content() == b"one"
        async with self.guard.transaction(fence(5)) as file:
            assert file.read() == b"one"
        assert self.files() == {"report.json"}
        assert [type(event).__name__ for event in self.events] == ["Accepted", "Accepted"]
        assert self.events[0].engine == "file"

    async def test_a_paused_holder_replaces_nothing(self) -> None:
        """It is refused when it leaves: who came after it has only read so far."""
        await self.write(b"one", 5)
        with pytest.raises(holdfast.StaleToken, match=r"report.json' has seen token 7, yours is 6"):
            async with self.guard.transaction(fence(6)) as paused:
                async with self.guard.transaction(fence(7)) as file:
                    assert file.read() == b"one"
                paused.write(b"old")
        assert self.content() == b"one"
        with pytest.raises(holdfast.StaleToken):
            await self.write(b"old", 6)
        assert self.files() == {"report.json"}

    async def test_two_guards_on_one_file_are_one(self) -> None:
        """What was seen is in the file beside it, for every process; links lead to the same."""
        await self.write(b"one", 7)
        link = self.path.with_name("link.json")
        link.symlink_to(self.path)
        for path in (self.path, str(self.path), link):
            with pytest.raises(holdfast.StaleToken):
                async with AsyncFileGuard(path).transaction(fence(6)):
                    pass
        async with AsyncFileGuard(link).transaction(fence(8)) as file:
            file.write(b"two")
        assert link.is_symlink()
        assert self.content() == b"two"
        assert self.files() == {"report.json", "link.json"}

    async def test_readers_share(self) -> None:
        """A shared lease reads, keeps older writers out, and writes nothing."""
        await self.write(b"one", 5)
        async with self.guard.transaction(fence(7, mode=Mode.SHARED)) as file:
            assert file.read() == b"one"
            with pytest.raises(holdfast.NotSupported, match="may only read"):
                file.write(b"two")
        with pytest.raises(holdfast.StaleToken):
            await self.write(b"two", 6)

    async def test_mode_and_owner_are_kept(self) -> None:
        """A private file stays private, and so is what lies beside it."""
        self.path.write_bytes(b"secret")
        os.chmod(self.path, 0o640)
        if os.geteuid() == 0:
            os.chown(self.path, 65534, 65534)
        before = os.stat(self.path)
        await self.write(b"new", 5)
        after = os.stat(self.path)
        assert after.st_ino != before.st_ino
        for path in (self.path, self.sidecar, self.path.with_name("report.json.fence.lock")):
            status = os.stat(path)
            assert status.st_mode & 0o7777 == 0o640
            assert (status.st_uid, status.st_gid) == (before.st_uid, before.st_gid)

    async def test_committed_data_that_is_still_beside(self) -> None:
        """Who finds what a killed writer has committed puts it in its place, before it reads."""
        await self.write(b"one", 5)
        await self.write(b"two", 5)
        # As if it had been killed between its last two steps.
        writes = json.loads(self.sidecar.read_text())["writes"]
        os.rename(self.path, f"{self.sidecar}.{writes}")
        self.path.write_bytes(b"one")
        async with self.guard.transaction(fence(6)) as file:
            assert file.read() == b"two"
        assert self.content() == b"two"
        assert self.files() == {"report.json"}

    async def test_data_that_was_not_committed(self) -> None:
        """What a killed writer left half written is never read, and removed by the next."""
        await self.write(b"one", 5)
        writes = json.loads(self.sidecar.read_text())["writes"]
        self.sidecar.with_name(f"report.json.fence.{writes + 1}").write_bytes(b"ha")
        self.sidecar.with_name("report.json.fence.new").write_bytes(b"{")
        async with self.guard.transaction(fence(6)) as file:
            assert file.read() == b"one"
            file.write(b"two")
        assert self.content() == b"two"
        assert self.files() == {"report.json"}

    async def test_the_largest_token(self) -> None:
        """Tokens beside the file are exact, also for readers that know only doubles."""
        await self.write(b"one", MOST)
        assert json.loads(self.sidecar.read_text())["exclusive"] == str(MOST)
        with pytest.raises(holdfast.StaleToken):
            await self.write(b"two", MOST - 1)

    async def test_once(self) -> None:
        """Work under a key is done once; its result is beside the file, stored with the data."""

        async def add() -> int:
            file.write((file.read() or b"") + b"+")
            return len(file.read() or b"")

        for token in (5, 6):
            async with self.guard.transaction(fence(token)) as file:
                assert await file.once("k", add) == 1
        assert self.content() == b"+"

    async def test_adopt(self) -> None:
        """Floors start again in the new domain; the old one does not come in."""
        await self.write(b"one", 700)
        with pytest.raises(holdfast.DomainMismatch, match=r"'tests'.*'elsewhere'"):
            await self.write(b"two", 701, "elsewhere")
        assert self.content() == b"one"
        await self.guard.adopt("elsewhere")
        await self.write(b"two", 1, "elsewhere")
        with pytest.raises(holdfast.DomainMismatch):
            await self.write(b"three", 702)
        assert [type(event).__name__ for event in self.events] == [
            *("Accepted", "Refused", "Adopted", "Accepted", "Refused"),
        ]

    async def test_a_name_of_its_own(self) -> None:
        """A service need not tell its clients where its files are."""
        guard = AsyncFileGuard(self.path, name="the report")
        guard.listen(self.events.append)
        async with guard.transaction(fence(5)) as file:
            assert file.resource == "the report"
        with pytest.raises(holdfast.StaleToken, match=r"^'the report' has seen token 5"):
            async with guard.transaction(fence(4)):
                pass
        assert {event.name for event in self.events} == {"the report"}


class TestTrouble(AsyncFileSuite):
    """One sentence, and the file is as it was."""

    @pytest.mark.parametrize(("shown", "kind", "words"), BAD_FENCES)
    async def test_bad_fence(self, shown: Any, kind: type[Exception], words: str) -> None:
        """What is no fence is refused before anything is touched."""
        with pytest.raises(kind, match=words):
            self.guard.transaction(shown)
        assert not os.listdir(self.path.parent)

    async def test_a_real_lease_and_a_semaphore(self) -> None:
        """A lease can be shown as it is; a semaphore of several cannot fence."""
        async with holdfast.connect("memory://file-guard") as client:
            async with client.lock("x") as lease:
                async with self.guard.transaction(lease) as file:
                    file.write(b"mine")
            async with client.semaphore("s", 2) as lease:
                with pytest.raises(holdfast.NotSupported, match="semaphore 's' cannot fence"):
                    self.guard.transaction(lease)
        assert self.content() == b"mine"

    @pytest.mark.parametrize("data", ["text", None, 7])
    async def test_not_bytes(self, data: Any) -> None:
        """A file takes bytes; said where it is written, not when it is left."""
        async with self.guard.transaction(fence(5)) as file:
            with pytest.raises(TypeError, match=r"takes bytes, not .*: encode"):
                file.write(data)
        assert self.content() is None

    @pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b'{"format": 1, "domain": "d"}'])
    async def test_damaged_fence(self, text: bytes) -> None:
        """Nobody guesses which tokens are old: the file cannot be written until it is repaired."""
        await self.write(b"one", 5)
        self.sidecar.write_bytes(text)
        with pytest.raises(holdfast.LockError, match=r"report.json' cannot be read .*Restore it"):
            await self.write(b"two", 6)
        assert self.content() == b"one"
        assert self.sidecar.read_bytes() == text

    async def test_fence_of_a_newer_version(self) -> None:
        """It is left alone."""
        await self.write(b"one", 5)
        self.sidecar.write_text('{"format": 2}')
        with pytest.raises(holdfast.NotSupported, match="has format 2"):
            await self.write(b"two", 6)
        assert self.content() == b"one"

    async def test_a_folder_that_is_not_there(self) -> None:
        """The error of the system, as a sentence that names the file."""
        guard = AsyncFileGuard(self.path.parent / "no" / "report.json")
        with pytest.raises(FileNotFoundError, match=r"The guarded file .*/no/report.json' could"):
            async with guard.transaction(fence(5)):
                pass

    async def test_a_folder_in_its_place(self) -> None:
        """A folder is no file."""
        self.path.mkdir()
        with pytest.raises(IsADirectoryError, match="could not be read"):
            await self.write(b"one", 5)

    async def test_someone_stopped_in_the_middle(self) -> None:
        """A process that is stopped while it replaces is waited for, but not for ever."""
        await self.write(b"one", 5)
        guard = AsyncFileGuard(self.path, timeout=0.05)
        with self.sidecar.with_name("report.json.fence.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(holdfast.InProgress, match="in the middle of replacing"):
                async with guard.transaction(fence(6)):
                    pass
        await self.write(b"two", 5)

    @pytest.mark.parametrize("trouble", ["full", "read-only"])
    async def test_no_room_and_no_right(self, trouble: str) -> None:
        """A disk without room, a folder without permission: nothing is half written."""
        await self.write(b"one", 5)
        floor = self.sidecar.read_bytes()
        assert run_in_trouble(trouble, self.path) == "OSError"
        assert self.content() == b"one"
        if trouble == "read-only":
            assert self.sidecar.read_bytes() == floor
        assert self.files() == {"report.json"}
        await self.write(b"two", 7)


TROUBLED = """
import os, resource, sys
from holdfast.guards import Fence, FileGuard
trouble, path = sys.argv[1:]
if trouble == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
else:
    os.chmod(os.path.dirname(path), 0o555)
    for name in os.listdir(os.path.dirname(path)):
        os.chmod(os.path.join(os.path.dirname(path), name), 0o444)
    if os.geteuid() == 0:
        os.setuid(65534)
try:
    with FileGuard(path).transaction(Fence(6, "tests")) as file:
        file.write(b"x" * 2000)
except OSError as error:
    assert f"The guarded file {path!r} could not be " in str(error), error
    print("OSError")
"""


def run_in_trouble(trouble: str, path: Path) -> str:
    """Write in a process whose files may not grow, or that may not write there; say what it did."""
    folders = [path.parent, *path.parent.parents]
    modes = [(folder, os.stat(folder).st_mode) for folder in folders[:3]]
    try:
        for folder, mode in modes:
            os.chmod(folder, mode | 0o755)
        done = subprocess.run(
            [sys.executable, "-c", TROUBLED, trouble, str(path)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        for folder, mode in modes:
            os.chmod(folder, mode)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
