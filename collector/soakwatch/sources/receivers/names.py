"""Interface names from a target's SNMP source, for notifications that only have an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from soakwatch.sources.profiles.device_survey import Survey
from soakwatch.sources.profiles.series_of_rows import INTERFACE
from soakwatch.sources.receivers.listener import Name, listeners

_TABLES = ("1.3.6.1.2.1.2.2.1.", "1.3.6.1.2.1.31.1.1.1.")  # ifTable and ifXTable, indexed by ifIndex
_UP = "system.network.up"  # a metric whose object is just the interface


class InterfaceNames:
    """The object of an interface by its ifIndex, from a survey; None without a survey or row.

    An index may be another interface after a reboot, so ``survey`` must return None until the device is surveyed again.
    """

    def __init__(self, survey: Callable[[], Survey | None]) -> None:
        self._survey = survey
        self._read: Survey | None = None
        self._objects: Mapping[str, str] = {}

    def __call__(self, index: str) -> str | None:
        """The object, such as ``interface=Gi0/3``."""
        survey = self._survey()
        if survey is None:
            return None
        if survey is not self._read:
            self._read, self._objects = survey, _objects(survey)
        return self._objects.get(index)


def share_names(target: str, name: Name, stack: AsyncExitStack) -> None:
    """Offers a target's interface names to its notifications; the stack ends it."""
    here = listeners()
    here.names.setdefault(target, []).append(name)

    def end() -> None:
        here.names[target].remove(name)
        if not here.names[target]:
            del here.names[target]

    stack.callback(end)


def name_of(target: str, index: str) -> str | None:
    """The object of an interface of a target by its ifIndex; None if no source knows it."""
    objects = (name(index) for name in listeners().names.get(target, ()))
    return next((known for known in objects if known is not None), None)


def _objects(survey: Survey) -> Mapping[str, str]:
    wants = (want for table in survey.tables if table.group.watch == INTERFACE for want in table.wants)
    return {
        cell.oid.rpartition(".")[2]: want.object
        for want in wants
        if want.line.metric == _UP
        for cell in want.cells
        if cell.oid.startswith(_TABLES)
    }
