"""The user's options on a table: the meaning of columns and the format of cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.units import unit
from soakwatch_model.metric import BY_NAME
from soakwatch_model.roles import DUT, ROLES

KINDS = ("gauge", "counter", "state")
DIRECTIONS = ("up", "down")


AnyOptions = TypeVar("AnyOptions", bound="Options")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column means: a metric, the labels of its object, and the unit of its cells."""

    metric: str
    labels: Mapping[str, str]
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How to read a table. Columns are given by header, or by number from 1 on."""

    target: str | None = None
    role: str = DUT
    roles: Mapping[str, str] = field(default_factory=dict)  # of single targets
    time: str | None = None
    time_format: str | None = None
    zone: str | None = None
    start_ns: int | None = None
    delimiter: str | None = None
    decimal: str | None = None
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    growth: str | None = None
    growths: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    skip: frozenset[str] = frozenset()

    def role_of(self, target: str) -> str:
        """The role of a target."""
        return self.roles.get(target, self.role)

    def named(self) -> dict[str, str]:
        """Every column that options name, and the option."""
        options = {
            "--map": self.meanings,
            "--unit": self.units,
            "--kind": self.kinds,
            "--growth": self.growths,
            "--by": self.by,
            "--skip": self.skip,
            "--time": () if self.time is None else (self.time,),
        }
        return {column: option for option, columns in options.items() for column in columns}


def meaning(text: str) -> tuple[str, Meaning]:
    """Parses ``COLUMN=METRIC[,label=value …][:unit]``.

    >>> meaning("eth0 rx=system.network.io,interface=eth0,direction=receive:KB")
    ('eth0 rx', Meaning(metric='system.network.io', labels={'interface': 'eth0', 'direction': 'receive'}, unit='KB'))
    """
    column, rest = _pair(text, "--map", "rss=process.memory.usage,process=nginx:KB")
    head, *parts = rest.split(",")
    head, colon, unit_text = head.partition(":")
    labels: dict[str, str] = {}
    for part in parts:
        key, equal, value = part.partition("=")
        if not equal or not key:
            raise DataError(f"--map {text}: {part!r} is not a label: write COLUMN=METRIC,label=value:unit")
        if part is parts[-1] and not colon:
            value, colon, unit_text = _without_unit(value)
        labels[key] = value
    if colon and not unit_text:
        raise DataError(f"--map {text}: there is no unit after the colon")
    return column, Meaning(head, labels, unit_text if colon else None)


def _without_unit(value: str) -> tuple[str, str, str]:
    """Splits label value and unit; a value may contain colons (``eth0:1``), so a number or unknown word is no unit."""
    before, colon, after = value.rpartition(":")
    if colon and after and not after.isdecimal() and unit(after).name.strip("{}") != after:
        return before, colon, after
    return (value, "", "") if not colon or after.isdecimal() else (before, colon, after)


def pairs(texts: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Parses ``COLUMN=VALUE`` texts of one option."""
    return dict(_pair(text, option, example) for text in texts)


def kinds(texts: Iterable[str]) -> dict[str, str]:
    """Parses ``COLUMN=counter`` texts."""
    by_column = pairs(texts, "--kind", "bytes=counter")
    for column, kind in by_column.items():
        if kind not in KINDS:
            raise DataError(f"--kind {column}={kind}: write one of {', '.join(KINDS)}")
    return by_column


def growths(texts: Iterable[str]) -> tuple[str | None, dict[str, str]]:
    """Parses ``up`` and ``COLUMN=down`` texts: the direction of all columns, and of single ones."""
    remedy = "write up or down, or COLUMN=down for one column"
    return _every_and_single(texts, DIRECTIONS, lambda text, _: f"--growth {text}: {remedy}")


def roles(texts: Iterable[str]) -> tuple[str | None, dict[str, str]]:
    """Parses ``generator`` and ``TARGET=generator`` texts: the role of all targets, and of single ones."""
    remedy = "write a role, or TARGET=ROLE"
    return _every_and_single(
        texts, ROLES, lambda text, word: f"--role {text}: unknown role {word!r}{hint(word, ROLES)} ({remedy})"
    )


def _every_and_single(
    texts: Iterable[str], words: Collection[str], refusal: Callable[[str, str], str]
) -> tuple[str | None, dict[str, str]]:
    """Splits texts into the word for all (``up``; the last one counts) and words for names (``NAME=down``).

    ``refusal`` makes the error for a word not in ``words``. Raises DataError.
    """
    every, single = None, {}
    for text in texts:
        name, equal, word = text.rpartition("=")
        if word not in words or (equal and not name):
            raise DataError(refusal(text, word))
        if equal:
            single[name] = word
        else:
            every = word
    return every, single


def checked(options: AnyOptions) -> AnyOptions:
    """Returns the options if they are consistent, as far as known without the file. Raises DataError."""
    if options.delimiter is not None and (len(options.delimiter) != 1 or options.delimiter in '"\r\n'):
        raise DataError(f"--delimiter {options.delimiter!r} is not one character: write , or ; or a tab")
    if options.decimal not in {None, ".", ","}:
        raise DataError(f"--decimal {options.decimal!r} is not a decimal sign: write . or ,")
    if options.decimal is not None and options.decimal == options.delimiter:
        raise DataError(f"the sign {options.decimal} cannot be both --decimal and --delimiter")
    for column, what in options.meanings.items():
        entry = BY_NAME.get(what.metric)
        if entry is None:
            continue
        for label in what.labels:
            if label not in entry.labels:
                known = ", ".join(entry.labels) or "none"
                raise DataError(f"--map {column}: {what.metric} has no label {label!r}; its labels: {known}")
    return options


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    column, equal, value = text.partition("=")
    if not equal or not column.strip() or not value.strip():
        raise DataError(f"{option} {text}: write COLUMN=…, such as {option} {example}")
    return column.strip(), value.strip()
