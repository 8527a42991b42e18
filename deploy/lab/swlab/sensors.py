"""Temperature sensors of a router: a second, real snmpd whose sensor tables a program serves (``pass_persist``).

ENTITY-MIB names two sensors, ENTITY-SENSOR-MIB (RFC 3433) has their readings, and ARISTA-ENTITY-SENSOR-MIB their
limits: warning at 65 °C, critical at 75 °C. The inlet's reading is in a file, the outlet's is 38 °C.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

PORT = 1161
"""UDP port of this snmpd, besides the router's own."""
COOL_C = 41.0
_SUBTREES = ("1.3.6.1.2.1.47.1.1.1.1", "1.3.6.1.2.1.99.1.1.1", "1.3.6.1.4.1.30065.3.12.1.1.1")
_OUTLET = "38.0"
Row = tuple[tuple[int, ...], str, str]


@contextmanager
def sensing() -> Iterator[None]:
    """Run the snmpd of the sensors in the first router, with a cool inlet."""
    from swlab import life
    from swlab.places import STATE, A

    heat(COOL_C)
    community = (STATE / "community").read_text()
    lines = [f"agentAddress udp:{A.management}:{PORT}", f"rocommunity {community} 192.0.2.0/24", f"sysName {A.name}"]
    lines += [f"pass_persist .{base} {sys.executable} {Path(__file__)} {base} {_inlet()}" for base in _SUBTREES]
    conf = A.folder / "sensors.conf"
    conf.write_text("".join(f"{line}\n" for line in lines))
    conf.chmod(0o600)
    process = life.start_inside(A, "snmpd", "-f", "-Lo", "-C", "-c", str(conf), "-I", "-smux")
    try:
        yield
    finally:
        process.kill()  # this kills nsenter; ``end_inside`` kills snmpd and the programs that it started
        process.wait()
        life.end_inside(A, "sensors.conf")
        life.end_inside(A, "sensors.py")


def heat(celsius: float) -> None:
    """Set the inlet's reading."""
    file = _inlet()
    fresh = file.with_suffix(".new")
    fresh.write_text(f"{celsius:.1f}")
    fresh.rename(file)


def _inlet() -> Path:
    from swlab.places import A

    return A.folder / "inlet"


def main(base: str, inlet: str) -> None:
    """Answer snmpd's requests (PING, get, getnext) about one subtree."""
    subtree = _oid(base)
    while question := sys.stdin.readline().strip():
        if question == "PING":
            _say("PONG")
            continue
        wanted = _oid(sys.stdin.readline().strip())
        rows = [row for row in _rows(inlet) if row[0][: len(subtree)] == subtree]
        fitting = [row for row in rows if (row[0] == wanted if question == "get" else row[0] > wanted)]
        _say("\n".join(["." + ".".join(map(str, fitting[0][0])), *fitting[0][1:]]) if fitting else "NONE")


def _rows(inlet: str) -> list[Row]:
    """All cells sorted by OID; temperatures in tenths of a degree."""
    entity, sensor, limits = map(_oid, _SUBTREES)
    rows: list[Row] = []
    for index, name, celsius in ((1, "inlet", Path(inlet).read_text()), (2, "outlet", _OUTLET)):
        for column, kind, value in ((2, "string", f"{name} temperature"), (5, "integer", "8"), (7, "string", name)):
            rows.append(((*entity, column, index), kind, value))
        readings = ("8", "9", "1", str(round(float(celsius) * 10)), "1")  # celsius, units, a decimal, reading, ok
        rows += [((*sensor, column, index), "integer", value) for column, value in enumerate(readings, 1)]
        stated = ("50", "0", "650", "750")  # low warning, low critical, high warning, high critical
        rows += [((*limits, column, index), "integer", value) for column, value in enumerate(stated, 1)]
    return sorted(rows)


def _oid(text: str) -> tuple[int, ...]:
    return tuple(int(arc) for arc in text.strip(".").split("."))


def _say(text: str, to: TextIO = sys.stdout) -> None:
    to.write(f"{text}\n")
    to.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
