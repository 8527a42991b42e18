"""Gaps: why a source was silent, and what went unseen meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.fact import PathCut
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_rules.events.boots import BOOT_METRICS
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.management.gap_cause import BLAMED, PATH, PLANNED, TOTAL, UP, ExplainedSilence, silence_causes
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.silences import silence_to_end
from soakwatch_rules.traits import Family, Guide, Inconclusive, Judges, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import duration, moment

_MAX_MARKS = 100
_SHOWN = 3
_DEAD_S = 300.0  # a silence this long up to the end of the run warns, as in ``hang``


@dataclass(frozen=True, slots=True)
class Gap(Parameters):
    """Names the cause of each silence of a source: monitor, path or device. It never fails.

    A silence is ``intervals`` intervals or more without an answer. Its cause is the first of these that holds:
    monitor: at least half of its polls were never sent (missed, or the monitor did not run);
    planned: an announced event (with an intent) covers its start;
    reboot: boot id or uptime restarted in it, or an event reports a reboot;
    device: the last CPU sample before it was at ``busy`` or above, or the loss during it exceeds the loss of as long a
    time before it by more than ``hit`` (a share of the load);
    path: another source of the target answered meanwhile (a ping or connection counts if its peer answered; a source
    that only listens does not), or all were silent while the load went through unharmed (the management path);
    unknown: no evidence.
    Reboot, device and unknown warn. Monitor, planned and path pass, since the device is not to blame; but a source that
    stays silent for 5 min and five polls up to the end of the run warns, whatever else answered. A source that never
    answered is inconclusive, a warning if it is not required.

    How often wrong: it is a chain of evidence, not a test; each cause comes with its sentence. In 300 seeded silences
    of 90 s of each kind (10 s polls of two sources, load each second, CPU 40 % ± 8) every cause was right. Known
    weaknesses: an agent that crashed alone looks like a path fault; a busy CPU, or forwarding hit by the same cut,
    makes a cut cable look like a device fault; a source with fewer than three polls in the silence is no evidence.

    Neighbours: ``coverage`` judges how much is missing, ``hang`` and ``reboot`` what happened,
    ``management_isolation`` silences under high load only.

    Parameters: ``intervals``, ``busy``, ``hit`` (below).

    >>> from soakwatch_model.case import Case, Ledger, Silence
    >>> from soakwatch_model.window import Window
    >>> def ledger(source, *silences):
    ...     return Ledger("dut", source, 10.0, 100, 95, {"timeout": 5}, None, silences=silences)
    >>> silence = Silence(Window(100 * 10**9, 160 * 10**9), {"timeout": 5})
    >>> case = Case("dut", "", Window(0, 1000 * 10**9), ledgers=(ledger("snmp", silence), ledger("ssh")))
    >>> for finding in Gap().judge(case):
    ...     print(finding.object, finding.outcome, "-", finding.reason.partition(" from")[0])
    snmp pass - no answer for 1 min
    ssh pass - no silence of 30 s or longer

    References: J. Mogul and K. Ramakrishnan, Eliminating Receive Livelock in an Interrupt-Driven Kernel, ACM TOCS 15,
    1997 (a device that is busy receiving answers nobody, so silence at a full CPU is the device's).
    """

    name: ClassVar[str] = "gap"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "a source stopped answering for a while, and the probable cause"
    metrics: ClassVar[tuple[str, ...]] = (TOTAL, *BOOT_METRICS, UP)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("one due poll; for a cause also CPU, a second source or generator figures")

    intervals: float = parameter(
        3.0, "{interval}", "shortest silence that is judged", "shorter ones are not recorded", within="[1, inf)"
    )
    busy: float = parameter(
        0.95, "1", "CPU from which the device may be too busy to answer", "as a spike", within="(0, 1]"
    )
    hit: float = parameter(
        0.01, "1", "additional loss from which forwarding counts as affected", "above usual noise", within="(0, 1]"
    )

    def definition(self) -> str:
        return (
            f"a silence is {self.intervals:g} intervals or more without an answer; caused by the monitor if half of "
            "its polls "
            f"were not sent, by the device if it rebooted, its CPU was at {100 * self.busy:g} % before or "
            f"{100 * self.hit:g} % more of the load was lost meanwhile, by the path if other sources answered or the "
            "load was unaffected; silences caused by the device, and unexplained ones, warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a source; its object is the source's label."""
        if not case.ledgers:
            return (absent(self, case, "poll statistics (no source polled it)"),)
        cause = silence_causes(case, self.busy, self.hit)
        return tuple(self._of(case, ledger, cause) for ledger in case.ledgers)

    def _of(self, case: Case, ledger: Ledger, cause: Callable[[Ledger, Silence], ExplainedSilence]) -> Finding:
        least_s = self.intervals * ledger.interval_s
        finding = replace(
            draft(self, case),
            object=ledger.source,
            samples=ledger.got,
            expected=ledger.due,
            unit="s",
            limit=least_s,
            smallest_detectable=least_s,
            detectable_unit="s",
        )
        if not ledger.due:
            return finding.not_applicable(f"{ledger.source}: no poll was due")
        if not ledger.got:
            why, settle = InconclusiveReason.GAP, "fix the source or the path to it, then run again"
            text = f": {ledger.errors[0]}" if ledger.errors else ""
            reason = f"{ledger.source} never answered{text}; the cause is unknown"
            if ledger.required:
                return finding.undecided(reason, why, settle)
            return finding.warns(reason)
        gaps = [cause(ledger, s) for s in ledger.silences if s.window.seconds >= least_s * (1 - 1e-9)]
        named = sorted({g.cause for g in gaps})
        unseen, longest = sum(g.window.seconds for g in gaps), max((g.window.seconds for g in gaps), default=0.0)
        numbers = {"silences": float(len(gaps)), "unseen_s": unseen, "longest_s": longest}
        numbers |= {f"{name}_s": sum(g.window.seconds for g in gaps if g.cause == name) for name in named}
        in_order = list(gaps)
        # The reason names first what the device may be to blame for, then the longest.
        gaps.sort(key=lambda g: (g.cause not in BLAMED, -g.window.seconds, g.window.begin_ns))
        finding = replace(
            finding,
            measured=longest,
            numbers=numbers,
            facts=(PathCut(),) if named == [PATH] and unseen > 0 else (),
            marks=tuple(
                Mark(
                    g.window.begin_ns,
                    g.window.end_ns,
                    f"{ledger.source} silent{g.words}",
                    MarkKind.SILENCE,
                    planned=g.cause == PLANNED,
                )
                for g in sorted(gaps[:_MAX_MARKS], key=lambda g: g.window.begin_ns)
            ),
        )
        if not gaps:
            return finding.passes(f"no silence of {duration(least_s)} or longer")
        text = "; ".join(
            f"no answer for {duration(g.window.seconds)} from {moment(g.window.begin_ns)}{g.words}"
            for g in gaps[:_SHOWN]
        )
        more = f"; and {len(gaps) - _SHOWN} more" if len(gaps) > _SHOWN else ""
        ended = silence_to_end([ledger], [g.window for g in in_order if g.cause == PATH], case.window, _DEAD_S)
        outcome = Outcome.WARN if BLAMED.intersection(named) or ended is not None else Outcome.PASS
        many = "" if len(gaps) == 1 else f"{len(gaps)} silences, {duration(unseen)} in total: "
        reason = f"{many}{text}{more}"
        caveat = f"{ledger.source} saw nothing of what happened in {duration(unseen)} of silence"
        return replace(finding, outcome=outcome, reason=reason, doubts=(caveat,))


TRAITS: Final = Traits(
    words=RuleWords("a source was silent for too long", "management silent", happened="{target} did not answer"),
    rank=910,
    marks=Marks.WITNESSES,
    judges=Judges.ANSWERS,
    inconclusive=Inconclusive(required=True),
    family=Family.POLLS,
    guide=Guide(
        fails_when=(
            "Never fails; warns when a source is silent for three intervals or more, unless the monitor or the path "
            "caused it."
        ),
        misses="Silences shorter than three intervals.",
        change_with="gap: {intervals: 5}",
        next_step="Look at what else happened in the gap; if other sources answered, look at the path to this one.",
    ),
)
