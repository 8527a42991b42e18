"""All scenarios of known truth, and how a rule judges one.

>>> one = named("growth", "leak 10").signal(seed=1, hours=2)
>>> len(one.case.series[0]), round(one.truth.growth * 86400 / 2**20, 6)
(720, 10.0)
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import Final

from soakwatch_model.case import Before, Case
from soakwatch_model.finding import Finding
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.rule import Rule
from soakwatch_testing import scenarios
from soakwatch_testing.scenarios.scenario import Scenario


def _scenarios() -> tuple[Scenario, ...]:
    """The SCENARIOS of all modules in this folder: a new family is one file."""
    names = sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))
    modules = [importlib.import_module(f"{scenarios.__name__}.{name}") for name in names if name != "families"]
    return tuple(scenario for module in modules for scenario in getattr(module, "SCENARIOS", ()))


SCENARIOS: Final = _scenarios()
"""Every scenario of this folder; names are unique within a family."""


def family(*names: str) -> tuple[Scenario, ...]:
    """The scenarios of some families, in order."""
    return tuple(s for s in SCENARIOS if s.family in names)


def named(of: str, name: str) -> Scenario:
    """One scenario. Raises KeyError if there is none of this name."""
    return {s.name: s for s in family(of)}[name]


def cuts(rule: Rule, case: Case) -> tuple[Case, ...]:
    """The cases that a rule gets from a whole case: its window, its metrics, by series, by object or for the target."""
    window = _stretch(case.phases, rule.phases) or case.window
    before = _stretch(case.phases, ("baseline",))
    known = [s for name in rule.metrics for s in case.series if s.metric == name]
    kept = tuple(s.between(window.begin_ns, window.end_ns) for s in known)
    base = tuple(s.between(before.begin_ns, before.end_ns) for s in known) if before else ()
    load = tuple(s.between(window.begin_ns, window.end_ns) for s in case.load)
    whole = replace(case, object="", window=window, series=kept, before=Before(base, case.before.earlier), load=load)
    if rule.scope == "target":
        return (replace(whole, before=Before(base)),)
    if rule.scope == "metric":
        return tuple(
            replace(
                whole,
                object=s.object,
                series=(s,),
                before=Before(tuple(b for b in base if _same(b, s)), case.before.earlier),
            )
            for s in kept
        )
    things = dict.fromkeys(s.object for s in kept)
    return tuple(replace(whole, object=o, series=tuple(s for s in kept if s.object == o)) for o in things)


def _same(series: Series, other: Series) -> bool:
    return (series.metric, series.object) == (other.metric, other.object)


def _stretch(phases: tuple[Phase, ...], names: tuple[str, ...]) -> Window | None:
    windows = [phase.window for phase in phases if phase.name in names]
    return Window(windows[0].begin_ns, windows[-1].end_ns) if windows else None


def judged(rule: Rule, scenario: Scenario, seed: int) -> tuple[Finding, ...]:
    """The findings of a rule on one signal, worst first."""
    return findings_of(rule, scenario.signal(seed).case)


def findings_of(rule: Rule, case: Case) -> tuple[Finding, ...]:
    """The findings of a rule on a whole case, worst first."""
    findings = [finding for part in cuts(rule, case) for finding in rule.judge(part)]
    return tuple(sorted(findings, key=lambda finding: finding.outcome.rank))
