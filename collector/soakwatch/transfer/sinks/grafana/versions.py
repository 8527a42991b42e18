"""The versions of Grafana that the dashboards support, and the keys that each lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from soakwatch.transfer.sinks.grafana.models import Object, inner, objects, with_panels

_OF_NO_VERSION = frozenset({"auto", "auto_count", "auto_min", "definition"})
"""Keys of variables that the SDK writes and no version's types have: those of intervals, and ``definition``, which
Grafana's editor takes from the query if it is missing."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of Grafana: its schema number, and the keys of later versions that it lacks: of variables, and by panel
    type of options and of field drawing."""

    schema: int
    unknown_to_variables: Collection[str] = _OF_NO_VERSION
    unknown_to_options: Mapping[str, Collection[str]] = field(default_factory=dict)
    unknown_to_fields: Mapping[str, Collection[str]] = field(default_factory=dict)


VERSIONS: Mapping[str, Version] = {
    "10.4": Version(
        39,
        {*_OF_NO_VERSION, "allowCustomValue"},
        {
            "heatmap": {"selectionMode"},
            "stat": {"percentChangeColorMode"},
            "state-timeline": {"perPage"},
            "status-history": {"perPage"},
        },
        {"state-timeline": {"axisWidth"}},
    ),
    "11.6": Version(41),
    "12": Version(41),
}
"""Oldest first. Grafana migrates a model of an older schema itself."""
LEAST = "10.4"
"""The oldest supported version; all later ones read its models."""


def for_version(model: Object, version: str) -> Object:
    """A dashboard's model for one of VERSIONS: with its schema number and without keys that it lacks.

    ``model``, as the SDK wrote it, is not changed. Raises KeyError for another version.
    """
    known = VERSIONS[version]

    def panel_for(panel: Object) -> Object:
        kind = str(panel.get("type"))
        options = _without(inner(panel, "options"), known.unknown_to_options.get(kind, ()))
        changed = {**panel, "options": options}
        if unknown := known.unknown_to_fields.get(kind):
            changed["fieldConfig"] = _drawn_without(inner(panel, "fieldConfig"), unknown)
        return _with_cells(changed) if panel.get("type") == "table" else changed

    variables = [
        _without(variable, known.unknown_to_variables) for variable in objects(inner(model, "templating").get("list"))
    ]
    return {
        **with_panels(model, panel_for),
        "schemaVersion": known.schema,
        "templating": {**inner(model, "templating"), "list": variables},
    }


def _with_cells(table: Object) -> Object:
    """Add the cell options that Grafana's types require; overrides colour some columns."""
    fields = inner(table, "fieldConfig")
    defaults = inner(fields, "defaults")
    custom = {"cellOptions": {"type": "auto"}, **inner(defaults, "custom")}
    return {**table, "fieldConfig": {**fields, "defaults": {**defaults, "custom": custom}}}


def _drawn_without(fields: Object, keys: Collection[str]) -> Object:
    defaults = inner(fields, "defaults")
    custom = _without(inner(defaults, "custom"), keys)
    return {**fields, "defaults": {**defaults, "custom": custom}}


def _without(part: Object, keys: Collection[str]) -> Object:
    return {key: value for key, value in part.items() if key not in keys}
