"""A whole run of known truth: a device with its processes, its traffic and its sources, as a record or as a table.

``healthy`` draws one; ``sickness`` does something to it; ``write_run`` makes a record of it (with phases, events and
roles, as ``soakwatch run`` leaves one), ``write_table`` the long table that ``soakwatch import`` reads.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.record import Record
from soakwatch.record.bulk import PollFacts, PollStretch, Readings
from soakwatch.record.model import OUTCOME_NUMBERS
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME, COUNTER, STATE
from soakwatch_model.sample import PollOutcome

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
BEGIN_NS = 1_795_000_000 * 10**9
DUT, TG = "fw", "tg"
_STRETCH = 20_000


@dataclass(frozen=True, slots=True)
class Key:
    """A series: of which target, which metric, which object."""

    target: str
    metric: str
    object: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """What polls a target: its name as a plan writes it, and which metrics it brings."""

    name: str
    target: str
    prefixes: tuple[str, ...]

    def brings(self, key: Key) -> bool:
        """Whether a series comes from it."""
        return key.target == self.target and key.metric.startswith(self.prefixes)


@dataclass(slots=True)
class Night:
    """A run in the making. ``value`` is one array a series on the times ``at_s`` of the polls, NaN where the metric was
    not there; ``answered`` says of each source which polls were answered. ``life`` names the lives of its parts."""

    rng: np.random.Generator
    seed: int
    length_s: float
    cadence_s: float
    at_s: Floats
    sources: tuple[Source, ...]
    value: dict[Key, Floats] = field(default_factory=dict)
    answered: dict[str, Mask] = field(default_factory=dict)
    phases: list[tuple[str, float, float]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    life: dict[Key, str] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)

    @property
    def hours(self) -> float:
        """Its length."""
        return self.length_s / 3600

    def index_at(self, share: float) -> int:
        """The poll at a share of the run."""
        return min(self.at_s.size - 1, int(share * self.at_s.size))

    def of(self, metric: str, name: str = "") -> Floats:
        """The readings of the device, or of the generator for metrics of the load."""
        return self.value[Key(TG if metric.startswith("load.") else DUT, metric, name)]

    def has(self, metric: str) -> bool:
        """Whether any series has this metric."""
        return any(key.metric == metric for key in self.value)

    def objects(self, metric: str) -> list[str]:
        """The objects of a metric."""
        return [key.object for key in self.value if key.metric == metric]

    def put(self, metric: str, value: Floats, name: str = "", life: str = "") -> None:
        """One series."""
        key = Key(TG if metric.startswith("load.") else DUT, metric, name)
        self.value[key] = value
        if life:
            self.life[key] = life

    def announce(self, kind: str, begin_s: float, end_s: float, expect: dict[str, int], name: str = "") -> None:
        """A planned event with what it brings, and a deadline."""
        begin, end = (BEGIN_NS + round(x * 1e9) for x in (begin_s, end_s))
        self.events.append(Event(kind, DUT, name, begin, end, {}, expect, end + round(120e9)))

    def is_announced(self, begin_s: float, end_s: float) -> bool:
        """Whether all of a stretch lies within one announced event: the plan excuses what is missing in it."""
        begin, end = (BEGIN_NS + round(x * 1e9) for x in (begin_s, end_s))
        return any(e.begin_ns <= begin and end <= max(e.end_ns or 0, e.deadline_ns or 0) for e in self.events)

    def source_of(self, key: Key) -> Source:
        """Which source brings a series: the first that does."""
        return next(source for source in self.sources if source.brings(key))


def rewired(night: Night, sources: tuple[Source, ...]) -> None:
    """The same device seen by other sources: what none of them brings is not read."""
    night.sources = sources
    night.answered = {source.name: np.ones(night.at_s.size, np.bool_) for source in sources}
    for key in [key for key in night.value if not any(source.brings(key) for source in sources)]:
        del night.value[key]


def _series(night: Night, source: Source) -> Iterator[tuple[Key, Floats]]:
    for key in sorted(night.value, key=lambda key: (key.metric, key.object)):
        if night.source_of(key) is source:
            yield key, night.value[key]


def floats(value: ArrayLike) -> Floats:
    """As an array of float64."""
    return np.asarray(value, dtype=np.float64)


def typed(key: Key, value: Floats) -> NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]:
    """The readings as a source brings them: counts and identities are whole numbers, of 64 bits without a sign where
    one needs that (2**64 is all bits set)."""
    entry = BY_NAME[key.metric]
    if (entry.kind in {COUNTER, STATE} and entry.unit != "s" and entry.quantum is None) or entry.unit == "By":
        if float(value.max(initial=0.0)) >= 2.0**63:
            whole = np.round(np.clip(value, 0, 2.0**64 - 2048)).astype(np.uint64)
            return np.where(value >= 2.0**64 - 2048, np.uint64(2**64 - 1), whole)
        return np.round(value).astype(np.int64)
    return value


def _facts(time_ns: NDArray[np.int64], answered: Mask) -> PollFacts:
    """Polls that were sent: those that brought nothing ran into their time-out."""
    ok, late = OUTCOME_NUMBERS[PollOutcome.OK], OUTCOME_NUMBERS[PollOutcome.TIMEOUT]
    outcome = np.where(answered, ok, late).astype(np.int64)
    error = [None if got else "no answer in time" for got in answered.tolist()]
    return PollFacts(time_ns, np.zeros_like(time_ns), outcome, error)


def write_run(night: Night, folder: Path) -> None:
    """The record that a run would have left: polls that were due, failures, phases, events, roles, and its plan."""
    interval_ns = round(night.cadence_s * 1e9)
    names = [name for name, _, _ in night.phases]
    with Record.create(folder) as record:
        phases = ", ".join(f"{{{name}: {max(1, round(end - begin))}s}}" for name, begin, end in night.phases)
        roles = {DUT: "dut", **({TG: "generator"} if any(s.target == TG for s in night.sources) else {})}
        targets = "".join(
            f"  {name}: {{role: {role}, sources: [local: {{interval: {night.cadence_s * 1000:g}ms}}]}}\n"
            for name, role in roles.items()
        )
        plan = f"name: night\nduration: {night.length_s:g}s\n" + (f"phases: [{phases}]\n" if phases else "")
        meta = {
            "run": f"night-{night.seed}",
            "plan": f"{plan}targets:\n{targets}",
            "start_ns": str(BEGIN_NS),
            PLANNED_KEY: planned_text(night.length_s, names),
        }
        for word, text in meta.items():
            record.set_meta(word, text)
        for name, role in roles.items():
            record.target(name, role)
        record.begin_span(BEGIN_NS)
        kept = {
            source.name: record.source(
                source.target, source.name, f"{source.target}/{source.name}", interval_ns, required=True
            )
            for source in night.sources
        }
        time_ns = BEGIN_NS + np.round(night.at_s * 1e9).astype(np.int64)
        for begin in range(0, time_ns.size, _STRETCH):
            part = slice(begin, begin + _STRETCH)
            for source in night.sources:
                answered = night.answered[source.name][part]
                readings = []
                for key, value in _series(night, source):
                    there = np.flatnonzero(answered & np.isfinite(value[part]))
                    if there.size:
                        entry = BY_NAME[key.metric]
                        readings.append(
                            Readings(
                                key.metric,
                                key.object,
                                entry.unit,
                                entry.kind,
                                there,
                                time_ns[part][there],
                                typed(key, value[part][there]),
                            )
                        )
                facts = _facts(time_ns[part], answered)
                record.put_columns(kept[source.name], PollStretch(time_ns[part], answered, "", readings, facts))
        for event in night.events:
            record.add_event(DUT, event, "plan")
        for name, begin_s, _ in night.phases:
            record.begin_phase(name, BEGIN_NS + round(begin_s * 1e9))
        end_ns = BEGIN_NS + round(night.length_s * 1e9)
        record.end_phase(end_ns)
        record.set_meta("ended_ns", str(end_ns))
        record.finish()


def write_table(night: Night, path: Path) -> list[str]:
    """The run as a long table, events beside it; returns the options that ``import`` needs to know the rest."""
    time_ns = BEGIN_NS + np.round(night.at_s * 1e9).astype(np.int64)
    seconds = [f"{t // 10**9}.{t % 10**9:09d}" for t in time_ns.tolist()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "target", "metric", "object", "value", "unit"))
        for source in night.sources:
            answered = night.answered[source.name]
            for key, value in _series(night, source):
                unit = BY_NAME[key.metric].unit
                there = np.flatnonzero(answered & np.isfinite(value))
                shown = typed(key, value[there]).tolist()
                head = (key.target, key.metric, key.object)
                writer.writerows((seconds[i], *head, v, unit) for i, v in zip(there.tolist(), shown, strict=True))
    options = [f"--role={TG}=generator"] if any(source.target == TG for source in night.sources) else []
    for name, begin, end in night.phases:
        options.append(f"--phase={name}={begin:g}s..{end:g}s")
    if night.events:
        events = path.with_suffix(".events.csv")
        with events.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("kind", "target", "object", "begin", "end", "expect", "within"))
            for event in night.events:
                expect = " ".join(f"{kind}={number}" for kind, number in event.expect.items())
                begin, end = event.begin_ns * 1e-9, (event.end_ns or event.begin_ns) * 1e-9
                within = ((event.deadline_ns or event.begin_ns) - event.begin_ns) * 1e-9
                writer.writerow(
                    (event.kind, event.target, event.object, f"{begin:.3f}", f"{end:.3f}", expect, f"{within:g}s")
                )
        options.append(f"--events={events}")
    return options


def shown(document: dict[str, object]) -> str:
    """A verdict document in one line, for the worst runs."""
    return json.dumps(document, ensure_ascii=False)
