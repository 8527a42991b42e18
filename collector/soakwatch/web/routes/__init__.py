"""The endpoints of the server: every module here is a group of them, ``ENDPOINTS``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from soakwatch.web.endpoint import Endpoint


class _Group(Protocol):
    ENDPOINTS: tuple[Endpoint, ...]


def endpoints() -> tuple[Endpoint, ...]:
    """All endpoints of this folder, sorted by the names of the files."""
    collected: list[Endpoint] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        collected += cast("_Group", importlib.import_module(f"{__name__}.{module.name}")).ENDPOINTS
    return tuple(collected)
