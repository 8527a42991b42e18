"""What a poll brought against what is expected, object by object, with a first explanation of each difference.

A value counts only if the poll says that it came from the object that is expected (its OID), so that a number that
happens to agree does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.recordings.expected import Expected, Pool, Port, Processor
from tests.bench.recordings.reasons import Trail, reason

from soakwatch_model.sample import object_labels

Number = int | float

MISSING: Final = "missing"  # no sample of what is expected
ELSEWHERE: Final = "another OID"  # none of its object, but samples of the same part from others
WRONG: Final = "wrong"  # a sample of its object with another value or name
KINDS: Final = (MISSING, ELSEWHERE, WRONG)

_CPU: Final = (
    "system.cpu.utilization",
    "system.cpu.core.utilization",
    "system.cpu.module.utilization",
    "system.cpu.module.average",
)
_IF_TABLE: Final = "1.3.6.1.2.1.2.2.1."
_IF_X_TABLE: Final = "1.3.6.1.2.1.31.1.1.1."
_FASTER: Final = 2**32 - 1  # RFC 2863: ifSpeed says only that it is faster than it can say
_UP: Final = {"system.network.up": "ifOperStatus", "system.network.admin_up": "ifAdminStatus"}
# metric and label texts of what is counted, with the columns that it may come from
_RX, _TX = "receive", "transmit"
_COUNTED: Final[Mapping[str, tuple[str, Mapping[str, str], tuple[str, ...]]]] = {
    "ifSpeed": ("system.network.speed", {}, (f"{_IF_TABLE}5", f"{_IF_X_TABLE}15")),
    "ifInOctets": ("system.network.io", {"direction": _RX}, (f"{_IF_TABLE}10", f"{_IF_X_TABLE}6")),
    "ifOutOctets": ("system.network.io", {"direction": _TX}, (f"{_IF_TABLE}16", f"{_IF_X_TABLE}10")),
    "ifInErrors": ("system.network.errors", {"direction": _RX}, (f"{_IF_TABLE}14",)),
    "ifOutErrors": ("system.network.errors", {"direction": _TX}, (f"{_IF_TABLE}20",)),
    "ifInDiscards": ("system.network.packet.dropped", {"direction": _RX}, (f"{_IF_TABLE}13",)),
    "ifOutDiscards": ("system.network.packet.dropped", {"direction": _TX}, (f"{_IF_TABLE}19",)),
    "ifInUnknownProtos": ("system.network.unknown_protocols", {}, (f"{_IF_TABLE}15",)),
    "ifInUcastPkts": (
        "system.network.cast.packets",
        {"direction": _RX, "cast": "unicast"},
        (f"{_IF_TABLE}11", f"{_IF_X_TABLE}7"),
    ),
    "ifOutUcastPkts": (
        "system.network.cast.packets",
        {"direction": _TX, "cast": "unicast"},
        (f"{_IF_TABLE}17", f"{_IF_X_TABLE}11"),
    ),
    "ifInMulticastPkts": (
        "system.network.cast.packets",
        {"direction": _RX, "cast": "multicast"},
        (f"{_IF_X_TABLE}2", f"{_IF_X_TABLE}8"),
    ),
    "ifOutMulticastPkts": (
        "system.network.cast.packets",
        {"direction": _TX, "cast": "multicast"},
        (f"{_IF_X_TABLE}4", f"{_IF_X_TABLE}12"),
    ),
    "ifInBroadcastPkts": (
        "system.network.cast.packets",
        {"direction": _RX, "cast": "broadcast"},
        (f"{_IF_X_TABLE}3", f"{_IF_X_TABLE}9"),
    ),
    "ifOutBroadcastPkts": (
        "system.network.cast.packets",
        {"direction": _TX, "cast": "broadcast"},
        (f"{_IF_X_TABLE}5", f"{_IF_X_TABLE}13"),
    ),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A sample of a poll with the OIDs that it came from."""

    metric: str
    object: str
    value: Number
    oids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Polled:
    """What polling a recorded device brought: the profile, samples, and how they came about."""

    profile: str
    samples: tuple[Seen, ...]
    recorded: Mapping[str, object]  # OID -> value in the recording
    trail: Trail


@dataclass(frozen=True, slots=True)
class Difference:
    """Something expected that did not come as expected: what, a first explanation, and which kind it is."""

    part: str  # processors, mempools, ports
    what: str
    why: str
    kind: str = WRONG


@dataclass(frozen=True, slots=True)
class Why:
    """One explanation."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How much of one part came. Of what is ``unrecorded`` the recording holds no value, so nothing is expected."""

    matched: int
    expected: int
    extra: int
    differences: tuple[Difference, ...]
    unrecorded: int = 0


