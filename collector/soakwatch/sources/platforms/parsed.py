"""What a parser makes of the output of one command, and the builder that it writes it into.

A parser is a pure function from text to ``Parsed``. It never raises: a line that it does not know is kept and counted,
a number that is none is a Fault of its metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from soakwatch.core.text import one_line
from soakwatch.sources.platforms.cli_units import Length, length, number, size
from soakwatch.sources.session_state import context_of, family_of, plain_length, role_of, state_of, why_unsampled
from soakwatch_model.metric import clipped, fault_of
from soakwatch_model.sample import Fault, object_text

MAX_LINES = 100_000
MAX_LINE_LENGTH = 2_000
MAX_VALUES = 50_000
KEPT_UNKNOWN = 5
_LABEL = 120
_QUOTED = 60
SESSION_UP = "network.session.up"
"""The metric of whether a session with a peer is up."""
_UPTIME = "network.session.uptime"
_ADDRESS = re.compile(r"(?=.{0,5}:)[0-9A-Fa-f:.]{2,45}")


@dataclass(frozen=True, slots=True)
class Value:
    """One reading without its time. ``interface`` is the port that it is of, where ports may be left out by a watch.

    ``moment``: the value is a time, in seconds since 1970 by the clock of the device, and the reading is how long ago.
    """

    metric: str
    object: str
    value: float
    interface: str | None
    moment: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a list: ``cpu`` as a share (1 = one core), ``memory`` in bytes; None is not told."""

    name: str
    pid: int | None = None
    cpu: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Notable:
    """Something that is told once: a crash file, a crash line, a failover. ``key`` tells one from another."""

    kind: str
    key: str
    detail: Mapping[str, str]
    object: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Everything that was found. ``whole`` says that the list of processes holds all of them; ``unknown`` are the
    first lines that nobody knew, ``strange`` is how many there were. ``unsampled`` are sessions with peers that
    are listed and have no state to judge, as objects, and why: somebody shut them down."""

    values: tuple[Value, ...]
    processes: tuple[Process, ...]
    whole: bool
    faults: tuple[Fault, ...]
    facts: Mapping[str, str]
    uptime: Length | None
    notables: tuple[Notable, ...]
    unknown: tuple[str, ...]
    strange: int
    unsampled: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ParsedBuilder:
    """What a parser has read so far of one output, for ``Parsed``: readings without a time, processes, facts and lines.

    It is no answer of a poll: the poller makes that of several outputs, with times and the ports that are watched.
    """

    values: dict[tuple[str, str], Value] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    whole: bool = False
    faults: dict[tuple[str, str], Fault] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    uptime: Length | None = None
    notables: dict[tuple[str, str], Notable] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    strange: int = 0
    peers: dict[str, bool] = field(default_factory=dict)
    unsampled: dict[str, str] = field(default_factory=dict)

    def value(
        self, metric: str, text: str | float, scale: float = 1, of: str | None = None, **labels: str
    ) -> float | None:
        """Takes a reading, from text with grouping commas or a per cent sign; integers stay integers.

        A text that is no number, or a value that the catalogue does not allow, becomes a Fault. ``of`` is the
        interface. Of two readings of one object the first stays, the other is counted as unknown.
        """
        object_label = object_text(**{key: label(words) for key, words in labels.items()})
        try:
            plain = number(text) if isinstance(text, str) else text
        except ValueError:
            self.fault(metric, object_label, f"{_quote(str(text))} is not a number")
            return None
        value = clipped(metric, plain if scale == 1 else plain * scale)
        wrong = fault_of(metric, value)
        if wrong is not None:
            self.fault(metric, object_label, f"the device says {_quote(str(text))}: {wrong}")
            return None
        if (metric, object_label) in self.values or len(self.values) >= MAX_VALUES:
            self.odd(f"{metric} {object_label} again")
            return None
        self.values[metric, object_label] = Value(metric, object_label, value, of)
        return value

    def size(self, metric: str, text: str, unit: str = "", **labels: str) -> float | None:
        """Takes a size such as ``12 MiB``; ``unit`` is that of a bare number."""
        try:
            return self.value(metric, size(text, unit), 1, None, **labels)
        except ValueError:
            return self.value(metric, f"{text} (no size)", 1, None, **labels)

    def share(self, metric: str, text: str | float, of: str | None = None, **labels: str) -> float | None:
        """Takes a per cent reading as a ratio. Devices round up: a little over 100 % is taken as 100 %."""
        try:
            per_cent = number(text) if isinstance(text, str) else text
        except ValueError:
            return self.value(metric, str(text), 1, of, **labels)
        return self.value(metric, per_cent / 100, 1, of, **labels)

    def fault(self, metric: str, object_label: str, words: str) -> None:
        """A metric that could not be read."""
        if len(self.faults) < MAX_VALUES:
            self.faults[metric, object_label] = Fault(metric, object_label, words)

    def process(self, name: str, pid: int | None = None, cpu: float | None = None, memory: int | None = None) -> None:
        """A process of a list."""
        if len(self.processes) < MAX_VALUES:
            self.processes.append(Process(label(name), pid, cpu, memory))

    def fact(self, name: str, text: str | None) -> None:
        """A fact, the first of its name; nothing for nothing."""
        words = label(text or "")
        if words:
            self.facts.setdefault(name, words)

    def notable(self, kind: str, key: str, /, **detail: str) -> None:
        """Something that is told once."""
        if len(self.notables) < MAX_VALUES:
            reported = {name: label(words) for name, words in detail.items() if words}
            self.notables[kind, key] = Notable(kind, label(key), reported)

    def session(
        self,
        protocol: str,
        peer: str,
        state: str,
        context: str = "",
        *,
        uptime: str | float | None = None,
        moment: float | None = None,
        flaps: str = "",
        prefixes: str = "",
        family: str = "",
    ) -> None:
        """Takes a session with a peer. ``state`` is the device's word, ``context`` the VRF or interface.

        ``uptime`` is a text or seconds, or ``moment`` the time when it came up; both count only while it is up. A
        session that is told again (for another address family, or with more about it) is up if it is up in one of
        them; a session of IS-IS only if it is up in every level.
        """
        labels = _peer(protocol, peer, context)
        if labels is None or len(self.peers) >= MAX_VALUES:
            self.odd(f"{protocol} {peer} {state}")
            return
        key = object_text(**labels)
        up = state_of(protocol, state)
        if up is None:
            self.unsampled.setdefault(key, why_unsampled(state))
            return
        before = self.peers.get(key, up)
        self.peers[key] = (before and up) if protocol == "isis" else (before or up)
        if up and uptime is not None and (_UPTIME, key) not in self.values:
            told = length(plain_length(uptime)) if isinstance(uptime, str) else None
            seconds = told.seconds if told is not None else uptime
            if not isinstance(seconds, str):
                self.value(_UPTIME, seconds, 1, None, **labels)
        if up and moment is not None and moment > 0 and (_UPTIME, key) not in self.values:
            self.values[_UPTIME, key] = Value(_UPTIME, key, moment, None, moment=True)
        if flaps and ("network.session.flaps", key) not in self.values:
            self.value("network.session.flaps", flaps, 1, None, **labels)
        if up and prefixes:
            self.value("network.session.prefixes", prefixes, 1, None, **labels, family=family_of(family))

    def role(self, protocol: str, group: str, state: str, interface: str) -> None:
        """The part of this device in a group of VRRP or HSRP."""
        labels = _peer(protocol, group, interface)
        if labels is None:
            self.odd(f"{protocol} {group} {state}")
        elif state_of(protocol, state) is None:
            self.unsampled.setdefault(object_text(**labels), why_unsampled(state))
        else:
            self.value("network.session.role", role_of(state), 1, None, **labels)

    def odd(self, line: str) -> None:
        """A line that nobody knows."""
        self.strange += 1
        if len(self.unknown) < KEPT_UNKNOWN:
            self.unknown.append(label(line))

    def done(self) -> Parsed:
        """What was found."""
        for key, up in self.peers.items():
            self.values[SESSION_UP, key] = Value(SESSION_UP, key, int(up), None)
        return Parsed(
            tuple(self.values.values()),
            tuple(self.processes),
            self.whole,
            tuple(fault for key, fault in self.faults.items() if key not in self.values),
            dict(self.facts),
            self.uptime,
            tuple(self.notables.values()),
            tuple(self.unknown),
            self.strange,
            {key: why for key, why in self.unsampled.items() if key not in self.peers},
        )

    def lines(self, text: str) -> Iterator[str]:
        """The lines that say something, without the blanks at their ends. Endless lines, and lines beyond all bounds,
        are counted as unknown."""
        for count, line in enumerate(text.splitlines()):
            if count >= MAX_LINES:
                self.odd("more lines than can be")
                return
            if len(line) > MAX_LINE_LENGTH:
                self.odd(line)
            elif line and not line.isspace():
                yield line.rstrip()


def with_gone(known: dict[str, None], parsed: Parsed) -> Parsed:
    """The answer, with sessions as down that were listed before and are missing now: many systems strike a lost
    neighbour off the list.

    A session that somebody shut down is forgotten. An answer with unknown lines proves nothing, and a tunnel that is
    missing may be a client that went home.
    """
    listed = {value.object for value in parsed.values if value.metric == SESSION_UP}
    for key in parsed.unsampled:
        known.pop(key, None)
    gone = [] if parsed.strange else [key for key in known if key not in listed]
    for key in listed:
        if len(known) < MAX_VALUES and not key.startswith("protocol=tunnel,"):
            known[key] = None
    if not gone:
        return parsed
    return replace(parsed, values=(*parsed.values, *(Value(SESSION_UP, key, 0, None) for key in gone)))


def label(text: str) -> str:
    """A device's words as a label: printable, one blank between words, cut.

    >>> label(" a\\t b\\x07 ")
    'a b'
    """
    return one_line(text, _LABEL)


def _peer(protocol: str, peer: str, context: str) -> dict[str, str] | None:
    name = label(peer)
    name = name.lower() if _ADDRESS.fullmatch(name) else name
    return {"protocol": protocol, "peer": name, "context": context_of(label(context))} if name else None


def _quote(text: str) -> str:
    return repr(label(text)[:_QUOTED])
