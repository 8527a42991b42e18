"""Conformance checks of rules; each takes a rule and raises AssertionError with a sentence."""

from __future__ import annotations

import copy
import doctest
import importlib
import math
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Final

import numpy as np

from soakwatch_model.case import Before, Case, Ledger, TargetFacts, Unread
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.flow import BACK, BYTES, CEILING, DELAY, OFFERED, PACKETS, QUALITY, REQUESTS, SENT, WHOLE
from soakwatch_model.metric import BY_NAME, COUNTER, flows
from soakwatch_model.metric_load import LOAD
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.sample import object_text
from soakwatch_model.series import Series, trait_of
from soakwatch_model.tree import Tree
from soakwatch_model.window import Phase, Window
from soakwatch_rules.parameter import parameters
from soakwatch_rules.rule import Input, Rule
from soakwatch_rules.signals import PROCESS, readings
from soakwatch_rules.traits import Limit, Traits

_SECOND: Final = 10**9
_PER_PHASE: Final = (("baseline", 0.2), ("soak", 0.3), ("stress", 0.1), ("recovery", 0.4))
_CLEAR: Final = (Outcome.PASS, Outcome.WARN)
_VALUES: Final = {
    "kind": "oom",
    "folder": "/var/crash",
    "core": "0",
    "module": "0",
    "queue": "0",
    "quantile": "0.99",
    "table": "sessions",
    "place": "flow",
    "reason": "no buffer",
    "version": "ipv4",
    "peer": "gw",
    "protocol": "icmp",
}
"""Example values of object labels; an object with another label is the whole target."""
_LOAD: Final = tuple(
    metric.name
    for metric in LOAD
    if (flow := metric.flow) is not None and flow.scope == WHOLE and flow.what in {PACKETS, REQUESTS, DELAY}
    if metric.kind == COUNTER or flow.side in {OFFERED, CEILING, QUALITY}
)
"""The load of a case: counters, offered load, ceiling, and latency."""
_COUNTED: Final = (
    *(name for side in (SENT, BACK) for name in flows(side, PACKETS, REQUESTS, kind=COUNTER)),
    "reach.sent",
)
_MACHINE: Final[dict[str, Tree]] = {
    "cpu": {"online": "0-3", "governor": "performance", "turbo": True},
    "nics": {"eth0": {"driver": "ice", "duplex": "full", "rx_queues": 4}},
}
_RUNS: Final = 5  # earlier runs of the calm device

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Values = Callable[[str, int], Floats]


def grid(rule: Rule) -> tuple[int, float]:
    """The number of readings and their interval in seconds: two minutes by the second, or a day by the minute for slow
    rules."""
    return (1440, 60.0) if rule.spec.shortest_s > 0 else (120, 1.0)


def cases(rule: Rule, values: Values, *, due: int | None = None, begin_ns: int = 0) -> Iterator[Case]:
    """The cases of a rule on readings of ``values(metric, n)``, cut according to its scope.

    The run has a baseline, a soak, a stress and a recovery phase, a steady load, and five earlier runs. Its machine is
    set up well; if no poll was answered (``due`` 0), it reported nothing.
    """
    n, apart = grid(rule)
    series = [_series(metric, values(metric, n), apart, begin_ns) for metric in rule.metrics]
    load = tuple(_series(metric, values(metric, n), apart, begin_ns) for metric in _LOAD)
    n = max((len(s) for s in (*series, *load)), default=n)
    got = n if due is None else due
    length_ns = round(max(n, 1) * apart * 1e9)
    edges = [begin_ns + round(share * length_ns) for share in np.cumsum([0.0, *(share for _, share in _PER_PHASE)])]
    phases = tuple(Phase(_PER_PHASE[i][0], Window(edges[i], edges[i + 1])) for i in range(len(_PER_PHASE)))
    role = GENERATOR if any(metric.startswith("load.") for metric in rule.metrics) else DUT
    ledgers = (Ledger("dut", "local", apart, got, got, {}, None),)
    whole = Case(
        "dut",
        "",
        Window(begin_ns, begin_ns + length_ns),
        phases=phases,
        ledgers=ledgers,
        load=load,
        role=role,
        facts=TargetFacts(fingerprint=_MACHINE if due is None else {}),
    )
    if rule.scope == "metric":
        for s in series:
            earlier = tuple(_series(s.metric, values(s.metric, n), apart, -run * 2 * length_ns) for run in range(_RUNS))
            before = (s.between(edges[0], edges[1]),)
            yield replace(whole, object=s.object, series=(s,), before=Before(before, earlier))
    else:
        kept = tuple(s for s in series if s.metric != "process.count") if rule.scope == "object" else tuple(series)
        calm = tuple(s.between(edges[0], edges[1]) for s in kept) if rule.scope == "object" else ()
        yield replace(whole, object=PROCESS if rule.scope == "object" else "", series=kept, before=Before(calm))


