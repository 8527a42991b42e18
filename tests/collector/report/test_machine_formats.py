"""verdict.json, JUnit, Markdown and the terminal text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rich.console import Console
from tests.collector.report.conftest import MemoryRecord

from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.source import ReportSource
from soakwatch.report.json import render_json, verdict_document, verdict_schema
from soakwatch.report.junit import render_junit
from soakwatch.report.markdown import render_markdown
from soakwatch.report.sparks import sparkline
from soakwatch.report.terminal import print_verdict
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

Night = tuple[ReportSource, Verdict]
HOSTILE = "<script>alert(1)</script> |`*_[x](http://evil.example)`| @everyone \x00\x1b[31m\ud800 🔥 ]]> & \"'"


def hostile(verdict: Verdict) -> Verdict:
    """The verdict with every text replaced by something that tries to break out."""
    findings = [
        replace(
            f, target=HOSTILE, object=HOSTILE, reason=HOSTILE, definition=HOSTILE, settle=HOSTILE, doubts=(HOSTILE,)
        )
        for f in verdict.findings
    ]
    ledgers = [replace(ledger, target=HOSTILE, source=HOSTILE, errors=(HOSTILE,)) for ledger in verdict.ledgers]
    return fold(HOSTILE, verdict.window, {HOSTILE: "dut"}, findings, ledgers, verdict.phases)


def empty() -> Verdict:
    """The verdict over a run in which nothing was polled."""
    return fold("nothing", Window(0, 0), {}, [], [], [])


def test_the_published_schema_is_a_valid_schema() -> None:
    """verdict.schema.json is JSON Schema 2020-12 and closes every object with fixed keys."""
    schema = json.loads(verdict_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    fixed = [schema, *(d for d in schema["$defs"].values() if "properties" in d)]
    assert all(part["additionalProperties"] is False for part in fixed)
    assert all(set(part["required"]) == set(part["properties"]) for part in fixed)


@pytest.mark.parametrize("change", [lambda v: v, hostile, lambda _: empty()])
def test_verdict_json_keeps_its_schema(night: Night, change: Callable[[Verdict], Verdict]) -> None:
    """What is written is valid under the published schema, for plain, hostile and empty verdicts."""
    written = json.dumps(verdict_document(change(night[1])), allow_nan=False)
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(json.loads(written))


def test_verdict_json_says_null_and_never_nan(night: Night) -> None:
    """A number that is not finite or not known is null; a known one is kept exactly."""
    odd = replace(night[1].findings[0], measured=float("nan"), limit=0.1, numbers={"x": float("inf"), "y": 1 / 3})
    document = json.loads(render_json(replace(night[1], findings=(odd,))))
    document_of = document["findings"][0]
    assert (document_of["measured"], document_of["limit"], document_of["numbers"]) == (
        None,
        0.1,
        {"x": None, "y": 1 / 3},
    )


def test_verdict_json_tells_outcomes_labels_times_and_gaps(night: Night) -> None:
    """Outcome words, labels, UTC times and the longest gap are there; a source that never answered has null."""
    document = json.loads(render_json(night[1]))
    assert document["verdict"] == "fail"
    assert document["findings"][0]["labels"] == {"process": "httpd", "instance": "0"}
    assert document["start"] == "2026-11-20T18:40:00.000Z"
    assert [source["longest_gap_seconds"] for source in document["coverage"]] == [600.0, 600.0, None]
    assert document["targets"]["monitor"]["verdict"] == "inconclusive"


def test_render_json_writes_a_lone_surrogate_without_failing(night: Night) -> None:
    """Text that is not valid Unicode can be written to a UTF-8 file."""
    assert render_json(hostile(night[1])).encode("utf-8")


def cases(text: str) -> dict[tuple[str | None, str | None], list[str]]:
    """The tags inside each test case."""
    elements = ET.fromstring(text).iter("testcase")
    return {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in elements}


def test_junit_has_one_case_a_rule_and_target(night: Night) -> None:
    """Fail is a failure, inconclusive an error, not applicable skipped, a warning system-out, pass nothing."""
    document_of = cases(render_junit(night[1]))
    assert document_of["leaker", "memory_growth"] == ["failure"]
    assert document_of["monitor", "oom_kill"] == ["error"]
    assert document_of["twin", "core_dump"] == ["skipped"]
    assert document_of["twin", "cpu_spike"] == ["system-out"]
    assert document_of["twin", "memory_growth"] == []
    assert document_of["tg", "judged"] == ["skipped"]


def test_junit_counts_agree_with_its_cases(night: Night) -> None:
    """The counts of each suite and of the whole are those of the cases in it."""
    root = ET.fromstring(render_junit(night[1]))
    for part in [root, *root.iter("testsuite")]:
        assert part.get("tests") == str(len(list(part.iter("testcase"))))
        assert part.get("failures") == str(len(list(part.iter("failure"))))
        assert part.get("errors") == str(len(list(part.iter("error"))))
        if part is not root:
            assert part.get("skipped") == str(len(list(part.iter("skipped"))))


def test_junit_failure_lists_every_failing_finding(night: Night) -> None:
    """Two failing findings of one rule are both in the failure, each with its reason and definition."""
    first = night[1].findings[0]
    second = replace(first, object="process=other,instance=0", reason="another reason", definition="another definition")
    text = render_junit(replace(night[1], findings=(first, second)))
    failure = next(iter(ET.fromstring(text).iter("failure")))
    assert failure.text is not None
    assert all(part in failure.text for part in (first.sentence, first.definition, second.sentence, second.definition))


def test_a_dut_of_which_nothing_was_judged_is_an_error_in_junit() -> None:
    """No data never looks like a pass."""
    silent = fold("run", Window(0, 10**9), {"dut": "dut"}, [], [], [])
    assert cases(render_junit(silent)) == {("dut", "judged"): ["error"]}


def test_junit_of_hostile_names_is_valid_xml(night: Night) -> None:
    """Control characters, surrogates and markup in names leave a parsable document that still names them."""
    root = ET.fromstring(render_junit(hostile(night[1])).encode())
    case = next(iter(root.iter("testcase")))
    assert "<script>" in str(case.get("classname"))


@pytest.mark.parametrize("extra", [0, 60])
def test_markdown_fits_a_pull_request(make_night: Callable[[int], Night], extra: int) -> None:
    """At most 75 lines, however many findings there are; what is left out is counted."""
    text = render_markdown(*make_night(extra))
    assert len(text.splitlines()) <= 75
    assert text.startswith("## ✗ Soakwatch: FAIL")
    assert f"✓ memory\\_growth: {1 + extra} check{'s' if extra else ''} passed; smallest detectable 5 %" in text


def test_markdown_stays_short_when_everything_fails(make_night: Callable[[int], Night]) -> None:
    """Many targets, failures and sources at once still give at most 75 lines."""
    record, verdict = make_night(0)
    bad = [replace(verdict.findings[0], target=f"t{n}") for n in range(90)]
    calm = [replace(finding, outcome=Outcome.PASS, rule="calm") for finding in bad]
    ledgers = [replace(verdict.ledgers[0], target=f"t{n}", source="local") for n in range(90)]
    crowd = fold("crowd", verdict.window, {f"t{n}": "dut" for n in range(90)}, bad + calm, ledgers, verdict.phases)
    assert len(render_markdown(record, crowd).splitlines()) <= 75


def test_markdown_escapes_what_would_be_markup(night: Night) -> None:
    """No tag, table bar, code span, link or mention of a hostile name survives as markup."""
    text = render_markdown(night[0], hostile(night[1]))
    assert "<script>" not in text
    assert "](" not in text.replace("\\](", "")
    assert "@everyone" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)
    assert "`" not in text.replace("\\`", "")


def shown(verdict: Verdict, night: Night, *, terminal: bool) -> str:
    """What is printed, 60 columns wide."""
    target = io.StringIO()
    console = Console(file=target, force_terminal=terminal, width=60, legacy_windows=False)
    print_verdict(night[0], verdict, console)
    return target.getvalue()


def test_terminal_text_is_plain_where_there_is_no_terminal(night: Night) -> None:
    """Without a terminal there is no colour and no box, and one fact is one line."""
    text = shown(night[1], night, terminal=False)
    assert "\x1b" not in text
    assert not set("┃│━") & set(text)
    assert f"    {night[1].findings[0].sentence}" in text.splitlines()
    assert "coverage monitor/snmp: 0 of 2,880 polls (0 %), never answered; 2,880 failed" in text.splitlines()


def test_a_target_without_findings_is_not_applicable(night: Night) -> None:
    """The generator, of which no rule said anything, is not shown as a pass to people."""
    assert "| tg | generator | – not applicable |" in render_markdown(*night)
    assert "not applicable: tg (generator)" in shown(night[1], night, terminal=False)
    assert json.loads(render_json(night[1]))["targets"]["tg"]["verdict"] == "not applicable"


def test_terminal_text_names_what_failed(night: Night) -> None:
    """On a terminal the failing findings come with their numbers and a sparkline, within its width."""
    text = shown(night[1], night, terminal=True)
    assert "measured 48.1 MiB; limit 55 MiB; 23,340 of 23,400 samples" in " ".join(text.split())
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 60
    assert "▁" in text
    assert "█" in text


def test_terminal_text_does_not_obey_names(night: Night) -> None:
    """Escape sequences and rich markup in names are shown or dropped, never obeyed."""
    verdict = replace(hostile(night[1]), outcome=Outcome.INCONCLUSIVE, reason="[bold red]x[/] \x1b[2J")
    text = shown(verdict, night, terminal=False)
    assert "\x1b" not in text
    assert "[bold red]x[/]" in text


def test_sparkline_shows_a_gap_as_a_space(night: Night) -> None:
    """A stretch without readings is a space in the line, and a leak climbs."""
    key = night[0].keys(["process.memory.usage"])[0]
    line = sparkline(night[0].series(key), width=480)
    assert " " in line.strip()
    assert line[0] == "▁"
    assert "█" in line


def test_every_format_takes_an_empty_verdict() -> None:
    """A run that polled nothing is inconclusive in every format, and none of them fails."""
    verdict = empty()
    assert json.loads(render_json(verdict))["verdict"] == "inconclusive"
    assert "INCONCLUSIVE" in render_markdown(MemoryRecord(), verdict)
    assert ET.fromstring(render_junit(verdict)).get("errors") == "1"


def test_a_finding_of_an_unlabelled_object_has_no_labels(night: Night) -> None:
    """A source's name is not taken for a label."""
    finding: Finding = replace(night[1].findings[0], object="local")
    assert json.loads(render_json(replace(night[1], findings=(finding,))))["findings"][0]["labels"] == {}
