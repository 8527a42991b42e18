"""The JSON of a dashboard as objects: its panels, and a copy in which each panel is another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

Object = dict[str, object]
"""An object of JSON."""


def parsed(text: str) -> Object:
    """The model in a dashboard's file."""
    model: Object = json.loads(text)
    return model


def text_of(model: Object) -> str:
    """The file of a model; the same bytes as the generated ones where nothing was changed."""
    return json.dumps(model, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def objects(part: object) -> Sequence[Object]:
    """The objects of a list; none where there is no list."""
    return [item for item in part if isinstance(item, dict)] if isinstance(part, list) else []


def inner(part: Object, key: str) -> Object:
    """The object under a key; an empty one where there is none."""
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def panels_of(model: Object) -> Iterator[Object]:
    """Every panel, those that lie in closed rows too; no row."""
    for panel in objects(model.get("panels")):
        if panel.get("type") == "row":
            yield from objects(panel.get("panels"))
        else:
            yield panel


def with_panels(model: Object, change: Callable[[Object], Object]) -> Object:
    """A copy of the model in which ``change`` was made to every panel, in closed rows too."""

    def changed(panel: Object) -> Object:
        if panel.get("type") != "row":
            return change(panel)
        return {**panel, "panels": [change(nested) for nested in objects(panel.get("panels"))]}

    return {**model, "panels": [changed(panel) for panel in objects(model.get("panels"))]}
