"""Finds nothing at all, with parameters of every unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding
from soakwatch_rules.parameter import parameter


@dataclass(frozen=True, slots=True)
class SlowDrift:
    """A rule with one parameter of each unit."""

    name: ClassVar[str] = "slow_drift"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "nothing drifts"
    metrics: ClassVar[tuple[str, ...]] = ("system.cpu.utilization",)
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()

    tolerance: float = parameter(0.05, "1", "what is let pass", "this test")
    hold: float = parameter(10.0, "s", "how long it must last", "this test")
    floor: float = parameter(4096.0, "By", "what is too small to matter", "this test")
    sigmas: float = parameter(6.0, "{sd}", "how far out", "this test")

    def __post_init__(self) -> None:
        if self.tolerance >= 1:
            raise ValueError(f"a tolerance of {self.tolerance * 100:g}% lets everything pass: keep it below 100%")

    def definition(self) -> str:
        """What it says."""
        return f"Nothing drifts by more than {self.tolerance * 100:g}%."

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """Nothing."""
        del case
        return ()
