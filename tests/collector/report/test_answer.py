"""The answer of a report: the questions of two minutes, answered from the record alone and in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from tests.browser.answer_records import (
    AUTHD,
    BEGIN,
    FAILOVER_S,
    SECOND,
    fleet_record,
    incident_record,
    process_record,
)

from soakwatch.judge.record_verdict import judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RecordView
from soakwatch.report.answer import ReportAnswer, answer_of, issue_text
from soakwatch.report.html import render_html
from soakwatch.report.json import render_json
from soakwatch.report.markdown import render_markdown
from soakwatch.report.matrix import DeviceMatrix, live_matrix, matrix_of
from soakwatch.report.page import open_page
from soakwatch.report.proof_plot import proof_plot
from soakwatch.report.svg import SvgDrawing, tick_texts, ticks_between
from soakwatch_model.finding import Outcome

HOUR = 3600 * SECOND


Answered = tuple[ReportAnswer, Verdict]


def answered(folder: Path) -> Answered:
    """The answer and the verdict of a record."""
    with RecordView.open(folder) as view:
        verdict = judge_record(view)
        return answer_of(open_page(view, verdict)), verdict


def plotted(folder: Path, width: int = 760, height: int = 300) -> SvgDrawing:
    """The proof plot of a record."""
    with RecordView.open(folder) as view:
        page = open_page(view, judge_record(view))
        answer = answer_of(page)
        begin_ns = answer.since_ns
        plot = proof_plot(page, answer.proof, width, height, begin_ns)
    assert plot is not None
    return plot


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: the plan's first, which passed, and one that leaks two hours later; and one of each kind."""
    folder = tmp_path_factory.mktemp("answers") / "runs"
    folder.mkdir()
    first = process_record(folder / "20261120T164000Z-web", leak_mib_h=0, begin_ns=BEGIN - 2 * HOUR, release="7.1")
    with RecordView.open(first) as view:
        (first / "verdict.json").write_text(render_json(judge_record(view)), encoding="utf-8")
    process_record(folder / "20261120T184000Z-web")
    return folder


@pytest.fixture(scope="module")
def leak(runs: Path) -> Answered:
    """The run that leaks."""
    return answered(runs / "20261120T184000Z-web")


def facts(answer: ReportAnswer) -> Mapping[str, str]:
    """The facts by name."""
    return dict(answer.facts)


def test_who_what_and_how_much(leak: Answered) -> None:
    """Target, process, rate, from where to where and what is allowed; in the sentence and in the facts."""
    answer = leak[0]
    assert "memory of svc.py on web-1 has grown by 52" in answer.sentence
    assert "limit 5 %" in answer.sentence
    told = facts(answer)
    assert told["Who"] == "web-1"
    assert told["What"] == "memory of svc.py (memory_growth)"
    assert re.fullmatch(r"\+5[12](\.\d)? MiB/h \(24\.\d to 30\.\d MiB, \+2\d(\.\d)? %\); limit 5 %", told["How much"])
    assert told["Since"] == "the first reading, 18:41:00 UTC"
    assert told["Until"] == "still so when the run ended"
    assert told["Load"] == "a mean of 943 requests/s"


def test_where_no_moment_is_known_none_is_told(leak: Answered, runs: Path) -> None:
    """A loss now and then, without marks: no begin and no end; a growth from the begin has one."""
    assert leak[0].steps[0].when == "from the first reading"
    with RecordView.open(runs / "20261120T184000Z-web") as view:
        verdict = judge_record(view)
        index = verdict.causes[0].findings[0]
        loss = replace(verdict.findings[index], rule="loss", metric="", object="", measured=None, limit=None, facts=())
        findings = (*verdict.findings[:index], loss, *verdict.findings[index + 1 :])
        answer = answer_of(open_page(view, replace(verdict, findings=findings)))
    assert answer.steps[0].when == "no moment known"
    assert facts(answer)["Since"] == "not known"
    assert "Until" not in facts(answer)


