"""The floor on Redis: two small scripts, packed beforehand, on plain blocking sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import sha1

from .handle import Handle, pair_of

TAKE = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return redis.error_reply('it is taken')
"""
GIVE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return redis.error_reply('it is not ours')
"""
TTL_MILLIS = 30_000
ENOUGH = 64  # bytes: no reply is longer


def packed(*words: str | int) -> bytes:
    """Return a command as it is sent."""
    texts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(t), t) for t in texts)


def bare_lock(stack: ExitStack, addresses: Sequence[str], key: str) -> Handle:
    """Return a lock of two scripts on connections of its own: sent to all servers, then read."""
    sockets = [stack.enter_context(_connected(address)) for address in addresses]
    owner = "0123456789abcdef0123456789abcdef"
    name = f"{{floor/{key}}}"
    take = packed("EVALSHA", _digest(TAKE), 2, name, f"{name}:f", owner, TTL_MILLIS)
    give = packed("EVALSHA", _digest(GIVE), 1, name, owner)
    for one in sockets:
        for script in (TAKE, GIVE):
            one.sendall(packed("SCRIPT", "LOAD", script))
            one.recv(ENOUGH)
    asked = _asked_one if len(sockets) == 1 else _asked_all
    return Handle(asked(sockets, take), asked(sockets, give))


def bare_pair(stack: ExitStack, addresses: Sequence[str]) -> Callable[[], None]:
    """Return a function that takes and gives back."""
    return pair_of(bare_lock(stack, addresses, "pair"))


def _asked_one(sockets: Sequence[socket.socket], request: bytes) -> Callable[[], None]:
    (one,) = sockets

    def ask() -> None:
        one.sendall(request)
        _check(one.recv(ENOUGH))

    return ask


def _asked_all(sockets: Sequence[socket.socket], request: bytes) -> Callable[[], None]:
    def ask() -> None:
        for one in sockets:
            one.sendall(request)
        for one in sockets:
            _check(one.recv(ENOUGH))

    return ask


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    one = socket.create_connection((host, int(port)))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def _digest(script: str) -> str:
    return sha1(script.encode()).hexdigest()


def _check(reply: bytes) -> None:
    if not reply.startswith(b":"):
        raise RuntimeError(f"the floor got {reply!r}")