def _series(metric: str, value: Floats, apart: float, begin_ns: int) -> Series:
    object_ = PROCESS if metric.startswith("process.") else _object(metric)
    return readings(metric, value, apart, object=object_, begin_ns=begin_ns)


def _object(metric: str) -> str:
    labels = BY_NAME[metric].labels if metric in BY_NAME else ()
    return object_text(**{name: _VALUES[name] for name in labels}) if set(labels) <= _VALUES.keys() else ""


def quiet(metric: str, n: int) -> Floats:
    """Readings of a healthy device."""
    rng, time, what = np.random.default_rng(7), np.arange(n, dtype=np.float64), trait_of(metric)
    if metric in _COUNTED:
        return 60_000.0 * time
    if metric in (*flows(SENT, BYTES), *flows(BACK, BYTES)):
        return 7_500.0 * time
    if metric.startswith("load.") and metric.endswith("rate") and "failure" not in metric:
        level = 1250.0 if "ceiling" in metric else 1000.0
        return np.full(n, level) + rng.normal(0.0, float("request" in metric), n)
    if what.unit == "s" and what.kind == "gauge" and not metric.endswith("uptime"):
        return rng.normal(0.002, 0.00004, n)
    if what.unit == "Cel":
        return rng.normal(45.0, 0.5, n)
    if what.unit == "By":
        return 1e8 * (1 + 0.001 * rng.standard_normal(n))
    if "utilization" in metric:
        return np.clip(0.3 + 0.03 * rng.standard_normal(n), 0, 1)
    if metric == "system.uptime":
        return 5000 + time
    if what.floor == 1.0:
        return rng.integers(199, 202, n).astype(np.float64)
    return np.full(n, 0.0 if what.kind == "counter" or "core" in metric else 1.0)


def _empty(metric: str, n: int) -> Floats:
    return quiet(metric, n)[:0]


def _single(metric: str, n: int) -> Floats:
    return quiet(metric, n)[:1]


def _nan(metric: str, n: int) -> Floats:
    return np.full(quiet(metric, n).size, math.nan)


def _infinite(metric: str, n: int) -> Floats:
    return np.full(quiet(metric, n).size, math.inf)


ODD: Final[dict[str, Values]] = {"nothing": _empty, "one reading": _single, "NaN": _nan, "infinity": _infinite}
"""Input from which nothing can be decided, by name."""


