"""What a campaign is: axes with their values, the cells of the matrix, and the runs that it plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from pydantic import JsonValue

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.yaml import Path
from soakwatch.plan.patch import PlanChange

WAITING, RUNNING, ENDED, LOST = "waiting", "running", "ended", "lost"
"""The states of a run; one that is lost was broken off, or never begun."""


class CampaignError(SoakwatchError):
    """A campaign, or its folder, cannot be used; ``str()`` is one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class AxisValue:
    """A value of an axis: its name in tables, what it changes in the plan, and where the file has it. ``plain``: it
    leaves the plan as it is, and says so (``set: {}``)."""

    name: str
    changes: tuple[PlanChange, ...] = ()
    place: Path = ()
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of the matrix, its values in the order of the file. They are put at ``paths``; without any, each
    value says itself what it changes."""

    name: str
    values: tuple[AxisValue, ...]
    paths: tuple[str, ...] = ()

    def value(self, name: str) -> AxisValue | None:
        """The value of a name."""
        return next((value for value in self.values if value.name == name), None)


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values. ``values`` is the value's name by axis, in the order of the axes; they and ``labels``
    become labels of its runs. ``changes`` are all that it changes in the plan, in order."""

    values: Mapping[str, str]
    changes: tuple[PlanChange, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def patch(self) -> dict[str, JsonValue]:
        """What the plan has in the end, by path."""
        return {change.path: change.value for change in self.changes}

    @property
    def id(self) -> str:
        """Its name: the same for the same values.

        >>> Cell({"kind": "L4", "size": "64"}).id
        'kind=L4,size=64'
        """
        return ",".join(f"{axis}={value}" for axis, value in self.values.items())


@dataclass(frozen=True, slots=True)
class CellRun:
    """A run of a cell. ``repetition`` counts from 1; ``attempt`` is above 1 where an earlier attempt was broken off or
    was inconclusive for the monitor's or the generator's fault: tables use the last attempt alone.

    ``verdict`` is that of an ended run. ``reason`` says what the verdict says, or why it was lost. ``folder`` holds its
    record, None before it begins.
    """

    cell: Cell
    repetition: int
    attempt: int = 1
    state: str = WAITING
    verdict: str | None = None
    reason: str = ""
    folder: FilePath | None = None
    testbed: str = ""
    begin_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign as it stands: what tables, pages and the status are made of. ``runs`` are in planned order; of each
    repetition of a cell all attempts."""

    name: str
    folder: FilePath
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    runs: tuple[CellRun, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    """Whether nothing is left to be done; runs may be lost nevertheless."""


@dataclass(frozen=True, slots=True)
class Testbed:
    """A place where one run at a time can be made; ``patch`` is what is different there in the plan."""

    name: str
    patch: Mapping[str, JsonValue] = field(default_factory=dict)