def compare(expected: Expected, polled: Polled) -> dict[str, Tally]:
    """Each part of what is expected."""
    return {
        "processors": _processors(expected.processors, polled),
        "mempools": _pools(expected.pools, polled),
        "ports": _ports(expected.ports, polled),
    }


def _processors(expected: Sequence[Processor], polled: Polled) -> Tally:
    wanted = {processor.oid for processor in expected}
    samples = [seen for seen in polled.samples if seen.metric in _CPU]
    differences = [
        Difference("processors", processor.name, why.text, why.kind)
        for processor in expected
        if (why := _processor(processor, samples, wanted, polled)) is not None
    ]
    extra = sum(not seen.oids & wanted for seen in samples)
    return Tally(len(expected) - len(differences), len(expected), extra, tuple(differences))


def _processor(processor: Processor, samples: Iterable[Seen], wanted: set[str], polled: Polled) -> Why | None:
    samples = list(samples)
    ours = [seen for seen in samples if processor.oid in seen.oids]
    if not ours:
        return _missing(processor.oid, polled, [seen for seen in samples if not seen.oids & wanted])
    alone = [seen for seen in ours if len(seen.oids & wanted) == 1]
    # A mean over one processor is that processor's.
    if not alone:
        words = f"{processor.oid} is only part of a mean or sum over {len(ours[0].oids & wanted)} processors"
        return Why(MISSING, words)
    if any(abs(seen.value * 100 - processor.usage) <= 1.001 for seen in alone):
        return None
    got = ", ".join(f"{seen.metric} {seen.object} = {seen.value:.4g}" for seen in alone[:3])
    recorded = polled.recorded.get(processor.oid)
    return Why(WRONG, f"{processor.oid} (recorded: {recorded}): {processor.usage:g} % expected, {got}")


def _pools(expected: Sequence[Pool], polled: Polled) -> Tally:
    samples = [seen for seen in polled.samples if seen.metric.startswith("system.memory.")]
    wanted = {oid for pool in expected for oid in pool.oids.values()}
    differences = [
        Difference("mempools", pool.name, why.text, why.kind)
        for pool in expected
        if (why := _pool(pool, samples, wanted, polled)) is not None
    ]
    extra = len(
        {seen.object for seen in samples if seen.metric.startswith(("system.memory.pool.", "system.memory.cache."))}
    ) - len({seen.object for seen in samples if seen.oids & wanted})
    return Tally(len(expected) - len(differences), len(expected), max(0, extra), tuple(differences))


def _pool(pool: Pool, samples: Sequence[Seen], wanted: set[str], polled: Polled) -> Why | None:
    oids = frozenset(pool.oids.values())
    if oids:
        objects = dict.fromkeys((seen.metric.rpartition(".")[0], seen.object) for seen in samples if seen.oids & oids)
        if not objects:
            others = [seen for seen in samples if not seen.oids & wanted]
            return _missing(next(iter(pool.oids.values())), polled, others)
    else:
        objects = dict.fromkeys((seen.metric.rpartition(".")[0], seen.object) for seen in samples)
    whys = []
    if pool.whole:
        objects["system.memory", ""] = None  # in use without buffers and cache, as LibreNMS has it
    for prefix, name in objects:
        values = {
            seen.metric.removeprefix(f"{prefix}."): seen.value
            for seen in samples
            if seen.object == name and seen.metric.startswith(f"{prefix}.")
        }
        why = _pool_values(pool, values)
        if why is None:
            return None
        whys.append(f"{prefix} {name}: {why}")
    if not oids:
        return Why(MISSING, "no pool has these values")
    recorded = ", ".join(f"{kind} {oid} recorded: {polled.recorded.get(oid)}" for kind, oid in pool.oids.items())
    return Why(WRONG, f"{'; '.join(whys[:2])} ({recorded})")


def _pool_values(pool: Pool, values: Mapping[str, Number]) -> str | None:
    """Why the values of an object are not those of the pool."""
    used, total, share = values.get("usage"), values.get("limit"), values.get("utilization")
    compared = 0
    slack = max(pool.precision, (pool.total or 0) * 0.0005)
    if "perc" in pool.oids and pool.used is not None:
        slack = max(slack, (pool.total or 0) * 0.01)  # LibreNMS has the bytes from whole percent
    if pool.used is not None and used is not None:
        compared += 1
        if abs(used - pool.used) > slack:
            return f"used {pool.used:.0f} expected, {used:.0f} seen"
    if pool.total is not None and total is not None:
        compared += 1
        if abs(total - pool.total) > max(pool.precision, pool.total * 0.0005):
            return f"total {pool.total:.0f} expected, {total:.0f} seen"
    if share is None and used is not None and total:
        share = used / total
    if share is not None and pool.perc is not None:
        compared += 1
        if abs(share * 100 - pool.perc) > 1.001:
            return f"{pool.perc:g} % expected, {share * 100:.4g} % seen"
    elif pool.perc is not None:
        return "neither a size nor a share in use"
    return None if compared else "no usage"


