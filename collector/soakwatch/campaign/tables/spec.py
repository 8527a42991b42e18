"""What a campaign's file asks of its runs: figures, tables, limits, claims, and what is compared with what.

The models are what the file may say and what the tables are made of; ``parse`` fills in the names of figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from soakwatch.campaign.campaign_model import Cell
from soakwatch.core.units import share
from soakwatch.core.validation import shown
from soakwatch.core.yaml import value_name
from soakwatch.plan.parts import PlanModel, Text
from soakwatch.runs.key_figures import Better, FigureSpec

VERDICT = "verdict"
"""The name by which tables show the verdict of a cell's runs."""
FIGURES = "figures"
"""The name by which rows or columns are the figures instead of an axis."""
MARGIN = 0.03
"""The change that counts as none where a comparison names no margin."""
_AMOUNT = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(%|k|M|G|T|ns|us|µs|ms|s|min|h)?")
_PREFIXES = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_FACTORS = {"": 1.0, **_PREFIXES, **_TIMES}


def amount(value: object) -> float:
    """A value of a figure: a number in the figure's unit, or with %, k, M, G, T, or a unit of time.

    Raises ValueError with an example.

    >>> amount("0.5%"), amount("7.4M"), amount(12), amount("250us")
    (0.005, 7400000.0, 12.0, 0.00025)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not a value of a figure: write a number such as 1200, 0.5%, 7.4M or 200us")
    return float(match[1]) * _FACTORS[match[2] or ""]


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{shown(value)} is not a share: write 3% or 0.03")
    return share(value)


def _several(value: object) -> tuple[str, ...]:
    """One word or a list of words; numbers are the words that they are written as."""
    words = []
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, bool) or not isinstance(item, str | int | float) or item == "":
            raise ValueError(f"expected a name or a list of names, found {shown(item)}")
        words.append(value_name(item))
    if not words:
        raise ValueError("is empty: at least one is needed")
    return tuple(words)


def _word(value: object) -> str:
    if isinstance(value, list):
        raise ValueError("expected one name, found a list")
    (word,) = _several(value)
    return word


def _given(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    return "" if value is None else handler(value)


Several = Annotated[tuple[str, ...], BeforeValidator(_several)]
Word = Annotated[str, BeforeValidator(_word)]
Name = Annotated[Text, WrapValidator(_given)]
Amount = Annotated[float, BeforeValidator(amount)]
Part = Annotated[float, BeforeValidator(_share), Field(ge=0, lt=10)]
Fraction = Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1)]
Where = dict[str, Several]
"""Which cells are meant: the values that are allowed, by axis; all cells where there is no axis."""


def takes(where: Where, cell: Cell) -> bool:
    """Whether a cell is meant.

    >>> [takes({"size": ("64",)}, Cell({"size": size})) for size in ("64", "512")]
    [True, False]
    """
    return all(cell.values.get(axis) in allowed for axis, allowed in where.items())


def where_words(where: Where) -> str:
    """``size 64 or 512, kind L4``; empty for all cells."""
    return ", ".join(f"{axis} {' or '.join(allowed)}" for axis, allowed in where.items())


class Ceiling(PlanModel):
    """The value of an axis that stands for the generator alone (a patch cable). What lies within ``within`` of its
    figure is the generator's limit, not the device's."""

    axis: Text
    of: Word
    within: Part = 0.02


class MeasuredShape(PlanModel):
    """A figure by its expression."""

    figure: Text
    name: Name = ""
    better: Literal["higher", "lower"] | None = None
    ceiling: Ceiling | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure that each run has by itself."""

    name: str
    spec: FigureSpec
    better: Better | None = None
    ceiling: Ceiling | None = None


class ScaleUp(PlanModel):
    """Relative scale-up of the figure ``of`` along an axis of numbers: f(n) / (n · f(1)); the least value is 1."""

    of: Text = Field(alias="scale_up")
    along: Text
    name: Name = ""


class Share(PlanModel):
    """The figure ``of`` as a share of what it is at the value ``to`` of the axis ``along``; as ``cost``, what is
    missing to it."""

    of: Text = Field(alias="share_of")
    along: Text
    to: Word
    name: Name = ""
    cost: bool = False


class Per(PlanModel):
    """One figure over another: packets per joule, bytes per connection."""

    of: Text = Field(alias="figure")
    per: Text
    name: Name = ""


class Overload(PlanModel):
    """Where loss is expected: the figures of loss and of packets offered and received, and the axis of the load.

    The capacity is the highest received rate of a cell whose loss is at most ``lossless``, among the cells that differ
    in the load alone.
    """

    loss: Text = Field("load.loss", alias="expected_loss")
    along: Text
    offered: Text = "load.tx.packet.rate"
    received: Text = "load.rx.packet.rate"
    lossless: Part = 0.0

    @property
    def overload(self) -> Overload:
        """This alone, without what a limit says of it."""
        return Overload.model_construct(**{name: getattr(self, name) for name in Overload.model_fields})


class LossLimit(Overload):
    """Loss above what is expected of an overload must stay below ``excess``, a share of the offered packets."""

    excess: Part
    where: Where = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedLoss:
    """The share of the offered packets that are above the capacity; as ``excess``, the measured loss above it, which
    is noted where it is more than ``most``."""

    name: str
    overload: Overload
    excess: bool = False
    most: float = 0.0


Derived = ScaleUp | Share | Per | ExpectedLoss
Figure = Measured | Derived
"""A figure of cells; the names in derived ones are those of figures before it."""


class TableSpec(PlanModel):
    """One table. ``rows`` and ``columns`` are axes, or ``figures``; each combination of the axes that are in neither
    is a view of its own. ``figures`` are names, ``verdict`` among them; ``figure`` is how a file may name a single one.
    ``show`` is what stands beside the median."""

    rows: Several
    columns: Several
    figure: Text | None = None
    figures: Several = ()
    title: str = ""
    where: Where = Field(default_factory=dict)
    show: list[Literal["interval", "range", "runs"]] | None = None

    @property
    def shows(self) -> tuple[str, ...]:
        """What stands beside the median: the interval where the file does not say."""
        return ("interval",) if self.show is None else tuple(self.show)


class Limit(PlanModel):
    """What every run of the cells must keep, or (``of``) the cell's median only."""

    figure: Text
    at_least: Amount | None = None
    at_most: Amount | None = None
    where: Where = Field(default_factory=dict)
    of: Literal["runs", "median"] = "runs"


class Claim(PlanModel):
    """What a vendor's sheet says: ``value`` ± ``tolerance``, a share."""

    figure: Text
    value: Amount
    tolerance: Fraction
    source: str = ""
    where: Where = Field(default_factory=dict)


class Comparison(PlanModel):
    """Every other value of an axis against the value ``to``. A change within ``margin`` counts as none."""

    axis: Text
    to: Word
    margin: Fraction = MARGIN
    figures: Several = ()
    where: Where = Field(default_factory=dict)


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

    @property
    def measured(self) -> tuple[Measured, ...]:
        """What is read from each run."""
        return tuple(figure for figure in self.figures if isinstance(figure, Measured))

    def words(self, name: str) -> str:
        """What a figure is called: the name in the file, else the words of its expression."""
        figure = next((figure for figure in self.figures if figure.name == name), None)
        if isinstance(figure, Measured) and figure.name == figure.spec.text and figure.spec.name:
            return figure.spec.name
        return name
