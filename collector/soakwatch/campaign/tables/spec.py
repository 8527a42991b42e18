"""What a campaign's file asks of its runs: figures, tables, limits, claims, and what is compared with what.

The models are what the file may say and what the tables are made of; ``parse`` fills in the names of figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from soakwatch.campaign.campaign_model import Cell
from soakwatch.core.units import share
from soakwatch.core.validation import shown
from soakwatch.core.yaml import Plain, value_name
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


_SCALAR: dict[str, Plain] = {"type": ["number", "string"]}
_NAMES: dict[str, Plain] = {"anyOf": [_SCALAR, {"type": "array", "minItems": 1, "items": _SCALAR}]}
_AMOUNTS: dict[str, Plain] = {"type": ["string", "number"], "examples": ["7.4M"]}
_SHARES: dict[str, Plain] = {"type": ["string", "number"], "examples": ["3%"]}

Several = Annotated[tuple[str, ...], BeforeValidator(_several), WithJsonSchema(_NAMES)]
Word = Annotated[str, BeforeValidator(_word), WithJsonSchema(_SCALAR)]
Name = Annotated[Text, WrapValidator(_given), Field(description="name in the tables; default: what it is made of")]
Amount = Annotated[float, BeforeValidator(amount), WithJsonSchema(_AMOUNTS)]
Part = Annotated[float, BeforeValidator(_share), Field(ge=0, lt=10), WithJsonSchema(_SHARES)]
Fraction = Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1), WithJsonSchema(_SHARES)]
Where = Annotated[dict[str, Several], Field(description="cells that are meant: values by axis; default: all")]
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

    axis: Annotated[Text, Field(description="the axis that has it")]
    of: Annotated[Word, Field(description="its value that stands for the generator alone")]
    within: Annotated[Part, Field(description="so near to it is the limit of the generator")] = 0.02


class MeasuredShape(PlanModel):
    """A figure by its expression."""

    figure: Annotated[Text, Field(description="number of a run: METRIC or STATISTIC(METRIC)")]
    name: Name = ""
    better: Annotated[
        Literal["higher", "lower"] | None, Field(description="which values are better; default: as its metric says")
    ] = None
    ceiling: Annotated[Ceiling | None, Field(description="notes cells whose value is the limit of the generator")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure that each run has by itself."""

    name: str
    spec: FigureSpec
    better: Better | None = None
    ceiling: Ceiling | None = None


class ScaleUp(PlanModel):
    """Relative scale-up of the figure ``of`` along an axis of numbers: f(n) / (n · f(1)); the least value is 1."""

    of: Annotated[Text, Field(alias="scale_up", description="figure that should grow with the axis")]
    along: Annotated[Text, Field(description="axis of numbers, such as cores")]
    name: Name = ""


class Share(PlanModel):
    """The figure ``of`` as a share of what it is at the value ``to`` of the axis ``along``; as ``cost``, what is
    missing to it."""

    of: Annotated[Text, Field(alias="share_of", description="figure of which it is a share")]
    along: Annotated[Text, Field(description="axis along which it is compared")]
    to: Annotated[Word, Field(description="value of that axis which is 100 %")]
    name: Name = ""
    cost: Annotated[bool, Field(description="what is missing to 100 %, instead of the share")] = False


class Per(PlanModel):
    """One figure over another: packets per joule, bytes per connection. ``less`` is what the figure above the line is
    without the one below it: the memory of the device before the first connection."""

    of: Annotated[Text, Field(alias="figure", description="figure above the line")]
    per: Annotated[Text, Field(description="figure below the line")]
    less: Annotated[
        Text | None,
        Field(
            description="figure that is taken off the one above the line, such as the memory of the empty device",
            examples=['system.memory.usage{phase="baseline"}'],
        ),
    ] = None
    name: Name = ""


