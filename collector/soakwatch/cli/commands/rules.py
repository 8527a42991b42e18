"""Lists the rules, or shows one: its exact definition, parameters and metrics."""

from __future__ import annotations

import inspect

import click

from soakwatch.core.registry import INSTALLED, PluginFolder
from soakwatch.core.tables import show_table


@click.command(
    epilog="""\b
Examples:
  soakwatch rules
  soakwatch rules cpu_spike
\b
In a plan:
  rules:
    cpu_spike: {enter: 90%}    # a parameter
    core_dump: false           # off
    reboot: {required: false}  # inconclusive does not hold up a pass"""
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the rules; with NAME show its definition, parameters, least data, and how often it was wrong."""
    shelf = INSTALLED.rules
    if name is None:
        show_table(("rule", "what it finds"), [(rule, shelf.summary(rule)) for rule in shelf.names()])
    else:
        _show(shelf, name)


def _show(shelf: PluginFolder, name: str) -> None:
    from soakwatch.core.registry import rule_class
    from soakwatch.core.units import show_seconds
    from soakwatch_rules.measured import table
    from soakwatch_rules.parameter import parameters

    made = rule_class(name)
    click.echo(f"{name} (version {made.version}): {made.summary}\n")
    click.echo(f"Definition, with the defaults: {made().definition()}\n")
    click.echo(_told(shelf.docstring(name), inspect.getdoc(made) or "") + "\n")
    scope = {"object": "each object of a target", "metric": "each single series", "target": "a target as a whole"}
    click.echo(f"Judges:  {scope[made.scope]}")
    click.echo(f"Window:  {', '.join(made.phases) or 'the whole run'}")
    click.echo(f"Metrics: {', '.join(made.metrics) or 'none: it reads events, the load and the account of the polls'}")
    click.echo(f"Needs:   {made.manner.needs}")
    if made.manner.shortest_s:
        click.echo(
            f"         (a run planned shorter than {show_seconds(made.manner.shortest_s)} is not held up by its doubt)"
        )
    known = parameters(made)
    if known:
        click.echo("\nParameters:")
        rows = [(p.name, p.shown or _default(p.default, p.unit), p.unit, p.about, p.origin or "-") for p in known]
        show_table(("name", "default", "unit", "meaning", "where the default comes from"), rows)
    measured = table(name)
    click.echo(f"\nMeasured on signals of known truth:\n\n{measured}" if measured else "\nMeasured: no table yet")


def _told(module: str, rule: str) -> str:
    """What module and class say of the rule, without its runnable examples and its list of parameters."""
    paragraphs = [*module.split("\n\n"), *rule.split("\n\n")]
    return "\n\n".join(part.strip("\n") for part in paragraphs if not part.lstrip().startswith((">>>", "Parameters:")))


def _default(value: float, unit: str) -> str:
    from soakwatch.core.units import show_bytes, show_seconds

    if unit == "1" and 0 < value < 1:  # a share; from 1 up it is rather a number of something
        return f"{value * 100:.6g}%"
    if unit == "s":
        return show_seconds(value)
    return show_bytes(value) if unit == "By" else f"{value:g}"
