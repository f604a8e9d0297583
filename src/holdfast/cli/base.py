"""What all commands share: exit codes, where the locks are, and errors as one sentence."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from .. import Client, connect
from ..errors import (
    EngineUnavailable,
    InvalidName,
    LeaseLost,
    LockError,
    LockMismatch,
    MissingDriver,
    NotAcquired,
    NotSupported,
    OutcomeUnknown,
)
from .text import safe

# From sysexits.h where it has one, so that cron jobs and mailers know them.
FOUND_SOMETHING = 1
USAGE = 64
UNAVAILABLE = 69
SOFTWARE = 70
NOT_ACQUIRED = 75
LOST = 76
NOT_EXECUTABLE = 126
NOT_FOUND = 127

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (NotAcquired, NOT_ACQUIRED),
    (LeaseLost, LOST),
    (EngineUnavailable, UNAVAILABLE),
    (OutcomeUnknown, UNAVAILABLE),
    (MissingDriver, UNAVAILABLE),
    (InvalidName, USAGE),
    (LockMismatch, USAGE),
    (NotSupported, USAGE),
    (LockError, SOFTWARE),
    (ValueError, USAGE),
)

EXPECTED = (LockError, ValueError)


def exit_code(error: Exception) -> int:
    """Return the exit code that tells a script what to do about an expected error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), SOFTWARE)


def say(sentence: object) -> None:
    """Tell the user something, on standard error; what others wrote cannot move the cursor."""
    with suppress(OSError):  # nobody listens: that must not stop what is going on
        click.echo(f"holdfast: {safe(str(sentence))}", err=True)


class _Sentences(logging.Handler):
    """Shows what the library logs, labels of other people included, as sentences."""

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        say(record.getMessage())


def hear_the_library() -> None:
    """Show warnings of the library as sentences of the command."""
    logger = logging.getLogger("holdfast")
    if not any(isinstance(one, _Sentences) for one in logger.handlers):
        logger.addHandler(_Sentences(logging.WARNING))
        logger.propagate = False


@dataclass(frozen=True, slots=True)
class Where:
    """Which engine and namespace a command works on; None = not said."""

    url: str | None = None
    namespace: str | None = None

    def connect(self, **options: Any) -> Client:
        """Return a client; nothing is sent yet."""
        hear_the_library()
        return connect(self.url, namespace=self.namespace or "holdfast", **options)


def where_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --url and --namespace, also taken from before its name."""

    def command(*, url: str | None, namespace: str | None, **others: Any) -> Any:
        outer = click.get_current_context().find_object(Where) or Where()
        return function(Where(url or outer.url, namespace or outer.namespace), **others)

    functools.update_wrapper(command, function)
    url = click.option("--url", metavar="URL", help="Where the locks are.  [env: HOLDFAST_URL]")
    namespace = click.option(
        "--namespace", metavar="TEXT", help="Which locks there.  [env: HOLDFAST_NAMESPACE]"
    )
    return url(namespace(command))


def wrong_usage(error: click.UsageError) -> click.UsageError:
    """Return the error, ending the command with 64 instead of click's 2."""
    vars(error)["exit_code"] = USAGE
    return error


class Command(click.Command):
    """A command whose expected errors are one sentence and an exit code, never a traceback."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """See click; wrong usage ends with 64."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise wrong_usage(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise wrong_usage(error) from None
        except EXPECTED as error:
            say(error)
            ctx.exit(exit_code(error))


def complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names in use to the shell; silence is better than an error in a prompt."""
    outer = ctx.find_object(Where) or Where()
    said = ctx.params
    where = Where(said.get("url") or outer.url, said.get("namespace") or outer.namespace)
    try:
        with where.connect(connect_timeout=1.0) as client:
            return [shot.name for shot in client.locks(incomplete) if shot.name == safe(shot.name)]
    except Exception:
        return []
