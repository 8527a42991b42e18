"""What every rule must honour; each check takes a rule and raises AssertionError with a sentence."""

from __future__ import annotations

import copy
import doctest
import importlib
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Final

import numpy as np

from soakwatch_rules.parameter import parameters
from soakwatch_rules.rule import Case, Event, Finding, Ledger, Outcome, Rule, Window
from soakwatch_rules.series import Series
from soakwatch_rules.synthetic import PROCESS, readings, trait

_SECOND: Final = 10**9
_N: Final = 120
_CLEAR: Final = (Outcome.PASS, Outcome.WARN)
_OBJECTS: Final = {"system.kernel.alarms": "kind=oom", "system.core.files": "folder=/var/crash",
                   "system.cpu.core.utilization": "core=0"}  # fmt: skip

Values = Callable[[str], np.ndarray[tuple[int], np.dtype[np.float64]]]


def cases(rule: Rule, values: Values, *, due: int | None = None, begin_ns: int = 0) -> Iterator[Case]:
    """The cases of a rule on one reading a second of ``values(metric)``, as its scope cuts them."""
    made = [_series(metric, values(metric), begin_ns) for metric in rule.metrics]
    n = max((len(s) for s in made), default=_N)
    got = n if due is None else due
    window = Window(begin_ns, begin_ns + max(n, 1) * _SECOND)
    ledgers = (Ledger("dut", "local", 1.0, got, got, {}, None),)
    if rule.scope == "metric":
        yield from (Case("dut", s.object, window, (s,), ledgers=ledgers) for s in made)
    else:
        kept = tuple(s for s in made if s.metric != "process.count") if rule.scope == "object" else tuple(made)
        yield Case("dut", PROCESS if rule.scope == "object" else "", window, kept, ledgers=ledgers)


def _series(metric: str, value: np.ndarray[tuple[int], np.dtype[np.float64]], begin_ns: int) -> Series:
    thing = PROCESS if metric.startswith("process.") else _OBJECTS.get(metric, "")
    return readings(metric, value, 1.0, object=thing, begin_ns=begin_ns)


