"""(Generated from _async/engines/redlock_question.py by tools/unasync.py: do not edit.) A question to the nodes of a Redlock: a script call, packed once, and its end for each node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...redis_link import Script, Template

if TYPE_CHECKING:
    from .redlock_nodes import RedlockNode

DEADLINE = b"$16\r\n%016d\r\n"  # until when a question counts, by the node's clock


class Question:
    """A script call, the same for every node but for its last words."""

    __slots__ = ("_tail", "_template", "time_at")

    def __init__(
        self,
        template: Template,
        tail: Callable[[RedlockNode], bytes] | bytes = b"",
        time_at: int | None = 1,
    ) -> None:
        self._template = template
        self._tail = tail
        # Where in the answer the node's time is, if that is not all; None: nobody asks for it.
        self.time_at = time_at

    def requests(self, nodes: Sequence[RedlockNode], in_full: bool = False) -> list[bytes]:
        """Return what to send to each node."""
        head = self._template.in_full() if in_full else self._template.head
        tail = self._tail
        if isinstance(tail, bytes):
            return [head + tail] * len(nodes)
        return [head + tail(node) for node in nodes]


def question(script: Script, keys: int, *values: Any, time_at: int = 1) -> Question:
    """Return a question that is asked once, and of all nodes alike."""
    return Question(Template(script, 0, keys, *values), time_at=time_at)
