"""Every rule in the directory honours what rules must honour."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.rules.draws import examples

from soakwatch_model.case import Before, Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.window import Phase, Window
from soakwatch_rules import detectors
from soakwatch_rules.rule import Rule
from soakwatch_rules.signals import PROCESS, readings
from soakwatch_testing.rule_checks import CHECKS, check_complete

NAMES = sorted(module.name for module in pkgutil.iter_modules(detectors.__path__))


def rule_named(name: str) -> Rule:
    """The rule of a module, with its defaults."""
    module = importlib.import_module(f"soakwatch_rules.detectors.{name}")
    result: object = getattr(module, "".join(part.capitalize() for part in name.split("_")))()
    return cast("Rule", result)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_rule_honours_the_checks(name: str, check: Callable[[Rule], None]) -> None:
    """Each rule passes each check."""
    check(rule_named(name))


OBJECTS = {"system.kernel.alarms": "kind=oom", "system.core.files": "folder=/c"}
KINDS = (
    "reboot",
    "process.restart",
    "process.exit",
    "process.start",
    "core.dump",
    "core.present",
    "kernel.oom",
    "clock.step",
    "upgrade",
)
numbers = st.lists(
    st.one_of(st.floats(width=64), st.sampled_from([0.0, 1.0, 0.99, 100.0, 4096.0, 1e308, -1e308])), max_size=60
)
times = st.integers(min_value=-(10**10), max_value=10**11)
events = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(KINDS),
        target=st.just("dut"),
        object=st.sampled_from(["", PROCESS, "process=web", "folder=/c"]),
        begin_ns=times,
        end_ns=st.none() | times,
        detail=st.dictionaries(
            st.sampled_from(["mtime_s", "file", "line", "new_pid"]), st.text(max_size=5), max_size=3
        ),
        expect=st.dictionaries(
            st.sampled_from(["reboot", "process.restart", "core.dump"]), st.integers(0, 3), max_size=1
        ),
        deadline_ns=st.none() | times,
    ),
    max_size=6,
)


@pytest.mark.parametrize("count", examples(5, 60))
@pytest.mark.parametrize("name", NAMES)
def test_no_input_raises(name: str, count: int) -> None:
    """Any numbers, any events and any window give complete findings and no exception."""

    @settings(max_examples=count, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        data=st.lists(numbers, min_size=4, max_size=4),
        happened=events,
        cadence=st.sampled_from([0.2, 1.0, 60.0]),
        stated=st.booleans(),
        length=st.integers(0, 120),
    )
    @example(data=[[-1e308, 1e308], [], [], []], happened=[], cadence=0.2, stated=False, length=1)
    @example(data=[[], [], [0.0, 0.0, 1.0, 6.7e92, 3.7e-216], []], happened=[], cadence=0.2, stated=False, length=1)
    def judged(data: list[list[float]], happened: list[Event], cadence: float, *, stated: bool, length: int) -> None:
        judge_whatever(rule_named(name), data, happened, cadence, stated=stated, length=length)

    judged()


def judge_whatever(
    rule: Rule, data: list[list[float]], happened: list[Event], cadence: float, *, stated: bool, length: int
) -> None:
    """Judges series of any numbers; their findings are complete."""
    result = []
    for metric, values in zip(rule.metrics, data, strict=False):
        object_name = PROCESS if metric.startswith("process.") else OBJECTS.get(metric, "")
        series = readings(metric, np.array(values, dtype=np.float64), cadence, object=object_name)
        result.append(
            series
            if stated
            else type(series)(
                *[getattr(series, f) for f in ("target", "metric", "object", "trait", "time_ns", "value")]
            )
        )
    window = Window(0, length * 10**9)
    ledger = Ledger("dut", "x", cadence, len(data[0]), len(data[1]), {"timeout": 3}, window, ("no answer",))
    case = Case(
        "dut",
        PROCESS if rule.scope == "object" else "",
        window,
        tuple(result),
        phases=(
            Phase("baseline", Window(0, length * 2 * 10**8)),
            Phase("spike", Window(length * 2 * 10**8, length * 4 * 10**8)),
            Phase("recovery", Window(length * 4 * 10**8, length * 10**9)),
        ),
        events=tuple(happened),
        ledgers=(ledger,),
        before=Before(baseline=tuple(result[:1]), earlier=tuple(result[:1]) * 2),
        load=tuple(
            readings(metric, np.array(values, dtype=np.float64), cadence)
            for metric, values in zip(("load.tx.packets", "load.rx.packets", "load.request.rate"), data, strict=False)
        ),
        role="generator" if any(metric.startswith("load.") for metric in rule.metrics) else "dut",
    )
    for finding in rule.judge(case):
        check_complete(rule, case, finding)
