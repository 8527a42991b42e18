"""What a campaign is: axes with their values, the cells of the matrix, and the runs that it plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.yaml import Plain


class CampaignError(SoakwatchError):
    """A campaign, or its folder, cannot be used; ``str()`` is one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class AxisValue:
    """A value of an axis: its name in tables, and what it changes in the plan, by path (``targets.gen.role``)."""

    name: str
    patch: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of the matrix, its values in the order of the file."""

    name: str
    values: tuple[AxisValue, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values. ``values`` is the value's name by axis, in the order of the axes; they become labels
    of its runs. ``patch`` is everything that it changes in the plan."""

    values: Mapping[str, str]
    patch: Mapping[str, Plain] = field(default_factory=dict)

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

    ``state`` is waiting, running, ended, or lost (broken off, or never begun); ``verdict`` is that of an ended run.
    ``reason`` says what the verdict says, or why it was lost. ``folder`` holds its record, None before it begins.
    """

    cell: Cell
    repetition: int
    attempt: int = 1
    state: str = "waiting"
    verdict: str | None = None
    reason: str = ""
    folder: Path | None = None
    testbed: str = ""
    begin_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign as it stands: what tables, pages and the status are made of. ``runs`` are in planned order; of each
    repetition of a cell all attempts."""

    name: str
    folder: Path
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    runs: tuple[CellRun, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    """Whether nothing is left to be done; runs may be lost nevertheless."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and how long it may take. Words may hold ``{kind}``, the value of an axis or label."""

    words: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Testbed:
    """A place where one run at a time can be made; ``patch`` is what is different there in the plan."""

    name: str
    patch: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often each cell is run: ``at_least`` times, and, with ``half_width``, until the 95 % interval of the median
    of the figure ``of`` reaches no further than that share of it to either side, ``at_most`` times."""

    at_least: int
    at_most: int
    half_width: float | None = None
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a campaign's file says by itself: enough to know how a campaign stands, not to run it.

    ``seconds`` is how long a run of a cell is planned to last, where that is known. ``testbeds`` are in the order of
    the file; of one without a name the name is "". ``pinned`` cells run on one testbed only. ``labels`` go to every
    run, ``cell_labels`` to those of one cell. ``figures``, ``tables``, ``claims`` and ``limits`` are as the file has
    them. ``file`` is the file that was read.
    """

    name: str
    file: Path
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    repeat: Repeat
    seconds: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    cell_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    seed: int = 1
    rest_s: float = 0.0
    before: Command | None = None
    after: Command | None = None
    before_all: Command | None = None
    after_all: Command | None = None
    testbeds: tuple[Testbed, ...] = (Testbed(""),)
    pinned: Mapping[str, str] = field(default_factory=dict)
    retry_inconclusive: int = 0
    interrupted: str = "repeat"
    web: bool = False
    figures: Plain = None
    tables: Plain = None
    claims: Plain = None
    limits: Plain = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign(Outline):
    """A campaign that can be run: every cell's plan was checked.

    ``plans`` are the plans of the cells as YAML, by cell and testbed. ``digest`` is of all that makes runs comparable:
    two campaigns of one digest are one campaign. ``base_text`` is the file of the base plan, "" where it is inline;
    ``reference`` the calibration of its plan.
    """

    plans: Mapping[tuple[str, str], str]
    digest: str
    base_text: str
    reference: Path | None = None
