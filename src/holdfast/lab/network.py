"""A private network for the lab: a namespace with nothing but a loopback interface.

Ports cannot clash with anybody's, and nothing can leave the machine. It takes root on Linux; else
the lab shares the loopback interface, and its own proxies do all faults in either case.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

PRIVATE, SHARED = "private", "shared"


def isolate() -> str:
    """Move this process, and all it will start, into a network of its own if it may.

    Call it before any thread is started. Returns "private" or "shared".
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return SHARED
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return SHARED  # a container without the right to do so
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    return PRIVATE
