"""What the server answers: every module here is a group of endpoints, ``ENDPOINTS``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from soakwatch.web.endpoint import Endpoint


class _Group(Protocol):
    ENDPOINTS: tuple[Endpoint, ...]


def endpoints() -> tuple[Endpoint, ...]:
    """Everything in this folder, by the names of its files."""
    found: list[Endpoint] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda one: one.name):
        found += cast("_Group", importlib.import_module(f"{__name__}.{module.name}")).ENDPOINTS
    return tuple(found)
