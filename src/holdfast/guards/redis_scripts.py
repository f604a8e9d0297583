"""What the Redis guard is made of: scripts around the user's own, keys, the clients it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from ..errors import NotSupported


class Script(NamedTuple):
    """A script and the digest that the server knows it by."""

    text: str
    digest: str


@lru_cache(maxsize=1024)
def load(name: str, work: str | None = None) -> Script:
    """Return one of our scripts, around what the user wants to run in it."""
    if work is not None and work.lstrip().startswith("#!"):
        raise NotSupported(
            "A script that runs inside a guard has no first line of its own (#!lua …): take it out."
        )
    own = (files("holdfast") / "scripts" / "guards" / f"{name}.lua").read_text("utf-8")
    # Theirs first: it sees nothing of ours, and its line numbers stay.
    text = own if work is None else f"local function work(KEYS, ARGV) {work}\nend\n{own}"
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def base_key(name: str) -> str:
    """Return where the fence of `name` lies: in a cluster, in the slot of a key of that name.

    What is in braces decides the slot, if there is anything; of `name` too, so that must stay.
    """
    _, brace, rest = name.partition("{")
    tagged = brace and rest.find("}") > 0
    return f"holdfast::{name}" if tagged else f"holdfast:{{{name}}}"


def key_for(base: Callable[[str], str], name: str, kind: str) -> bytes:
    """Return a key of ours, spelled alike by all clients whatever their encoding is."""
    return f"{base(name)}:{kind}".encode()


def check_client(client: Any, awaitable: bool) -> Any:
    """Return the client if a guard of this colour can call it."""
    if not (hasattr(client, "evalsha") and hasattr(client, "execute_command")):
        raise TypeError(f"RedisGuard takes a client of redis-py, not {type(client).__name__}.")
    if hasattr(client, "execute"):
        raise TypeError("RedisGuard takes a client, not a pipeline: it needs each answer at once.")
    if iscoroutinefunction(client.execute_command) is not awaitable:
        raise TypeError(
            "This Redis client blocks: use it with holdfast.guards, or take one of redis.asyncio."
            if awaitable
            else "This Redis client is awaitable: use it with holdfast.aio.guards."
        )
    return client


def text_of(reply: bytes | str) -> str:
    """Return a text of ours, which a client may have decoded already."""
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
