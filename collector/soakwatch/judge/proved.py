"""The mean time between failures that a run proves of each device, and what several runs of it prove together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RecordView
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_rules.causes import Cause, causes
from soakwatch_rules.stats.mtbf import CONFIDENCE, proved_mtbf
from soakwatch_rules.wording.quantities import counted

_WORTH_S = 3600.0


@dataclass(frozen=True, slots=True)
class ProvedMtbf:
    """Of one device, or of all runs of it: for how long it was watched, and how often it failed meanwhile.

    A failure is a cause with a failing finding of the device, so a reboot that loses sessions and packets is one.
    """

    target: str
    watched_s: float
    failures: int
    runs: int = 1

    @property
    def at_least_s(self) -> float:
        """The mean time between failures that is proved with 95 %, in seconds."""
        return proved_mtbf(self.watched_s, self.failures)

    @property
    def worth_words(self) -> bool:
        """Whether it was watched for an hour: less proves nothing that anybody asks for."""
        return self.watched_s >= _WORTH_S

    @property
    def words(self) -> str:
        """In one line.

        >>> ProvedMtbf("fw", 72 * 3600.0, 0).words
        'MTBF of 24 h or more (95 %), by 72 h without a failure'
        >>> ProvedMtbf("fw", 14 * 86400.0, 1, 14).words
        'MTBF of 70 h or more (95 %), by 14 d with 1 failure in 14 runs'
        """
        hours = self.at_least_s / 3600
        least = f"{int(hours)} h" if hours >= 1 else f"{int(hours * 60)} min"
        how = "without a failure" if not self.failures else f"with {counted(self.failures, 'failure')}"
        of = f" in {counted(self.runs, 'run')}" if self.runs > 1 else ""
        return f"MTBF of {least} or more ({100 * CONFIDENCE:.0f} %), by {show_seconds(self.watched_s)} {how}{of}"


def proved_by(verdict: Verdict) -> tuple[ProvedMtbf, ...]:
    """What a run proves of each device of role dut; nothing while it goes on, or where it left something undecided."""
    if verdict.preliminary or verdict.outcome is Outcome.INCONCLUSIVE:
        return ()
    judged = (target for target in verdict.targets if target.outcome in {Outcome.PASS, Outcome.FAIL})
    devices = [target.target for target in judged if target.role == DUT]
    failed = verdict.outcome is Outcome.FAIL
    return _proofs(devices, verdict.window.seconds, verdict.findings, verdict.causes, failed=failed)


def proved_in(view: RecordView) -> tuple[ProvedMtbf, ...]:
    """The same of a record, by the findings and the verdict that were kept in it."""
    verdict = view.meta("verdict")
    if verdict not in {Outcome.PASS.value, Outcome.FAIL.value}:
        return ()
    findings: tuple[Finding, ...] = ()
    grouped: tuple[Cause, ...] = ()
    if verdict == Outcome.FAIL.value:
        findings = view.findings(live=False)
        grouped = causes(findings, (stored.event for stored in view.events()), view.phases())
    devices = sorted(target for target, role in view.roles().items() if role == DUT)
    return _proofs(devices, view.window().seconds, findings, grouped, failed=verdict == Outcome.FAIL.value)


def _proofs(
    devices: Sequence[str], watched_s: float, findings: Sequence[Finding], causes: Sequence[Cause], *, failed: bool
) -> tuple[ProvedMtbf, ...]:
    """One a device. A run that failed by nothing that is any device's own failed once for each."""
    counts = [_failures(device, findings, causes) for device in devices]
    if failed and not any(counts):
        counts = [1] * len(counts)
    return tuple(ProvedMtbf(device, watched_s, count) for device, count in zip(devices, counts, strict=True))


def _failures(target: str, findings: Sequence[Finding], causes: Sequence[Cause]) -> int:
    """How many causes have a failing finding of a device."""
    failing = {place for place, f in enumerate(findings) if f.target == target and f.outcome is Outcome.FAIL}
    return sum(not failing.isdisjoint(cause.findings) for cause in causes)


def joined(proofs: Iterable[ProvedMtbf]) -> tuple[ProvedMtbf, ...]:
    """The proofs of several runs, put together device by device: hours and failures add up."""
    by_target: dict[str, ProvedMtbf] = {}
    for proof in proofs:
        before = by_target.get(proof.target, ProvedMtbf(proof.target, 0.0, 0, 0))
        by_target[proof.target] = ProvedMtbf(
            proof.target,
            before.watched_s + proof.watched_s,
            before.failures + proof.failures,
            before.runs + proof.runs,
        )
    return tuple(by_target[target] for target in sorted(by_target))
