"""Prints a JSON Schema: of plans, or of verdict.json."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch schema plan > plan.schema.json
  soakwatch schema verdict"""
)
@click.argument("what", type=click.Choice(["plan", "verdict"]))
def command(what: str) -> None:
    """Print the JSON Schema of a plan, with every installed source and rule, or of verdict.json."""
    if what == "plan":
        import json

        from soakwatch.plan.schema import plan_schema

        click.echo(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
        return
    from importlib import resources

    from soakwatch.errors import MonitorBroken

    file = resources.files("soakwatch") / "report" / "verdict.schema.json"
    try:
        click.echo(file.read_text(encoding="utf-8").rstrip("\n"))
    except OSError as error:
        raise MonitorBroken(f"the schema of verdicts is missing from this installation: {error.strerror}") from None
