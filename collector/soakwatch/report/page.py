"""What every section of a report is given: the record, the verdict, and the drawing that collects its plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch.core.event_kinds import ACKNOWLEDGED, IDENTITY, LABEL_UNREAD, WINDOW
from soakwatch.core.formatting import natural, quantity, utc
from soakwatch.diagnose.kept import looks_of
from soakwatch.diagnose.look import CPU, Look
from soakwatch.judge.attribution import unlabelled
from soakwatch.judge.capacity import REPEATED, TRIAL
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource, SeriesKey, StoredEvent
from soakwatch.report.captures import Capture, captures_of
from soakwatch.report.curves import Curve, Glance, curve_of, glance_of
from soakwatch.report.headroom import Headroom, rooms
from soakwatch.report.load import LoadLine, TrafficGenerator, generators, load_lines
from soakwatch.report.plots import Drawing
from soakwatch.runs.previous import PreviousRun, previous_run, written_run
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, FindingName
from soakwatch_model.sample import object_labels
from soakwatch_model.window import Window

POINTS = 2000
IDENTITIES = frozenset({"system.boot.id"})
"""Metrics whose size means nothing: they are judged, but a line of them would mean nothing."""
_ELSEWHERE = frozenset({WINDOW, ACKNOWLEDGED, TRIAL, REPEATED})
"""Kinds of events that have sections of their own."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What somebody said of a finding, and when (UTC ns)."""

    at_ns: int
    reason: str

    @property
    def words(self) -> str:
        """One line."""
        return f"{self.reason or 'no reason given'} ({utc(self.at_ns)} UTC)"


@dataclass(frozen=True, slots=True)
class Page:
    """One report in the making: the record, the verdict, and its plots, once there are any."""

    source: ReportSource
    verdict: Verdict
    load: tuple[TrafficGenerator, ...]
    events: tuple[Event, ...]
    keys: frozenset[SeriesKey]
    captures: tuple[Capture, ...] = ()
    earlier: ReportSource | None = None  # the run that this one is compared with
    previous: PreviousRun | None = None  # the run that the answer compares with: by default the plan's last one
    acknowledgements: Mapping[FindingName, tuple[Acknowledgement, ...]] = field(default_factory=dict)
    plotted: dict[SeriesKey, str] = field(default_factory=dict)  # series with a plot beside their finding: its element
    finding_anchors: dict[int, str] = field(default_factory=dict)  # the elements of findings (by id), for links
    cause_anchors: dict[int, str] = field(default_factory=dict)  # the elements of causes (by index), for links
    glances: dict[SeriesKey, Glance] = field(default_factory=dict)  # of series that were read whole
    looks: tuple[Look, ...] = ()  # at processes under suspicion
    _curves: dict[tuple[SeriesKey, int], Curve] = field(default_factory=dict)
    _drawings: list[Drawing] = field(default_factory=list)
    _rooms: list[tuple[tuple[Headroom, ...], int]] = field(default_factory=list)

    @property
    def headroom(self) -> tuple[tuple[Headroom, ...], int]:
        """How far everything stayed from its limit and when it is full, the worst first; and how many series were not
        read."""
        if not self._rooms:
            self._rooms.append(rooms(self.source, self.verdict.findings, self.events))
        return self._rooms[0]

    @property
    def drawing(self) -> Drawing:
        """All plots of the page, over the phases, the events and the load."""
        if not self._drawings:
            rates = [generator.rate.series for generator in self.load if generator.rate is not None]
            alike = [rate for rate in rates if rate.trait.unit == rates[0].trait.unit][:4]
            phases = self.verdict.phases or self.source.phases()
            curves = [curve_of(rate, POINTS) for rate in alike]
            self._drawings.append(Drawing(self.verdict.window, phases, self.events, curves))
        return self._drawings[0]

    def curve(self, key: SeriesKey, points: int = POINTS) -> Curve:
        """The line of a series; a series is read once, however often it is drawn."""
        if (key, points) not in self._curves:
            self._curves[key, points] = curve_of(self.source.series(key), points)
        return self._curves[key, points]

    def glance(self, key: SeriesKey) -> Glance:
        """What is known of a series without drawing it; a series is read once."""
        if key not in self.glances:
            self.glances[key] = glance_of(self.source.series(key))
        return self.glances[key]

    def judged_by(self, finding: Finding) -> tuple[SeriesKey, ...]:
        """The series that a finding judged, as far as its metric and object name them."""
        if not finding.metric:
            return ()
        exact = SeriesKey(finding.target, finding.metric, finding.object)
        if exact in self.keys:
            return (exact,)
        if own := [key for key in unlabelled(finding.metric, finding.object, self.source.roles()) if key in self.keys]:
            return tuple(own)
        if finding.object:
            return ()
        return tuple(
            sorted(
                (key for key in self.keys if key.target == finding.target and key.metric == finding.metric),
                key=lambda key: natural(key.object),
            )
        )

    def events_in(self, target: str, window: Window) -> tuple[Event, ...]:
        """Events of the target, or of no target, that overlap the window, without the identities that sources report at
        their start."""
        return tuple(
            event
            for event in self.events
            if not (event.kind == IDENTITY and "changed" not in event.detail)
            and event.target in {"", target}
            and event.begin_ns < window.end_ns
            and (event.begin_ns if event.end_ns is None else event.end_ns) >= window.begin_ns
        )

    def captures_for(self, finding: Finding) -> tuple[Capture, ...]:
        """The flight-recorder captures that relate to a finding."""
        return tuple(capture for capture in self.captures if capture.shows(finding))

    def looks_for(self, finding: Finding) -> tuple[Look, ...]:
        """The looks at the process of a finding; of the host as a whole all that were taken for it."""
        process = object_labels(finding.object).get("process")
        return tuple(
            look
            for look in self.looks
            if look.target == finding.target
            and (
                look.metric == finding.metric
                if process is None
                else object_labels(look.process).get("process") == process
                and finding.metric.startswith("process.")
                and look.of_cpu == finding.metric.startswith(CPU)
            )
        )

    def load_in(self, window: Window) -> tuple[LoadLine, ...]:
        """What the generators did in the window, in brief."""
        return load_lines(self.load, window)

    def load_at(self, time_ns: int) -> str:
        """What each generator sent at a moment, in words; empty where no generator was recorded.

        The last reading before the moment counts, unless it is older than three and a half times its cadence.
        """
        rates = []
        for generator in self.load:
            if generator.rate is None:
                continue
            words = quantity(generator.rate_at(time_ns), generator.rate.series.trait.unit)
            rates.append(f"{generator.name}: {words}" if len(self.load) > 1 else words)
        return "; ".join(rates)

    @property
    def unread_labels(self) -> tuple[tuple[str, str], ...]:
        """The labels that could not be read when the run started, and why."""
        unread = {e.detail.get("label", ""): e.detail.get("reason", "") for e in self.events if e.kind == LABEL_UNREAD}
        return tuple((name, reason) for name, reason in unread.items() if name not in self.verdict.labels)

    def acknowledged(self, finding: Finding) -> tuple[Acknowledgement, ...]:
        """Who acknowledged a finding, and why."""
        return self.acknowledgements.get(finding.name, ())


