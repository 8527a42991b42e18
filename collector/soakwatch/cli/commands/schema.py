"""Print a JSON Schema: of plans, of campaigns or of verdict.json, or the OpenAPI document of the HTTP API."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch schema plan > plan.schema.json
  soakwatch schema campaign > campaign.schema.json
  soakwatch schema verdict
  soakwatch schema api > openapi.json"""
)
@click.argument("what", type=click.Choice(["plan", "campaign", "verdict", "api"]))
def command(what: str) -> None:
    """Print the JSON Schema of a plan, with every installed source and rule, of a campaign, or of verdict.json; or the
    OpenAPI 3.1 document of the HTTP API that 'soakwatch run' and 'soakwatch serve' provide."""
    import json

    if what == "plan":
        from soakwatch.plan.plan_schema import plan_schema

        click.echo(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
        return
    if what == "campaign":
        from soakwatch.campaign.campaign_keys import campaign_schema

        click.echo(json.dumps(campaign_schema(), indent=2, ensure_ascii=False))
        return
    if what == "api":
        from soakwatch.web.routes import endpoints
        from soakwatch.web.routes.openapi import document

        click.echo(json.dumps(document(endpoints()), indent=2, ensure_ascii=False))
        return
    from importlib import resources

    from soakwatch.core.errors import MonitorBrokenError

    file = resources.files("soakwatch") / "report" / "verdict.schema.json"
    try:
        click.echo(file.read_text(encoding="utf-8").rstrip("\n"))
    except OSError as error:
        raise MonitorBrokenError(
            f"the schema of verdicts is missing from this installation: {error.strerror}"
        ) from None
