"""What a Redis server says of itself when the doctor asks: INFO, some of its CONFIG, its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import LockError
from ..redis_link import Settings
from .finding import Finding, Level

TIMEOUT = 2.0  # seconds for one question
LOOKS = 8  # at a clock; the quickest answer counts
SETTINGS = ("appendfsync", "save", "min-replicas-to-write")  # what INFO does not tell


class Node(Protocol):
    """One server as engines have it."""

    location: str
    settings: Settings

    def command(self, *words: str | bytes | int, timeout: float) -> Any:
        """Run a command; a refusal, like silence, is EngineUnavailable."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a server; what it may not say is missing."""

    location: str
    info: Mapping[str, str]
    config: Mapping[str, str]
    refused: Mapping[str, str]  # question -> why there is no answer

    def number(self, name: str) -> int:
        """Return a number of INFO, 0 if it is missing."""
        text = self.info.get(name, "")
        return int(text) if text.isdigit() else 0

    @property
    def version(self) -> tuple[int, ...]:
        """The version as numbers, of Redis or of Valkey; empty if it is missing."""
        text = self.info.get("valkey_version") or self.info.get("redis_version", "")
        return tuple(int(part) for part in text.split(".") if part.isdigit())

    @property
    def program(self) -> str:
        """The name of the program, and its version."""
        name = "Valkey" if "valkey_version" in self.info else "Redis"
        return f"{name} {'.'.join(map(str, self.version))}"

    @property
    def replicas(self) -> list[dict[str, str]]:
        """The replicas that are connected: state, offset, lag and address of each."""
        lines = [self.info.get(f"slave{at}", "") for at in range(self.number("connected_slaves"))]
        return [dict(part.split("=", 1) for part in line.split(",")) for line in lines if line]


def ask(node: Node) -> Facts:
    """Ask a server that answers; each question may be refused."""
    refused: dict[str, str] = {}

    def answer(*words: str) -> Any:
        try:
            return node.command(*words, timeout=TIMEOUT)
        except LockError as error:
            refused[words[0]] = str(error)

    info = answer("INFO") or b""
    lines = info.decode(errors="replace").splitlines()
    config: dict[str, str] = {}
    for name in SETTINGS:
        found = answer("CONFIG", "GET", name) if "CONFIG" not in refused else None
        config |= {name: found[1].decode()} if found else {}
    told = dict(line.split(":", 1) for line in lines if ":" in line and line[0] != "#")
    return Facts(node.location, told, config, refused)


def check_told(facts: Facts) -> Iterator[Finding]:
    """Say what could not be looked at because the server does not tell."""
    if "INFO" in facts.refused:
        yield Finding(
            Level.WARNING,
            "questions",
            f"{facts.location} does not answer INFO, so its version, role, replicas, memory and "
            "persistence could not be checked, and quarantine=True cannot see that it restarted.",
            "Give the user the right +info.",
        )
    if "CONFIG" in facts.refused:
        yield Finding(
            Level.INFO,
            "questions",
            f"{facts.location} does not answer CONFIG GET, so {', '.join(SETTINGS)} could not be "
            "checked.",
            "Run the doctor as a user who may ask (+config|get), or look at these settings there.",
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """A server's clock beside ours, in seconds: `ahead` is wrong by at most `doubt`."""

    location: str
    ahead: float
    doubt: float


def read_clock(node: Node) -> Reading | None:
    """Compare its clock with this machine's: it looked at its own between two looks at ours."""
    readings = []
    for _ in range(LOOKS):
        sent = time.time()
        try:
            whole, millionths = node.command("TIME", timeout=TIMEOUT)
        except LockError:
            return None
        received = time.time()
        theirs = int(whole) + int(millionths) / 1e6
        middle, doubt = (sent + received) / 2, abs(received - sent) / 2
        readings.append(Reading(node.location, theirs - middle, doubt))
    return min(readings, key=lambda reading: reading.doubt)