def quiet(metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Readings of a device that is well: two minutes, one a second."""
    rng, at = np.random.default_rng(7), np.arange(_N, dtype=np.float64)
    if trait(metric).unit == "By":
        return 1e8 * (1 + 0.001 * rng.standard_normal(_N))
    if "utilization" in metric:
        return np.clip(0.3 + 0.03 * rng.standard_normal(_N), 0, 1)
    if metric == "system.uptime":
        return 5000 + at
    return np.full(_N, 0.0 if trait(metric).kind == "counter" or "core" in metric else 1.0)


def _empty(metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return quiet(metric)[:0]


def _one(metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return quiet(metric)[:1]


def _nan(metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.full(quiet(metric).size, math.nan)


def _infinite(metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.full(quiet(metric).size, math.inf)


ODD: Final[dict[str, Values]] = {"nothing": _empty, "one reading": _one, "NaN": _nan, "infinity": _infinite}
"""Input that decides nothing, by name."""


def check_form(rule: Rule) -> None:
    """A frozen dataclass with slots, its class variables set, whose parameters are floats with units."""
    kind = type(rule)
    assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
    assert hasattr(kind, "__slots__"), f"{kind.__name__} has no slots"
    assert getattr(kind, "__dataclass_params__").frozen, f"{kind.__name__} is not frozen"  # noqa: B009
    assert "".join(p.capitalize() for p in rule.name.split("_")) == kind.__name__, f"{kind.__name__} is not {rule.name}"
    assert rule.version >= 1, "versions count from 1"
    assert rule.scope in {"object", "metric", "target"}, f"{rule.scope} is no scope"
    assert rule.summary, f"{rule.name} has no summary"
    assert not rule.summary.endswith("."), f"the summary of {rule.name} is a sentence"
    for p in parameters(kind):
        assert isinstance(p.default, float), f"{p.name} is no float"
        assert p.unit, f"{p.name} has no unit"
        assert p.about, f"{p.name} has no meaning"
    assert len(parameters(kind)) == len(fields(kind)), f"{rule.name} has fields that are no parameters"


def check_values(rule: Rule) -> None:
    """Rules are values: equal, printable, and whole after pickle and copy."""
    assert pickle.loads(pickle.dumps(rule)) == rule, f"{rule.name} does not survive pickle"  # noqa: S301 - our own
    assert copy.deepcopy(rule) == rule, f"{rule.name} does not survive a copy"
    assert type(rule).__name__ in repr(rule), f"{rule.name} has no repr"


def check_definition(rule: Rule) -> None:
    """The definition changes with each parameter, and stands on one line."""
    text = rule.definition()
    assert text, f"{rule.name} has no definition"
    assert "\n" not in text, f"the definition of {rule.name} has several lines"
    for p in parameters(type(rule)):
        other = replace(rule, **{p.name: p.default * 0.97 + 0.01})  # type: ignore[type-var]
        assert other.definition() != text, f"the definition of {rule.name} does not tell {p.name}"


def check_docstring(rule: Rule) -> None:
    """The docstring is the specification: its parts are there and its example runs."""
    text = type(rule).__doc__ or ""
    for part in ("How often wrong", "weaknesses", "Neighbours", "Parameters", "References", ">>>"):
        assert part in text, f"the docstring of {rule.name} lacks {part!r}"
    module = importlib.import_module(type(rule).__module__)
    result = doctest.testmod(module)
    assert result.attempted, f"{rule.name} has no example"
    assert not result.failed, f"the example of {rule.name} fails"


def check_calm(rule: Rule) -> None:
    """A device that is well passes everywhere, and each finding is complete."""
    for case in cases(rule, quiet):
        findings = rule.judge(case)
        assert findings, f"{rule.name} says nothing"
        for finding in findings:
            assert finding.outcome is Outcome.PASS, f"{rule.name} says {finding.outcome}: {finding.reason}"
            check_complete(rule, case, finding)
            assert finding.samples > 0, f"{rule.name} passed on {finding.samples} readings"


def check_complete(rule: Rule, case: Case, finding: Finding) -> None:
    """A finding names its rule, subject and window, gives its definition and reason, and holds finite numbers."""
    assert (finding.rule, finding.version) == (rule.name, rule.version), f"{finding.rule} is not {rule.name}"
    assert finding.target == case.target, f"a finding of {rule.name} is about {finding.target!r}"
    assert finding.window == case.window, f"a finding of {rule.name} has another window"
    assert finding.definition == rule.definition(), f"a finding of {rule.name} has another definition"
    assert finding.reason, f"a finding of {rule.name} has no reason"
    assert finding.reason != "not judged", f"{rule.name} left a finding unfinished"
    unsettled = finding.outcome is Outcome.INCONCLUSIVE and not finding.settle
    assert not unsettled, f"{rule.name} does not say what would settle: {finding.reason}"
    given = [finding.measured, finding.limit, finding.smallest_detectable, *finding.numbers.values()]
    given += list(finding.interval or ())
    assert all(math.isfinite(x) for x in given if x is not None), f"{rule.name} gives a number that is none: {given}"
    assert finding.measured is None or finding.unit, f"{rule.name} measures without a unit"
    for mark in finding.marks:
        assert mark.end_ns is None or mark.end_ns >= mark.begin_ns, f"a mark of {rule.name} ends before it begins"


def check_too_little(rule: Rule) -> None:
    """Nothing, one reading, or readings that are no numbers never pass; without any series nothing does."""
    for name, values in ODD.items():
        for case in cases(rule, values, due=0):
            for finding in rule.judge(case):
                assert finding.outcome not in _CLEAR, f"{rule.name} passes on {name}: {finding.reason}"
                check_complete(rule, case, finding)
    for faults in ((), ("no permission",)):
        bare = Case("dut", PROCESS if rule.scope == "object" else "", Window(0, _N * _SECOND), faults=faults)
        for finding in rule.judge(bare):
            assert finding.outcome in {Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE}, f"{rule.name} judges nothing"
            check_complete(rule, bare, finding)


def check_unmodified(rule: Rule) -> None:
    """The input is as it was, and a second look says the same."""
    for case in cases(rule, quiet):
        before = [(s.time_ns.copy(), s.value.copy()) for s in case.series]
        first, again = rule.judge(case), rule.judge(case)
        assert first == again, f"{rule.name} says something else the second time"
        for series, (time_ns, value) in zip(case.series, before, strict=True):
            same = np.array_equal(series.time_ns, time_ns) and np.array_equal(series.value, value)
            assert same, f"{rule.name} changed its input"


def check_shift(rule: Rule) -> None:
    """A shift in time changes no outcome and no number."""
    later = 1_700_000_000 * _SECOND
    for now, then in zip(cases(rule, quiet), cases(rule, quiet, begin_ns=later), strict=True):
        for one, two in zip(rule.judge(now), rule.judge(then), strict=True):
            assert one.outcome == two.outcome, f"{rule.name} depends on the date"
            assert one.numbers == two.numbers, f"the numbers of {rule.name} depend on the date"


def check_scale(rule: Rule) -> None:
    """Bytes told in another unit change no outcome."""
    for factor in (1 / 1024, 1000.0):
        for case in cases(rule, lambda m: quiet(m) + 1e5 * np.arange(_N) * (trait(m).unit == "By")):
            wide = tuple(
                replace(s, value=s.values * factor, trait=replace(s.trait, quantum=None)) if s.trait.unit == "By" else s
                for s in case.series
            )
            for one, two in zip(rule.judge(case), rule.judge(replace(case, series=wide)), strict=True):
                assert one.outcome == two.outcome, f"{rule.name} depends on the unit"


def check_events(rule: Rule) -> None:
    """Events of unknown kinds, of other objects, or without details change nothing and raise nothing."""
    odd = (Event("failover", "dut", "", 5, None), Event("core.unheard", "", "x=y", 5, 2, {"mtime": "soon"}))
    for case in cases(rule, quiet):
        plain, with_odd = rule.judge(case), rule.judge(replace(case, events=odd))
        assert [f.outcome for f in plain] == [f.outcome for f in with_odd], f"{rule.name} heeds events of other kinds"


CHECKS: Final[tuple[Callable[[Rule], None], ...]] = (
    check_form, check_values, check_definition, check_docstring, check_calm, check_too_little, check_unmodified,
    check_shift, check_scale, check_events,
)  # fmt: skip


def check(rule: Rule) -> None:
    """All checks, for a rule of one's own."""
    for one in CHECKS:
        one(rule)
