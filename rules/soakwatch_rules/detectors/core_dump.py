"""Core dumps: a core file that appeared during the run, or a crash that the device reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Victim
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_rules.events.incidents import Incident, Witness
from soakwatch_rules.events.intents import assign_incidents, intents
from soakwatch_rules.finding_draft import absent, draft, faults
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Crash, Family, Guide, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, first_few, moment

_GROWING_NS = 600 * 10**9  # one core file: its modification time moves by at most this while it is written
_CRASH_KINDS = frozenset({"process.crash", "device.crash", "watchdog"})
"""Crashes reported by a log line, a notification or a command."""
_SAME_NS = 120 * 10**9  # a crash report and a core file within this are one crash
_MAX_FILES = 1000


@dataclass(frozen=True, slots=True)
class CoreDump(Parameters):
    """Fails if more core files appeared, or crashes were reported, during the window than ``allowed``.

    A core file is new if an event ``core.dump`` reports it, if an event ``core.present`` (found at the first poll)
    gives a modification time inside the window, or if the count ``system.core.files`` rose and no event within two
    samples explains it. The modification time finds cores written while the monitor was away; the count finds files
    whose event was lost. Older files are listed and do not fail. A planned event with ``core.dump: N`` allows N. A
    crash that the device reports (``process.crash``, ``device.crash``, ``watchdog``) counts like a file; reports and
    files within 2 min of each other are one crash.

    How often wrong: a file in the folder is a fact. Known weaknesses: it does not see a core that was not written (full
    disk, size limit 0), that a collector moved elsewhere, or that was removed between two samples. A device whose clock
    is behind may date a new core before the run. A reported crash is as reliable as the pattern of the profile; a
    device whose log is not received reports none.

    Neighbours: ``kernel_fault`` judges the kernel's log; ``process_restart`` and ``reboot`` see the death.

    Parameters: ``allowed`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.event import Event
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> folder = readings("system.core.files", np.ones(60), 10.0, object="folder=/var/crash")
    >>> window = Window(0, 600 * 10**9)
    >>> fallen = Event("core.dump", "dut", folder.object, 5 * 10**9, None, {"file": "core.snort.77"})
    >>> for events in ((), (fallen,)):
    ...     print(CoreDump().judge(Case("dut", "", window, (folder,), events=events))[0].outcome)
    pass
    fail

    References: core(5).
    """

    name: ClassVar[str] = "core_dump"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "a core file was written"
    metrics: ClassVar[tuple[str, ...]] = ("system.core.files",)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("samples of the core folder from start to end of the window", live="whole")

    allowed: float = parameter(0.0, "{file}", "new core files that are allowed", "a soak should have none")

    def definition(self) -> str:
        return (
            "a core dump is a core file that appeared or was written after the start of the window; more than "
            f"{self.allowed:g} unplanned ones fail; older files do not; a crash that the device "
            "reports (process.crash, device.crash, watchdog) counts like a file"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target, over all folders."""
        events = [e for e in case.events if e.kind in {"core.dump", "core.present"} and not e.expect]
        reported = [e for e in case.events if e.kind in _CRASH_KINDS and not e.expect and _inside(e, case)]
        if not case.series and not events and not reported:
            return (absent(self, case, "core folder"),)
        folders = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
        about = max(folders, key=len, default=None)
        finding = replace(draft(self, case, about), limit=self.allowed, unit="{file}")
        slack_ns = max((round(2e9 * (spacing(s) or 0.0)) for s in folders), default=0)
        new = _new(events, case)
        old = len({_file(e) for e in events if e.kind == "core.present"} - {_file(e) for e in new})
        doubts = [
            f"{_file(e)}: modification time unknown" for e in events if e.kind == "core.present" and _written(e) is None
        ]
        witnesses = [
            Witness(f"event {_file(e)}", _when(e, case), _when(e, case), _file(e), victim=_victim(e)) for e in new
        ]
        # A growing number of files without an event, and reported crashes without a file, count too.
        silent = [w for folder in folders for w in _uncovered(folder, events, slack_ns)]
        signs = sorted([*witnesses, *silent], key=lambda w: (w.begin_ns, w.text))
        signs += _crashes(reported, signs)
        incidents = [Incident((w,)) for w in sorted(signs, key=lambda w: (w.begin_ns, w.text))]
        announced = intents(case.events, "core.dump", case.window)
        # An announced crash excuses its core file; if it leaves none, no announcement is broken.
        announced += tuple(
            i for key in sorted(_CRASH_KINDS) for i in intents(case.events, key, case.window, binding=False)
        )
        assigned = assign_incidents(incidents, announced, case.window, "core dump", slack_ns)
        number, planned = len(assigned.unplanned), len(assigned.planned)
        finding = replace(
            finding,
            measured=float(number),
            doubts=tuple(doubts),
            marks=tuple(Mark(i.begin_ns, None, f"core: {i.text}", victim=i.victim) for i in incidents),
            numbers={"new": float(len(incidents)), "planned": float(planned), "before": float(old)},
        )
        before = f" ({counted(old, 'older core file')} from before the run)" if old else ""
        faulty = list(assigned.broken)
        if number > self.allowed:
            files = first_few([f"{i.text} at {moment(i.end_ns)}" for i in assigned.unplanned])
            what = "new core file" if not reported else "crash"
            faulty.insert(0, f"{counted(number, what)}: {files}{before}")
        if faulty:
            return (finding.fails("; ".join(faulty)),)
        blind = _blind(folders, case)
        unclear = blind or next(iter(assigned.open), "")
        if unclear:
            return (
                finding.undecided(
                    unclear,
                    InconclusiveReason.GAP if blind else InconclusiveReason.PENDING,
                    "needs samples of the core folder from start to end of the run",
                ),
            )
        calm = f"no new core file{before}" if not incidents else f"{counted(planned, 'planned core file')}{before}"
        return (finding.passes(calm),)


def _inside(event: Event, case: Case) -> bool:
    return case.window.begin_ns <= event.begin_ns < case.window.end_ns


def _crashes(reported: list[Event], cores: list[Witness]) -> list[Witness]:
    """The reported crashes that no core file and no other report within 2 min stands for."""
    witnesses: list[Witness] = []
    for event in sorted(reported, key=lambda e: (e.begin_ns, e.kind)):
        near = [w for w in (*cores, *witnesses) if abs(w.begin_ns - event.begin_ns) <= _SAME_NS]
        if not near and len(witnesses) < _MAX_FILES:
            who = event.detail.get("process") or event.object
            text = f"{event.kind}{f' of {who}' if who else ''}"
            victim = Victim(label(who, "process") or who) if who else None
            source = f"told {event.begin_ns} {text}"
            witnesses.append(Witness(source, event.begin_ns, event.begin_ns, text, victim=victim))
    return witnesses


def _blind(folders: list[Series], case: Case) -> str:
    """Why the folders were not read over the whole window ("" if they were); a folder that appeared later need only be
    read from then to the end."""
    read = [f for f in folders if len(f)]
    if not read:
        return (
            f"the core files could not be counted:  {faults(case.faults)}"
            if case.faults
            else "the core folder was never read"
        )
    first_ns = min(int(f.time_ns[0]) for f in read)
    for folder in read:
        begin_ns = case.window.begin_ns if folder.time_ns[0] == first_ns else int(folder.time_ns[0])
        why = unseen(folder.time_ns, replace(case.window, begin_ns=begin_ns))
        if why:
            return f"{folder.object or 'core folder'}: {why}"
    return ""


def _new(events: list[Event], case: Case) -> list[Event]:
    """Each new file once: those that appeared, and those found at the first poll that were written in the window."""
    new: dict[str, Event] = {}
    for event in sorted(events, key=lambda e: (e.kind, e.begin_ns)):  # core.dump before core.present
        written = _written(event)
        old = written is None or written < case.window.begin_ns or any(_same(event, other) for other in new.values())
        if event.kind == "core.present" and old:
            continue
        new.setdefault(f"{event.object} {_file(event)} {written if written is not None else event.begin_ns}", event)
    return sorted(new.values(), key=lambda e: e.begin_ns)


def _same(event: Event, other: Event) -> bool:
    """Whether both are one file: the same name, and modification times within ten minutes (it was still growing)."""
    own_ns, other_ns = _written(event), _written(other)
    return (
        _file(event) == _file(other)
        and own_ns is not None
        and other_ns is not None
        and abs(own_ns - other_ns) <= _GROWING_NS
    )


def _written(event: Event) -> int | None:
    """The file's modification time in ns; None if missing or not a number."""
    try:
        seconds = float(event.detail.get("mtime_s", event.detail.get("mtime", "")))
    except ValueError:
        return None
    return round(seconds * 1e9) if abs(seconds) < 9e9 else None


def _when(event: Event, case: Case) -> int:
    """When the core was written: the file's time if it was found later, else the event's."""
    written = _written(event)
    late = event.kind == "core.present" and written is not None
    return min(written, case.window.end_ns) if late and written is not None else event.begin_ns


def _file(event: Event) -> str:
    return _path(event) or "core file"


def _path(event: Event) -> str:
    """The path in the event; empty if it has none."""
    known = (event.detail.get(key) for key in ("file", "path", "name"))
    return next((text for text in known if text), "")


def _victim(event: Event) -> Victim | None:
    path = _path(event)
    return Victim(core_file=path) if path else None


def _uncovered(folder: Series, events: list[Event], slack_ns: int) -> list[Witness]:
    """A witness for each rise of the count that no event explains, at most about 1000."""
    result, free = [], sorted(e.begin_ns for e in events if e.object in {"", folder.object})
    with np.errstate(over="ignore"):  # absurd counts may overflow; at most _MAX_FILES are reported
        rises = np.diff(folder.values) if len(folder) > 1 else np.empty(0)
    for i in np.flatnonzero(rises > 0).tolist():
        begin, end = int(folder.time_ns[i]), int(folder.time_ns[i + 1])
        near = [t for t in free if begin - slack_ns <= t <= end + slack_ns]
        risen = int(min(rises[i], _MAX_FILES))
        for time in near[:risen]:
            free.remove(time)
        result += [Witness(f"count {n}", begin, end, "one more file in the folder") for n in range(risen - len(near))]
        if len(result) >= _MAX_FILES:
            break
    return result


TRAITS: Final = Traits(
    words=RuleWords("a program crashed", happened="a program crashed on {target}"),
    rank=50,
    leads=Leads(Crash.CORE, explains=("reboot",), same_death=("kernel_fault",)),
    event_kinds=("core.dump", "core.present", "process.crash", "device.crash", "watchdog"),
    expected_as="core.dump",
    family=Family.CRASHES,
    guide=Guide(
        fails_when="A core file appears during the run, or the device reports a crash that no event announced.",
        misses=(
            "A crash that wrote no core: `ulimit -c 0` is the default of most systems; and a file that is removed "
            "between two polls."
        ),
        change_with="core_dump: {allowed: 1}",
        next_step=(
            "Keep the core file and open it in a debugger with the symbols of this build; the trace names the function"
            " that died."
        ),
    ),
)