def check_form(rule: Rule) -> None:
    """A rule is a frozen dataclass with slots whose class variables are set and whose parameters are floats with
    units."""
    kind = type(rule)
    assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
    assert hasattr(kind, "__slots__"), f"{kind.__name__} has no slots"
    assert getattr(kind, "__dataclass_params__").frozen, f"{kind.__name__} is not frozen"  # noqa: B009
    assert "".join(p.capitalize() for p in rule.name.split("_")) == kind.__name__, f"{kind.__name__} is not {rule.name}"
    assert rule.version >= 1, "versions count from 1"
    assert rule.scope in {"object", "metric", "target"}, f"{rule.scope} is no scope"
    assert rule.spec.needs, f"{rule.name} does not tell the least data that it needs"
    assert rule.summary, f"{rule.name} has no summary"
    assert not rule.summary.endswith("."), f"the summary of {rule.name} is a sentence"
    for p in parameters(kind):
        assert isinstance(p.default, float), f"{p.name} is no float"
        assert p.unit, f"{p.name} has no unit"
        assert p.about, f"{p.name} has no meaning"
    assert len(parameters(kind)) == len(fields(kind)), f"{rule.name} has fields that are no parameters"


def check_values(rule: Rule) -> None:
    """Rules are values: comparable, printable, and unchanged by pickle and copy."""
    assert pickle.loads(pickle.dumps(rule)) == rule, f"{rule.name} does not survive pickle"  # noqa: S301 - our own
    assert copy.deepcopy(rule) == rule, f"{rule.name} does not survive a copy"
    assert type(rule).__name__ in repr(rule), f"{rule.name} has no repr"


def check_definition(rule: Rule) -> None:
    """The definition changes with each parameter, and is one line."""
    text = rule.definition()
    assert text, f"{rule.name} has no definition"
    assert "\n" not in text, f"the definition of {rule.name} has several lines"
    for p in parameters(type(rule)):
        other = replace(rule, **{p.name: p.default * 0.97 + 0.01})  # type: ignore[type-var]
        assert other.definition() != text, f"the definition of {rule.name} does not tell {p.name}"


def check_docstring(rule: Rule) -> None:
    """The docstring is the specification: all its parts exist, and its example runs."""
    text = type(rule).__doc__ or ""
    for part in ("How often wrong", "weaknesses", "Neighbours", "Parameters", "References", ">>>"):
        assert part in text, f"the docstring of {rule.name} lacks {part!r}"
    module = importlib.import_module(type(rule).__module__)
    result = doctest.testmod(module)
    assert result.attempted, f"{rule.name} has no example"
    assert not result.failed, f"the example of {rule.name} fails"


def _traits(rule: Rule) -> Traits:
    declared: object = getattr(sys.modules[type(rule).__module__], "TRAITS", None)
    return declared if isinstance(declared, Traits) else Traits()


def check_calm(rule: Rule) -> None:
    """A healthy device passes everywhere, and each finding is complete."""
    traits = _traits(rule)
    for case in cases(rule, quiet):
        findings = rule.judge(case)
        assert findings, f"{rule.name} says nothing"
        for finding in findings:
            unasked = traits.limit in {Limit.PLAN, Limit.DEVICE} or Input.EVENTS in rule.spec.inputs
            if finding.outcome is Outcome.NOT_APPLICABLE and unasked:
                continue
            assert finding.outcome is Outcome.PASS, f"{rule.name} says {finding.outcome}: {finding.reason}"
            check_complete(rule, case, finding)
            assert finding.samples > 0, f"{rule.name} passed on {finding.samples} readings"


def check_complete(rule: Rule, case: Case, finding: Finding) -> None:
    """A finding names its rule, subject and window, has definition and reason, and only finite numbers."""
    assert (finding.rule, finding.version) == (rule.name, rule.version), f"{finding.rule} is not {rule.name}"
    assert finding.target == case.target, f"a finding of {rule.name} is about {finding.target!r}"
    assert finding.window == case.window, f"a finding of {rule.name} has another window"
    assert finding.definition == rule.definition(), f"a finding of {rule.name} has another definition"
    assert finding.reason, f"a finding of {rule.name} has no reason"
    assert finding.reason != "not judged", f"{rule.name} left a finding unfinished"
    unsettled = finding.outcome is Outcome.INCONCLUSIVE and not finding.settle
    assert not unsettled, f"{rule.name} does not say what would settle: {finding.reason}"
    unsaid = (finding.outcome is Outcome.INCONCLUSIVE) != (finding.why is not None)
    assert not unsaid, f"{rule.name} says {finding.outcome} with the reason {finding.why}: {finding.reason}"
    given = [finding.measured, finding.limit, finding.smallest_detectable, *finding.numbers.values()]
    given += list(finding.interval or ())
    assert all(math.isfinite(x) for x in given if x is not None), f"{rule.name} gives a number that is none: {given}"
    assert finding.measured is None or finding.unit, f"{rule.name} measures without a unit"
    for mark in finding.marks:
        assert mark.end_ns is None or mark.end_ns >= mark.begin_ns, f"a mark of {rule.name} ends before it begins"


