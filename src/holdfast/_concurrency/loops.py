"""What both kinds of waiting are made of: resolving futures from anywhere, starting threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


def resolve(future: asyncio.Future[bool], value: bool) -> None:
    """Set a result unless there is one."""
    if not future.done():
        future.set_result(value)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def call_threadsafe(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    """Call `function` on that loop soon; reentrant, so also fit for `__del__`."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass  # the loop is closed: whoever waited there is gone


def start_thread(run: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
