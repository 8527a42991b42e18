"""A shipped plan at its full length, in virtual time: the plan's own file, the real timers, wrapper, record, phases,
events and judge; only what is behind the seam of the sources is a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.e2e.healthy_models import HealthyModel

from soakwatch.core.clock import Clock
from soakwatch.engine import sources
from soakwatch.engine.baseline_freeze import freeze
from soakwatch.engine.finish import judged
from soakwatch.engine.machine import Machine
from soakwatch.engine.self_monitor import Outcomes
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, SourcePlan, TargetPlan, load_plan
from soakwatch.sources.abc import Poller, SourceConfig, SourceContext
from soakwatch_testing.night.lives import OwnModel, baseline_here
from soakwatch_testing.virtual import VirtualTime

Model = Callable[[SourcePlan, SourceContext], Poller]
MOST_BEAT_S = 30.0
"""How often a long run writes and looks about; each second would be 216,000 times of a weekend."""


def through(file: Path, folder: Path, patch: pytest.MonkeyPatch, model: Model = HealthyModel) -> Verdict:
    """The verdict of a plan's run from its begin to its end. Nobody judges it meanwhile: that is what the nights of
    ``soakwatch_testing.night`` are for."""
    plan, time = load_plan(file), VirtualTime()
    beat_s = MOST_BEAT_S if plan.duration_s > 3600 else 1.0
    patch.setattr(sources, "poller_module", lambda name: SimpleNamespace(start=_start_of(plan, name, model)))
    patch.setattr(sources, "INTERVAL_S", beat_s)

    async def own(clock: Clock, folder: Path, outcomes: Outcomes, stack: AsyncExitStack, *, tells: bool) -> Poller:
        del folder, stack, tells
        return OwnModel(clock, outcomes, time)

    machine = Machine(own=own, judge=_Nobody, baseline=baseline_here, threaded=False, beat_s=beat_s)
    context, record = begin(plan, folder, time, ["soakwatch", "run", file.name], stop_on_fail=False)
    end_ns = time.run(Soak(context, record, time, machine=machine).watch())
    assert end_ns - context.start_ns <= round(plan.duration_s * 1e9)  # a search ends when it has found
    record.compact(final=True)
    record.set_meta("ended_ns", str(end_ns))
    freeze(record, folder)
    verdict = judged(folder, record, end_ns)
    record.finish()
    return verdict


class _Nobody:
    """No live judging: it has nothing new to say."""

    def __init__(self, _: Path) -> None:
        pass

    async def look(self) -> list[str] | str:
        """See ``AsksJudge``."""
        return ["new"]

    async def close(self) -> None:
        """See ``AsksJudge``."""


def _start_of(plan: Plan, poller: str, model: Model) -> Callable[..., object]:
    async def start(config: SourceConfig, site: SourceContext, _: AsyncExitStack) -> Poller:
        return model(_planned(plan, poller, config), site)

    return start


def _planned(plan: Plan, poller: str, config: SourceConfig) -> SourcePlan:
    of: TargetPlan
    for of in plan.targets:
        for planned in of.sources:
            if planned.poller == poller and planned.config is config:
                return planned
    raise AssertionError(f"the plan has no source {poller} of this configuration")
