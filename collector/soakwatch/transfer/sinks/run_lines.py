"""Lines about the run as a whole: verdict, findings and state strips."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.record import RecordView
from soakwatch.transfer.sinks.annotations import FindingLines, MomentLines
from soakwatch.transfer.sinks.phases import Phases
from soakwatch.transfer.sinks.timeline import Timeline
from soakwatch.transfer.sinks.verdict_line import VerdictLine, silent_from_ns, standing_of


@dataclass(slots=True)
class RunLines:
    """Makes them at each call: changed findings and strips, and always the verdict."""

    run: str
    _findings: FindingLines = field(init=False)
    _moments: MomentLines = field(init=False)
    _timeline: Timeline = field(init=False)
    _verdict: VerdictLine = field(init=False)

    def __post_init__(self) -> None:
        self._findings, self._moments = FindingLines(self.run), MomentLines(self.run)
        self._timeline = Timeline(self.run)
        self._verdict = VerdictLine(self.run)

    def lines(self, view: RecordView, phases: Phases, *, over: bool | None) -> tuple[list[bytes], bytes]:
        """The lines, and separately the verdict's. Uses the final findings, or the live ones before the verdict.
        ``over`` says whether the record is complete, None: to be found out. Raises RecordError."""
        standing = standing_of(view, over=over)
        judged = standing == "judged"
        current, live = view.findings(live=not judged), view.findings(live=True) if judged else ()
        gone = (*(finding for _, finding in view.withdrawn()), *live)
        verdict = self._verdict.line(view, current, standing, phases)
        goes_on = standing == "running"
        planned_end_ns = self._verdict.planned_end_ns(view) if goes_on else None
        return [
            *self._findings.lines(current, gone, live=not judged),
            *self._moments.lines(current, gone),
            *self._timeline.lines(
                view,
                phases,
                current,
                gone,
                goes_on=goes_on,
                planned_end_ns=planned_end_ns,
                silent_ns=silent_from_ns(view),
            ),
        ], verdict

    def forget(self) -> None:
        """Write everything again at the next call."""
        self._findings, self._moments = FindingLines(self.run), MomentLines(self.run)
        self._timeline.forget()
