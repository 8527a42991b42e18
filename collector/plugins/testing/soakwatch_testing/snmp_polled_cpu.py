"""An SNMP device whose CPU rises with each request, to test whether the cost of polls is measured.

It counts CPU time like net-snmp (UCD-SNMP-MIB) and has some interfaces, so that a whole poll takes more requests than
reading only the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from soakwatch_testing.snmp_cells import Cell, Computed, Name, name_of
from soakwatch_testing.snmp_mib import interfaces, system
from soakwatch_testing.snmp_responder import Responder, responder

_USER, _NICE, _SYSTEM, _IDLE = (name_of(f"1.3.6.1.4.1.2021.11.{number}.0") for number in (50, 51, 52, 53))
_COUNTER32 = 0x41
_TICKS = 100  # a second
_AGE_S = 2000.0  # the uptime of the host at the start


@contextmanager
def polled_device(cost_s: float, *, cores: int = 4, busy: float = 0.1) -> Iterator[Responder]:
    """A device whose cores are busy by a share, with ``cost_s`` of CPU time for each request."""
    agents: list[Responder] = []

    def spent_s(seconds: float) -> float:
        return busy * cores * seconds + cost_s * (agents[0].requests if agents else 0)

    def counter(value: Computed) -> Cell:
        return Cell(_COUNTER32, value)

    rows: dict[Name, Cell] = {
        **system(),
        **interfaces(20),
        _USER: counter(lambda _: 0),
        _NICE: counter(lambda _: 0),
        _SYSTEM: counter(lambda seconds: int(_TICKS * spent_s(seconds + _AGE_S))),
        _IDLE: counter(lambda seconds: int(_TICKS * (cores * (seconds + _AGE_S) - spent_s(seconds + _AGE_S)))),
    }
    with responder(rows) as agent:
        agents.append(agent)
        yield agent
