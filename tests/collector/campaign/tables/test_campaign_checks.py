"""A campaign in the formats of continuous integration: a check a run, valid, and never greener than its verdict."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from tests.collector.campaign.tables.made import Values, result
from tests.collector.report.test_ci_formats import CTRF, JUNIT

from soakwatch.campaign.tables.campaign_checks import CampaignRendering
from soakwatch.report.formats import OF_CAMPAIGNS
from soakwatch_model.finding import Outcome

AXES = {"size": ["64", "1518"]}
RATE = "load.rx.packet.rate"
LIMITS = f"limits: [{{figure: {RATE}, at_least: LEAST}}]\n"
NUMBERS: dict[str, Values] = {RATE: {("64",): [90.0, 91.0], ("1518",): [99.0, 98.0]}}


@pytest.mark.parametrize(
    ("words", "limit", "outcome", "counts"),
    [
        (["pass", "pass"], 50, Outcome.PASS, ("0", "0")),
        (["pass", "fail"], 50, Outcome.FAIL, ("1", "0")),
        (["pass", "inconclusive"], 50, Outcome.INCONCLUSIVE, ("0", "1")),
        (["pass", "lost: the testbed was away"], 50, Outcome.INCONCLUSIVE, ("0", "2")),
        (["pass", "waiting"], 50, Outcome.INCONCLUSIVE, ("0", "2")),
        (["pass", "pass"], 95, Outcome.FAIL, ("1", "0")),
    ],
    ids=["pass", "a run fails", "a run is inconclusive", "a run was lost", "a run waits", "a limit is not kept"],
)
def test_a_campaign_is_as_green_as_its_verdict(
    words: list[str], limit: int, outcome: Outcome, counts: tuple[str, str]
) -> None:
    """A suite a cell, a case a run, and one for each limit; a run without a verdict is an error with its
    reason, and leaves the limit undecided."""
    runs: dict[tuple[str, ...], list[str]] = {("64",): words, ("1518",): ["pass", "pass"]}
    found = result(AXES, NUMBERS, LIMITS.replace("LEAST", str(limit)), runs=runs)
    assert found.outcome is outcome
    made = {kind: CampaignRendering(found, ()).text(kind) for kind in OF_CAMPAIGNS}
    assert all(made.values())
    JUNIT.validate(made["junit"])
    CTRF.validate(json.loads(made["ctrf"]))
    root = ET.fromstring(made["junit"])
    assert (root.get("failures"), root.get("errors")) == counts
    assert [suite.get("name") for suite in root] == ["size=64", "size=1518", "campaign"]
    green = outcome is Outcome.PASS
    assert (json.loads(made["ctrf"])["results"]["summary"]["failed"] == 0) == green
    assert ("::error" not in made["annotations"]) == green
    assert ("✓ pass · 4 runs" in made["badge"]) == green
    if words[1].startswith("lost"):
        error, _ = root.iter("error")
        assert error.get("message") == "the testbed was away"
