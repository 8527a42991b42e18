"""Pollers and loads by name: the module that a plan names, imported and checked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Literal

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry, loads, not_installed, pollers
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import Poller, SourceConfig, SourceContext

Start = Callable[[SourceConfig, SourceContext, AsyncExitStack], Awaitable[Poller]]


@dataclass(frozen=True, slots=True)
class SourceModule:
    """A poller or load, imported: its ``config`` class and its ``start`` (see ``soakwatch.sources.abc``)."""

    name: str
    kind: Literal["poller", "load"]
    config: type[SourceConfig]
    start: Start


def poller_module(name: str, registry: Registry = INSTALLED) -> SourceModule:
    """The poller (else the load) called ``name``, imported and checked against the convention of ``sources.abc``.

    Raises PlanError for an unknown name, with the nearest, and for a module that breaks the convention.
    """
    if name in registry.pollers.names():
        folder = registry.pollers
    elif name in registry.loads.names():
        folder = registry.loads
    else:
        known = (*pollers(registry), *loads(registry))
        raise PlanError(not_installed(name) or f"unknown source {name!r}{hint(name, known)}")
    module = folder.module(name)
    config: object = getattr(module, "Config", None)
    start: object = getattr(module, "start", None)
    if not (isinstance(config, type) and issubclass(config, SourceConfig)):
        raise PlanError(
            f"the {folder.word} {name!r} has no class Config derived from SourceConfig: fix {module.__name__}"
        )
    if not inspect.iscoroutinefunction(start):
        raise PlanError(f"the {folder.word} {name!r} has no 'async def start': fix {module.__name__}")
    kind: Literal["poller", "load"] = "poller" if folder is registry.pollers else "load"
    return SourceModule(name, kind, config, start)
