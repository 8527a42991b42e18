"""Links from the dashboards to a run's page, which is its report once the run has ended."""

from __future__ import annotations

from soakwatch.core.errors import PlanError
from soakwatch.transfer.sinks.grafana.models import Object, inner, objects, with_panels

_OF_A_RUN = frozenset({"soakwatch-run", "soakwatch-device", "soakwatch-monitor"})
_FLEET, _RUNS = "soakwatch-fleet", "Runs"


def checked_page(page: str) -> str:
    """The address of ``soakwatch serve`` without a trailing slash. Raises PlanError if it is no http(s) URL."""
    scheme, separator, rest = page.partition("://")
    if scheme not in {"http", "https"} or not separator or not rest.strip("/") or set("?#${} ") & set(rest):
        raise PlanError(f"--page {page}: give the URL of `soakwatch serve`, such as http://soak.lab:8080")
    return page.rstrip("/")


def page_url(page: str, run: str) -> str:
    """The page of a run; ``run`` is its percent-encoded name, or the Grafana variable for it."""
    return f"{page}/runs/{run}/"


def with_report_links(model: Object, page: str) -> Object:
    """A dashboard's model with links to the server at ``page``: in the header if it shows one run, in *Fleet* at each
    run's name. Other models are returned unchanged."""
    if model.get("uid") in _OF_A_RUN:
        link: Object = {
            "asDropdown": False,
            "icon": "doc",
            "includeVars": False,
            "keepTime": False,
            "tags": [],
            "targetBlank": True,
            "title": "Report",
            "tooltip": "The page of this run: its state, and its report once it has ended",
            "type": "link",
            "url": page_url(page, "${run:percentencode}"),
        }
        return {**model, "links": [*objects(model.get("links")), link]}
    if model.get("uid") == _FLEET:
        return with_panels(model, lambda panel: _with_link(panel, page) if panel.get("title") == _RUNS else panel)
    return model


def _with_link(table: Object, page: str) -> Object:
    """Add a link to the column of the run."""
    fields = inner(table, "fieldConfig")
    link: Object = {
        "targetBlank": True,
        "title": "Its report",
        "url": page_url(page, "${__data.fields.run:percentencode}"),
    }
    overrides = [
        {**override, "properties": [_longer(item, link) for item in objects(override.get("properties"))]}
        if inner(override, "matcher").get("options") == "run"
        else override
        for override in objects(fields.get("overrides"))
    ]
    return {**table, "fieldConfig": {**fields, "overrides": overrides}}


def _longer(setting: Object, link: Object) -> Object:
    if setting.get("id") != "links":
        return setting
    return {**setting, "value": [*objects(setting.get("value")), link]}
