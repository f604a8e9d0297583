"""`holdfast completion`: what a shell needs to complete commands, options and lock names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from .base import Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete `holdfast`.

    \b
    bash:  echo 'eval "$(holdfast completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(holdfast completion zsh)"' >> ~/.zshrc
    fish:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE")
    # Not bash's own source(): that starts a bash to ask for its version, on the wrong machine.
    click.echo(ShellComplete.source(script))
