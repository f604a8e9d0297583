"""The command line: one file per command, this one only collects them."""

from __future__ import annotations

import click

from .. import __version__
from .bench import bench


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Locks between processes and machines that stay safe when things go wrong."""


main.add_command(bench)
