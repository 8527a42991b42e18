"""What a campaign's file asks of its runs: figures, tables, limits, claims, and what is compared with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch.campaign.model import Cell
from soakwatch.runs.figures import Better, FigureSpec

VERDICT = "verdict"
"""The name by which tables show the verdict of a cell's runs."""
FIGURES = "figures"
"""The name by which rows or columns are the figures instead of an axis."""
MARGIN = 0.03
"""The change that counts as none where a comparison names no margin."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which cells are meant: the values that are allowed, by axis; all cells where there is no axis."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def takes(self, cell: Cell) -> bool:
        """Whether a cell is meant.

        >>> Where({"size": ("64",)}).takes(Cell({"size": "64"})), Where({"size": ("64",)}).takes(Cell({"size": "512"}))
        (True, False)
        """
        return all(cell.values.get(axis) in allowed for axis, allowed in self.values.items())

    @property
    def words(self) -> str:
        """``size 64 or 512, kind L4``; empty for all cells."""
        return ", ".join(f"{axis} {' or '.join(allowed)}" for axis, allowed in self.values.items())


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The value of an axis that stands for the generator alone (a patch cable). What lies within ``within`` of its
    figure is the generator's limit, not the device's."""

    axis: str
    of: str
    within: float = 0.02


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure that each run has by itself."""

    name: str
    spec: FigureSpec
    better: Better | None = None
    ceiling: Ceiling | None = None


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """Relative scale-up of the figure ``of`` along an axis of numbers: f(n) / (n · f(1)); the least value is 1."""

    name: str
    of: str
    along: str


@dataclass(frozen=True, slots=True)
class Share:
    """The figure ``of`` as a share of what it is at the value ``to`` of the axis ``along``; as ``cost``, what is
    missing to it."""

    name: str
    of: str
    along: str
    to: str
    cost: bool = False


@dataclass(frozen=True, slots=True)
class Per:
    """One figure over another: packets per joule, bytes per connection."""

    name: str
    of: str
    per: str


@dataclass(frozen=True, slots=True)
class Overload:
    """Where loss is expected: the figures of loss and of packets offered and received, and the axis of the load.

    The capacity is the highest received rate of a cell whose loss is at most ``lossless``, among the cells that differ
    in the load alone.
    """

    loss: str
    offered: str
    received: str
    along: str
    lossless: float = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedLoss:
    """The share of the offered packets that are above the capacity; as ``excess``, the measured loss above it, which
    is noted where it is more than ``most``."""

    name: str
    overload: Overload
    excess: bool = False
    most: float = 0.0


Figure = Measured | ScaleUp | Share | Per | ExpectedLoss
"""A figure of cells; the names in derived ones are those of figures before it."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table. ``rows`` and ``columns`` are axes, or ``figures``; each combination of the axes that are in neither
    is a view of its own. ``figures`` are names, ``verdict`` among them. ``shows`` is what stands beside the median:
    interval, range, runs."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[str, ...]
    title: str = ""
    where: Where = field(default_factory=Where)
    shows: tuple[str, ...] = ("interval",)


@dataclass(frozen=True, slots=True)
class Limit:
    """What every run of the cells must keep; ``median`` asks it of the cell's median only."""

    figure: str
    at_least: float | None = None
    at_most: float | None = None
    where: Where = field(default_factory=Where)
    median: bool = False


@dataclass(frozen=True, slots=True)
class LossLimit:
    """Loss above what is expected of an overload must stay below ``excess``, a share of the offered packets."""

    overload: Overload
    excess: float
    where: Where = field(default_factory=Where)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a vendor's sheet says: ``value`` ± ``tolerance``, a share."""

    figure: str
    value: float
    tolerance: float
    source: str = ""
    where: Where = field(default_factory=Where)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every other value of an axis against the value ``to``. A change within ``margin`` counts as none."""

    axis: str
    to: str
    margin: float = MARGIN
    figures: tuple[str, ...] = ()
    where: Where = field(default_factory=Where)


@dataclass(frozen=True, slots=True)
class TablesSpec:
    """All that is asked. ``named`` are the figures that the file lists, in its order; the others are parts of derived
    figures, limits and claims. Empty ``named`` or ``tables``: the usual ones."""

    figures: tuple[Figure, ...] = ()
    named: tuple[str, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    limits: tuple[Limit | LossLimit, ...] = ()
    claims: tuple[Claim, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    margin: float = MARGIN

    def figure(self, name: str) -> Figure | None:
        """The figure of this name."""
        return next((figure for figure in self.figures if figure.name == name), None)

    @property
    def measured(self) -> tuple[Measured, ...]:
        """What is read from each run."""
        return tuple(figure for figure in self.figures if isinstance(figure, Measured))
