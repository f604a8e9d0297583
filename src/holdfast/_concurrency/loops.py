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


def daemon(run: Callable[[], None], name: str) -> threading.Thread:
    """Make a thread, for its owner to keep before it is started: an interrupt loses none then."""
    return threading.Thread(target=run, name=name, daemon=True)


def start_once(thread: threading.Thread) -> None:
    """Start a thread unless it was."""
    if thread.ident is None:
        thread.start()


def join_started(thread: threading.Thread | None, timeout: float) -> None:
    """Wait for the end of a thread, if it was started and is not ours."""
    if thread is None or thread.ident is None or thread is threading.current_thread():
        return
    thread.join(timeout)
