"""Which inconclusive findings block a pass, and which are only reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch_model.fact import CERTAIN, Certainty
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_rules.traits import GrowthMethod, traits_of

_OF_THE_RUN = frozenset({InconclusiveReason.CADENCE, InconclusiveReason.TOO_SHORT})
"""The run as planned cannot show this, though no sample is missing; ``soakwatch check`` says so beforehand."""
_OF_THE_READINGS = frozenset(
    {InconclusiveReason.NOISE, InconclusiveReason.RESOLUTION, InconclusiveReason.CYCLE, InconclusiveReason.RELEASE}
)
"""A value was measured but is uncertain."""
_NOT_COMPARED = frozenset({InconclusiveReason.NOISE, InconclusiveReason.NO_REFERENCE, InconclusiveReason.RESOLUTION})
_QUEUE = "queue."  # a stress fills queues on purpose; another rule judges whether they drain
_LIKELY = 0.5  # from this probability on the value is more likely beyond its limit
_ENOUGH = 0.5  # share of the expected samples below which the missing ones are the cause


@dataclass(frozen=True, slots=True)
class Demand:
    """Which rules may stay inconclusive. ``optional`` ones never block a pass; ``insisted`` ones (``required: true``,
    or named on the command line) always do; ``named`` ones (with parameters in the plan) also if the run was too short.

    Nearly certain growth always blocks a pass. Any other inconclusive finding does so too, unless no due sample is
    missing and the run as planned could not show it (cadence, length), or the value lies within its limit and is only
    uncertain.
    """

    optional: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    insisted: frozenset[str] = frozenset()

    def waived(self, findings: Sequence[Finding]) -> frozenset[int]:
        """The indexes of inconclusive findings that do not block a pass.

        A series that cannot be compared with the time before the stress (another load, too noisy) is waived if more of
        the target's series recovered than are inconclusive.
        """
        of_many = [f for f in findings if traits_of(f.rule).inconclusive.by_majority]
        passed = Counter((f.rule, f.target) for f in of_many if f.outcome is Outcome.PASS)
        contradicted = frozenset(f.subject for f in findings if _by_stages(f) and f.own_outcome is Outcome.FAIL)
        undecided = Counter((f.rule, f.target) for f in of_many if f.outcome is Outcome.INCONCLUSIVE)
        return frozenset(
            index
            for index, f in enumerate(findings)
            if self.waives(f, contradicted=f.subject in contradicted)
            or (
                traits_of(f.rule).inconclusive.by_majority
                and f.outcome is Outcome.INCONCLUSIVE
                and f.why in _NOT_COMPARED
                and f.rule not in self.insisted
                and not f.metric.startswith(_QUEUE)
                and passed[f.rule, f.target] > undecided[f.rule, f.target]
            )
        )

    def waives(self, finding: Finding, *, contradicted: bool = False) -> bool:
        """Whether a finding is inconclusive and does not block a pass.

        ``contradicted``: the stages detect growth of which the shape is in doubt.

        >>> from soakwatch_model.window import Window
        >>> doubt = Finding("cpu_spike", 1, Outcome.INCONCLUSIVE, "dut", "", "", Window(0, 1), "", "", 9,
        ...                 why=InconclusiveReason.CADENCE)
        >>> Demand().waives(doubt), Demand(insisted=frozenset({"cpu_spike"})).waives(doubt)
        (True, False)
        """
        if finding.outcome is not Outcome.INCONCLUSIVE:
            return False
        rule, why = finding.rule, finding.why
        certainty = finding.fact(Certainty)
        if certainty is not None and certainty.probability >= CERTAIN and traits_of(rule).growth is not None:
            return False  # it grows, whatever else is undecided
        if rule in self.optional:
            return True
        if rule in self.insisted or traits_of(rule).inconclusive.required:
            return False
        if why is InconclusiveReason.TOO_FEW:
            whole = finding.coverage is not None and finding.coverage >= _ENOUGH and finding.samples > 1
            return whole and rule not in self.named
        if why in _OF_THE_RUN:
            return why is InconclusiveReason.CADENCE or rule not in self.named
        return why in _OF_THE_READINGS and within(finding, contradicted=contradicted)


def _by_stages(finding: Finding) -> bool:
    return traits_of(finding.rule).growth is GrowthMethod.STAGES


def within(finding: Finding, *, contradicted: bool = False) -> bool:
    """Whether the value is more likely within its limit than beyond it; a negative limit is one for decreases.

    False for growth that the straight line or the stages detect but the shape does not: the methods contradict each
    other.
    """
    certainty = finding.fact(Certainty)
    if certainty is not None:
        return certainty.probability < _LIKELY and not contradicted and not certainty.contradicted
    if finding.measured is None or finding.limit is None:
        return False
    return finding.measured <= finding.limit if finding.limit >= 0 else finding.measured >= finding.limit
