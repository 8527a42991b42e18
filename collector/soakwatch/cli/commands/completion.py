"""Print what a shell needs to complete commands, options, plans, runs and rules"""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch completion bash >~/.local/share/bash-completion/completions/soakwatch
  soakwatch completion zsh >"${fpath[1]}/_soakwatch"
  soakwatch completion fish >~/.config/fish/completions/soakwatch.fish
  eval "$(soakwatch completion bash)"     # for this shell alone
\b
The folder must exist; new shells read the file, and it is the same after an upgrade."""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a SHELL. TAB then completes commands and their options, plan files, runs (and
    'last'), rules, device profiles, and the names of pollers, loads and sinks."""
    from soakwatch.cli.completion import completion_script
    from soakwatch.cli.main import soakwatch

    click.echo(completion_script(soakwatch, shell))
