"""What must be decided before a run can pass: whose doubt keeps it from passing, and whose is only told."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch_rules.rule import Finding, Outcome, Why

_OF_THE_RUN = frozenset({Why.CADENCE, Why.TOO_SHORT})
"""No reading is missing: the run as it was planned cannot show this. ``check`` says so beforehand."""
_OF_THE_READINGS = frozenset({Why.NOISE, Why.RESOLUTION, Why.CYCLE, Why.RELEASE})
"""A figure was found, and it is not certain."""
_ASKED_BY_THE_RUN = frozenset({"coverage", "gap", "generator_health", "recovery", "event_impact"})
"""Rules that look at what this very run did: its polls, its load, its phases, its events."""
_ENOUGH = 0.5  # of the expected readings: with fewer it is the missing ones that leave it open


@dataclass(frozen=True, slots=True)
class Demand:
    """Which rules may stay open. ``optional`` ones hold no run up; of those in ``insisted`` (``required: true``, or
    named on the command line) every doubt does; of those in ``named`` (the plan gives them parameters) also that the
    run is too short.

    Of all others a doubt holds a run up unless nothing that was due is missing and the run, as it was planned, could
    not show it (cadence, length), or the figure that was found lies within its limit and is only not certain.
    """

    optional: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    insisted: frozenset[str] = frozenset()

    def waives(self, finding: Finding) -> bool:
        """Whether this is a doubt that holds up nothing.

        >>> from soakwatch_rules.rule import Window
        >>> doubt = Finding("cpu_spike", 1, Outcome.INCONCLUSIVE, "dut", "", "", Window(0, 1), "", "", 9,
        ...                 why=Why.CADENCE)
        >>> Demand().waives(doubt), Demand(insisted=frozenset({"cpu_spike"})).waives(doubt)
        (True, False)
        """
        if finding.outcome is not Outcome.INCONCLUSIVE:
            return False
        rule, why = finding.rule, finding.why
        if rule in self.optional:
            return True
        if rule in self.insisted or rule in _ASKED_BY_THE_RUN:
            return False
        if why is Why.TOO_FEW:
            whole = finding.coverage is not None and finding.coverage >= _ENOUGH and finding.samples > 1
            return whole and rule not in self.named
        if why in _OF_THE_RUN:
            return why is Why.CADENCE or rule not in self.named
        return why in _OF_THE_READINGS and within(finding)


def within(finding: Finding) -> bool:
    """Whether what was measured lies within the limit; a limit below zero is one of a fall."""
    if finding.measured is None or finding.limit is None:
        return False
    return finding.measured <= finding.limit if finding.limit >= 0 else finding.measured >= finding.limit