def test_no_fact_has_raw_bytes(leak: Answered) -> None:
    """A number has its unit and at most three digits that matter: no byte counts."""
    assert re.search(r"\d{1,3}(,\d{3}){2,}|\d{7,}", issue_text(leak[0]).replace("20261120", "")) is None


def test_it_differs_from_the_last_run_of_its_plan(leak: Answered) -> None:
    """It passed then and leaks now; the labels that differ stand beside it."""
    difference = leak[0].difference
    assert difference.startswith(
        "20261120T164000Z-web (release 7.1 → 7.2): pass then, fail now. New: memory of svc.py on web-1"
    )


def test_the_first_run_of_a_plan_says_so(tmp_path: Path) -> None:
    """Other plans' runs, later ones, those without a verdict, and damaged ones are not the last run of this plan."""
    for name, text in {
        "20261119T000000Z-other": json.dumps({"run": "other"}),
        "20261119T000000Z-web": "{",
        "20261118T000000Z-web": "[]",
        "20261117T000000Z-web": json.dumps({"run": "web", "findings": [{"rule": "x"}]}),
        "20271117T000000Z-web": json.dumps(
            {"run": "web", "start": "2027-11-17T00:00:00.000Z", "verdict": "pass", "findings": []}
        ),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "verdict.json").write_text(text, encoding="utf-8")
    (tmp_path / "20261116T000000Z-web").mkdir()
    answer = answered(process_record(tmp_path / "20261120T184000Z-web"))[0]
    assert answer.difference == "This is the first run of this plan in its folder."


def test_a_failure_that_is_not_new_has_both_rates(tmp_path: Path) -> None:
    """The same leak in two runs, the second half as fast: not new, and both rates stand there."""
    runs = [
        process_record(tmp_path / name, leak_mib_h=rate, begin_ns=begin)
        for name, rate, begin in (("one", 104.0, BEGIN - HOUR), ("two", 52.0, BEGIN))
    ]
    with RecordView.open(runs[0]) as view:
        (runs[0] / "verdict.json").write_text(render_json(judge_record(view)), encoding="utf-8")
    difference = answered(runs[1])[0].difference
    assert "both fail. Still failing: memory of svc.py on web-1" in difference
    assert re.search(r", 10\d MiB/h then, 5\d(\.\d)? MiB/h now", difference)
    assert "Nothing failed or warned anew" in difference


def test_whether_it_can_be_trusted(leak: Answered, tmp_path: Path) -> None:
    """Coverage, undecided checks and the generator in one line; No where a required source did not answer."""
    assert leak[0].trust.startswith("Yes: all 1,560 polls answered; ")
    assert "none of them required; the generator held its load; the record is not sealed." in leak[0].trust
    unread = answered(process_record(tmp_path / "unread", leak_mib_h=0, unread=True))[0]
    assert unread.outcome is Outcome.INCONCLUSIVE
    assert unread.trust.startswith("No: ")
    assert "of web-1/local only 29" in unread.trust
    assert unread.next_step.startswith("Fix the source")


def test_what_to_do_next(leak: Answered, tmp_path: Path) -> None:
    """A failure has the remedy of its rule; a run that passed says what it was too short to decide."""
    assert "heap profile" in leak[0].next_step
    calm = answered(process_record(tmp_path / "calm", leak_mib_h=0))[0]
    assert calm.outcome is Outcome.PASS
    assert calm.next_step.startswith("Nothing failed, but growth of memory in use and 2 more was not decided: needs")
    assert calm.steps == ()
    assert "Nearest limit" in facts(calm)


def test_what_passed_is_seen_below_its_limit(tmp_path: Path) -> None:
    """However quiet the series that came nearest is: a limit beyond three times its spread was left out."""
    folder = process_record(tmp_path / "calm", leak_mib_h=0)
    assert facts(answered(folder)[0])["Nearest limit"].startswith("p99 latency on web-1: 4.2 ms of 6.72 ms")
    plot = plotted(folder)
    assert "limit" in {stroke.kind for stroke in plot.strokes}
    assert "limit 6.72 ms" in [label.text for label in plot.labels]


