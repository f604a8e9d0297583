"""A question to the nodes of a Redlock: a script call, packed once, and its end for each node.

An inquiry is a question that is being asked: of whom, since when, and for how long it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...redis_link import Script, Template

if TYPE_CHECKING:
    from .redlock_node import AsyncRedlockNode

DEADLINE = b"$16\r\n%016d\r\n"  # until when a question counts, by the node's clock


class Question:
    """A script call, the same for every node but for its last words."""

    __slots__ = ("_tail", "_template", "time_at", "yes_decides")

    def __init__(
        self,
        template: Template,
        tail: Callable[[AsyncRedlockNode], bytes] | bytes = b"",
        time_at: int | None = 1,
        yes_decides: bool = False,
    ) -> None:
        self._template = template
        self._tail = tail
        # An integer is a yes, and a quorum of them settles it, whatever the others will say.
        self.yes_decides = yes_decides
        # Where in the answer the node's time is, if that is not all; None: nobody asks for it.
        self.time_at = time_at

    def requests(self, nodes: Sequence[AsyncRedlockNode]) -> list[bytes]:
        """Return what to send to each node: the script's name, or its text to whom that is new."""
        template, tail = self._template, self._tail
        head, digest = template.head, template.digest
        heads = [head if digest in node.scripts else node.teach(template) for node in nodes]
        if isinstance(tail, bytes):
            return [head + tail for head in heads]
        return [head + tail(node) for head, node in zip(heads, nodes, strict=True)]


class Inquiry(NamedTuple):
    """One question, as it was put to some nodes at once."""

    question: Question
    nodes: Sequence[AsyncRedlockNode]
    timeout: float
    sent: float
    until: float  # a node that does not hear it now must be told until then, if that is later
    spared: Collection[int] = ()  # but not these: they were never asked for what this takes back


def question(script: Script, keys: int, *values: Any, time_at: int = 1) -> Question:
    """Return a question that is asked once, and of all nodes alike."""
    return Question(Template(script, 0, keys, *values), time_at=time_at)
