"""A copy of a Bokeh model with all that it refers to, in a fraction of the time that it takes to build one.

``Model.clone`` builds a model anew, which works out the defaults of its hundred properties; an empty figure has forty
models, and a report twenty to a hundred figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TypeVar, cast

from bokeh.core.has_props import HasProps
from bokeh.core.property.wrappers import PropertyValueContainer
from bokeh.model import Model

_Made = TypeVar("_Made", bound=Model)
_VALUES = ("_property_values", "_unstable_default_values", "_unstable_themed_values")


def twin(model: _Made) -> _Made:
    """Models of their own, with ids of their own: what is done to them does nothing to the first.

    It relies on where Bokeh keeps the values of a model. Values that are neither models nor hold models are shared.
    """
    twins: dict[HasProps, Model] = {first: type(first).__new__(type(first)) for first in model.references()}
    for first, second in twins.items():
        state = {name: copy(value) if isinstance(value, dict) else value for name, value in vars(first).items()}
        for name in _VALUES:
            state[name] = {key: _moved(value, twins) for key, value in state[name].items()}
        vars(second).update(state | {"_id": second.id})
    return cast("_Made", twins[model])


def _moved(value: object, twins: Mapping[HasProps, Model]) -> object:
    """The value with the twins in place of the models in it."""
    if isinstance(value, Model):
        return twins[value]
    if isinstance(value, dict):
        made: object = type(value)({key: _moved(each, twins) for key, each in value.items()})
    elif isinstance(value, list | tuple | set):
        made = type(value)(_moved(each, twins) for each in value)
    else:
        return value
    if isinstance(value, PropertyValueContainer) and isinstance(made, PropertyValueContainer):
        for owner, descriptor in value._owners:  # noqa: SLF001
            made._register_owner(twins[owner], descriptor)  # noqa: SLF001
    return made