def test_page_markdown_and_issue_say_the_same(leak: Answered, runs: Path) -> None:
    """One model: sentence, facts and closing lines stand in each format."""
    answer, verdict = leak
    with RecordView.open(runs / "20261120T184000Z-web") as view:
        page, markdown = render_html(view, verdict), render_markdown(view, verdict)
    plain = markdown.replace("\\", "")
    for text in (answer.sentence, *facts(answer).values(), *(text for _, text in answer.lines)):
        assert text in issue_text(answer)
        assert text in plain.replace("\u200b", "")
        assert text.replace("'", "&#39;").replace("+", "&#43;") in page.replace("+", "&#43;")
    assert f"Rule memory_growth (version {answer.finding.version})" in issue_text(answer) if answer.finding else False
    assert markdown.splitlines()[0].startswith("## ✗ Soakwatch: FAIL")


def test_a_chain_has_at_most_five_lines(night: tuple[object, Verdict]) -> None:
    """Of many moments the first five; the others are counted."""
    page = open_page(night[0], night[1])  # type: ignore[arg-type]
    answer = answer_of(page)
    assert 0 < len(answer.steps) <= 5
    assert answer.steps[0].outcome is Outcome.FAIL
    assert StringIO(issue_text(answer)).readline().startswith("FAIL: ")


