"""Rulings: what is decided about a finding is appended, and what a person reads is made of both."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from soakwatch.judge.adjudicate.context import Context, Stand
from soakwatch.judge.adjudicate.so_far import so_far
from soakwatch.judge.cases import CaseBuilder
from soakwatch.record import finding_from_json, finding_to_json
from soakwatch.report.json import finding_document
from soakwatch_model.fact import PartOfRun, Repeated
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_model.window import Window

WRITTEN = Finding("growth", 1, Outcome.FAIL, "dut", "m", "", Window(0, 9), "definition", "it grows", 9, settle="wait")


def test_the_reason_stays_what_the_rule_said() -> None:
    """The outcome is that of the last ruling; the sentence has the words of all, each at its place."""
    ruled = WRITTEN.ruled("role", Outcome.WARN, "not the device")
    ruled = ruled.ruled("load", Outcome.WARN, "but elsewhere", place=Place.BEHIND, settle="look there")
    ruled = ruled.ruled(
        "generator", Outcome.INCONCLUSIVE, "at fault:", place=Place.BEFORE, why=InconclusiveReason.GENERATOR
    )
    assert ruled.reason == WRITTEN.reason
    assert ruled.sentence == "at fault: it grows (not the device); but elsewhere"
    assert (ruled.outcome, ruled.own_outcome) == (Outcome.INCONCLUSIVE, Outcome.FAIL)
    assert (ruled.why, ruled.settle) == (InconclusiveReason.GENERATOR, "")
    assert [(r.by, r.was, r.outcome) for r in ruled.rulings] == [
        ("role", Outcome.FAIL, Outcome.WARN),
        ("load", Outcome.WARN, Outcome.WARN),
        ("generator", Outcome.WARN, Outcome.INCONCLUSIVE),
    ]
    assert ruled.ruled("memory", Outcome.PASS, "it does not", place=Place.INSTEAD).sentence == "it does not"
    assert (WRITTEN.sentence, WRITTEN.own_outcome) == ("it grows", Outcome.FAIL)


def test_rulings_and_facts_are_kept_in_a_record() -> None:
    """A fact of a kind that is not known here is left out."""
    ruled = replace(WRITTEN, facts=(PartOfRun(12.5), PartOfRun(float("inf"))))
    ruled = ruled.ruled("lifetime", Outcome.NOT_APPLICABLE, "briefly:", place=Place.BEFORE)
    text = finding_to_json(ruled)
    assert finding_from_json(text) == ruled
    body = json.loads(text)
    assert body["reason"] == "it grows"
    assert finding_from_json(json.dumps(body | {"facts": [["OfALaterVersion", {"x": 1}]]})).facts == ()


@pytest.mark.parametrize("place", Place)
def test_verdict_json_has_the_sentence_and_the_rulings(place: Place) -> None:
    """Its key ``reason`` is what a person reads; ``rulings`` says who decided what."""
    ruled = WRITTEN.ruled("role", Outcome.WARN, "not the device", place=place)
    document = finding_document(ruled)
    assert document["reason"] == ruled.sentence
    assert document["rulings"] == [{"by": "role", "outcome": "warn", "text": "not the device"}]
    assert finding_document(WRITTEN)["rulings"] == []


def test_what_only_its_repetition_fails_is_left_to_the_end_of_a_run() -> None:
    """While the run goes on it warns: the pauses of an hour need not go on."""
    failed = replace(WRITTEN, rule="periodic_pause", facts=(Repeated(9),))
    context = Context(cast("CaseBuilder", None), {}, stands=(Stand("whole"), Stand("whole")))
    once, again = so_far([replace(failed, facts=()), failed], context)
    assert once.outcome is Outcome.FAIL
    assert again.outcome is Outcome.WARN
    assert "only the end of the run decides whether it went on" in again.sentence