def _ports(expected: Sequence[Port], polled: Polled) -> Tally:
    named = _interfaces(polled.samples)
    everything, expected = expected, [port for port in expected if _recorded(port, polled)]
    differences = [
        Difference("ports", port.name, why.text, why.kind)
        for port in expected
        if (why := _port(port, named, polled)) is not None
    ]
    extra = len(set(named) - {port.index for port in everything})
    unrecorded = len(everything) - len(expected)
    return Tally(len(expected) - len(differences), len(expected), extra, tuple(differences), unrecorded)


def _recorded(port: Port, polled: Polled) -> bool:
    """Whether the recording holds any value of a port: some expectations come from tables that are not IF-MIB's."""
    columns = [f"{_IF_TABLE}7", f"{_IF_TABLE}8", *(column for _, _, places in _COUNTED.values() for column in places)]
    return any(f"{column}.{port.index}" in polled.recorded for column in columns)


def _interfaces(samples: Iterable[Seen]) -> dict[int, dict[tuple[str, frozenset[tuple[str, str]]], Seen]]:
    """By ifIndex: the samples by metric and labels but for the interface's name."""
    ports: dict[int, dict[tuple[str, frozenset[tuple[str, str]]], Seen]] = {}
    for seen in samples:
        if not seen.metric.startswith("system.network."):
            continue
        labels = object_labels(seen.object)
        rest = frozenset((key, value) for key, value in labels.items() if key != "interface")
        for oid in seen.oids:
            for table in (_IF_TABLE, _IF_X_TABLE):
                if oid.startswith(table):
                    index = oid.removeprefix(table).partition(".")[2]
                    if index.isdecimal():
                        ports.setdefault(int(index), {})[seen.metric, rest] = seen
    return ports


def _port(
    port: Port, named: Mapping[int, Mapping[tuple[str, frozenset[tuple[str, str]]], Seen]], polled: Polled
) -> Why | None:
    ours = named.get(port.index)
    if ours is None:
        return _missing(f"{_IF_TABLE}8.{port.index}", polled, ())
    labels = {object_labels(seen.object).get("interface", "") for seen in ours.values()}
    allowed = {*port.names, str(port.index)}
    whys = [
        f"is called {label!r}"
        for label in labels
        if label not in allowed and not any(label.startswith(f"{name} #") for name in allowed)
    ]
    for metric, key in _UP.items():
        word, column = port.states.get(key), {"ifOperStatus": 8, "ifAdminStatus": 7}[key]
        if word is None or f"{_IF_TABLE}{column}.{port.index}" not in polled.recorded:
            continue
        seen = ours.get((metric, frozenset()))
        if seen is None:
            whys.append(f"no {metric}")
        elif seen.value != (word == "up"):
            whys.append(f"{key} {word} expected, {metric} {seen.value:g} seen")
    for key, value in port.values.items():
        metric, more, columns = _COUNTED[key]
        if not any(f"{column}.{port.index}" in polled.recorded for column in columns):
            continue  # LibreNMS writes 0 for what the device does not have
        if key == "ifSpeed" and value == _FASTER:
            continue
        seen = ours.get((metric, frozenset(more.items())))
        if seen is None:
            whys.append(f"no {metric} for {key} {value}")
        elif seen.value != value:
            whys.append(f"{key} {value} expected, {seen.value:.0f} seen")
    return Why(WRONG, "; ".join(whys[:4])) if whys else None


def _missing(oid: str, polled: Polled, others: Sequence[Seen]) -> Why:
    """Why an object is not there; ``others`` are samples of the same part that came from other objects."""
    words = f"{oid} is not in the recording" if oid not in polled.recorded else ""
    words = words or reason(oid, polled.trail, polled.recorded)
    if not others:
        return Why(MISSING, words)
    first = others[0]
    instead = f"{first.metric} {first.object}".strip()
    return Why(ELSEWHERE, f"{words}; {instead} = {first.value:.4g} came from {', '.join(sorted(first.oids)[:3])}")
