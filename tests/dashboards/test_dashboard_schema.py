"""The JSON holds to Grafana's own types, so that a misspelt key is found.

The schemas are made from Grafana's npm package by ``grafana_types.py`` and committed: no test needs npm.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pytest
from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError
from tests.dashboards.grafana_types import VERSIONS, file_of

from soakwatch.sinks.grafana import dashboards

_EVER = {"auto", "auto_count", "auto_min", "definition"}
LATER = {
    "10.4.0": {"percentChangeColorMode", "perPage", "selectionMode", "allowCustomValue", *_EVER},
    "11.6.0": _EVER,
}
"""Keys that the SDK writes by itself and an older Grafana passes over."""
MARKS = "annotations"
"""The type of an annotation's query is that of Grafana's own store, not of a data source: its comment says so."""


@dataclass(frozen=True, slots=True)
class Types:
    """A version's validators of the dashboard and of each kind of panel's parts, and the keys that it does not know."""

    of: Mapping[str, Draft7Validator]
    later: Collection[str]


@pytest.fixture(scope="module", params=VERSIONS)
def types(request: pytest.FixtureRequest) -> Types:
    """Those of one version of Grafana."""
    made: dict[str, dict[str, object]] = json.loads(file_of(request.param).read_text())
    return Types({name: Draft7Validator(schema) for name, schema in made.items()}, LATER[request.param])


def wrong(types: Types, name: str, part: object) -> list[str]:
    """What does not hold, but for what is known."""
    found = [leaf for error in types.of[name].iter_errors(without(types.later, part)) for leaf in leaves(error)]
    return [
        f"{'/'.join(map(str, one.absolute_path))}: {one.message}" for one in found if MARKS not in one.absolute_path
    ]


def without(later: Collection[str], part: object) -> object:
    """A part of the JSON without some keys."""
    if isinstance(part, dict):
        return {key: without(later, value) for key, value in part.items() if key not in later}
    return [without(later, value) for value in part] if isinstance(part, list) else part


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    """The innermost causes of an error."""
    if not error.context:
        yield error
    for inner in error.context or ():
        yield from leaves(inner)


@pytest.mark.parametrize("name", sorted(dashboards()))
def test_dashboard_holds_to_grafanas_types(name: str, types: Types) -> None:
    """The dashboard, and of each panel its options and what its fields have of their own."""
    board = json.loads(dashboards()[name])
    told = wrong(types, "dashboard", board)
    for panel in board["panels"]:
        kind = panel["type"].replace("-", "")
        told += wrong(types, f"{kind}.options", panel["options"])
        own = panel["fieldConfig"]["defaults"].get("custom")
        if own and f"{kind}.fields" in types.of and kind != "table":  # the SDK leaves a table's cells to Grafana
            told += wrong(types, f"{kind}.fields", own)
    assert told == []


def test_a_misspelt_key_is_found(types: Types) -> None:
    """The test can fail: one letter more in a panel's options."""
    board = json.loads(dashboards()["soakwatch-run.json"])
    panel = next(panel for panel in board["panels"] if panel["type"] == "timeseries")
    assert wrong(types, "timeseries.options", {**panel["options"], "legendd": {}})
    assert wrong(types, "dashboard", {**board, "refreshh": "5s"})
