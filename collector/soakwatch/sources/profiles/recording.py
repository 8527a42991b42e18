"""A device out of a file: a recording (``OID|TAG|VALUE`` lines, as snmpsim has them) answers like the device did."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from soakwatch.core.errors import PlanError
from soakwatch.sources.profiles.value import Value

MAX_BYTES = 200_000_000
MAX_ROWS = 2_000_000
_TEXT, _OPAQUE, _OID, _ADDRESS = {"4"}, {"68"}, {"6"}, {"64"}
_INTEGERS = {"2", "65", "66", "67", "70"}

Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """An ``Asker`` that answers from rows in the order of their OIDs; ``skipped`` counts the lines with no value."""

    values: Mapping[str, Value]
    keys: tuple[Key, ...]
    names: tuple[str, ...]
    skipped: int

    def until(self, _deadline_s: float) -> Self:
        """Itself: nothing takes time."""
        return self

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole OIDs."""
        return {oid: self.values[oid] for oid in oids if oid in self.values}

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """Every value under each of the OIDs."""
        values: dict[str, Value] = {}
        for column in columns:
            key = _key(column)
            for index in range(bisect_left(self.keys, (*key, 0)), bisect_left(self.keys, (*key[:-1], key[-1] + 1))):
                values[self.names[index]] = self.values[self.names[index]]
        return values


def recording(values: Mapping[str, Value], skipped: int = 0) -> Recording:
    """A recording of values by OID, in any order."""
    order = sorted((_key(oid), oid) for oid in values)
    return Recording(values, tuple(key for key, _ in order), tuple(oid for _, oid in order), skipped)


def load_recording(file: Path) -> Recording:
    """A recording from a ``.snmprec`` file, plain or gzipped; of an OID that stands twice the first is kept.

    Raises PlanError if the file cannot be read.
    """
    values: dict[str, Value] = {}
    skipped = 0
    for line in _words(file).split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        oid, tag, rest = (*line.rstrip("\r").split("|", 2), "", "")[:3]
        try:
            value = _value(tag, rest)
            _key(oid)
        except ValueError:
            skipped += 1
            continue
        if len(values) >= MAX_ROWS:
            raise PlanError(f"{file}: has more than {MAX_ROWS} rows: that is not a recording")
        values.setdefault(oid, value)
    if not values:
        raise PlanError(f"{file}: has no line of the form OID|TAG|VALUE: it is not a recording")
    return recording(values, skipped)


def _words(file: Path) -> str:
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            raw: bytes = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise PlanError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}") from None
    if len(raw) > MAX_BYTES:
        raise PlanError(f"{file}: has more than {MAX_BYTES} bytes: that is not a recording")
    return raw.decode("utf-8", "surrogateescape")


def _key(oid: str) -> Key:
    return tuple(int(arc) for arc in oid.split("."))


def _value(tag: str, rest: str) -> Value:
    hexed = tag.endswith("x")
    kind = tag.rstrip("x").partition(":")[0]
    raw = bytes.fromhex(rest) if hexed else rest.encode("utf-8", "surrogateescape")
    if kind in _TEXT | _OPAQUE:
        return raw
    if kind in _INTEGERS:
        return int(rest)
    if kind in _OID:
        _key(rest.lstrip("."))
        return rest.lstrip(".")
    if kind in _ADDRESS:
        return ".".join(str(byte) for byte in raw) if hexed else rest
    raise ValueError(f"the type {tag!r} is not one of SNMP")
