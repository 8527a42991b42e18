"""The comparison of a device's CPU with and without polls, as a plan asks for it.

``observer: {probe: 60s}`` leaves each device alone for 60 s, five times, and polls it as ever for as long before or
after. Its CPU is read all the time, so that the rule ``observer_cost`` can tell what the other polls cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field, PlainValidator, ValidationInfo

from soakwatch.core.suggest import hint
from soakwatch.core.units import plan_seconds
from soakwatch.core.validation import Wrong, read_part, refused
from soakwatch.core.yaml import Plain
from soakwatch.plan.parts import Duration, PlanModel, Text, said
from soakwatch.plan.phase import PhasePlan
from soakwatch.sources.abc import SourceConfig
from soakwatch_model.roles import DUT

MIN_PAIRS: Final = 3
_LEAST_READINGS = 2  # of the CPU in what is kept of a window
_NOTHING_TO_REST = (
    "observer: no device is polled by a source that can read its CPU alone (snmp, or ssh to a network system): "
    "remove it; what an agent, SSH to a host or local cost is counted without it"
)


class ObserverKeys(PlanModel):
    """A comparison of windows with polls and windows in which only the CPU is read.

    A window lasts ``probe_s``, of which the first ``settle_s`` are not compared.
    """

    probe_s: Annotated[
        Duration, Field(alias="probe", ge=5, le=3600, description="length of a window, with polls or without")
    ]
    pairs: Annotated[int, Field(ge=MIN_PAIRS, le=100, description="pairs of windows, one with polls, one without")] = 5
    settle_s: Annotated[
        Duration,
        Field(
            alias="settle",
            description="first part of each window that is not compared; default: a third of probe",
        ),
    ] = Field(default_factory=lambda given: given.get("probe_s", 0.0) / 3)
    phase: Annotated[Text | None, Field(description="phase in which it is done; default: the first one")] = None


class ObserverPlan(ObserverKeys):
    """The comparison in the first phase called ``phase``, after one window with polls. ``targets`` are the devices
    that can be left alone."""

    phase: str
    targets: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return (2 * self.pairs + 1) * self.probe_s


def _read(given: Plain, info: ValidationInfo) -> ObserverPlan | None:
    """What a plan asks for, checked against its phases and devices."""
    if given is None:
        return None
    keys = read_part(ObserverKeys, said(ObserverKeys, given), "observer")
    phases, targets = info.data.get("phases"), info.data.get("targets")
    if not phases or targets is None:  # what is wrong with these is told anyway
        return None
    asked = {
        target.name: sources
        for target in targets
        if target.role == DUT and (sources := [each.config for each in target.sources if each.config.resting == "cpu"])
    }
    phase = phases[0].name if keys.phase is None else keys.phase
    plan = ObserverPlan.model_construct(**{**dict(keys), "phase": phase, "targets": tuple(asked)})
    if wrong := list(_unfit(plan, asked, [each for each in phases if each.name == phase], phases, named=keys.phase)):
        raise refused(*wrong)
    return plan


def _unfit(
    plan: ObserverPlan,
    asked: Mapping[str, Sequence[SourceConfig]],
    its: Sequence[PhasePlan],
    phases: Sequence[PhasePlan],
    named: str | None,
) -> Iterator[Wrong]:
    """What is wrong with it; ``its`` are the phases of its name."""
    probe = plan_seconds(plan.probe_s)
    if not asked:
        yield Wrong((), _NOTHING_TO_REST)
    elif not its:
        known = [each.name for each in phases]
        yield Wrong(("phase",), f"observer: the plan has no phase {plan.phase!r}{hint(plan.phase, known)}")
    elif any(each.search is not None for each in its):
        sentence = "observer: a search for the capacity changes the load all the time: name another phase"
        yield Wrong(() if named is None else ("phase",), sentence)
    elif plan.settle_s >= plan.probe_s:
        settle = plan_seconds(plan.settle_s)
        sentence = f"observer: settle: {settle} leaves nothing of a window of {probe} to compare: write less than probe"
        yield Wrong(("settle",), sentence)
    elif plan.seconds > its[0].seconds:
        yield Wrong(
            (),
            f"observer: {plan.pairs} pairs of windows of {probe}, and one before them, take "
            f"{plan_seconds(plan.seconds)}, but {plan.phase} lasts {plan_seconds(its[0].seconds)}: shorten probe, or "
            "name a longer phase",
        )
    else:
        for name, sources in asked.items():
            if sentence := _too_coarse(name, min(each.interval for each in sources), plan):
                yield Wrong(("probe",), sentence)


def _too_coarse(target: str, interval_s: float, plan: ObserverPlan) -> str:
    """Why windows are too short for polls so far apart, or ""."""
    kept_s = plan.probe_s - plan.settle_s
    if kept_s >= _LEAST_READINGS * interval_s and plan.settle_s >= interval_s:
        return ""
    return (
        f"observer: {target} is polled every {plan_seconds(interval_s)}, which is too seldom for windows of "
        f"{plan_seconds(plan.probe_s)} without their first {plan_seconds(plan.settle_s)}: raise probe to "
        f"{plan_seconds(3 * interval_s)} or more, or lower interval"
    )


Observer = Annotated[ObserverPlan | None, PlainValidator(_read, json_schema_input_type=ObserverKeys | None)]