def open_page(source: ReportSource, verdict: Verdict, earlier: ReportSource | None = None) -> Page:
    """Read what every section needs."""
    load = generators(source)
    stored: Sequence[StoredEvent] = source.events()
    happened = [event.event for event in stored if event.event.kind not in _ELSEWHERE]
    events = tuple(sorted(happened, key=lambda e: (e.begin_ns, e.target, e.kind, e.object)))
    return Page(
        source,
        verdict,
        load,
        events,
        frozenset(source.keys()),
        captures_of(stored),
        earlier,
        previous_run(source.path, verdict) if earlier is None else written_run(earlier.path.parent),
        _acknowledgements(stored),
        looks=looks_of(source.artifact_entries(), source.artifact),
    )


def _acknowledgements(events: Iterable[StoredEvent]) -> Mapping[FindingName, tuple[Acknowledgement, ...]]:
    """What was said of each finding, in order of time.

    The event has the finding's target and object; its detail has the rule, the metric and the reason.
    """
    by_name: dict[FindingName, list[Acknowledgement]] = {}
    for stored in sorted(events, key=lambda stored_event: (stored_event.event.begin_ns, stored_event.id)):
        event = stored.event
        if event.kind == ACKNOWLEDGED:
            about = (event.detail.get("rule", ""), event.target, event.detail.get("metric", ""), event.object)
            by_name.setdefault(about, []).append(Acknowledgement(event.begin_ns, event.detail.get("reason", "")))
    return {about: tuple(given) for about, given in by_name.items()}


def worst_first(finding: Finding) -> tuple[object, ...]:
    """Sorting key of findings: worst first, then by name."""
    return (finding.outcome.rank, finding.target, finding.rule, finding.metric, natural(finding.object))
