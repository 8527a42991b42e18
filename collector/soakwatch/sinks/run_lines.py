"""What a record says of its run as a whole: its verdict, its findings and its strips of states, as lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.record import RecordView
from soakwatch.sinks.annotations import FindingLines, MomentLines
from soakwatch.sinks.phases import Phases
from soakwatch.sinks.timeline import Timeline
from soakwatch.sinks.verdict_line import VerdictLine, silent_from_ns, standing_of


@dataclass(slots=True)
class RunLines:
    """Reads them as often as it is asked. Of findings and strips it gives what is new, the verdict each time."""

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
        """The lines, and apart from them that of the verdict: the final findings, or the live ones while there is no
        verdict. ``over`` says whether more is written to the record, None: to be found out. Raises RecordError."""
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
        """All is to be written again."""
        self._findings, self._moments = FindingLines(self.run), MomentLines(self.run)
        self._timeline.forget()
