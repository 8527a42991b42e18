"""List the rules, or show one: its exact definition, parameters and metrics."""

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
  soakwatch rules --guide
\b
In a plan:
  rules:
    cpu_spike: {enter: 90%}    # a parameter
    core_dump: false           # off
    reboot: {required: false}  # an inconclusive result does not block a pass"""
)
@click.argument("name", required=False)
@click.option("--guide", is_flag=True, help="List when each rule fails, what it misses, which key changes it.")
def command(name: str | None, *, guide: bool) -> None:
    """List the rules; with NAME show its definition, parameters, minimum data and measured error rates."""
    shelf = INSTALLED.rules
    if guide and name is None:
        from soakwatch_rules.traits import traits_of

        guides = [(rule, traits_of(rule).guide) for rule in shelf.names()]
        rows = [(rule, of.fails_when, of.misses, of.change_with) for rule, of in guides if of.lines]
        show_table(("rule", "fails when", "misses", "change it with"), rows)
    elif name is None:
        show_table(("rule", "what it finds"), [(rule, shelf.summary(rule)) for rule in shelf.names()])
    else:
        _show(shelf, name)


def _show(shelf: PluginFolder, name: str) -> None:
    from soakwatch.core.registry import rule_class
    from soakwatch.core.units import show_seconds
    from soakwatch_rules.measured import table
    from soakwatch_rules.parameter import parameters
    from soakwatch_rules.traits import traits_of

    rule = rule_class(name)
    click.echo(f"{name} (version {rule.version}): {rule.summary}\n")
    guide = traits_of(name).guide
    for title, text in (*guide.lines, *((("What to do", guide.next_step),) if guide.next_step else ())):
        click.echo(f"{title + ':':<16}{text}")
    click.echo(f"{chr(10) if guide.lines else ''}Definition, with the defaults: {rule().definition()}\n")
    click.echo(_description(shelf.docstring(name), inspect.getdoc(rule) or "") + "\n")
    scope = {"object": "each object of a target", "metric": "each single series", "target": "a target as a whole"}
    click.echo(f"Judges:  {scope[rule.scope]}")
    click.echo(f"Window:  {', '.join(rule.phases) or 'the whole run'}")
    click.echo(f"Metrics: {', '.join(rule.metrics) or 'none: it uses events, the load and the outcome of the polls'}")
    click.echo(f"Needs:   {rule.spec.needs}")
    if rule.spec.shortest_s:
        click.echo(
            f"         (in a run planned for less than {show_seconds(rule.spec.shortest_s)}, an inconclusive result "
            "does not block a pass)"
        )
    known = parameters(rule)
    if known:
        click.echo("\nParameters:")
        rows = [
            (p.name, p.shown or _default(p.default, p.unit), p.unit, p.allowed, p.about, p.origin or "-") for p in known
        ]
        show_table(("name", "default", "unit", "range", "meaning", "where the default comes from"), rows)
    measured = table(name)
    click.echo(f"\nMeasured on signals of known truth:\n\n{measured}" if measured else "\nMeasured: no table available")


def _description(module: str, rule: str) -> str:
    """The docstrings of module and class, without examples and parameters."""
    paragraphs = [*module.split("\n\n"), *rule.split("\n\n")]
    return "\n\n".join(part.strip("\n") for part in paragraphs if not part.lstrip().startswith((">>>", "Parameters:")))


def _default(value: float, unit: str) -> str:
    from soakwatch.core.units import plan_seconds, show_bytes

    if unit == "1" and 0 < value < 1:  # a share; values from 1 on are counts
        return f"{value * 100:.6g}%"
    if unit == "s":
        return plan_seconds(value)
    return show_bytes(value) if unit == "By" else f"{value:g}"
