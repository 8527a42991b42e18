"""Pauses of polls as a plan asks for them: what is understood, and a sentence with its place for each mistake."""

from __future__ import annotations

import pytest
from tests.collector.plan_validator import plan_validator

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text, plan_text
from soakwatch.plan.observer_plan import ObserverPlan

SNMP = "targets: {r1: {sources: [{snmp: {host: 192.0.2.1, interval: 2s}}]}}\n"
HOUR = f"duration: 1h\n{SNMP}"
PHASES = f"phases: [{{baseline: 20m}}, {{soak: 2h}}]\n{SNMP}"


def test_the_plan_says_how_long_how_often_and_when() -> None:
    """Five pairs at the start, a third of each window is not compared; another phase; the record reads it back."""
    plan = plan_from_text(HOUR + "observer: {probe: 60s}", "p.yaml")
    assert plan.observer == ObserverPlan(probe_s=60.0, pairs=5, settle_s=20.0, phase="soak", targets=("r1",))
    assert plan.observer.seconds == 660
    assert plan_from_text(plan_text(plan), "again") == plan
    later = plan_from_text(PHASES + "observer: {probe: 3m, pairs: 8, settle: 90s, phase: soak}", "p.yaml").observer
    assert later == ObserverPlan(probe_s=180.0, pairs=8, settle_s=90.0, phase="soak", targets=("r1",))
    assert plan_from_text(HOUR + "observer:\n", "p.yaml").observer is None
    data = {"duration": "1h", "targets": {"r1": {"sources": [{"snmp": {"host": "192.0.2.1"}}]}}}
    for observer in ({"probe": "60s"}, {"probe": "60s", "pairs": 3, "settle": "20s", "phase": "soak"}, None):
        plan_validator().validate({**data, "observer": observer})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HOUR + "observer: {probe: 60}", "p.yaml:3:19: probe: the duration 60 has no unit"),
        (HOUR + "observer: {pairs: 4}", "p.yaml:3:1: the key 'probe' is missing"),
        (HOUR + "observer: {probe: 60s, pair: 4}", "did you mean 'pairs'?"),
        (HOUR + "observer: {probe: 60s, pairs: 2}", "p.yaml:3:31: pairs: "),
        (HOUR + "observer: {probe: 60s, phase: sok}", "p.yaml:3:31: observer: the plan has no phase 'sok'; did you"),
        (HOUR + "observer: {probe: 60s, settle: 60s}", "p.yaml:3:32: observer: settle: 1m leaves nothing of a window"),
        (HOUR + "observer: {probe: 5m, pairs: 10}", "one before them, take 1h45m, but soak lasts 1h: shorten probe"),
        (PHASES + "observer: {probe: 2m}", "take 22m, but baseline lasts 20m: shorten probe, or name a longer phase"),
        (HOUR + "observer: {probe: 5s}", "r1 is polled every 2s, which is too seldom for windows of 5s"),
        ("duration: 1h\ntargets: {a: {sources: [local]}}\nobserver: {probe: 60s}", "p.yaml:3:11: observer: no device"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(text: str, sentence: str) -> None:
    """File, line and column, what is wrong, and what to write."""
    with pytest.raises(PlanError) as refused:
        plan_from_text(text, "p.yaml")
    assert sentence in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