@pytest.mark.parametrize("size", [(760, 300), (360, 160)])
def test_no_name_in_the_plot_covers_another(leak: Answered, runs: Path, size: tuple[int, int]) -> None:
    """Ticks, phases, thirds and limit stand apart and inside, wide and narrow."""
    plot = plotted(runs / "20261120T184000Z-web", *size)
    assert leak[0].proof is not None
    words = {label.text for label in plot.labels}
    assert {"baseline", "soak", "recovery"} <= words
    assert any(text.startswith("first third") for text in words)
    assert any(text.startswith("last third") for text in words)
    assert any(text.startswith("limit ") for text in words)
    spans = []
    for label in plot.labels:
        width = 6.0 * len(label.text)
        begin = label.x - {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
        assert begin >= -1, label
        assert begin + width <= plot.width + 1, label
        spans.append((begin, begin + width, label.y - 11, label.y, label.text))
    for n, one in enumerate(spans):
        for other in spans[n + 1 :]:
            apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            assert apart, (one, other)


def test_the_plot_has_load_thirds_and_limit_where_they_are(runs: Path) -> None:
    """The third's bar lies in the third that was judged, the load is drawn, the line goes from left to right."""
    plot = plotted(runs / "20261120T184000Z-web")
    assert dict(plot.legend)["load"] == "load of tg, requests/s (right axis)"
    assert "load, requests/s" in {label.text for label in plot.labels}
    assert [label.text for label in plot.labels if label.kind == "load"][1:] == ["0", "500", "1,000"]
    thirds = [box for box in plot.boxes if box.kind == "third"]
    assert len(thirds) == 2
    assert thirds[0].x < thirds[1].x
    assert thirds[0].y > thirds[1].y
    assert [box.title for box in plot.boxes if box.kind.startswith("phase")] == ["baseline", "soak", "recovery"]
    assert {stroke.kind for stroke in plot.strokes} >= {"line0", "load", "limit", "third"}
    assert "memory of svc.py on web-1 from" in plot.words


def test_a_silence_is_hatched_and_breaks_the_line(tmp_path: Path) -> None:
    """Where nothing was read there is no line, but a box that says so."""
    plot = plotted(process_record(tmp_path / "unread", leak_mib_h=0, unread=True))
    (silence,) = [box for box in plot.boxes if box.kind == "silence"]
    (line,) = [stroke.path for stroke in plot.strokes if stroke.kind == "line0"]
    assert line.count("M") == 2
    inside = [
        x for x in map(float, re.findall(r"[ML]([\d.]+) ", line)) if silence.x + 2 < x < silence.x + silence.width - 2
    ]
    assert inside == []


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """Twenty devices of which three fail."""
    return answered(fleet_record(tmp_path_factory.mktemp("answers") / "fleet"))


def matrix(verdict: Verdict) -> DeviceMatrix:
    """The table of the devices."""
    found = matrix_of(verdict)
    assert found is not None
    return found


def test_a_fleet_has_its_outliers_first(fleet: Answered) -> None:
    """Three fail, each in its own column, in the order of their failures, the leak without a moment last of them;
    seventeen are calm and come behind."""
    table = matrix(fleet[1])
    assert [row.target for row in table.rows[:3]] == ["fw-15", "fw-12", "fw-07"]
    assert table.calm == 17
    assert [row.target for row in table.rows[3:5]] == ["fw-01", "fw-02"]
    failed = [
        (row.target, family)
        for row in table.rows
        for family, cell in zip(table.families, row.cells, strict=True)
        if cell.outcome is Outcome.FAIL
    ]
    assert dict(failed) == {"fw-07": "memory", "fw-12": "crashes", "fw-15": "traffic"}
    assert facts(fleet[0])["Who"] == "fw-07, fw-12, fw-15 (3 of 20 devices)"


def test_what_was_not_judged_is_no_pass_in_the_table(fleet: Answered) -> None:
    """A device without a finding of a family has an empty cell."""
    verdict = fleet[1]
    rest = tuple(f for f in verdict.findings if not (f.target == "fw-03" and f.rule in {"drops", "loss"}))
    row = next(row for row in matrix(replace(verdict, findings=rest, waived=frozenset())).rows if row.target == "fw-03")
    traffic = matrix(verdict).families.index("traffic")
    assert row.cells[traffic].outcome is None


def test_a_fleet_that_goes_on_has_what_is_decided_so_far(fleet: Answered) -> None:
    """The same outliers by their findings alone; what is inconclusive yet is no mark, and few devices have no table."""
    devices = [f"fw-{number:02}" for number in range(1, 21)]
    table = live_matrix(devices, fleet[1].findings)
    assert table is not None
    marked = [row.target for row in table.rows if row.outcome is Outcome.FAIL]
    assert sorted(marked) == ["fw-07", "fw-12", "fw-15"]
    assert {cell.outcome for row in table.rows for cell in row.cells} <= {None, *Outcome} - {Outcome.INCONCLUSIVE}
    assert live_matrix(devices[:3], fleet[1].findings) is None


def test_few_devices_have_no_table(leak: Answered) -> None:
    """One device needs none."""
    assert matrix_of(leak[1]) is None


def test_a_fleet_opens_what_failed_and_folds_the_rest(tmp_path: Path) -> None:
    """Devices that failed stand first, open, as they failed one after the other; calm ones are folded into one line."""
    with RecordView.open(fleet_record(tmp_path / "fleet")) as view:
        page = render_html(view, judge_record(view))
    devices = re.findall(r'<details class="bulk device ([a-z-]+)" id="target-(\d+)"( open)?>', page)
    assert devices[:3] == [("fail", "15", " open"), ("fail", "12", " open"), ("fail", "7", " open")]
    assert {(outcome, open_) for outcome, _, open_ in devices[3:]} == {("pass", "")}
    assert len(devices) == 20
    assert page.count("<summary>Definitions of the rules that passed</summary>") == 1


def drawn_of(folder: Path, rule: str, obj: str | None = None) -> SvgDrawing | None:
    """The plot of the first finding of a rule (of one object), at its first mark."""
    with RecordView.open(folder) as view:
        page = open_page(view, judge_record(view))
        own = [f for f in page.verdict.findings if f.rule == rule and obj in {None, f.object}]
        return proof_plot(page, own[0], 760, 300, min((mark.begin_ns for mark in own[0].marks), default=None))


def moments_of(plot: SvgDrawing) -> list[float]:
    """Where lines stand at moments, as shares of the width between the axes."""
    axis = next(stroke.path for stroke in plot.strokes if stroke.kind == "axis" and "H" in stroke.path)
    left, right = float(axis[1:].split(" ")[0]), float(axis.rpartition("H")[2])
    xs = [float(stroke.path[1:].split(" ")[0]) for stroke in plot.strokes if stroke.kind == "moment"]
    return [(x - left) / (right - left) for x in xs]


def test_a_crash_is_shown_on_the_memory_of_the_process_that_died(tmp_path: Path) -> None:
    """authd's, not that of the process whose name comes first; the moment is marked and in the middle of the stretch
    around it, which has its days where the run has several, and the phases of no other stretch."""
    plot = drawn_of(incident_record(tmp_path / "long", long=True), "process_restart", AUTHD)
    assert plot is not None
    assert plot.title == "memory of authd on gw, MiB"
    assert moments_of(plot) == [pytest.approx(0.42, abs=0.05)]
    assert dict(plot.legend)["moment"] == "a process restarted"
    assert [box.title for box in plot.boxes if box.kind.startswith("phase")] == ["soak"]
    times = [label for label in plot.labels if label.time_ms is not None]
    assert len(times) >= 3
    assert all(re.fullmatch(r"21 Nov \d\d:\d\d", label.text) for label in times)
    assert "21 Nov 21:16:00" in {label.text for label in plot.labels if label.kind == "moment"}


def test_lost_traffic_and_events_are_shown_by_what_was_offered_and_answered(tmp_path: Path) -> None:
    """Both lines in one unit, no third of the load behind them; an event within a minute on either side."""
    loss = drawn_of(incident_record(tmp_path / "crash"), "loss")
    event = drawn_of(incident_record(tmp_path / "failover", crash=False, failover=True), "event_impact")
    for plot in (loss, event):
        assert plot is not None
        assert plot.title == "requests offered, requests answered, requests/s"
        assert [name for kind, name in plot.legend if kind.startswith("line")] == [
            "requests offered",
            "requests answered",
        ]
        assert "load" not in dict(plot.legend)
    assert event is not None
    times = [label.time_ms for label in event.labels if label.time_ms is not None]
    begin_ms = BEGIN // 10**6
    assert min(times) >= begin_ms + (FAILOVER_S - 61) * 1000
    assert max(times) <= begin_ms + (FAILOVER_S + 75) * 1000


def test_nothing_is_proved_by_an_unrelated_line(tmp_path: Path) -> None:
    """A finding without a series has no plot of another one, and a limit of another metric is not drawn: of a silence
    the CPU of the target with its hole, of one on nothing the load alone."""
    folder = process_record(tmp_path / "unread", leak_mib_h=0, unread=True)
    silence = drawn_of(folder, "coverage", "web-1/local")
    assert silence is not None
    assert silence.title == "CPU on web-1, %"
    assert "limit" not in {stroke.kind for stroke in silence.strokes}
    with RecordView.open(folder) as view:
        page = open_page(view, judge_record(view))
        of_nothing = replace(page.verdict.findings[0], rule="my_own_rule", metric="", object="x", marks=())
        plot = proof_plot(page, of_nothing, 760, 300)
    assert plot is not None
    assert not [stroke for stroke in plot.strokes if stroke.kind.startswith("line")]


def test_ticks_never_repeat() -> None:
    """A level that hardly moves has as many decimals as tell its ticks apart."""
    for low, high in ((20.6, 20.9), (0.0, 1.0), (1e6, 1.001e6), (0.0001, 0.0002), (710.0, 750.0)):
        texts = tick_texts(ticks_between(low, high, 6))
        assert len(set(texts)) == len(texts) >= 3
