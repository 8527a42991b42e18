"""The shape of ``figures``, ``tables``, ``limits``, ``claims`` and ``compare`` in a campaign's file."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from soakwatch.core.units import share
from soakwatch.core.validation import shown
from soakwatch.core.yaml import value_name
from soakwatch.plan.parts import Shape, Text

_AMOUNT = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(%|k|M|G|T|ns|us|µs|ms|s|min|h)?")
_FACTORS = {
    "": 1.0,
    "%": 0.01,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}


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
    listed = value if isinstance(value, list) else [value]
    words = []
    for item in listed:
        if isinstance(item, bool) or not isinstance(item, str | int | float) or item == "":
            raise ValueError(f"expected a name or a list of names, found {shown(item)}")
        words.append(value_name(item))
    if not words:
        raise ValueError("is empty: at least one is needed")
    return tuple(words)


def _word(value: object) -> str:
    (word,) = _several(value) if not isinstance(value, list) else (None,)
    if word is None:
        raise ValueError("expected one name, found a list")
    return word


_WORDS = {"anyOf": [{"type": ["string", "number"]}, {"type": "array", "items": {"type": ["string", "number"]}}]}
Several = Annotated[tuple[str, ...], BeforeValidator(_several), WithJsonSchema(_WORDS)]
Word = Annotated[str, BeforeValidator(_word), WithJsonSchema({"type": ["string", "number"]})]
Amount = Annotated[float, BeforeValidator(amount), WithJsonSchema({"type": ["string", "number"]})]
Part = Annotated[float, BeforeValidator(_share), Field(ge=0, lt=10), WithJsonSchema({"type": ["string", "number"]})]
Filter = dict[str, Several]


class CeilingShape(Shape):
    """The value of an axis that stands for the generator alone."""

    axis: Text
    of: Word
    within: Part = 0.02


class MeasuredShape(Shape):
    """A figure by its expression."""

    figure: Text
    name: Text | None = None
    better: Literal["higher", "lower"] | None = None
    ceiling: CeilingShape | None = None


class PerShape(Shape):
    """One figure over another."""

    figure: Text
    per: Text
    name: Text | None = None


class ScaleUpShape(Shape):
    """Relative scale-up along an axis of numbers."""

    scale_up: Text
    along: Text
    name: Text | None = None


class ShareShape(Shape):
    """A share of what the figure is at one value of an axis."""

    share_of: Text
    along: Text
    to: Word
    name: Text | None = None
    cost: bool = False


class ExpectedLossShape(Shape):
    """Loss that an overload explains."""

    expected_loss: Text = "load.loss"
    along: Text
    offered: Text = "load.tx.packet.rate"
    received: Text = "load.rx.packet.rate"
    lossless: Part = 0.0


class LossLimitShape(ExpectedLossShape):
    """How much loss may exceed it."""

    excess: Part
    where: Filter = Field(default_factory=dict)


class LimitShape(Shape):
    """A limit of a figure."""

    figure: Text
    at_least: Amount | None = None
    at_most: Amount | None = None
    where: Filter = Field(default_factory=dict)
    of: Literal["runs", "median"] = "runs"


class ClaimShape(Shape):
    """What a vendor's sheet says."""

    figure: Text
    value: Amount
    tolerance: Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1)]
    source: str = ""
    where: Filter = Field(default_factory=dict)


class CompareShape(Shape):
    """Values of an axis against one of them."""

    axis: Text
    to: Word
    margin: Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1)] = 0.03
    figures: Several = ()
    where: Filter = Field(default_factory=dict)


class TableShape(Shape):
    """A table: what its rows and columns are."""

    rows: Several
    columns: Several
    figure: Text | None = None
    figures: Several = ()
    title: str = ""
    where: Filter = Field(default_factory=dict)
    show: list[Literal["interval", "range", "runs"]] | None = None
