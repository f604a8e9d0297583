"""Run a program where only one port of the loopback interface leads: apart.py PORT INSIDE PROGRAM…

Run as a script, for servers that listen on all interfaces and cannot be told not to.

Rule 1: the program becomes this very process, in a network namespace of its own: nobody outside
        reaches what it listens on, and signals and the death of the parent reach it as usual.
Rule 2: a socket stays in the namespace in which it was made. So a child that listens outside, on
        127.0.0.1:PORT, and connects inside, to 127.0.0.1:INSIDE, is the only door; it dies with it.
Rule 3: where there are no such namespaces, one sentence says so and nothing is started. Without
        arguments nothing else is found out.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
import time

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_LOOPBACK = "127.0.0.1"
_PATIENCE = 5.0  # seconds that the port may still be held by the door of who was here before
_BACKLOG = 1024
_CHUNK = 64 * 1024


def main(port: str, inside: str, *command: str) -> None:
    """Go apart, leave a door, become the program."""
    listener = _listen(int(port))
    _go_apart()
    _switch_loopback_on()
    parent = os.getpid()
    if os.fork() == 0:
        _die_with(parent)
        asyncio.run(_keep_door(listener, int(inside)))
    listener.close()
    os.execvp(command[0], command)


def _listen(port: int) -> socket.socket:
    end = time.monotonic() + _PATIENCE
    while True:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_LOOPBACK, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise SystemExit(f"{_LOOPBACK}:{port}: {error.strerror}") from None
            time.sleep(0.01)
        else:
            return listener


def _go_apart() -> None:
    """Enter a new network namespace: as root, or as the one user of a new user namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise SystemExit(f"This machine gives no network namespace ({reason}).")
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w") as stream:
            stream.write(text)


def _switch_loopback_on() -> None:
    with socket.socket() as any_socket:
        name = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, name))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


async def _keep_door(listener: socket.socket, inside: int) -> None:
    open_now: set[object] = set()  # the loop alone does not keep tasks from being collected

    async def let_through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        open_now.add(task)
        try:
            await carry_both(reader, writer)
        finally:
            open_now.discard(task)

    async def carry_both(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection(_LOOPBACK, inside)
        except OSError:
            writer.transport.abort()  # not there yet
            return
        await asyncio.gather(_carry(reader, other_writer), _carry(other_reader, writer))
        writer.close()
        other_writer.close()

    server = await asyncio.start_server(let_through, sock=listener, backlog=_BACKLOG)
    await server.serve_forever()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:] else _go_apart()
