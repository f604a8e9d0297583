"""Answers come in the order of the requests. Where one does not, the connection is given up.

After a session has moved to another connection, a server may skip an answer or send that of an
earlier connection. Then nobody knows any more which answer belongs to which request. Kazoo's thread
ends with an error in that case, and its client is dead from then on; a new connection is all it
takes.
"""

from __future__ import annotations

from typing import Any

from kazoo.exceptions import ConnectionDropped  # type: ignore[import-untyped]


def insist_on_order(client: Any) -> None:
    """Let this client of kazoo connect anew if an answer is not the one that was due."""
    connection = client._connection
    honest = connection._read_response

    def read_response(header: Any, buffer: Any, offset: int) -> Any:
        pending = client._pending
        due = pending[0][2] if pending else None
        if header.xid != due:
            raise ConnectionDropped(f"answer {header.xid} came when {due} was due")
        return honest(header, buffer, offset)

    connection._read_response = read_response
