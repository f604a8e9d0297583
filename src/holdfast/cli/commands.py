"""A group whose commands are imported when called: none waits for what another one needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click

from .base import wrong_usage


class Commands(click.Group):
    """The commands, in the order in which one meets them; wrong usage ends with 64."""

    table: ClassVar[Mapping[str, str]]  # by name, as module:attribute of this package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        if name not in self.table:
            return None
        module, _, attribute = self.table[name].partition(":")
        command = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise wrong_usage(error) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise wrong_usage(error) from None
