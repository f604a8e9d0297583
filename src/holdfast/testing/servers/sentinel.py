"""A Sentinel that watches one Redis server and its replicas."""

from __future__ import annotations

from typing import Any

from .ports import LOOPBACK
from .process import ServerProcess
from .programs import redis_program
from .redis import RedisServer
from .resp import run_commands

_CONFIG = "sentinel.conf"


class RedisSentinel(ServerProcess):
    """Redis Sentinel, which promotes a replica a moment after the master falls silent."""

    name = "sentinel"

    def __init__(
        self,
        master: RedisServer,
        name: str = "mymaster",
        quorum: int = 1,
        *,
        program: str | None = None,
    ) -> None:
        super().__init__()
        self._master, self._quorum, self._program = master, quorum, program
        self.master_name = name

    def command(self, *words: object) -> Any:
        """Run one command on a connection of its own; return its reply as str, int, list, None."""
        return run_commands(self.port, words)

    def master_port(self) -> int:
        """Return the port of the server that it holds to be the master now."""
        answer = self.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.master_name)
        return int(answer[1])

    def prepare(self) -> None:
        """Write its configuration, which it changes itself later."""
        name = self.master_name
        lines = [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f"dir {self.directory}",
            f"sentinel monitor {name} {LOOPBACK} {self._master.port} {self._quorum}",
            f"sentinel down-after-milliseconds {name} 500",
            f"sentinel failover-timeout {name} 2000",
            f"sentinel parallel-syncs {name} 1",
        ]
        if self._master.password is not None:
            lines.append(f"sentinel auth-pass {name} {self._master.password}")
        (self.directory / _CONFIG).write_text("\n".join([*lines, ""]))

    def command_line(self) -> list[str]:
        """Return the program and its configuration."""
        program = self._program or redis_program()
        return [program, str(self.directory / _CONFIG), "--sentinel"]

    def is_ready(self) -> bool:
        """Say whether it watches."""
        return "+monitor master" in self.log()
