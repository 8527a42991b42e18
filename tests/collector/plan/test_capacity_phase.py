"""The phase ``capacity`` and loads that are a share of what it finds, as a plan writes them."""

from __future__ import annotations

import jsonschema
import pytest
from tests.collector.plan_validator import plan_validator

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text
from soakwatch.plan.capacity_plan import CapacityPlan, CapacityShare

PLAN = """
phases: {phases}
targets:
  dut: {{sources: [local]}}
  gen: {{role: generator, sources: [{source}]}}
"""
DRIVEN = "{command: {run: [gen], drive: true}}"
FULL = (
    "{capacity: {loss: [0.5%, 0], at_most: 20m, exceed: 0%, width: 2%, trial: 60s, first_trial: 5s, sum: 90s, min: 5%, "
    "max: 120%, settle: 3s}}"
)


def plan_of(phases: str, source: str = DRIVEN) -> str:
    """A plan with these phases."""
    return PLAN.format(phases=phases, source=source)


def test_every_key_is_read() -> None:
    """Goals are in order of their loss, durations in seconds, loads in shares of the full one."""
    phases = (
        f"[{FULL}, {{soak: {{for: 1h, load: 85% of capacity}}}}, {{spike: {{for: 1m, load: 1.1 of capacity at 0.5%}}}}]"
    )
    search, soak, spike = plan_from_text(plan_of(phases), "p.yaml").phases
    assert (search.seconds, search.until, search.load) == (1200.0, "found", None)
    assert search.search == CapacityPlan(
        loss=(0.0, 0.005),
        exceed=0.0,
        width=0.02,
        trial_s=60.0,
        first_trial_s=5.0,
        sum_s=90.0,
        lowest=0.05,
        highest=1.2,
        settle_s=3.0,
        at_most_s=1200.0,
    )
    assert (soak.load, spike.load) == (CapacityShare(0.85), CapacityShare(1.1, 0.005))


def test_a_time_alone_searches_for_the_load_without_loss() -> None:
    """All keys but the longest time have defaults; short trials make the others short."""
    first, second = plan_from_text(plan_of("[{capacity: 20m}, {capacity: {at_most: 5m, trial: 1s}}]"), "p.yaml").phases
    assert first.search == CapacityPlan(at_most_s=1200.0)
    assert second.search == CapacityPlan(trial_s=1.0, first_trial_s=1.0, sum_s=3.0, at_most_s=300.0)


def test_another_length_keeps_the_search() -> None:
    """``--duration`` stretches the soak; the search and the share are written again as they were."""
    plan = plan_from_text(plan_of(f"[{FULL}, {{soak: {{for: 1h, load: 85% of capacity at 0.5%}}}}]"), "p.yaml")
    longer = plan.lasting("2h")
    assert longer.phases[0] == plan.phases[0]
    assert longer.phases[1].load == plan.phases[1].load
    assert longer.duration_s == 7200


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ("[{capacity: {loss: 0}}]", "has no longest time: write capacity: {loss: [0, 0.5%], at_most: 20m}"),
        ("[{capacity: {at_most: 20m, losses: 0}}]", "unknown key 'losses'; did you mean 'loss'?"),
        ("[{capacity: {at_most: 20m, loss: 100%}}]", "loss: 1 is not a loss ratio"),
        ("[{capacity: {at_most: 20m, loss: [0, 0]}}]", "a loss ratio is listed twice"),
        ("[{capacity: {at_most: 20m, loss: []}}]", "0 loss ratios"),
        ("[{capacity: {at_most: 20m, loss: little}}]", "loss: 'little' is not a share"),
        ("[{capacity: {at_most: 20m, trial: fast}}]", "trial: "),
        ("[{capacity: {at_most: 20m, width: 0}}]", "width: 0 is not a width"),
        ("[{capacity: {at_most: 20m, exceed: 100%}}]", "exceed: 1 is not a share of the trials"),
        ("[{capacity: {at_most: 20m, trial: 1s, first_trial: 2s}}]", "first_trial is longer than trial"),
        ("[{capacity: {at_most: 20m, sum: 1s}}]", "sum is shorter than trial"),
        ("[{capacity: {at_most: 20m, min: 50%, max: 40%}}]", "min and max: write shares of the full load"),
        ("[{capacity: {at_most: 20m, settle: 1h}}]", "settle: write 0s to 10m"),
        ("[{capacity: 20s}]", "at_most: 20s is too short for the trials of one load"),
        ("[{soak: {for: 1h, load: 85% of capacity}}]", "load: 85% of capacity needs a capacity phase before it"),
        (
            "[{capacity: 20m}, {soak: {for: 1h, load: 85% of capacity at 1%}}]",
            "load: 85% of capacity at 1%: that loss is not searched for",
        ),
        ("[{capacity: 20m}, {soak: {for: 1h, load: most of capacity}}]", "'most of capacity' is not a load"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(phases: str, message: str) -> None:
    """The sentence names the key and what to write."""
    with pytest.raises(PlanError) as refused:
        plan_from_text(plan_of(phases), "p.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith("p.yaml:")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{command: {run: [gen]}}", "capacity: no generator is driven"),
        ("{iperf3: {drive: true, server: 198.18.0.9, rate: 1G}}", "iperf3 over TCP slows down instead of losing"),
    ],
)
def test_a_load_without_a_loss_is_refused(source: str, message: str) -> None:
    """Nothing could be searched for with a load that is not driven, or that never loses."""
    with pytest.raises(PlanError) as refused:
        plan_from_text(plan_of("[{capacity: 20m}]", source), "p.yaml")
    assert message in str(refused.value)


def test_an_event_may_not_disturb_the_search() -> None:
    """A failover among the trials would be measured as a low capacity."""
    text = plan_of("[{capacity: 20m}, {soak: 1h}]") + "events: [{kind: failover, phase: capacity, at: 1m}]\n"
    with pytest.raises(PlanError) as refused:
        plan_from_text(text, "p.yaml")
    assert "would disturb its trials" in str(refused.value)


def test_the_schema_has_the_phase() -> None:
    """An editor accepts the full form and refuses another key."""
    plan = {
        "targets": {"dut": {"sources": ["local"]}},
        "phases": [{"capacity": {"loss": [0, "0.5%"], "at_most": "20m"}}],
    }
    plan_validator().validate(plan)
    plan["phases"] = [{"capacity": {"at_most": "20m", "until": "load"}}]
    with pytest.raises(jsonschema.ValidationError):
        plan_validator().validate(plan)
