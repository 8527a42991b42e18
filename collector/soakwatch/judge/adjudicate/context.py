"""What the rulings know of the run beside its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from soakwatch.judge.cases import CaseBuilder
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import DUT
from soakwatch_rules.rule import Rule

ALARMS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


@dataclass(frozen=True, slots=True)
class Streak:
    """How many evaluations in a row found a trend, and when the last one was; ``reported`` once it is a warning."""

    times: int = 0
    last_ns: int = 0
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Stand:
    """How a finding of a run that goes on came about: what its rule looks at, and what was found before.

    A "recalled" one was said by an evaluation of an earlier life of the monitor, with its rulings. ``last_hour``: it is
    not about the whole run so far; ``found_before`` counts the marks of hours that have gone.
    """

    live: Literal["recent", "minutes", "whole", "recalled"]
    last_hour: bool = False
    found_before: int = 0
    streak: Streak = Streak()


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The cases of the run with the roles of its targets, and the rules that judge it by their names.

    ``demanded`` are the rules that the plan says are required, ``shared`` the targets on which other programs run
    beside what is watched. ``stands`` has what is known of each finding of a run that goes on, in their order.
    """

    cases: CaseBuilder
    rules: Mapping[str, Rule]
    demanded: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    stands: Sequence[Stand] = ()

    def role(self, target: str) -> str:
        """The role of a target; what is not named is a device."""
        return self.cases.roles.get(target, DUT)
