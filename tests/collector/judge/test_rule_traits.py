"""What a rule declares of itself holds wherever findings are put together; a rule that declares nothing has the
defaults, as has a finding whose rule is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.report.headline import headline
from soakwatch_model.fact import Growth
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_rules import detectors
from soakwatch_rules.causes import CauseKind, causes
from soakwatch_rules.traits import NO_TRAITS, Crash, plain_words, traits_of

SECOND = 10**9
DAY = Window(0, 86_400 * SECOND)
RULES = {
    "blade_loss": (
        "leads=Leads(Crash.DEVICE, whole_device=True, explains=('process_restart',)), rank=25, "
        "words=RuleWords('a blade left the chassis')"
    ),
    "table_growth": "growth=GrowthMethod.STAGES, words=RuleWords('a table keeps growing')",
    "own_account": "judges=Judges.ANSWERS, inconclusive=Inconclusive(required=True)",
    "silent": None,
}


@pytest.fixture(autouse=True)
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rules of another house, in a folder of their own beside the shipped ones."""
    for name, traits in RULES.items():
        declared = "" if traits is None else f"\n\nTRAITS = Traits({traits})\n"
        text = f"class {''.join(part.capitalize() for part in name.split('_'))}:\n    name = {name!r}\n{declared}"
        names = "Crash, GrowthMethod, Inconclusive, Judges, Leads, RuleWords, Traits"
        imports = f"from soakwatch_rules.traits import {names}\n\n\n"
        (tmp_path / f"{name}.py").write_text(imports + text, encoding="utf-8")
    monkeypatch.setattr(detectors, "__path__", [*detectors.__path__, str(tmp_path)])
    traits_of.cache_clear()
    yield
    traits_of.cache_clear()
    for name in RULES:
        sys.modules.pop(f"{detectors.__name__}.{name}", None)


def finding(rule: str, outcome: Outcome = Outcome.FAIL, *at_s: float, **more: Any) -> Finding:
    """A finding of the device, with marks at these seconds."""
    marks = tuple(Mark(round(a * SECOND), None, f"{rule} here") for a in at_s)
    plain = Finding(rule, 1, outcome, "fw", "", "", DAY, "d", f"{rule} said so", 9, marks=marks)
    return replace(plain, **more)


def verdict(*findings: Finding) -> Verdict:
    """What comes of findings of one device."""
    return fold("run", DAY, {"fw": "dut"}, findings, (), ())


def test_a_strangers_crash_leads_and_explains_what_follows() -> None:
    """It heads the incident, in its own words, and takes processes with it as a reboot does."""
    restart = finding("process_restart", Outcome.FAIL, 5040, object="process=bgpd,instance=0")
    found_causes = causes(
        [finding("cpu_spike", Outcome.FAIL, 5030), restart, finding("blade_loss", Outcome.FAIL, 5000)]
    )
    assert [(cause.kind, cause.findings[0]) for cause in found_causes] == [(CauseKind.INCIDENT, 2)]
    assert set(found_causes[0].findings) == {0, 1, 2}
    sentence = headline(verdict(finding("blade_loss", Outcome.FAIL, 5000), finding("drops", Outcome.PASS)), ())
    assert sentence == "a blade left the chassis on fw at 1 Jan 01:23:20 UTC (1 h 23 min in)."


def test_a_strangers_growth_joins_that_of_the_same_series() -> None:
    """Its rate is worded as that of the shipped rules of growth is."""
    grown = finding("growth", metric="system.sessions.count", unit="1/h", measured=40.0)
    other = replace(grown, rule="table_growth", measured=None, facts=(Growth(41.0),))
    assert [(cause.kind, set(cause.findings)) for cause in causes([grown, other])] == [(CauseKind.GROWTH, {0, 1})]
    assert "system.sessions.count on fw has grown by 4,100 %/h" in headline(
        verdict(other, finding("drops", Outcome.PASS)), ()
    )


def test_a_strangers_account_is_always_required() -> None:
    """An inconclusive one holds a run up where that of another rule would not, and alone it clears no device."""
    undecided = finding("own_account", Outcome.INCONCLUSIVE, why=InconclusiveReason.CADENCE)
    assert not Demand().waives(undecided)
    assert Demand().waives(replace(undecided, rule="silent"))
    waived = replace(undecided, rule="growth")
    assert verdict(finding("own_account", Outcome.PASS), waived).outcome is Outcome.INCONCLUSIVE
    assert verdict(finding("silent", Outcome.PASS), waived).outcome is Outcome.PASS


@pytest.mark.parametrize("rule", ["silent", "not_installed", "not a name", ""])
def test_without_traits_a_rule_has_the_defaults(rule: str) -> None:
    """Its finding explains nothing, is one of itself, and is called by its name."""
    assert traits_of(rule) is NO_TRAITS
    assert plain_words(rule) == rule.replace("_", " ")
    found_causes = causes([finding("cpu_spike", Outcome.FAIL, 5030), finding(rule, Outcome.FAIL, 5000, 40_000)])
    assert {cause.kind for cause in found_causes} == {CauseKind.FINDING}
    assert traits_of("reboot").crash is Crash.DEVICE
