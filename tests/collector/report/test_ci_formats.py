"""JUnit, CTRF, attestation and annotations: valid by their published schemas, and all of the verdict's colour."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.report.conftest import BEGIN, MemoryRecord, finding
from tests.collector.report.test_machine_formats import HOSTILE, Night, empty, hostile

from soakwatch.core.errors import RecordError
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.seal import Change, Checked, Seal
from soakwatch.report.annotations import render_annotations
from soakwatch.report.attestation import render_attestation, rules_text
from soakwatch.report.badge import badge_of, render_badge
from soakwatch.report.ctrf import render_ctrf
from soakwatch.report.formats import FORMATS, OF_RUNS
from soakwatch.report.junit import render_junit
from soakwatch.runs import delete_run
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

SCHEMAS = Path(__file__).with_name("schemas")
CTRF = jsonschema.Draft7Validator(
    json.loads((SCHEMAS / "ctrf-schema-0.0.json").read_text(encoding="utf-8")),
    format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER,
)
JUNIT = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")
SEAL = Seal(1, "soakwatch seal 1\nrun: night\nsealed: 2026-11-20T18:40:00Z\n")
DOUBT = finding(Outcome.INCONCLUSIVE, "fw", "growth", "m", "process=a", reason="too short", settle="1 h more")
PASS = finding(Outcome.PASS, "fw", "cpu_spike", "m")
FAIL = finding(Outcome.FAIL, "fw", "reboot", "m", reason="it restarted")
WARN = finding(Outcome.WARN, "fw", "cpu_spike", "n", reason="one spike")


def verdict_of(*findings: Finding, optional: tuple[str, ...] = (), goes_on: bool = False) -> Verdict:
    """The verdict of an hour of one device, sealed."""
    window = Window(BEGIN, BEGIN + 3600 * 10**9)
    folded = fold("night", window, {"fw": "dut"}, findings, [], [], frozenset(optional), goes_on=goes_on)
    return replace(folded, checked=Checked(9, SEAL))


def sealed(verdict: Verdict) -> Verdict:
    """The same of a record that is sealed."""
    return replace(verdict, checked=Checked(9, SEAL))


def attested(verdict: Verdict, record: MemoryRecord | None = None) -> dict[str, object]:
    """The predicate of its attestation."""
    statement = json.loads(render_attestation(record or MemoryRecord(), verdict))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = statement["predicate"]
    assert isinstance(predicate, dict)
    return predicate


def colours(verdict: Verdict) -> dict[str, bool]:
    """Whether somebody who reads the format alone takes the run for a pass."""
    ctrf = json.loads(render_ctrf(verdict))
    CTRF.validate(ctrf)
    JUNIT.validate(render_junit(verdict))
    junit = ET.fromstring(render_junit(verdict))
    predicate = attested(verdict)
    assert (predicate["failedTests"] == []) == (predicate["result"] != "FAILED")
    return {
        "junit": (junit.get("failures"), junit.get("errors")) == ("0", "0"),
        "ctrf": ctrf["results"]["summary"]["failed"] == 0 and ctrf["results"]["environment"]["healthy"],
        "attestation": predicate["result"] in {"PASSED", "WARNED"},
        "annotations": "::error" not in render_annotations(verdict),
        "badge": "✓" in render_badge(badge_of(verdict)),
    }


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            finding,
            st.sampled_from(Outcome),
            st.sampled_from(["fw", "gen"]),
            st.sampled_from(["growth", "reboot", "cpu_spike", "coverage"]),
            st.just("m"),
            st.sampled_from(["", "process=a"]),
        ),
        max_size=8,
    ),
    st.sets(st.sampled_from(["growth", "reboot"])),
)
def test_no_format_takes_a_run_for_a_pass_that_is_none(findings: list[Finding], optional: set[str]) -> None:
    """Whatever was found, and whichever rules are required: all formats are green if it passed, and none otherwise."""
    window = Window(BEGIN, BEGIN + 3600 * 10**9)
    verdict = sealed(fold("night", window, {"fw": "dut", "gen": "generator"}, findings, [], [], frozenset(optional)))
    assert set(colours(verdict).values()) == {verdict.outcome is Outcome.PASS}


@pytest.mark.parametrize(
    ("verdict", "result", "failed"),
    [
        (verdict_of(PASS), "PASSED", []),
        (verdict_of(PASS, WARN), "WARNED", []),
        (verdict_of(PASS, DOUBT, optional=("growth",)), "PASSED", []),
        (verdict_of(PASS, DOUBT), "FAILED", ["fw/growth"]),
        (verdict_of(PASS, FAIL), "FAILED", ["fw/reboot"]),
        (verdict_of(), "FAILED", ["fw/judged"]),
    ],
    ids=["pass", "warning", "doubt that is not required", "inconclusive", "fail", "nothing judged"],
)
def test_an_attestation_lets_nothing_inconclusive_through(verdict: Verdict, result: str, failed: list[str]) -> None:
    """It has three words only: what is inconclusive is FAILED, by name, and a check that was skipped is not passed."""
    predicate = attested(verdict)
    assert (predicate["result"], predicate["failedTests"]) == (result, failed)
    assert predicate["soakwatch_verdict"] == verdict.outcome.value
    assert "fw/growth" not in str(predicate["passedTests"])


def test_an_attestation_names_seal_plan_and_rules_by_digests_that_can_be_made_again(night: Night) -> None:
    """The subject is the text of the seal; the rules are those of verdict.json, sorted."""
    record = MemoryRecord(metas={"plan": "name: night\n"})
    verdict = sealed(night[1])
    statement = json.loads(render_attestation(record, verdict))
    (subject,) = statement["subject"]
    assert subject["digest"] == {"sha256": hashlib.sha256(SEAL.document.encode()).hexdigest()}
    plan, rules = statement["predicate"]["configuration"]
    assert (plan["name"], plan["digest"]["sha256"]) == ("plan.yaml", hashlib.sha256(b"name: night\n").hexdigest())
    assert rules["digest"]["sha256"] == hashlib.sha256(rules_text(verdict.findings).encode()).hexdigest()
    changed = [replace(verdict.findings[0], definition="another limit"), *verdict.findings[1:]]
    assert rules_text(changed) != rules_text(verdict.findings)
    assert len(statement["predicate"]["configuration"]) == 2
    assert len(json.loads(render_attestation(MemoryRecord(), verdict))["predicate"]["configuration"]) == 1


def test_an_attestation_is_also_of_what_a_label_names_by_its_digest() -> None:
    """An image under test; other labels are labels only."""
    labels = {"release": "7.2", "image": f"sha256:{'ab' * 32}", "build": "sha256:12"}
    statement = json.loads(render_attestation(MemoryRecord(), replace(verdict_of(PASS), labels=labels)))
    assert statement["subject"][1:] == [{"name": "image", "digest": {"sha256": "ab" * 32}}]
    assert statement["predicate"]["soakwatch_labels"] == labels


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (replace(verdict_of(PASS), checked=None), "is not sealed, so there is no digest to attest: soakwatch seal"),
        (replace(verdict_of(PASS), checked=Checked(9, None)), "is not sealed"),
        (replace(verdict_of(PASS), checked=Checked(9, SEAL, (Change("poll", "3", "is gone"),))), "was changed since"),
        (verdict_of(PASS, goes_on=True), "goes on: a run is attested once it has ended"),
    ],
    ids=["unchecked", "unsealed", "changed", "running"],
)
def test_what_has_no_sound_seal_is_not_attested(verdict: Verdict, words: str) -> None:
    """A sentence with the reason, and no statement."""
    with pytest.raises(RecordError, match=words):
        render_attestation(MemoryRecord(), verdict)


@pytest.mark.parametrize("kind", ["night", "hostile", "empty", "running"])
def test_all_formats_of_odd_verdicts_are_valid(night: Night, kind: str) -> None:
    """Names that try to break out, nothing polled, and a run that goes on."""
    odd = {"night": night[1], "hostile": hostile(night[1]), "empty": empty(), "running": verdict_of(PASS, goes_on=True)}
    verdict = odd[kind]
    CTRF.validate(json.loads(render_ctrf(verdict)))
    JUNIT.validate(render_junit(verdict))
    ET.fromstring(render_badge(badge_of(verdict)))
    lines = render_annotations(verdict).splitlines()
    assert all(re.match(r"::(error|warning|notice) title=[^:,\n]*::", line) for line in lines)


def test_ctrf_says_inconclusive_where_the_status_cannot() -> None:
    """Failed for reporters that count, inconclusive for those who read; equal verdicts give equal bytes and ids."""
    text = render_ctrf(verdict_of(PASS, DOUBT, WARN))
    assert render_ctrf(verdict_of(PASS, DOUBT, WARN)) == text
    results = json.loads(text)["results"]
    tests = {test["name"]: test for test in results["tests"]}
    doubt = tests["growth"]
    assert (doubt["status"], doubt["rawStatus"], doubt["tags"]) == ("failed", "inconclusive", ["inconclusive"])
    assert (doubt["message"], doubt["suite"], doubt["duration"]) == ("too short", ["fw"], 3_600_000)
    assert "to resolve: 1 h more" in doubt["trace"]
    warned = tests["cpu_spike"]
    assert (warned["status"], warned["rawStatus"]) == ("passed", "warn")
    assert "one spike" in " ".join(warned["stdout"])
    assert (results["extra"]["verdict"], results["extra"]["exitCode"]) == ("inconclusive", 3)
    assert results["summary"]["extra"]["inconclusive"] == 1
    later = json.loads(render_ctrf(verdict_of(PASS, FAIL, DOUBT)))["results"]["tests"]
    assert [test["id"] for test in later if test["name"] == "growth"] == [doubt["id"]]


def test_annotations_are_as_many_as_github_shows() -> None:
    """Ten of a kind: the tenth counts the rest. A line of a device neither ends its line nor begins a command."""
    many = [replace(FAIL, rule=f"r{n:02}", reason=f"50 %\n::warning::{HOSTILE}") for n in range(30)]
    lines = render_annotations(verdict_of(*many)).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("::error title=fw/r00%3A failed::50 %25")
    assert lines[-1] == "::error title=night::21 more: see the report"
    assert render_annotations(verdict_of(PASS)) == "::notice title=night%3A pass::fw: no rule failed\n"
    assert render_annotations(verdict_of(PASS, WARN)).startswith("::warning title=fw/cpu_spike%3A warned::warn: n%0A")


def test_a_badge_says_name_verdict_and_length() -> None:
    """Also where the run goes on; a long name is cut, and the picture is an image with words for who cannot see it."""
    assert badge_of(verdict_of(PASS)).words == "night: ✓ pass · 1 h"
    assert badge_of(verdict_of(DOUBT)).words == "night: ? inconclusive · 1 h"
    assert badge_of(verdict_of(PASS, goes_on=True)).words == "night: no failure so far · 1 h"
    assert badge_of(verdict_of(FAIL, goes_on=True)).words == "night: fails so far · 1 h"
    assert len({badge_of(verdict_of(*found)).colour for found in ((PASS,), (FAIL,), (DOUBT,))}) == 3
    long = badge_of(replace(verdict_of(PASS), run="x" * 80))
    assert len(long.name) == 40
    root = ET.fromstring(render_badge(badge_of(verdict_of(FAIL))))
    assert (root.get("role"), root.get("aria-label")) == ("img", "night: ✗ fail · 1 h")
    assert int(root.get("width", "0")) == badge_of(verdict_of(FAIL)).width


def test_a_run_owns_the_files_of_every_format() -> None:
    """Deleting a run does not count a report as a file of somebody else."""
    assert {FORMATS[kind].file for kind in OF_RUNS} <= delete_run._OWN
