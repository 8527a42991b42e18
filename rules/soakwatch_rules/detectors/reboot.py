"""Reboots: a new boot id, or an uptime that started again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.events.boots import MOVED_S, reboots
from soakwatch_rules.events.incidents import Incident, incidents, witness_of
from soakwatch_rules.events.intents import assign_incidents, intents
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Crash, Family, Guide, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment


@dataclass(frozen=True, slots=True)
class Reboot(Parameters):
    """Fails if the device rebooted more often than announced.

    A reboot is a change of the boot id. Without a boot id to compare, two things must show it: an uptime that falls, or
    is shorter than the time since the previous sample; and a boot time (time of the sample - uptime, and
    ``system.boot.time`` if it is read) that moved by more than 60 s. Planned events with ``reboot: N`` allow N between
    their start and their deadline, and fail if fewer come. A planned event with a ``cause`` allows only reboots whose
    reported reason contains that word (``upgrade|reload``: one of them); if no reason is reported the finding says so.

    Not a reboot: the wrap of a 32-bit uptime in hundredths of a second (every 497 days, the uptime continues where it
    must after a wrap); a step of the device's clock, which moves only the boot time; the restart of an agent that
    counts its own uptime, if the boot time stays.

    How often wrong: a boot id is never wrong, and can be compared across any gap. Known weaknesses without one: a
    reboot in a gap longer than the uptime after it still shows, but two in one gap count as one; an agent's restart
    counts as a reboot if no boot time contradicts it; with a boot time alone a large clock step is inconclusive.

    Neighbours: ``process_restart`` judges one process, ``core_dump`` and ``oom_kill`` causes, ``event_impact`` the
    cost of a reboot.

    Parameters: ``allowed`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import uptimes
    >>> for series in (uptimes(10.0, 60), uptimes(10.0, 60, reboot_at=30)):
    ...     print(Reboot().judge(Case("dut", "", Window(0, 600 * 10**9), (series,)))[0].outcome)
    pass
    fail

    References: RFC 2578 section 7.1.8 (TimeTicks wrap), RFC 2790 (hrSystemUptime against sysUpTime); proc(5) for
    the boot id.
    """

    name: ClassVar[str] = "reboot"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "the device rebooted"
    metrics: ClassVar[tuple[str, ...]] = ("system.boot.id", "system.boot.time", "system.uptime")
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two samples of boot id, boot time or uptime, from start to end of the window", live="whole"
    )

    allowed: float = parameter(0.0, "{reboot}", "allowed reboots", "a soak should have none")

    def definition(self) -> str:
        return (
            "a reboot is a changed boot id, or without one an uptime that restarted while the boot time moved by over "
            f"{duration(MOVED_S)} (a 497-day wrap is not one); more than {self.allowed:g} unplanned ones fail, as does "
            "a planned one that did not happen, or happened for another cause"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target."""
        cut = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
        best = {m: max((s for s in cut if s.metric == m and len(s)), key=len, default=None) for m in self.metrics}
        boot_id, boot_time, uptime = (best[m] for m in self.metrics)
        announced = intents(case.events, "reboot", case.window)
        about = next((s for s in (boot_id, uptime, boot_time) if s is not None and len(s) > 1), None)
        if about is None:
            if case.series or announced:
                text = "fewer than 2 samples of boot id or uptime"
                return (draft(self, case).undecided(text, InconclusiveReason.TOO_FEW, "needs 2 samples of the uptime"),)
            return (absent(self, case, "boot id or uptime"),)
        slack_ns = round(2e9 * (spacing(about) or 0.0))
        seen, doubts, unsure = reboots(boot_id, boot_time, uptime)
        witnesses = [
            witness_of(e, "event", "reported reboot") for e in case.events if e.kind == "reboot" and not e.expect
        ]
        matches = incidents((*seen, *witnesses), slack_ns)
        # A boot id that stayed the same disproves a reported reboot.
        back = [i for i in matches if not _contradicted(i, boot_id)]
        doubts += ["an event reported a reboot, but the boot id stayed the same"] * (len(back) < len(matches))
        assigned = assign_incidents(back, announced, case.window, "reboot", slack_ns)
        number, planned = len(assigned.unplanned), len(assigned.planned)
        if any(i.cause for i in announced) and any(not i.cause for i in assigned.planned):
            doubts.append("no reason for the reboot was reported: whether it had the planned cause is not known")
        finding = replace(
            draft(self, case, about),
            measured=float(number),
            limit=self.allowed,
            unit="{reboot}",
            doubts=tuple(doubts),
            marks=tuple(Mark(i.begin_ns, i.end_ns, f"reboot: {_described(i)}") for i in back),
            numbers={"reboots": float(len(back)), "planned": float(planned)},
        )
        faulty = list(assigned.broken)
        if number > self.allowed:
            times = first_few([f"before {moment(i.end_ns)} ({_described(i)})" for i in assigned.unplanned])
            faulty.insert(0, f"{counted(number, 'reboot')}: {times}")
        if faulty:
            return (finding.fails("; ".join(faulty)),)
        unclear = unsure or next(iter(assigned.open), "") or _blind(about, uptime, case.window)
        if unclear:
            settle = "needs uptime or boot id from start to end of the run, and until planned events are over"
            return (
                finding.undecided(
                    unclear, InconclusiveReason.PENDING if assigned.open else InconclusiveReason.GAP, settle
                ),
            )
        calm = f"{counted(len(back), 'reboot')}, {planned} planned" if back else "no reboot"
        what = {"system.boot.id": "the boot id stayed the same", "system.uptime": "the uptime ran on"}.get(
            about.metric, "the boot time stayed the same"
        )
        return (finding.passes(calm if back else f"{calm}: {what}"),)


def _blind(about: Series, uptime: Series | None, window: Window) -> str:
    """The part of the window that neither series covers; a boot id may be read less often than the uptime."""
    return min(unseen(s.time_ns, window) for s in (about, uptime or about))


def _described(incident: Incident) -> str:
    return f"{incident.text}, reason: {incident.cause}" if incident.cause else incident.text


def _contradicted(incident: Incident, boot_id: Series | None) -> bool:
    """Whether only an event reports the reboot while the boot id was the same before and after."""
    if boot_id is None or any(w.source != "event" for w in incident.witnesses):
        return False
    before, after = (
        boot_id.values[boot_id.time_ns < incident.begin_ns],
        boot_id.values[boot_id.time_ns > incident.end_ns],
    )
    return bool(before.size and after.size and before[-1] == after[0])


TRAITS: Final = Traits(
    words=RuleWords("it rebooted", happened="{target} rebooted"),
    rank=30,
    leads=Leads(Crash.DEVICE, whole_device=True, explains=("process_restart",)),
    event_kinds=("reboot",),
    family=Family.CRASHES,
    guide=Guide(
        fails_when="The boot id or the uptime starts again without an announced event.",
        misses="Devices that state neither.",
        change_with="reboot: {allowed: 1}",
        next_step="Read the reason of the last reload on the device and its crash log, and check the power.",
    ),
)
