"""Access to the JSON of a dashboard, and copies of it with changed panels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

Object = dict[str, object]
"""A JSON object."""


def parsed(text: str) -> Object:
    """The model in a dashboard's file."""
    model: Object = json.loads(text)
    return model


def text_of(model: Object) -> str:
    """The file of a model; byte for byte as generated if unchanged."""
    return json.dumps(model, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def objects(part: object) -> Sequence[Object]:
    """The objects in a list; none if it is no list."""
    return [item for item in part if isinstance(item, dict)] if isinstance(part, list) else []


def inner(part: Object, key: str) -> Object:
    """The object under a key, or an empty one."""
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def panels_of(model: Object) -> Iterator[Object]:
    """Every panel, also in collapsed rows; no rows."""
    for panel in objects(model.get("panels")):
        if panel.get("type") == "row":
            yield from objects(panel.get("panels"))
        else:
            yield panel


def with_panels(model: Object, change: Callable[[Object], Object]) -> Object:
    """A copy of the model with every panel changed, also in collapsed rows."""

    def changed(panel: Object) -> Object:
        if panel.get("type") != "row":
            return change(panel)
        return {**panel, "panels": [change(nested) for nested in objects(panel.get("panels"))]}

    return {**model, "panels": [changed(panel) for panel in objects(model.get("panels"))]}
