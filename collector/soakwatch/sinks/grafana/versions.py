"""Which versions of Grafana the dashboards are written for, and what each of them knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from soakwatch.sinks.grafana.models import Object, inner, objects, with_panels

_OF_NO_VERSION = frozenset({"auto", "auto_count", "auto_min", "definition"})
"""Keys of variables that the SDK writes and the types of no version have: those of intervals, and what Grafana's
editor shows of a query, which it takes from the query where it is missing."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of Grafana: the number of its models' schema, and the keys of later ones that it does not know, those
    of variables, and by the type of the panel those of its options and of how its fields are drawn."""

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
"""The oldest first. A Grafana brings a model with the schema of an older one up to its own by itself."""
LEAST = "10.4"
"""The least version; its models are those that all later ones read."""


def for_version(model: Object, version: str) -> Object:
    """A dashboard's model for one of VERSIONS: with the number of its schema and without keys that it does not know.

    ``model`` is what the SDK wrote, and is not changed. Raises KeyError for another version.
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
    """A table that says how its cells are drawn, as Grafana's types demand; overrides colour some of its columns."""
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
