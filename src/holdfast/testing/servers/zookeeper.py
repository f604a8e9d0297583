"""A real ZooKeeper server: alone, or as a member of an ensemble."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .certificates import make_certificate
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import ZooKeeperProgram, zookeeper_program

TICK = 0.2  # seconds; sessions are kept for two ticks at least
JAVA = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TLS = "org.apache.zookeeper.server.NettyServerCnxnFactory"
ANSWER = 5.0  # seconds
LONG = 3_600_000  # milliseconds

LOGIN = """
Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required user_{user}="{password}";
}};
"""


class ZooKeeperServer(ServerProcess):
    """A server that does not wait for its disk, unless told to.

    `options` are further lines of the configuration, `properties` further ones of Java. `login`
    lets a user and a password in by SASL.
    """

    name = "zookeeper"

    def __init__(
        self,
        program: ZooKeeperProgram | None = None,
        *,
        tick: float = TICK,
        options: Mapping[str, object] | None = None,
        properties: Mapping[str, object] | None = None,
        members: Sequence[str] = (),
        number: int = 1,
        tls: bool = False,
        login: tuple[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._program = program
        self._tick = tick
        self._options = dict(options or {})
        self._properties = dict(properties or {})
        self._members = members
        self._number = number
        self._tls = tls
        self._login = login

    @property
    def url(self) -> str:
        """Where clients find it."""
        tls = f"?ssl_ca_certs={self.ca_file}" if self._tls else ""
        return f"zookeeper://{LOOPBACK}:{self.port}{tls}"

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that has signed the server's own, if it speaks TLS."""
        return self.directory / "ca.crt"

    @property
    def mode(self) -> str:
        """What it says that it is: standalone, leader or follower; empty if it does not serve."""
        return self.command("srvr").partition("Mode: ")[2].partition("\n")[0]

    def command(self, word: str) -> str:
        """Return the answer to a command of four letters, empty without one."""
        answer = b""
        with (
            suppress(OSError),
            socket.create_connection((LOOPBACK, self.port), ANSWER) as connection,
        ):
            connection.sendall(word.encode())
            while chunk := connection.recv(65536):
                answer += chunk
        return answer.decode()

    def figure(self, name: str) -> int:
        """Return a number of what it measures, 0 if it is unknown."""
        for line in self.command("mntr").splitlines():
            if line.startswith(f"{name}\t"):
                return int(float(line.partition("\t")[2]))
        return 0

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again on the same port, with what is on disk or with nothing."""
        self.kill()
        if not keep_data:
            shutil.rmtree(self._data)
            self._write_data()
        self.start()

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Write its configuration."""
        self._write_data()
        lines = {
            "tickTime": round(self._tick * 1000),
            "maxSessionTimeout": LONG,
            "dataDir": self._data,
            **(self._secure_port() if self._tls else self._plain_port()),
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "initLimit": 50,
            "syncLimit": 25,
        }
        if self._members:
            lines["standaloneEnabled"] = "false"
            lines |= {f"server.{n}": where for n, where in enumerate(self._members, start=1)}
        if self._login:
            lines["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
            user, password = self._login
            (self.directory / "jaas.conf").write_text(LOGIN.format(user=user, password=password))
        text = "".join(f"{name}={value}\n" for name, value in (lines | self._options).items())
        (self.directory / "zoo.cfg").write_text(text)

    def command_line(self) -> list[str]:
        """Return Java, its settings and the configuration."""
        program = self._program or zookeeper_program()
        properties = {
            "zookeeper.forceSync": "no",
            "org.slf4j.simpleLogger.defaultLogLevel": "warn",
            **self._properties,
        }
        if self._login:
            properties["java.security.auth.login.config"] = self.directory / "jaas.conf"
        return [
            program.java,
            *JAVA,
            *(f"-D{name}={value}" for name, value in properties.items()),
            *("-cp", ":".join(program.jars), MAIN, str(self.directory / "zoo.cfg")),
        ]

    def is_ready(self) -> bool:
        """Say whether it serves; a member of an ensemble needs others for that."""
        if self._members:
            return True
        return self._tls_open() if self._tls else bool(self.mode)

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _write_data(self) -> None:
        self._data.mkdir()
        if self._members:
            (self._data / "myid").write_text(str(self._number))

    def _plain_port(self) -> dict[str, object]:
        return {"clientPort": self.port, "clientPortAddress": LOOPBACK}

    def _secure_port(self) -> dict[str, object]:
        made = make_certificate(self.directory)
        both = self.directory / "server.pem"
        both.write_text(made.key.read_text() + made.certificate.read_text())
        return {
            "secureClientPort": self.port,
            "secureClientPortAddress": LOOPBACK,
            "serverCnxnFactory": TLS,
            "ssl.keyStore.location": both,
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": made.authority,
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "none",
        }

    def _tls_open(self) -> bool:
        with suppress(OSError), socket.create_connection((LOOPBACK, self.port), ANSWER):
            return True
        return False
