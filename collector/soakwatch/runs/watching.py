"""A run as its displays see it: what its record says, or its process, in the words of a ``Status``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from soakwatch.core.event_kinds import (
    ACKNOWLEDGED,
    CLOCK_STEP,
    LIVE_FORGOT,
    RECORD_DAMAGED,
    RECORD_RESCUED,
    STOP,
    is_internal,
)
from soakwatch.core.plain_names import thing_name
from soakwatch.core.units import show_seconds
from soakwatch.plan import Plan
from soakwatch.plan.planned_phases import PlannedPhase
from soakwatch.record import StoredEvent
from soakwatch.runs.clock_steps import clock_steps, step_words
from soakwatch.runs.run_state import NextPlanned, PhaseState, RunState, SourceState, what_comes
from soakwatch.runs.run_status import SourceStatus, Status
from soakwatch.runs.status_words import own_words, span
from soakwatch_model.sample import PollOutcome
from soakwatch_rules.wording.quantities import moment

LEAVES_IT = "Ctrl-C leaves the run alone; soakwatch stop ends it"
_OUTCOMES = {outcome.value: outcome for outcome in PollOutcome}
_SHOWN_EVENTS = 3
_BEHIND_S = 30.0


def status_of(state: RunState, keys: str = LEAVES_IT) -> Status:
    """What the record says of a run, as every display shows it."""
    own = {metric: value for (metric, name), value in state.own.items() if not name}
    missed = [v for (metric, name), v in state.own.items() if metric == "monitor.polls" and name == "outcome=missed"]
    newest = sorted(filter(worth_showing, state.events), key=lambda stored: -stored.event.begin_ns)
    phase = state.phase
    goes_on = state.standing in {"running", "waiting"}
    return Status(
        run=state.name,
        phase="" if phase is None else phase.name,
        elapsed_s=state.elapsed_s,
        left_s=state.left_s,
        sources=tuple(_source(state, stored) for stored in state.sources),
        load={(metric, f"{target},{subject}"): value for (target, metric, subject), value in state.load.items()}
        if goes_on
        else {},
        findings=tuple(sorted(state.findings, key=lambda f: f.outcome.rank)),
        judged_at_s=_since_begin(state, state.judged_ns),
        events=tuple(event_words(stored) for stored in newest[:_SHOWN_EVENTS]),
        trouble=None,
        behind=_behind(state),
        standing=state.standing,
        phase_position=phase_position_words(state.phases),
        coming=coming_words(state.coming, state.now_ns),
        own=own_words(
            own.get("monitor.memory.usage"),
            own.get("monitor.loop.lag"),
            int(missed[0]) if missed else None,
            own.get("monitor.disk.free"),
        )
        if goes_on
        else "",
        keys=keys,
        rates=state.rates,
        clock_steps=tuple(step_words(stored) for stored in clock_steps(state.events)),
    )


def course_words(stretches: Sequence[PlannedPhase], plan: Plan, now_ns: int) -> tuple[str, str]:
    """Which phase of how many a run is in, and what comes next, by its phases as they are planned now."""
    end_ns = stretches[-1].window.end_ns
    phases = [
        PhaseState(
            s.name,
            s.window.begin_ns,
            s.window.end_ns,
            "planned" if s.window.begin_ns > now_ns else "now",
            s.load,
            s.until,
        )
        for s in stretches
    ]
    coming = what_comes(phases, plan, stretches[0].window.begin_ns, end_ns, now_ns)
    return phase_position_words(phases), coming_words(coming, now_ns)


def phase_position_words(phases: Sequence[PhaseState]) -> str:
    """The phase that goes on among all, "" where there is one only, or none goes on."""
    begun = sum(phase.state != "planned" for phase in phases)
    goes_on = any(phase.state == "now" for phase in phases)
    return f"{begun} of {len(phases)}" if goes_on and len(phases) > 1 else ""


def coming_words(coming: NextPlanned | None, now_ns: int) -> str:
    """What is planned next, and in how long."""
    if coming is None or coming.kind == "end":
        return ""
    what = f"phase {coming.what}" if coming.kind == "phase" else f"event {coming.what}"
    return f"{what} in {span((coming.at_ns - now_ns) * 1e-9)}"


def report_of(folder: Path) -> Path | None:
    """The page that a run has left, if it is there."""
    file = folder / "report.html"
    return file if file.is_file() else None


def _source(state: RunState, source: SourceState) -> SourceStatus:
    since_ns = source.failing_since_ns
    silent = state.standing == "running" and since_ns is not None
    return SourceStatus(
        source.label,
        Counter({_OUTCOMES[word]: number for word, number in source.outcomes.items() if word in _OUTCOMES}),
        max(0, state.now_ns - since_ns) * 1e-9 if silent and since_ns is not None else None,
    )


def _since_begin(state: RunState, time_ns: int | None) -> float | None:
    return None if time_ns is None or state.begin_ns is None else (time_ns - state.begin_ns) * 1e-9


_OF_THE_RUN = frozenset({STOP, ACKNOWLEDGED, CLOCK_STEP, LIVE_FORGOT, RECORD_DAMAGED, RECORD_RESCUED})


def worth_showing(stored: StoredEvent) -> bool:
    """Whether an event is something that happened to a device or to the monitor's clock, or was said of the run."""
    kind = stored.event.kind
    if kind in {STOP, ACKNOWLEDGED, CLOCK_STEP, LIVE_FORGOT, RECORD_DAMAGED, RECORD_RESCUED} or kind.startswith(
        "capacity."
    ):
        return True
    return not (is_internal(kind) or kind.startswith("phase."))


def event_words(stored: StoredEvent) -> str:
    """An event in a few words, with its time of day (UTC)."""
    event = stored.event
    words = event.detail.get("words", "") if event.kind.startswith("capacity.") else ""
    words = event.detail.get("text", "") if event.kind == LIVE_FORGOT else words
    return f"{moment(event.begin_ns)[11:19]} {words or what_and_where(event.kind, event.target, event.object)}"


def what_and_where(kind: str, target: str, object_: str) -> str:
    """An event's kind with its target and the thing that it is of; a thing that has the target's name is told once.

    >>> what_and_where("process.restart", "leaker", "process=leaker,instance=0"), what_and_where("failover", "", "")
    ('process.restart leaker', 'failover')
    """
    thing = thing_name("", object_) if object_ else ""
    return " ".join(part for part in (kind, target, thing if thing != target else "") if part)


def _behind(state: RunState) -> tuple[str, ...]:
    """The databases that do not have what they should."""
    lags = {name: value for (metric, name), value in state.own.items() if metric == "monitor.sink.lag"}
    return tuple(
        f"{name.removeprefix('sink=')} is {show_seconds(round(lag))} behind"
        for name, lag in sorted(lags.items())
        if lag >= _BEHIND_S and state.standing == "running"
    )
