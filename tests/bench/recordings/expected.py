"""What is expected of a recorded device: the JSON that LibreNMS keeps beside a recording, read into plain values.

The file is a map of modules (``processors``, ``mempools``, ``ports``, ``os``), each with the tables of its discovery
and of its poller; the poller's part is the words "matches discovery" where it is the same.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

Row = Mapping[str, object]
_MAX_BYTES: Final = 256 * 2**20


class BadExpectationError(ValueError):
    """A file that is no expectation; one sentence that names it."""


@dataclass(frozen=True, slots=True)
class Processor:
    """The load of one processor in percent (whole or not), and the object that it was read from."""

    oid: str
    text: str
    usage: float
    precision: float

    @property
    def name(self) -> str:
        """For people."""
        return f"processor {self.text or self.oid}"


@dataclass(frozen=True, slots=True)
class Pool:
    """A memory pool: percent used, bytes used and in all, as far as they are the pool's own."""

    text: str
    oids: Mapping[str, str]  # perc, used, free, total: where the value is read from, as far as it is
    perc: float | None
    used: float | None
    total: float | None
    precision: float
    whole: bool  # it is the device's memory, of which LibreNMS leaves out buffers and cache where it knows them

    @property
    def name(self) -> str:
        """For people."""
        return f"pool {self.text}"


@dataclass(frozen=True, slots=True)
class Port:
    """An interface: names, states and what is counted; what is not expected is left out of ``values``."""

    index: int
    names: tuple[str, ...]
    states: Mapping[str, str]
    values: Mapping[str, int]

    @property
    def name(self) -> str:
        """For people."""
        return f"port {self.names[0] if self.names else self.index}"


@dataclass(frozen=True, slots=True)
class Expected:
    """All that is expected of a device. ``claims`` says which modules the file has."""

    system: str
    version: str
    processors: tuple[Processor, ...]
    pools: tuple[Pool, ...]
    ports: tuple[Port, ...]
    claims: frozenset[str]


def load_expected(path: Path) -> Expected:
    """The expectation in a file. Raises BadExpectation."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            data = unpacker.decompress(data, _MAX_BYTES)
        whole: object = json.loads(data)
    except (OSError, zlib.error, gzip.BadGzipFile, ValueError, RecursionError) as error:
        raise BadExpectationError(f"{path}: cannot be read ({type(error).__name__})") from None
    if not isinstance(whole, dict):
        raise BadExpectationError(f"{path}: is no map of modules")
    devices = _rows(whole, "os", "devices", late=False) or ({},)
    return Expected(
        system=str(devices[0].get("os") or "?"),
        version=str(devices[0].get("version") or ""),
        processors=tuple(filter(None, map(_processor, _rows(whole, "processors", "processors", late=True)))),
        pools=tuple(filter(None, map(_pool, _rows(whole, "mempools", "mempools", late=True)))),
        ports=tuple(filter(None, map(_port, _rows(whole, "ports", "ports", late=True)))),
        claims=frozenset(module for module in ("processors", "mempools", "ports") if module in whole),
    )


def _rows(whole: Mapping[str, object], module: str, table: str, *, late: bool) -> tuple[Row, ...]:
    """The rows of a table, as the poller left them if it did (``late``), else as they were discovered."""
    part = whole.get(module)
    if not isinstance(part, dict):
        return ()
    for time in ("poller", "discovery") if late else ("discovery", "poller"):
        tables = part.get(time)
        rows = tables.get(table) if isinstance(tables, dict) else None
        if isinstance(rows, list):
            return tuple(cast("Row", row) for row in rows if isinstance(row, dict))
    return ()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) if not isinstance(value, int) else value
    except ValueError:
        return None


def _oid(value: object) -> str:
    return value.strip().removeprefix(".") if isinstance(value, str) else ""


def _processor(row: Row) -> Processor | None:
    oid, usage = _oid(row.get("processor_oid")), _number(row.get("processor_usage"))
    if not oid or usage is None:
        return None
    return Processor(oid, str(row.get("processor_descr") or ""), usage, _number(row.get("processor_precision")) or 1)


def _pool(row: Row) -> Pool | None:
    if row.get("mempool_deleted"):
        return None
    kinds = ("perc", "used", "free", "total")
    oids = {kind: oid for kind in kinds if (oid := _oid(row.get(f"mempool_{kind}_oid")))}
    values = {kind: _number(row.get(f"mempool_{kind}")) for kind in kinds}
    text = str(row.get("mempool_descr") or row.get("mempool_index") or "?")
    only_percent = values["total"] == 100
    # Of these parts of the physical memory LibreNMS gives the physical memory's size, and the share in that.
    kind = row.get("mempool_class")
    borrowed = kind in {"buffers", "cached", "shared"}
    return Pool(
        text=text,
        oids=oids,
        perc=None if borrowed else values["perc"],
        used=None if only_percent else values["used"],
        total=None if only_percent or borrowed else values["total"],
        precision=abs(_number(row.get("mempool_precision")) or 1),
        whole=kind == "system" and row.get("mempool_type") == "hrstorage",
    )


_BOTH_WAYS = ("Octets", "UcastPkts", "MulticastPkts", "BroadcastPkts", "Errors", "Discards")
_COUNTS = (
    "ifSpeed",
    "ifInUnknownProtos",
    *(f"if{direction}{what}" for direction in ("In", "Out") for what in _BOTH_WAYS),
)


def _port(row: Row) -> Port | None:
    index = _number(row.get("ifIndex"))
    if index is None or row.get("deleted") or row.get("ignore") or row.get("disabled"):
        return None
    names = tuple(dict.fromkeys(str(row[key]) for key in ("ifName", "ifDescr") if row.get(key)))
    states = {key: str(row[key]) for key in ("ifOperStatus", "ifAdminStatus") if row.get(key)}
    counts = {key: int(value) for key in _COUNTS if (value := _number(row.get(key))) is not None}
    return Port(int(index), names, states, counts)
