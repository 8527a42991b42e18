"""The one line of a run: its verdict or state, and whether its newest reading is stale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.labels import PENDING_KEY, labels_words
from soakwatch.judge.record_verdict import recorded_plan
from soakwatch.plan import Plan
from soakwatch.plan.planned_phases import shifted, stretches
from soakwatch.record import RecordView
from soakwatch.record.meta import IMPORTED_KEY
from soakwatch.record.model import OUTCOME_NUMBERS
from soakwatch.record.writer_lock import is_written
from soakwatch.transfer.sinks.annotations import RANK, SEVERITY
from soakwatch.transfer.sinks.lines import Value, key, line, milliseconds
from soakwatch.transfer.sinks.phases import Phases
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.sample import PollOutcome
from soakwatch_rules.wording.quantities import counted

Standing = Literal["judged", "running", "not judged"]
"""Whether a run has a verdict, will have one, or needs `soakwatch judge` to get one."""

_NUMBERS: dict[Standing, float] = {"running": -1.0, "not judged": -2.0}
_HOUR_NS = 3_600 * 10**9
_STALE_INTERVALS, _MIN_STALE_MS = 3, 60_000.0
_POLLS_BACK = 64  # polls searched first for an answered one


def standing_of(view: RecordView, *, over: bool | None = None) -> Standing:
    """The state of a run; ``over``: whether its record is complete, None: to be found out."""
    metas = view.metas()
    if "verdict" in metas:
        return "judged"
    if over is None:
        over = not is_written(view.path)
    return "not judged" if over else "running"


@dataclass(slots=True)
class VerdictLine:
    """Makes the line of a run at each call; reads the plan once."""

    run: str
    _plan: Plan | None = None
    _planless: bool = False

    def line(self, view: RecordView, findings: Sequence[Finding], standing: Standing, phases: Phases) -> bytes:
        """The verdict from ``findings``, or what is known so far. Raises RecordError without a poll.

        Labels are tags, ``label_NAME``: with one point a run they cost no extra series. While some labels are still
        being read the line is empty, as other tags would make another point.
        """
        window, metas = view.window(), view.metas()
        if standing == "running" and metas.get(PENDING_KEY):
            return b""
        counts = {outcome: sum(f.outcome is outcome for f in findings) for outcome in SEVERITY}
        worst = max((f for f in findings if RANK.get(f.outcome, 0.0) > 0), key=lambda f: RANK[f.outcome], default=None)
        verdict = Outcome(metas["verdict"]) if standing == "judged" else None
        about = () if worst is None else (worst.rule, worst.target, worst.object)
        failing = dict.fromkeys(f.rule for f in findings if f.outcome is Outcome.FAIL)
        fields: dict[str, Value] = {
            "verdict": standing if verdict is None else verdict.value,
            "severity": _NUMBERS[standing] if verdict is None else SEVERITY[verdict],
            "rank": _NUMBERS[standing] if verdict is None else RANK[verdict],
            "headline": _headline(view, standing, worst, counts),
            "hours": (window.end_ns - window.begin_ns) / _HOUR_NS,
            "begin_ms": milliseconds(window.begin_ns),
            "end_ms": milliseconds(window.end_ns),
            "last_ms": _milliseconds(newest_answer_ns(view, window.begin_ns)),
            "stale_after_ms": stale_after_ms(view),
            "planned_end_ms": _milliseconds(self.planned_end_ns(view)),
            "phase": _phase_of_now(phases) if standing == "running" else "",
            "name": metas.get("run", self.run),
            "labels": labels_words(view.labels) or None,
            "seal": _digest(view) if standing == "judged" else None,
            "failed": float(counts[Outcome.FAIL]),
            "warned": float(counts[Outcome.WARN]),
            "doubtful": float(counts[Outcome.INCONCLUSIVE]),
            "failing_rules": ", ".join(failing),
            "worst": " ".join(part for part in about if part),
            "devices": ", ".join(name for name, role in view.roles().items() if role == DUT),
        }
        labels = {f"label_{name}": text for name, text in view.labels.items()}
        return line(key("soakwatch_verdict", {"run": self.run, **labels}, {}), fields, window.begin_ns)

    def planned_end_ns(self, view: RecordView) -> int | None:
        """When the planned phases end, shifted by phases that began early or late; None without a plan."""
        start = view.meta("start_ns") or ""
        if self._plan is None and not self._planless:
            try:
                self._plan = recorded_plan(view)
            except SoakwatchError:  # an imported table, or a plan that needs plug-ins not installed here
                self._planless = True
        if self._plan is None or not start.isdecimal():
            return None
        begun_ns = [phase.window.begin_ns for phase in view.phases()]
        planned = shifted(stretches(self._plan.phases, int(start)), begun_ns)
        return planned[-1].window.end_ns if planned else None


def newest_answer_ns(view: RecordView, begin_ns: int) -> int | None:
    """When the newest answered poll of a run was due; None if none was. ``begin_ns`` is the start of the run.

    Reads little: backwards from the source polled last, and no source whose last poll is older than the result.
    """
    newest_ns: int | None = None
    intervals = {source.id: source.interval_ns for source in view.sources()}
    for source, last_ns in sorted(view.last_due_ns().items(), key=lambda last: -last[1]):
        reach_ns = _POLLS_BACK * max(intervals.get(source, 0), 10**9)
        while newest_ns is None or last_ns > newest_ns:
            from_ns = max(last_ns - reach_ns, begin_ns if newest_ns is None else newest_ns)
            polls = view.poll_outcomes(source, from_ns)
            answered = polls.due_ns[polls.outcome == OUTCOME_NUMBERS[PollOutcome.OK]]
            if answered.size:
                newest_ns = max(int(answered[-1]), newest_ns or begin_ns)
            if answered.size or from_ns != last_ns - reach_ns:
                break
            reach_ns *= 8
    return newest_ns


def stale_after_ms(view: RecordView) -> float:
    """The age in ms from which a running run's newest reading is stale: three of the longest intervals, at least a
    minute."""
    sources = view.sources()
    longest_ns = max((source.interval_ns for source in sources if source.required), default=0)
    longest_ns = longest_ns or max((source.interval_ns for source in sources), default=0)
    return max(_MIN_STALE_MS, _STALE_INTERVALS * longest_ns / 1e6)


def silent_from_ns(view: RecordView) -> int | None:
    """When a running run becomes stale (UTC ns) if no poll is answered until then; None before the first answer. Raises
    RecordError without a poll."""
    newest_ns = newest_answer_ns(view, view.window().begin_ns)
    return None if newest_ns is None else newest_ns + round(stale_after_ms(view) * 1e6)


def _headline(view: RecordView, standing: Standing, worst: Finding | None, counts: Mapping[Outcome, int]) -> str:
    metas = view.metas()
    if standing == "not judged":
        if IMPORTED_KEY in metas:
            return "imported, not judged"
        what = "ended" if "ended_ns" in metas else "broke off"
        last = datetime.fromtimestamp((view.last_ns or 0) * 1e-9, UTC)
        return f"{what} at {last:%H:%M} UTC: not judged; run `soakwatch judge`"
    if standing == "judged" and metas.get("reason"):
        return metas["reason"]
    if worst is not None and (worst.outcome is not Outcome.INCONCLUSIVE or standing == "judged"):
        return worst.sentence
    return _so_far(counts)


def _so_far(counts: Mapping[Outcome, int]) -> str:
    """The state of a running run in which nothing failed or warned; what cannot be decided yet is only counted."""
    parts = ["nothing failed so far"]
    if passed := counts[Outcome.PASS]:
        parts.append(f"{counted(passed, 'check')} passed")
    if undecided := counts[Outcome.INCONCLUSIVE]:
        parts.append(f"{counted(undecided, 'check')} cannot be decided yet")
    return "; ".join(parts)


def _digest(view: RecordView) -> str | None:
    """The digest of the last seal, or None."""
    seals = view.seals()
    return seals[-1].digest if seals else None


def _phase_of_now(phases: Phases) -> str:
    return phases[-1][0] if phases and phases[-1][2] is None else ""


def _milliseconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else milliseconds(time_ns)
