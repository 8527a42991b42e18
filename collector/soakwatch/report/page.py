"""What the sections of the HTML report are given, and what a section is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from soakwatch.noteworthy import IDENTITY, WINDOW
from soakwatch.report.closer import CloserLook, closer_looks
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import Generator, LoadLine, generators, load_lines
from soakwatch.report.plots import Drawing
from soakwatch.report.show import natural
from soakwatch.report.source import ReportSource, SeriesKey, StoredEvent
from soakwatch.returned import unlabelled
from soakwatch.verdict import Verdict
from soakwatch_rules.rule import Event, Finding, Outcome, Window

POINTS = 2000
IDENTITIES = frozenset({"system.boot.id"})
"""Metrics whose size means nothing: they are judged, but a line of them would tell nothing."""


@dataclass(frozen=True, slots=True)
class Page:
    """One report in the making: the record, the verdict, and the drawing that collects its plots."""

    source: ReportSource
    verdict: Verdict
    drawing: Drawing
    load: tuple[Generator, ...]
    events: tuple[Event, ...]
    keys: frozenset[SeriesKey]
    closer: tuple[CloserLook, ...] = ()
    drawn: dict[SeriesKey, str] = field(default_factory=dict)  # what has a plot with its finding, and where
    placed: dict[int, str] = field(default_factory=dict)  # findings (by id) that can be linked to, and where
    _curves: dict[tuple[SeriesKey, int], Curve] = field(default_factory=dict)

    def curve(self, key: SeriesKey, points: int = POINTS) -> Curve:
        """The line of a series; a series is read once, however often it is drawn."""
        if (key, points) not in self._curves:
            self._curves[key, points] = curve_of(self.source.series(key), points)
        return self._curves[key, points]

    def judged_by(self, finding: Finding) -> tuple[SeriesKey, ...]:
        """The series that a finding judged, as far as its metric and object name them."""
        if not finding.metric:
            return ()
        exact = SeriesKey(finding.target, finding.metric, finding.object)
        if exact in self.keys:
            return (exact,)
        if came := [key for key in unlabelled(finding.metric, finding.object, self.source.roles()) if key in self.keys]:
            return tuple(came)
        if finding.object:
            return ()
        return tuple(
            sorted(
                (key for key in self.keys if key.target == finding.target and key.metric == finding.metric),
                key=lambda key: natural(key.object),
            )
        )

    def events_in(self, target: str, window: Window) -> tuple[Event, ...]:
        """Events of the target, or of none, that touch the window; not what a source said of itself at the begin."""
        return tuple(
            event
            for event in self.events
            if not (event.kind == IDENTITY and "changed" not in event.detail)
            and event.target in {"", target}
            and event.begin_ns < window.end_ns
            and (event.begin_ns if event.end_ns is None else event.end_ns) >= window.begin_ns
        )

    def closer_to(self, finding: Finding) -> tuple[CloserLook, ...]:
        """The flight recorder's stretches that show something of a finding."""
        return tuple(look for look in self.closer if look.shows(finding))

    def load_in(self, window: Window) -> tuple[LoadLine, ...]:
        """What the generators did in the window, in brief."""
        return load_lines(self.load, window)


class Section(Protocol):
    """A module of ``sections``: its place on the page, its heading, its Jinja text, and what that is given."""

    ORDER: int
    TITLE: str
    TEMPLATE: str

    def facts(self, page: Page) -> Mapping[str, object] | None:
        """The names in the template; None leaves the section out."""
        ...


def open_page(source: ReportSource, verdict: Verdict) -> Page:
    """Read what every section needs."""
    load = generators(source)
    rates = [one.rate.series for one in load if one.rate is not None]
    alike = [rate for rate in rates if rate.trait.unit == rates[0].trait.unit]
    stored: Sequence[StoredEvent] = source.events()
    happened = [one.event for one in stored if one.event.kind != WINDOW]
    events = tuple(sorted(happened, key=lambda e: (e.begin_ns, e.target, e.kind, e.object)))
    phases = verdict.phases or source.phases()
    drawing = Drawing(verdict.window, phases, events, [curve_of(one, POINTS) for one in alike[:4]])
    return Page(source, verdict, drawing, load, events, frozenset(source.keys()), closer_looks(stored))


def worst_first(finding: Finding) -> tuple[object, ...]:
    """Sorting key of findings: worst first, then by name."""
    order = list(Outcome).index(finding.outcome)
    return (order, finding.target, finding.rule, finding.metric, natural(finding.object))
