"""Progress of what takes minutes: a bar on standard error, silent where nobody looks."""

from __future__ import annotations

import sys

import click


class bar:
    """A progress bar on standard error; silent where nobody looks."""

    def __init__(self, label: str, hidden: bool = False) -> None:
        self._bar = click.progressbar(
            length=1000,
            label=label,
            file=sys.stderr,
            hidden=hidden or not sys.stderr.isatty(),
            item_show_func=lambda what: what or "",
            show_eta=False,
        )
        self._done = 0

    def __enter__(self) -> bar:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__(None, None, None)

    def show(self, share: float, what: str) -> None:
        """Move the bar."""
        steps = int(1000 * share) - self._done
        self._done += steps
        self._bar.update(steps, what)
