"""The link to a Redis or Valkey server: small, on hiredis, in both colours.

Not generated: threads talk over blocking sockets, tasks over one pipelined connection, and that is
all the difference there is between the colours of the engines on top.
"""

from __future__ import annotations

from .blocking import Link
from .fan import afan_out, fan_out
from .round import LATE, Late
from .settings import Settings, from_client, from_url
from .streaming import AsyncLink
from .wire import Greeting, Reply, Script, Template, check, demoted, forgotten, pack, packed_word

__all__ = [
    "LATE",
    "AsyncLink",
    "Greeting",
    "Late",
    "Link",
    "Reply",
    "Script",
    "Settings",
    "Template",
    "afan_out",
    "check",
    "demoted",
    "fan_out",
    "forgotten",
    "from_client",
    "from_url",
    "pack",
    "packed_word",
]
