"""What must hold in every night. Each check returns a sentence for each violation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from soakwatch.record import RecordView
from soakwatch.record.follow import polls_due
from soakwatch.record.model import OUTCOME_NUMBERS
from soakwatch_model.finding import FindingName, Outcome
from soakwatch_model.roles import MONITOR
from soakwatch_model.sample import PollOutcome
from soakwatch_testing.night.faults import OF_DEVICE, OF_MONITOR, Fault, Kind, Night, rule_of
from soakwatch_testing.night.lives import NightResult

FLOOR = 0.95
"""Share of the due polls of a required source below which there is no pass."""
BYTES_A_SERIES = 65_536
"""Maximum bytes of one series in the live judge, however long the night is."""
_ALL = 2**62


def broken(night: Night, result: NightResult) -> list[str]:
    """The violations in a night."""
    with RecordView.open(result.folder) as view:
        sentences = [*result.broken]
        sentences += _nothing_committed_is_lost(view, result)
        sentences += _every_due_time_has_one_poll(view, night, result)
        sentences += _missing_is_never_a_pass(view, result)
        sentences += _what_was_done_is_found(view, night, result)
        keys = len(view.keys())
    sentences += _nothing_else_fails(night, result)
    sentences += _each_hook_once(night, result)
    if result.judge_bytes and result.judge_bytes[-1][1] > BYTES_A_SERIES * keys:
        sentences.append(f"the live judge holds {result.judge_bytes[-1][1]:,} bytes of {keys} series")
    return sentences


def expected(night: Night) -> list[tuple[Fault, str]]:
    """What should be found of each fault, in words."""
    return [(fault, _WORDS[fault.kind]) for fault in night.faults]


def lost_nothing(result: NightResult) -> bool:
    """Whether every due poll of the night was made, although its monitor died."""
    with RecordView.open(result.folder) as view:
        lost = {OUTCOME_NUMBERS[outcome] for outcome in (PollOutcome.GAP, PollOutcome.MISSED)}
        return not any(
            bool(np.isin(polls_due(result.folder, source.id, 0, _ALL).outcome, list(lost)).any())
            for source in view.sources()
            if source.target != MONITOR
        )


def polled_alike(result: NightResult, other: NightResult) -> bool:
    """Whether two nights have polls due at the same times. If the monitor was killed at the very end, the last poll may
    be missing, as it was due but not committed: due times before the end are compared."""

    def due(folder: Path, source: int) -> list[int]:
        return [int(due_ns) for due_ns in polls_due(folder, source, 0, _ALL).due_ns]

    with RecordView.open(result.folder) as view:
        return all(due(result.folder, source.id) == due(other.folder, source.id) for source in view.sources())


def differences(result: NightResult, other: NightResult) -> list[str]:
    """The differences between the verdict of a resumed night and that of its twin whose monitor lived."""
    here, there = _outcomes(result), _outcomes(other)
    sentences = [
        f"{' '.join(key)} is {here.get(key, 'not judged')}, and {there.get(key, 'not judged')} where nobody was killed"
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    ]
    if result.verdict.outcome is not other.verdict.outcome:
        sentences.append(f"resumed: {result.verdict.outcome.value}; never killed: {other.verdict.outcome.value}")
    return sentences


def _outcomes(result: NightResult) -> Mapping[FindingName, str]:
    return {f.name: f.outcome.value for f in result.verdict.findings if f.target != MONITOR}


def _nothing_committed_is_lost(view: RecordView, result: NightResult) -> Iterator[str]:
    now = {source.id: {int(t) for t in view.answered_ns(source.id)} for source in view.sources()}
    for life, saved in enumerate(result.saved, 1):
        for source, answered in saved.items():
            if gone := answered - now.get(source, set()):
                yield f"{len(gone)} polls of source {source} that the record had before life {life + 1} are gone"


def _every_due_time_has_one_poll(view: RecordView, night: Night, result: NightResult) -> Iterator[str]:
    end_ns = int(view.meta("start_ns") or 0) + round(night.seconds * 1e9)  # no night ends early
    for source in view.sources():
        due = np.sort(polls_due(result.folder, source.id, 0, _ALL).due_ns)
        if not len(due):
            yield f"{source.target} has no poll"
            continue
        steps = np.diff(due)
        if len(steps) and (steps != source.interval_ns).any():
            at = int(np.flatnonzero(steps != source.interval_ns)[0])
            yield (
                f"{source.target}: after the poll that was due at {(due[at] - due[0]) * 1e-9:.3f} s comes one"
                f" {steps[at] * 1e-9:.3f} s later, every {source.interval_ns * 1e-9:g} s"
            )
        if due[-1] + source.interval_ns < end_ns:
            yield f"{source.target}: no poll is due after {(due[-1] - due[0]) * 1e-9:.3f} s"


def _missing_is_never_a_pass(view: RecordView, result: NightResult) -> Iterator[str]:
    if result.verdict.outcome is not Outcome.PASS:
        return
    for source in view.sources():
        if not source.required or source.target == MONITOR:
            continue
        outcomes = polls_due(result.folder, source.id, 0, _ALL).outcome
        share = float((outcomes == OUTCOME_NUMBERS[PollOutcome.OK]).mean()) if len(outcomes) else 0.0
        if share < FLOOR:
            yield f"it passes with {share:.1%} of the polls of {source.target}"


def _what_was_done_is_found(view: RecordView, night: Night, result: NightResult) -> Iterator[str]:
    whole = not night.of(Kind.KILL, Kind.DISK, Kind.SILENCE, Kind.SLOW, Kind.GARBLED)
    start_ns = int(view.meta("start_ns") or 0)
    answered = {s.target: max((int(t) for t in view.answered_ns(s.id)), default=0) for s in view.sources()}
    for fault in night.of(*OF_DEVICE):
        if result.verdict.outcome is Outcome.PASS:
            yield f"it passes, although {fault.words}"
        found = {
            finding.outcome
            for finding in result.verdict.findings
            if finding.rule == rule_of(fault.kind) and finding.target == fault.target
        }
        # One poll after it proves a restart, however many are missing; without any, its monitor was dead to the end.
        seen = fault.kind is Kind.RESTART and answered[fault.target] > start_ns + round(fault.begin_s * 1e9)
        enough = {Outcome.FAIL} if whole or seen else {Outcome.FAIL, Outcome.INCONCLUSIVE}
        if not found & enough:
            said = ", ".join(sorted(outcome.value for outcome in found)) or "nothing"
            yield f"{rule_of(fault.kind)} of {fault.target} says {said}, although {fault.words}"


def _nothing_else_fails(night: Night, result: NightResult) -> Iterator[str]:
    if night.of(*OF_DEVICE) or result.verdict.outcome is not Outcome.FAIL:
        return
    failed = sorted({f"{f.rule} of {f.target}" for f in result.verdict.findings if f.outcome is Outcome.FAIL})
    kinds = {fault.kind for fault in night.faults}
    if kinds <= OF_MONITOR:
        yield f"nothing befell a device, and {', '.join(failed)} failed"
    elif not any("hang" in words or "management" in words or "gap" in words for words in failed):
        yield f"the devices only answered badly, and {', '.join(failed)} failed"


def _each_hook_once(night: Night, result: NightResult) -> Iterator[str]:
    for what in ("start", "end"):
        times = result.deeds[what]
        if times > 1 or (times < 1 and not night.of(Kind.KILL, Kind.DISK)):
            yield f"the hook on {what} was run {times} times"


_WORDS: Mapping[Kind, str] = {
    Kind.KILL: "nothing that was committed is lost; the gap is counted",
    Kind.CLOCK: "no poll and no verdict moves",
    Kind.DISK: "no poll is lost while there is room for them in memory",
    Kind.SLOW: "polls that came too late are lost, and counted",
    Kind.GARBLED: "what is no reading is refused, and counted",
    Kind.SILENCE: "polls are lost, and counted: never a pass below 95 %",
    Kind.LOSS: "the device fails for the loss",
    Kind.RESTART: "the device fails for the restart",
    Kind.LEAK: "the device fails for the growth",
}
