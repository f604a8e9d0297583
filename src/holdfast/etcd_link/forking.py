"""Forks of a process that uses gRPC: its links hold still, so that the child finds nothing open."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

import grpc


class Link(Protocol):
    """What uses gRPC."""

    def hold_still(self) -> None:
        """Close everything, and begin nothing."""

    def go_on(self) -> None:
        """Begin again."""


_links: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Link] = []
# A channel that leads nowhere, and never connects. Without any, gRPC ends all its threads, and a
# fork in the middle of that leaves locks of its locked in the child.
_anchor: list[grpc.Channel] = []


def hear_of_forks(link: Link) -> None:
    """Let the link hold still whenever this process forks, as long as it lives."""
    _links.add(link)


def keep_running() -> None:
    """Let gRPC go on when the last channel is closed."""
    if not _anchor:
        _anchor.append(grpc.insecure_channel("127.0.0.1:1"))


def _before() -> None:
    for link in list(_links):
        _held.append(link)
        link.hold_still()


def _after_in_parent() -> None:
    while _held:
        _held.pop().go_on()


if hasattr(os, "register_at_fork"):
    # In the child the links start over: the clients see to that (`abandon`).
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_held.clear
    )