def check_too_little(rule: Rule) -> None:
    """No readings, one reading, or only NaN never pass; nor does a case without series."""
    for name, values in ODD.items():
        for case in cases(rule, values, due=0):
            for finding in rule.judge(case):
                assert finding.outcome not in _CLEAR, f"{rule.name} passes on {name}: {finding.reason}"
                check_complete(rule, case, finding)
    for unread in ((), (Unread("", "", 0, 0, "no permission"),)):
        bare = Case("dut", PROCESS if rule.scope == "object" else "", Window(0, 120 * _SECOND), unread=unread)
        for finding in rule.judge(bare):
            assert finding.outcome in {Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE}, f"{rule.name} judges nothing"
            check_complete(rule, bare, finding)


def check_unmodified(rule: Rule) -> None:
    """The input is not modified, and a second judging gives the same."""
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
        for first, two in zip(rule.judge(now), rule.judge(then), strict=True):
            assert first.outcome == two.outcome, f"{rule.name} depends on the date"
            assert first.numbers == two.numbers, f"the numbers of {rule.name} depend on the date"


def check_scale(rule: Rule) -> None:
    """Bytes in another unit change no outcome."""
    for factor in (1 / 1024, 1000.0):
        for case in cases(rule, lambda m, n: quiet(m, n) + 1e5 * np.arange(n) * (trait_of(m).unit == "By")):
            wide = replace(
                case,
                series=_scaled(case.series, factor),
                before=Before(_scaled(case.before.baseline, factor), _scaled(case.before.earlier, factor)),
            )
            for first, two in zip(rule.judge(case), rule.judge(wide), strict=True):
                assert first.outcome == two.outcome, (
                    f"{rule.name} depends on the unit: bytes times {factor:g} change {first.outcome} ({first.reason}) "
                    f"to {two.outcome} ({two.reason}); compare with a share of the level, or let a plan set the limit"
                )


def _scaled(series: Sequence[Series], factor: float) -> tuple[Series, ...]:
    return tuple(
        replace(s, value=s.values * factor, trait=replace(s.trait, quantum=None, floor=s.trait.floor * factor))
        if s.trait.unit == "By"
        else s
        for s in series
    )


def check_events(rule: Rule) -> None:
    """Events of unknown kinds, of other objects, or without details change nothing and raise nothing."""
    odd = (Event("failover", "dut", "", 5, None), Event("core.unheard", "", "x=y", 5, 2, {"mtime": "soon"}))
    for case in cases(rule, quiet) if Input.EVENTS not in rule.spec.inputs else ():
        plain, with_odd = rule.judge(case), rule.judge(replace(case, events=odd))
        assert [f.outcome for f in plain] == [f.outcome for f in with_odd], f"{rule.name} heeds events of other kinds"


CHECKS: Final[tuple[Callable[[Rule], None], ...]] = (
    check_form,
    check_values,
    check_definition,
    check_docstring,
    check_calm,
    check_too_little,
    check_unmodified,
    check_shift,
    check_scale,
    check_events,
)


def check(rule: Rule) -> None:
    """All checks, for a rule of your own."""
    for each in CHECKS:
        each(rule)
