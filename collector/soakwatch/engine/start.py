"""The first steps of a run, new or resumed: its record with everything known before the first poll."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from soakwatch.campaign.run_setup import META as SETUP
from soakwatch.campaign.run_setup import RunSetup
from soakwatch.core.clock import RunClock, SteadyClock
from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.fingerprints import BEGIN_KEY
from soakwatch.core.labels import LABELS_KEY, PENDING_KEY, labels_json
from soakwatch.core.private_files import share
from soakwatch.core.redaction import redaction_of
from soakwatch.core.yaml import parse
from soakwatch.engine.context import RunContext
from soakwatch.engine.phase_driver import ORIGIN
from soakwatch.engine.promises import META as PROMISES
from soakwatch.engine.promises import POLLED, is_complete
from soakwatch.engine.references import NOTHING, References
from soakwatch.engine.self_monitor import CLOCK_STEP_S
from soakwatch.judge.calibration import combined_ceilings, recorded_ceilings
from soakwatch.judge.capacity import recorded_searches
from soakwatch.judge.planned import PLANNED_KEY, SHARED_KEY, planned_text, shared_text
from soakwatch.judge.poll_mode import META as POLL_MODE
from soakwatch.judge.poll_mode import planned_text as poll_mode_text
from soakwatch.judge.record_verdict import recorded_plan
from soakwatch.plan import Plan, plan_text
from soakwatch.plan.kept_scripts import scripts_to_keep
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record.findings import identity_of
from soakwatch.record.model import MONITOR_ORIGIN
from soakwatch.record.writer_lock import is_written
from soakwatch.runs.catalog import RECORD
from soakwatch_model.event import Event
from soakwatch_model.roles import MONITOR

_PACKAGES = (
    "soakwatch",
    "psutil",
    "numpy",
    "scipy",
    "APScheduler",
    "pcodec",
    "pydantic",
    "gufo-snmp",
    "pysnmp",
    "asyncssh",
    "httpx",
    "prometheus-client",
)
_OWN_FILES = frozenset({RECORD, f"{RECORD}-wal", f"{RECORD}-shm", f"{RECORD}-journal", "record.lock", "known_hosts"})

_OFFSET_WITHIN_NS = 3600 * 10**9

CLOCK = "clock"
"""Meta key: the mark of the run's clock."""
UNWATCHED = "the monitor was not running"


