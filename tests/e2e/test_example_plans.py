"""The plans of deploy/examples give the verdict that their pages promise, at their full length in virtual time.

Their devices are models that have what the plan's profiles and probes bring; the short ones really run in
``test_nginx.py`` (nginx and wrk).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.healthy_models import HealthyModel, LimitedModel
from tests.e2e.plan_night import Model, through

from soakwatch.judge.verdict import Verdict
from soakwatch.plan import SourcePlan
from soakwatch.record import RecordView
from soakwatch.report.headline import headline
from soakwatch.sources.abc import Poller, SourceContext
from soakwatch_model.finding import Outcome

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
Through = Callable[..., Verdict]


@pytest.fixture
def verdict_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Through:
    """The verdict of a shipped plan."""

    def run(name: str, model: Model = HealthyModel) -> Verdict:
        return through(EXAMPLES / name / "plan.yaml", tmp_path / "run", monkeypatch, model)

    return run


def check_pass(verdict: Verdict) -> None:
    """Pass, as the page says; of devices that do nothing but answer nothing is told but what needs no deciding."""
    told = [
        f"{finding.outcome.value} {finding.rule} {finding.target} {finding.metric} {finding.object}: {finding.sentence}"
        for n, finding in enumerate(verdict.findings)
        if finding.outcome in {Outcome.FAIL, Outcome.WARN}
        or (finding.outcome is Outcome.INCONCLUSIVE and n not in verdict.waived)
    ]
    assert told == []
    assert verdict.outcome is Outcome.PASS, verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hourly", "whitebox-leaf", "firewall-snmp-ssh", "linux-router-agent"])
def test_a_healthy_night_passes(name: str, verdict_of: Through) -> None:
    """13 to 60 h, with a failover where the plan announces one that costs nothing."""
    check_pass(verdict_of(name))


@pytest.mark.slow
def test_nginx_under_wrk_passes_at_its_full_length(verdict_of: Through, tmp_path: Path) -> None:
    """32 min, in which the generator has no figures but those of the 28 min in which it sends."""

    def model(planned: SourcePlan, site: SourceContext) -> Poller:
        sends_s = (125.0, 1800.0) if planned.poller == "command" else (0.0, 1920.0)
        return HealthyModel(planned, site, sends_s)

    verdict = verdict_of("nginx-wrk", model)
    check_pass(verdict)
    assert headline(verdict, ()) == "nginx passed 32 min: no failures or warnings."
    (loss,) = [finding for finding in verdict.findings if finding.rule == "loss" and finding.target == "nginx"]
    assert loss.outcome is Outcome.PASS
    assert loss.numbers["offered"] > 600_000
    assert "the generator reported nothing before" in loss.doubts[-1]


@pytest.mark.slow
def test_a_generator_that_never_begins_is_no_pass_of_nginx(verdict_of: Through) -> None:
    """The rest of the baseline is no licence: figures that begin in the middle of the soak leave loss open."""

    def model(planned: SourcePlan, site: SourceContext) -> Poller:
        sends_s = (900.0, 1800.0) if planned.poller == "command" else (0.0, 1920.0)
        return HealthyModel(planned, site, sends_s)

    verdict = verdict_of("nginx-wrk", model)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert headline(verdict, ()) == "No verdict for nginx after 32 min: the samples do not cover all of it."


@pytest.mark.slow
def test_the_capacity_plan_finds_the_capacity_and_passes(verdict_of: Through, tmp_path: Path) -> None:
    """A device of 6,234 packets/s: found to 1 %, and 85 % of it are carried without loss."""

    def model(planned: SourcePlan, site: SourceContext) -> Poller:
        return LimitedModel(site, 10_000, 6234) if planned.poller == "command" else HealthyModel(planned, site)

    check_pass(verdict_of("capacity", model))
    with RecordView.open(tmp_path / "run") as view:
        found = [view.series(key).values[-1] for key in view.keys(["load.capacity.packet.rate"])]
    assert found
    assert found[0] == pytest.approx(6234, rel=0.01)