class Overload(PlanModel):
    """Where loss is expected: the figures of loss and of packets offered and received, and the axis of the load.

    The capacity is the highest received rate of a cell whose loss is at most ``lossless``, among the cells that differ
    in the load alone.
    """

    loss: Annotated[Text, Field(alias="expected_loss", description="figure of the loss")] = "load.loss"
    along: Annotated[Text, Field(description="axis of the load")]
    offered: Annotated[Text, Field(description="figure of the packets offered")] = "load.tx.packet.rate"
    received: Annotated[Text, Field(description="figure of the packets received")] = "load.rx.packet.rate"
    lossless: Annotated[Part, Field(description="loss of a cell that counts as none")] = 0.0

    @property
    def overload(self) -> Overload:
        """This alone, without what a limit says of it."""
        return Overload.model_construct(**{name: getattr(self, name) for name in Overload.model_fields})


class LossLimit(Overload):
    """Loss above what is expected of an overload must stay below ``excess``, a share of the offered packets."""

    excess: Annotated[Part, Field(description="most loss above what is expected, as a share of the offered packets")]
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
    ``show`` is what stands beside the median; best and worst are those among ``rivals``."""

    rows: Annotated[Several, Field(description="axes, or figures, from top to bottom")]
    columns: Annotated[Several, Field(description="axes, or figures, from left to right")]
    figure: Annotated[Text | None, Field(description="the only figure of the table")] = None
    figures: Annotated[
        Several, Field(description="names of figures, verdict among them; default: verdict and all figures")
    ] = ()
    title: Annotated[str, Field(description="heading; default: what it shows")] = ""
    where: Where = Field(default_factory=dict)
    rivals: Annotated[
        Several,
        Field(
            description="axes whose values compete for best and worst, at the same values of the others; default: "
            "the only axis of the table that has more than one value",
            examples=["device"],
        ),
    ] = ()
    show: Annotated[
        list[Literal["interval", "range", "runs"]] | None,
        Field(description="what stands beside the median; default: [interval]"),
    ] = None

    @property
    def shows(self) -> tuple[str, ...]:
        """What stands beside the median: the interval where the file does not say."""
        return ("interval",) if self.show is None else tuple(self.show)


class Limit(PlanModel):
    """What every run of the cells must keep, or (``of``) the cell's median only."""

    figure: Annotated[Text, Field(description="figure, by its name or expression")]
    at_least: Annotated[
        Amount | None, Field(description="lowest value that is allowed; a limit has this or at_most")
    ] = None
    at_most: Annotated[Amount | None, Field(description="highest value that is allowed")] = None
    where: Where = Field(default_factory=dict)
    of: Annotated[Literal["runs", "median"], Field(description="every run keeps it, or the median of a cell")] = "runs"


class Claim(PlanModel):
    """What a vendor's sheet says: ``value`` ± ``tolerance``, a share."""

    figure: Annotated[Text, Field(description="figure, by its name or expression")]
    value: Annotated[Amount, Field(description="the claimed value")]
    tolerance: Annotated[Fraction, Field(description="so far to either side it is still proven")]
    source: Annotated[str, Field(description="where that is said")] = ""
    where: Where = Field(default_factory=dict)


class Comparison(PlanModel):
    """Every other value of an axis against the value ``to``. A change within ``margin`` counts as none."""

    axis: Annotated[Text, Field(description="axis whose values are compared")]
    to: Annotated[Word, Field(description="value that the others are compared with")]
    margin: Annotated[Fraction, Field(description="change that counts as none")] = MARGIN
    figures: Annotated[Several, Field(description="names of figures; default: all")] = ()
    where: Where = Field(default_factory=dict)


class TablesKeys(PlanModel):
    """The keys of a campaign's file that ask something of its runs, for its JSON Schema; ``parse`` reads them."""

    figures: Annotated[
        list[Text | MeasuredShape | Per | ScaleUp | Share | Overload] | None,
        Field(description="figures of the tables; default: the usual ones that the runs have"),
    ] = None
    tables: Annotated[
        list[TableSpec] | None, Field(description="tables of the report; default: all figures over the first two axes")
    ] = None
    claims: Annotated[
        list[Claim] | None, Field(description="claims on figures, as of a data sheet, to be proven or refuted")
    ] = None
    limits: Annotated[list[Limit | LossLimit] | None, Field(description="limits of figures")] = None
    compare: Annotated[
        list[Comparison] | Comparison | None, Field(description="values of an axis against one of them")
    ] = None


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
