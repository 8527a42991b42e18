"""The JSON for each version of Grafana holds to that version's own types, so that a misspelt key is found.

The schemas are made from Grafana's npm package by ``grafana_types.py`` and committed: no test needs npm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest
from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError
from tests.dashboards.grafana_types import VERSIONS, file_of

from soakwatch.transfer.sinks.grafana import dashboards, dashboards_for
from soakwatch.transfer.sinks.grafana.models import Object, inner, objects, panels_of, parsed
from soakwatch.transfer.sinks.grafana.versions import VERSIONS as VERSIONS_OF_GRAFANA

PAGE = "http://soak.lab:8080"
MARKS = ("annotations", "list", "target")
"""The type of an annotation's query is that of Grafana's own store, not of a data source: its comment says so."""
Types = Mapping[str, Draft7Validator]
"""A version's validators of the dashboard and of each kind of panel's parts."""


def types_of(version: str) -> Types:
    """Those of one version of Grafana."""
    schemas: dict[str, dict[str, object]] = json.loads(file_of(VERSIONS[version]).read_text())
    return {name: Draft7Validator(schema) for name, schema in schemas.items()}


TYPES = {version: types_of(version) for version in VERSIONS}
NAMES = sorted(dashboards())


def wrong(types: Types, name: str, part: object) -> list[str]:
    """What does not hold, but for the queries of annotations."""
    causes = [leaf for error in types[name].iter_errors(part) for leaf in leaves(error)]
    return [
        f"{'/'.join(map(str, cause.absolute_path))}: {cause.message}"
        for cause in causes
        if tuple(key for key in cause.absolute_path if isinstance(key, str))[:3] != MARKS
    ]


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    """The innermost causes of an error."""
    if not error.context:
        yield error
    for cause in error.context or ():
        yield from leaves(cause)


def wrong_in(types: Types, model: Object) -> list[str]:
    """What does not hold in a dashboard, and of each of its panels, those in closed rows too, in its options and in
    what its fields have of their own."""
    messages = wrong(types, "dashboard", model)
    for panel in panels_of(model):
        kind = str(panel["type"]).replace("-", "")
        messages += wrong(types, f"{kind}.options", panel["options"])
        own = inner(inner(panel, "fieldConfig"), "defaults").get("custom")
        if own and f"{kind}.fields" in types:
            messages += wrong(types, f"{kind}.fields", own)
    return messages


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_dashboard_holds_to_the_types_of_its_version(name: str, version: str) -> None:
    """With and without links to the report."""
    for page in (None, PAGE):
        assert wrong_in(TYPES[version], parsed(dashboards_for(version, page)[name])) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_model_of_the_least_version_holds_to_later_types(name: str, version: str) -> None:
    """It is the default because every later Grafana reads it: it holds nothing that they do not know, and lacks only
    what was new to them, which they have a default for."""
    new = {key for known in VERSIONS_OF_GRAFANA.values() for keys in known.unknown_to_options.values() for key in keys}
    missing = {f": {key!r} is a required property" for key in new}
    assert set(wrong_in(TYPES[version], parsed(dashboards_for()[name]))) <= missing


@pytest.mark.parametrize("name", NAMES)
def test_a_version_changes_nothing_that_it_knows(name: str) -> None:
    """Panels, queries and fields are as they were drawn; tables still colour their cells in Grafana 9."""
    drawn = parsed(dashboards()[name])
    for version in VERSIONS:
        written = parsed(dashboards_for(version)[name])
        for before, after in zip(panels_of(drawn), panels_of(written), strict=True):
            assert {**before, "options": None, "fieldConfig": None} == {**after, "options": None, "fieldConfig": None}
            assert inner(after, "options").items() <= inner(before, "options").items()
            assert inner(before, "fieldConfig")["overrides"] == inner(after, "fieldConfig")["overrides"]
            for override in objects(inner(after, "fieldConfig")["overrides"]):
                ids = {item["id"] for item in objects(override["properties"])}
                assert ("custom.cellOptions" in ids) == ("custom.displayMode" in ids)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_misspelt_key_is_found(version: str) -> None:
    """The test can fail: one letter more in a panel's options, in a closed row, at the top."""
    model = parsed(dashboards_for(version)["soakwatch-run.json"])
    panel = next(panel for panel in panels_of(model) if panel["type"] == "timeseries")
    assert wrong(TYPES[version], "timeseries.options", {**inner(panel, "options"), "legendd": {}})
    assert wrong_in(TYPES[version], {**model, "refreshh": "5s"})
    closed = {"type": "row", "id": 1, "collapsed": True, "panels": [{**panel, "titlee": "x"}]}
    assert wrong_in(TYPES[version], {**model, "panels": [closed]})
