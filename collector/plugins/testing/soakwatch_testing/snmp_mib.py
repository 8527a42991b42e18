"""The MIB of a responder: cells ordered by name, restarts, and large tables."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping

from soakwatch_testing.snmp_ber import write_binding
from soakwatch_testing.snmp_cells import (
    COUNTERS,
    GAUGE32,
    INTEGER,
    Cell,
    Moving,
    Name,
    counter64,
    gauge32,
    integer,
    name_of,
    oid,
    text,
    timeticks,
)

SYS_UP_TIME = name_of("1.3.6.1.2.1.1.3.0")
HR_SYSTEM_UPTIME = name_of("1.3.6.1.2.1.25.1.1.0")
ENGINE_BOOTS = name_of("1.3.6.1.6.3.10.2.1.2.0")
ENGINE_TIME = name_of("1.3.6.1.6.3.10.2.1.3.0")
# Tables whose rows are numbered by ifIndex: IF-MIB ifTable and ifXTable.
_BY_INTERFACE = (name_of("1.3.6.1.2.1.2.2.1"), name_of("1.3.6.1.2.1.31.1.1.1"))
_IF_INDEX = name_of("1.3.6.1.2.1.2.2.1.1")


class Mib:
    """Ordered cells. Not thread-safe: the responder accesses it in its own thread."""

    def __init__(self, rows: Mapping[Name, Cell]) -> None:
        self._cells = dict(rows)
        self._names = sorted(self._cells)
        self._encoded: dict[Name, bytes] = {}  # encoded bindings of constant cells

    def __len__(self) -> int:
        return len(self._names)

    def copy(self) -> Mib:
        """A copy that can be changed separately."""
        return Mib(self._cells)

    def get(self, name: Name) -> Cell | None:
        """The cell of this name."""
        return self._cells.get(name)

    def after(self, name: Name, *, without: int | None = None) -> Name | None:
        """The next name after one, which need not exist; cells with the tag ``without`` are skipped."""
        index = bisect_right(self._names, name)
        while index < len(self._names) and without is not None and self._cells[self._names[index]].tag == without:
            index += 1
        return self._names[index] if index < len(self._names) else None

    def binding(self, name: Name, seconds: float) -> bytes:
        """The encoded binding of an existing name, ``seconds`` after boot."""
        done = self._encoded.get(name)
        if done is not None:
            return done
        cell = self._cells[name]
        encoded = write_binding(name, cell.tag, cell.value_at(seconds))
        if cell.still:
            self._encoded[name] = encoded
        return encoded

    def has_object(self, name: Name) -> bool:
        """Whether a sibling exists: GET then answers noSuchInstance, else noSuchObject. A guess, as names do not show
        columns."""
        column = name[:-1]
        following = self.after(column)
        return following is not None and following[: len(column)] == column

    def put(self, name: Name, cell: Cell) -> None:
        """Add or replace a cell."""
        if name not in self._cells:
            insort(self._names, name)
        self._cells[name] = cell
        self._encoded.pop(name, None)

    def remove(self, name: Name) -> None:
        """Remove a cell and all below its name."""
        gone = [known for known in self._names if known[: len(name)] == name]
        for known in gone:
            del self._cells[known]
            self._encoded.pop(known, None)
        if gone:
            self._names = sorted(self._cells)

    def below(self, name: Name) -> list[Name]:
        """All names below one."""
        start = bisect_right(self._names, name)
        names = []
        for known in self._names[start:]:
            if known[: len(name)] != name:
                break
            names.append(known)
        return names

    def tick(self) -> None:
        """Let the uptimes advance from their recorded values."""
        for name, rate in ((SYS_UP_TIME, 100.0), (HR_SYSTEM_UPTIME, 100.0), (ENGINE_TIME, 1.0)):
            cell = self._cells.get(name)
            if cell is not None and isinstance(cell.value, int):
                self.put(name, Cell(cell.tag, Moving(cell.value, rate, 32 if rate > 1 else 31)))

    def restart_agent(self, host_seconds: float) -> None:
        """Restart the agent but not the host: sysUpTime 0, one more boot; the host's uptime continues.

        Seconds count from now on; ``host_seconds`` is their previous value.
        """
        for name, cell in list(self._cells.items()):
            value = cell.value
            if isinstance(value, Moving):
                self.put(name, Cell(cell.tag, dataclasses.replace(value, start=value.value_at(host_seconds))))
            elif callable(value):
                self.put(name, Cell(cell.tag, _later(value, host_seconds)))
        self._begin_agent()

    def reboot(self, *, renumber: bool = False) -> None:
        """Restart the device: uptimes and counters 0, one more boot; seconds count from now on.

        ``renumber`` gives each interface the ifIndex of its neighbour, as on devices that number interfaces by
        discovery.
        """
        for name, cell in list(self._cells.items()):
            if cell.tag in COUNTERS:
                value = dataclasses.replace(cell.value, start=0) if isinstance(cell.value, Moving) else 0
                self.put(name, Cell(cell.tag, value if not callable(cell.value) else cell.value))
        if HR_SYSTEM_UPTIME in self._cells:
            self.put(HR_SYSTEM_UPTIME, timeticks())
        self._begin_agent()
        if renumber:
            self._renumber()

    def _begin_agent(self) -> None:
        if SYS_UP_TIME in self._cells:
            self.put(SYS_UP_TIME, timeticks())
        if ENGINE_TIME in self._cells:
            self.put(ENGINE_TIME, Cell(INTEGER, Moving(0, 1.0, 31)))
        boots = self._cells.get(ENGINE_BOOTS)
        if boots is not None and isinstance(boots.value, int):
            self.put(ENGINE_BOOTS, integer(boots.value + 1))

    def _renumber(self) -> None:
        indices = [name[-1] for name in self.below(_IF_INDEX)]
        new = dict(zip(indices, indices[1:] + indices[:1], strict=True))
        moved: dict[Name, Cell] = {}
        for table in _BY_INTERFACE:
            for name in self.below(table):
                if len(name) == len(table) + 2 and name[-1] in new:
                    cell = self._cells.pop(name)
                    index = new[name[-1]]
                    own = name[:-1] == _IF_INDEX
                    moved[(*name[:-1], index)] = Cell(INTEGER, index) if own else cell
        self._cells.update(moved)
        self._names = sorted(self._cells)
        self._encoded.clear()


def _later(value: Callable[[float], int | bytes], seconds: float) -> Callable[[float], int | bytes]:
    return lambda since: value(since + seconds)


def system(description: str = "a made device", object_id: str = "1.3.6.1.4.1.8072.3.2.10") -> dict[Name, Cell]:
    """The system group, uptimes and engine of a simulated device."""
    return {
        name_of("1.3.6.1.2.1.1.1.0"): text(description),
        name_of("1.3.6.1.2.1.1.2.0"): oid(object_id),
        SYS_UP_TIME: timeticks(1000.0),
        name_of("1.3.6.1.2.1.1.5.0"): text("made"),
        HR_SYSTEM_UPTIME: timeticks(2000.0),
        ENGINE_BOOTS: integer(3),
        ENGINE_TIME: Cell(INTEGER, Moving(1000, 1.0, 31)),
    }


def interfaces(count: int, *, rate: float = 1000.0, first: int = 1) -> dict[Name, Cell]:
    """``count`` interfaces ``eth0`` ... in ifTable and ifXTable; counters grow by ``rate`` and multiples of it."""
    rows: dict[Name, Cell] = {}
    table, extension = _BY_INTERFACE
    fixed = {3: integer(6), 4: integer(1500), 5: gauge32(2**32 - 1), 7: integer(1), 8: integer(1)}
    fixed[9] = timeticks(1.0, ticking=False)
    still32 = {column: Cell(65, column) for column in (13, 14, 15, 19, 20)}
    fast = gauge32(10_000)
    factors = {6: 1.0, 10: 2.0, 7: 0.01, 11: 0.02, 8: 0.001, 9: 0.001, 12: 0.001, 13: 0.0}
    for number in range(count):
        index = first + number
        rows[*table, 1, index] = integer(index)
        rows[*table, 2, index] = text(f"Ethernet{number}")
        for column, cell in fixed.items() | still32.items():
            rows[*table, column, index] = cell
        octets = number * 1_000_003
        rows[*table, 10, index] = Cell(65, Moving(octets % 2**32, rate, 32))
        rows[*table, 16, index] = Cell(65, Moving(2 * octets % 2**32, 2 * rate, 32))
        rows[*table, 11, index] = Cell(65, Moving(int(octets * 0.01) % 2**32, rate * 0.01, 32))
        rows[*table, 17, index] = Cell(65, Moving(int(octets * 0.02) % 2**32, rate * 0.02, 32))
        rows[*extension, 1, index] = text(f"eth{number}")
        for column, factor in factors.items():
            rows[*extension, column, index] = counter64(int(octets * factor), rate * factor)
        rows[*extension, 15, index] = fast
        rows[*extension, 18, index] = text(f"link {number}")
    return rows


def mib_of(rows: Mapping[str, Cell | int | str | bytes] | Iterable[tuple[str, Cell | int | str | bytes]]) -> Mib:
    """A MIB from dotted names with cells, plain numbers (INTEGER) or texts."""
    pairs = rows.items() if isinstance(rows, Mapping) else rows
    return Mib({name_of(name): cell_of(value) for name, value in pairs})


def cell_of(value: Cell | int | str | bytes) -> Cell:
    """A cell of a plain value: numbers become INTEGER (Gauge32 beyond its range), texts OCTET STRING."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, int):
        return Cell(INTEGER if -(2**31) <= value < 2**31 else GAUGE32, value)
    return text(value)