def versions() -> Mapping[str, str]:
    """Versions of all packages that a verdict depends on."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


def begin(
    plan: Plan,
    folder: Path,
    clock: RunClock,
    command: Sequence[str],
    *,
    stop_on_fail: bool,
    against: References = NOTHING,
    stop_rules: Collection[str] = (),
    group: str = "",
    setup: RunSetup | None = None,
) -> tuple[RunContext, Record]:
    """Creates the record in ``folder`` with everything known before the first poll; the caller closes it.

    It is private to the user, or readable by ``group``. ``setup`` is what a campaign does around the run.

    A live failure of any rule (``stop_on_fail``), or of one in ``stop_rules`` or the plan's, ends the run.

    Raises RecordError if the folder cannot be written or already holds a record.
    """
    start_ns = clock.now_ns()
    if plan.start is not None:
        start_ns = max(start_ns, plan.start.next_ns(start_ns))
    facts = {
        "run": plan.name,
        "plan": plan_text(plan),
        "start_ns": str(start_ns),
        PLANNED_KEY: planned_text(plan.duration_s, [phase.name for phase in plan.phases]),
        POLL_MODE: poll_mode_text(plan.targets),
        SHARED_KEY: shared_text(target.name for target in plan.targets if target.shared),
        "command": " ".join(command),
        "versions": json.dumps(versions(), sort_keys=True),
        CLOCK: clock.mark,
        BEGIN_KEY: "{}",  # until the sources have reported what their targets are
        PROMISES: "{}",
    }
    # Labels that must be read from devices or commands are added once the run polls.
    static = {label.name: label.text for label in plan.labels if label.source is None}
    if plan.labels:
        facts[LABELS_KEY] = labels_json(static)
    if len(static) < len(plan.labels):
        facts[PENDING_KEY] = "1"

    redaction = redaction_of(plan_text(plan))
    if setup is not None:
        facts[SETUP] = setup.text(redaction)

    # Filled before it has its name: a record is complete, or is not there.
    def fill(record: Record) -> None:
        for key, value in facts.items():
            record.set_meta(key, value)
        around = [words for _, words in setup.commands] if setup is not None else []
        for script in scripts_to_keep(parse(plan_text(plan), "plan").data, redaction, start_ns, around):
            record.keep_artifact(script)
        against.keep(record, plan, start_ns)

    record = Record.create(folder, fill)
    try:
        if group:
            share(folder, group)
    except SoakwatchError:
        record.close()
        raise
    context = RunContext(
        plan,
        folder,
        start_ns,
        stop_on_fail,
        stop_rules=plan.stop_on_fail | set(stop_rules),
        ceilings=combined_ceilings(plan, against.reference.ceilings),
    )
    return context, record


def resume(
    folder: Path,
    *,
    stop_on_fail: bool,
    stop_rules: Collection[str] = (),
    steady: Callable[[int, int, str], RunClock] = SteadyClock,
) -> tuple[RunContext, Record, RunClock]:
    """Opens the record of a run whose monitor died, with the rest of its course and a clock that continues after its
    last sample; ``steady`` creates the clock, with the arguments of ``SteadyClock``.

    The gap is recorded as an event. If polling was over, ``polled_ns`` is set and only the end is left to do. Raises
    RecordError if nothing is left to do, or the run is still being written.
    """
    _refuse_complete(folder)  # before anything is written to it
    record = Record.open(folder)
    try:
        _refuse_complete(folder)  # again: now no other process can complete it
        context, last_ns, offset_ns, mark = _context(folder, stop_on_fail=stop_on_fail, stop_rules=stop_rules)
        clock = steady(max(last_ns, context.polled_ns or 0), offset_ns, mark)
        if context.polled_ns is None:
            record.set_meta(CLOCK, clock.mark)
            _note_gap(record, context, folder, last_ns, clock.now_ns())
        elif context.polled_ns > context.start_ns:
            record.end_phase(context.polled_ns)
    except BaseException:
        record.close()
        raise
    return context, record, clock


def check_resumable(folder: Path) -> str:
    """What ``resume`` would do with the run in a folder, in a sentence; changes nothing. Raises RecordError as that."""
    _refuse_complete(folder)
    if is_written(folder):
        raise RecordError(f"{folder} is being written: its run goes on")
    context, *_ = _context(folder, stop_on_fail=False, stop_rules=())
    if context.polled_ns is not None:
        return f"{folder}: polling was over; resume judges it and writes the reports"
    return f"{folder}: it was cut off; resume goes on with it until its planned end"


def unfinished_run(folders: Iterable[Path], name: str) -> Path | None:
    """The newest run of this name whose monitor died, or None. ``folders`` are those of runs, oldest first."""
    found = None
    for folder in folders:
        with suppress(RecordError), RecordView.open(folder) as view:
            metas = view.metas()
            if metas.get("run") == name and not is_complete(metas) and not is_written(folder):
                found = folder
    return found


def _refuse_complete(folder: Path) -> None:
    with RecordView.open(folder) as view:
        metas = view.metas()
    if is_complete(metas):
        raise RecordError(
            f"the run {folder.name} has ended, its verdict is {metas.get('verdict')}, and nothing of it is left to be"
            f" done: see it with `soakwatch report {folder}`, or judge it again with `soakwatch judge {folder}`"
        )


def _context(folder: Path, *, stop_on_fail: bool, stop_rules: Collection[str]) -> tuple[RunContext, int, int, str]:
    """The rest of a recorded run; the first time (UTC ns) without data, 0 if it has none at all; by how much (ns) the
    wall clock was ahead of the run's when its monitor died; the mark of its clock."""
    with RecordView.open(folder) as view:
        metas = view.metas()
        plan = recorded_plan(view)
        start = metas.get("start_ns")
        if start is None:
            raise RecordError(f"the record in {folder} does not say when its run started: it cannot be resumed")
        polled = metas.get("ended_ns") or metas.get(POLLED)
        events = view.events()
        context = RunContext(
            plan,
            folder,
            int(start),
            stop_on_fail,
            begun_ns=tuple(phase.window.begin_ns for phase in view.phases()),
            planned_events=tuple(stored.event for stored in events if stored.origin == ORIGIN),
            newest_event=max((stored.id for stored in events), default=0),
            live_findings=frozenset(identity_of(finding) for finding in view.findings(live=True)),
            last_due_ns=dict(view.last_due_ns()),
            stop_rules=plan.stop_on_fail | set(stop_rules),
            searches=recorded_searches(view),
            ceilings=combined_ceilings(plan, recorded_ceilings(view)),
            polled_ns=int(polled) if polled else None,
        )
        last_ns = view.last_ns
        offset_ns = 0 if last_ns is None else _offset_ns(view, last_ns)
    return context, 0 if last_ns is None else last_ns + 1, offset_ns, metas.get(CLOCK, "")


def _offset_ns(view: RecordView, last_ns: int) -> int:
    """By how much the wall clock was ahead of the run's, ns; less than a clock step is drift and counts as 0."""
    key = SeriesKey(MONITOR, "monitor.clock.offset", "")
    if key not in view.keys([key.metric]):
        return 0
    newest = view.series(key, last_ns - _OFFSET_WITHIN_NS).values
    return round(float(newest[-1]) * 1e9) if len(newest) and abs(newest[-1]) >= CLOCK_STEP_S else 0


def _note_gap(record: Record, context: RunContext, folder: Path, last_ns: int, now_ns: int) -> None:
    """Records the gap from ``last_ns`` to ``now_ns``; a run that still waits for its start has none."""
    scripted = {event.kind for event in context.plan.events if event.run and event.lasts_s is None}
    with RecordView.open(folder) as view:
        planned = [stored for stored in view.events() if stored.origin == ORIGIN]
    for stored in planned:
        if stored.event.end_ns is None and stored.event.kind in scripted:  # the end of its command is unknown
            record.end_event(stored.id, max(last_ns, stored.event.begin_ns), {"cut": UNWATCHED})
    since_ns = max(last_ns, context.start_ns)
    if now_ns > since_ns:
        record.add_event("", Event("gap", "", "", since_ns, now_ns, {"cause": UNWATCHED}), MONITOR_ORIGIN)


def discard(folder: Path) -> bool:
    """Removes the folder of a run that never began; False if it holds other files, or cannot be removed.

    Host keys trusted on first use are removed too: they will be trusted on first use again.
    """
    try:
        files = list(folder.iterdir())
        if any(path.name not in _OWN_FILES for path in files):
            return False
        for path in files:
            path.unlink()
        folder.rmdir()
    except OSError:
        return False
    return True


def utc_text(time_ns: int) -> str:
    """A time for people: ``2026-11-21 08:00:00Z``."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
