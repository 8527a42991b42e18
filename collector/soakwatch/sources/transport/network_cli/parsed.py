"""What a parser makes of the output of one command, and the builder that it writes it into.

A parser is a pure function from text to ``Parsed``. It never raises: a line that it does not know is kept and counted,
a number that is none is a Fault of its metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from soakwatch.core.text import one_line
from soakwatch.sources.transport.network_cli.units import Length, number, size
from soakwatch_agent.metric import clipped, fault_of
from soakwatch_agent.sample import Fault, object_text

MAX_LINES = 100_000
MAX_LINE_LENGTH = 2_000
MAX_VALUES = 50_000
KEPT_UNKNOWN = 5
_LABEL = 120
_QUOTED = 60


@dataclass(frozen=True, slots=True)
class Value:
    """One reading without its time. ``interface`` is the port that it is of, where ports may be left out by a watch."""

    metric: str
    object: str
    value: float
    interface: str | None


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
    first lines that nobody knew, ``strange`` is how many there were."""

    values: tuple[Value, ...]
    processes: tuple[Process, ...]
    whole: bool
    faults: tuple[Fault, ...]
    facts: Mapping[str, str]
    uptime: Length | None
    notables: tuple[Notable, ...]
    unknown: tuple[str, ...]
    strange: int


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

    def odd(self, line: str) -> None:
        """A line that nobody knows."""
        self.strange += 1
        if len(self.unknown) < KEPT_UNKNOWN:
            self.unknown.append(label(line))

    def done(self) -> Parsed:
        """What was found."""
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


def label(text: str) -> str:
    """A device's words as a label: printable, one blank between words, cut.

    >>> label(" a\\t b\\x07 ")
    'a b'
    """
    return one_line(text, _LABEL)


def _quote(text: str) -> str:
    return repr(label(text)[:_QUOTED])
