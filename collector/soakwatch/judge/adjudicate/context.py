"""What the rulings know of the run besides its findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from soakwatch.judge.cases import CaseBuilder
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule

ALARMS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


Reading = Callable[[str, Sequence[str], Window], tuple[Series, ...]]
"""Reads the series of a target with some metrics, in a window."""


@dataclass(frozen=True, slots=True)
class Streak:
    """How many evaluations in a row found a trend, when the last one was, and whether it was ``reported`` as a
    warning."""

    times: int = 0
    last_ns: int = 0
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Stand:
    """How a finding of a running run was obtained.

    ``live``: what its rule reads (the last hour, the minute rows, the whole run); "recalled" is a finding, with its
    rulings, from before the monitor restarted. ``last_hour``: the finding covers the last hour, not the run so far.
    ``found_before``: how many marks lie in earlier hours.
    """

    live: Literal["recent", "minutes", "whole", "recalled"]
    last_hour: bool = False
    found_before: int = 0
    streak: Streak = Streak()


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The cases of the run (which know the roles of its targets) and its rules by name.

    ``demanded`` are the rules that the plan requires, ``shared`` the targets on which unwatched programs run too.
    ``stands`` describes each finding of a running run, in the order of the findings, and ``in_minutes`` reads its
    series over more than the last hour: those of a target with some metrics, in a window.
    """

    cases: CaseBuilder
    rules: Mapping[str, Rule]
    demanded: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    stands: Sequence[Stand] = ()
    in_minutes: Reading | None = None

    def series_of(self, target: str, metrics: Sequence[str], window: Window) -> tuple[Series, ...]:
        """All series of these metrics of a target, in a window."""
        read = self.cases.parts if self.in_minutes is None else self.in_minutes
        return read(target, metrics, window)

    def role(self, target: str) -> str:
        """The role of a target; one without a role is a device."""
        return self.cases.roles.get(target, DUT)
