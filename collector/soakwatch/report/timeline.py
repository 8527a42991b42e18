"""The moments of what failed, warned or was inconclusive, of all causes in order of time, with the load then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.core.formatting import source_name, span_text, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.report.page import Page
from soakwatch_model.finding import Mark, MarkKind, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, lag
from soakwatch_rules.silences import monitor_did_not_poll
from soakwatch_rules.wording.polls import lost_polls

_MAX_MOMENTS, _MAX_SILENCES = 40, 8
_SAME_NS = 5_000_000_000  # silences and gaps that begin within this time are one
_REPORTED = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A moment: the index of its cause (-1 for a silence), its own outcome (None for an event or a silence), the time
    since the first failure, and the load then."""

    index: int
    cause: Cause | None
    outcome: Outcome | None
    target: str
    mark: Mark
    when: str
    lag: str
    text: str
    load: str
    zoom: str
    first: bool


@dataclass(frozen=True, slots=True)
class MomentChain:
    """The moments in order of time, how many are left out, and the causes (with their index) without any moment."""

    rows: tuple[ChainRow, ...]
    left_out: int
    lasting: tuple[tuple[int, Cause], ...]
    failed: bool

    @property
    def loaded(self) -> bool:
        """Whether the load is known at any of the moments."""
        return any(row.load for row in self.rows)


def chain_of(page: Page) -> MomentChain:
    """The moments of what fails, warns or is inconclusive; causes without a moment of their own apart."""
    causes = [(index, cause) for index, cause in enumerate(page.verdict.causes) if cause.outcome in _REPORTED]
    timed = [(index, cause) for index, cause in causes if cause.timeline]
    lasting = [(index, cause) for index, cause in causes if not cause.timeline and _happened(cause)]
    moments = sorted([*_ordered(timed), *_silences(page, timed)], key=lambda moment: (moment[3].begin_ns, moment[0]))
    failed_ns = page.verdict.first_failure_ns
    first_ns = min((mark.begin_ns for *_, mark in moments), default=0) if failed_ns is None else failed_ns
    rows = tuple(_row(page, moment, first_ns) for moment in moments)
    left_out = sum(len(cause.timeline) for _, cause in timed) - sum(row.cause is not None for row in rows)
    return MomentChain(rows, left_out, tuple(lasting), failed_ns is not None)


def _milder(outcome: Outcome | None, cause: Cause | None) -> Outcome | None:
    """The outcome of a moment, never graver than that of its cause: a shared load may only warn of one of its
    devices."""
    if outcome is None or cause is None:
        return outcome
    return max(outcome, cause.outcome, key=lambda each: each.rank)


def around(mark: Mark, run: Window) -> Window:
    """The part of the run that shows a moment and what is around it."""
    end_ns = mark.begin_ns if mark.end_ns is None else mark.end_ns
    pad = max((end_ns - mark.begin_ns) // 2, 60_000_000_000)
    return clipped(mark.begin_ns - pad, end_ns + pad, run)


def clipped(begin_ns: int, end_ns: int, run: Window) -> Window:
    """The stretch cut to the run, at least a nanosecond long."""
    begin = min(max(begin_ns, run.begin_ns), run.end_ns)
    return Window(begin, max(min(end_ns, run.end_ns), begin + 1))


def _happened(cause: Cause) -> bool:
    """Whether a cause is something that happened, and not something that could not be judged."""
    return cause.outcome is not Outcome.INCONCLUSIVE


Moment = tuple[int, Cause | None, str, Mark]
"""The index of a cause, the cause, its target, and one of its moments; a silence has no cause."""


def _silences(page: Page, timed: Sequence[tuple[int, Cause]]) -> list[Moment]:
    """The longest silences of sources that no cause covers: what does not answer may be what failed."""
    covered = {
        (cause.target, mark.begin_ns // _SAME_NS)
        for _, cause in timed
        for mark in cause.timeline
        if mark.kind is MarkKind.SILENCE
    }
    silences = []
    for ledger in page.verdict.ledgers:
        name = source_name(ledger)
        for silence in ledger.silences:
            window = silence.window
            near = {(ledger.target, window.begin_ns // _SAME_NS + step) for step in (-1, 0, 1)}
            if not silence.lost or near & covered:
                continue
            did = "was not polled" if monitor_did_not_poll(silence.lost) else "did not answer"
            text = f"{name} {did} for {show_seconds(window.seconds)}: {lost_polls(silence.lost)}"
            silences.append((-window.seconds, (-1, None, ledger.target, Mark(window.begin_ns, window.end_ns, text))))
    silences.sort(key=lambda entry: (entry[0], entry[1][3].begin_ns, entry[1][2]))
    return [moment for _, moment in silences[:_MAX_SILENCES]]


def _ordered(timed: Sequence[tuple[int, Cause]]) -> list[Moment]:
    """The moments by time. If they are too many, the first of each cause are kept, then those of what failed."""
    ranked = []
    for index, cause in timed:
        for nth, mark in enumerate(cause.timeline):
            ranked.append((nth > 0, cause.outcome.rank, nth, mark.begin_ns, index, cause, mark))
    ranked.sort(key=lambda entry: entry[:5])
    kept = sorted(ranked[:_MAX_MOMENTS], key=lambda entry: (entry[3], entry[1], entry[4]))
    return [(index, cause, cause.target, mark) for *_, index, cause, mark in kept]


def _row(page: Page, moment: Moment, first_ns: int) -> ChainRow:
    index, cause, target, mark = moment
    ends = mark.end_ns if mark.end_ns is not None and mark.end_ns - mark.begin_ns >= 10**9 else mark.begin_ns
    when = span_text(mark.begin_ns, ends) if ends > mark.begin_ns else span_text(mark.begin_ns, mark.begin_ns)[:19]
    after = (
        lag(first_ns, mark.begin_ns) if mark.begin_ns >= first_ns else lag(mark.begin_ns, first_ns).replace("+", "−")
    )
    return ChainRow(
        index,
        cause,
        _milder(mark.outcome, cause),
        target,
        mark,
        when,
        after,
        mark.text,
        page.load_at(mark.begin_ns),
        zoom_of(around(mark, page.verdict.window)),
        mark.begin_ns == first_ns and cause is not None and cause.outcome is Outcome.FAIL,
    )
