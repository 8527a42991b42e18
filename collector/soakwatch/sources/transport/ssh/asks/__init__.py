"""Programs that are run on a Linux device in each poll, one a file: the directory is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

from soakwatch.sources.transport.ssh.ask import Ask, Wants


@dataclass(frozen=True, slots=True)
class NamedAsk:
    """An ask by its name."""

    name: str
    ask: Ask


def all_asks(wants: Wants) -> tuple[NamedAsk, ...]:
    """Every ask of the folder, in the order of their names."""
    asks = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        (kind,) = (
            each
            for each in vars(module).values()
            if isinstance(each, type) and issubclass(each, Ask) and each is not Ask
        )
        asks.append(NamedAsk(name, kind(wants)))
    return tuple(asks)
