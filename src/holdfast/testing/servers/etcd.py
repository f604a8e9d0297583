"""A real etcd server, alone or as a member of a cluster."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from .certificates import make_certificate
from .errors import CommandRefused
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import etcd_program

HEARTBEAT, ELECTION = 50, 500  # milliseconds: a lease may be as short as one second
_ASK_TIMEOUT = 5.0


class EtcdServer(ServerProcess):
    """An etcd server. It writes to disk, but does not wait for the disk unless `fsync`.

    A member of a cluster is told of all by `members`, name -> peer port; it counts as started when
    it runs, and as ready once the cluster has a leader. One that is alone lets the system choose
    its port for peers. `options` are further flags.
    """

    name = "etcd"

    def __init__(
        self,
        program: str | None = None,
        *,
        fsync: bool = False,
        tls: bool = False,
        options: Mapping[str, str] | None = None,
        members: Mapping[str, int] | None = None,
        member: str = "single",
        peer_port: int = 0,
    ) -> None:
        super().__init__()
        self._program = program
        self._fsync = fsync
        self._tls = tls
        self._options = dict(options or {})
        self._members = members
        self.member = member
        self.peer_port = peer_port

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"{'etcds' if self._tls else 'etcd'}://{LOOPBACK}:{self.port}"

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again on the same port, with what is on disk or with nothing."""
        self.kill()
        if not keep_data:
            shutil.rmtree(self.directory / "data")
        self.start()

    def terminate(self) -> None:
        """Kill it: asked to end, it first tries for seconds to hand its leadership on."""
        self._signal(signal.SIGKILL)

    # --- Asking it, without our link. ---

    def ask(self, path: str, body: Mapping[str, Any] | None = None, login: str = "") -> Any:
        """Return the answer of its JSON gateway; keys in `body` are written by `key`."""
        headers = {"Authorization": login} if login else {}
        data = json.dumps(body or {}).encode()
        request = urllib.request.Request(f"{self._http}/v3/{path}", data, headers)
        try:
            with urllib.request.urlopen(
                request, timeout=_ASK_TIMEOUT, context=self._trust
            ) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            raise CommandRefused(error.read().decode()) from None

    def keys(self, prefix: str = "") -> list[str]:
        """Return all keys that begin so, in the order in which they were created."""
        return [base64.b64decode(one["key"]).decode() for one in self._range(prefix)]

    def values(self, prefix: str) -> list[bytes]:
        """Return what these keys say."""
        return [base64.b64decode(one.get("value", "")) for one in self._range(prefix)]

    def _range(self, prefix: str) -> list[Any]:
        span = {"key": key(prefix), "range_end": key(_after(prefix))} if prefix else ALL
        found: list[Any] = self.ask("kv/range", span).get("kvs", [])
        return sorted(found, key=lambda one: int(one["create_revision"]))

    def revision(self) -> int:
        """Return the newest revision."""
        return int(self.ask("kv/range", {"key": key("none")})["header"]["revision"])

    def leases(self) -> list[int]:
        """Return all leases."""
        return [int(one["ID"]) for one in self.ask("lease/leases").get("leases", [])]

    def member_id(self) -> int:
        """Return its id in the cluster."""
        return int(self.ask("maintenance/status")["header"]["member_id"])

    def leads(self) -> bool:
        """Say whether it takes itself for the leader."""
        status = self.ask("maintenance/status")
        return bool(status.get("leader") == status["header"]["member_id"])

    def metric(self, name: str, *words: str) -> float:
        """Return a metric of its own, the sum of all lines in which these words are quoted."""
        with urllib.request.urlopen(
            f"{self._http}/metrics", timeout=_ASK_TIMEOUT, context=self._trust
        ) as reply:
            lines = reply.read().decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(name) and all(f'"{word}"' in line for word in words)
        )

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Make a certificate if it needs one."""
        if self._tls:
            make_certificate(self.directory)

    def command_line(self) -> list[str]:
        """Return the program and its flags."""
        members = self._members or {self.member: self.peer_port}
        advertised = f"http://{LOOPBACK}:{members[self.member]}"
        cluster = ",".join(f"{name}=http://{LOOPBACK}:{port}" for name, port in members.items())
        flags = {
            "name": self.member,
            "data-dir": str(self.directory / "data"),
            "listen-client-urls": self._http,
            "advertise-client-urls": self._http,
            "listen-peer-urls": f"http://{LOOPBACK}:{self.peer_port}",
            "initial-advertise-peer-urls": advertised,
            "initial-cluster": cluster,
            "heartbeat-interval": str(HEARTBEAT),
            "election-timeout": str(ELECTION),
            **({} if self._fsync else {"unsafe-no-fsync": "true"}),
        }
        if self._tls:
            flags["cert-file"] = str(self.directory / "server.crt")
            flags["key-file"] = str(self.directory / "server.key")
        flags |= self._options
        return [self._program or etcd_program(), *(f"--{k}={v}" for k, v in flags.items())]

    def is_ready(self) -> bool:
        """Say whether it serves; of a member, that it runs."""
        return self._members is not None or self.healthy()

    def healthy(self) -> bool:
        """Say whether it, with its cluster, answers a read."""
        try:
            with urllib.request.urlopen(
                f"{self._http}/health", timeout=1.0, context=self._trust
            ) as reply:
                return b"true" in reply.read()
        except OSError:
            return False

    @property
    def _http(self) -> str:
        return f"{'https' if self._tls else 'http'}://{LOOPBACK}:{self.port}"

    @property
    def _trust(self) -> ssl.SSLContext | None:
        if not self._tls:
            return None
        return ssl.create_default_context(cafile=str(self.directory / "ca.crt"))


def key(text: str) -> str:
    """Return a key as the JSON gateway wants it."""
    return base64.b64encode(text.encode()).decode()


ALL = {"key": base64.b64encode(b"\0").decode(), "range_end": base64.b64encode(b"\0").decode()}


def _after(prefix: str) -> str:
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def until_healthy(servers: Sequence[EtcdServer], timeout: float = 20.0) -> None:
    """Return when all of them answer."""
    end = time.monotonic() + timeout
    for server in servers:
        while not server.healthy():
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{server.member} was not ready; its log: {server.log()[-2000:]}"
                )
            time.sleep(0.02)
