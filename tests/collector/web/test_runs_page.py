"""The page of all runs: what it lists, how it stays quick with many, and what it does with what cannot be read."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import jsonschema
import numpy as np
import pytest
from tests.browser.answer_records import AUTHD, incident_record
from tests.commands import MAX_WAIT_S

from soakwatch.core.sparkline import HEIGHT, WIDTH, sparkline
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.baseline import BaselineSnapshot
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.record.model import StoredEvent
from soakwatch.record.writer_lock import release_lock, take_lock
from soakwatch.runs.catalog import run_line
from soakwatch.runs.release_under_test import release_of
from soakwatch.runs.summary import RunSummary, summary_of
from soakwatch.web.access import Token
from soakwatch.web.json_runs import ROW, row_data
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch.web.summaries import Summaries
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window
from soakwatch_testing.served import ServedRun

Recorded = Callable[..., Path]
SECOND = 10**9
TOKEN = "a token for tests"
HOSTILE = "<script>alert(1)</script>\u202e\u05d0"


def finding(rule: str, outcome: Outcome, *, metric: str = "system.uptime", reason: str = "so it is") -> Finding:
    """What a rule said of the recorded device."""
    return Finding(rule, 1, outcome, "dut", metric, "", Window(0, 1), "as defined", reason, 1)


def judged(folder: Path, verdict: str, *findings: Finding, **metas: str) -> Path:
    """The record of a run that was judged."""
    with Record.open(folder) as record:
        record.put_findings(findings, live=False, judged_ns=1)
        for key, text in {"verdict": verdict, "reason": f"it is {verdict}", **metas}.items():
            record.set_meta(key, text)
    return folder


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[httpx.Client]:
    """Someone with the token, at the server of all runs."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with (
        serve(WebPlan(listen="127.0.0.1:0"), Token(TOKEN), RunFolder(tmp_path / "runs")) as served,
        httpx.Client(base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240) as client,
    ):
        yield client


def rows(client: httpx.Client) -> dict[str, dict[str, object]]:
    """All rows by the names of the runs, once all of them have been read; each is what the API says it is."""
    deadline = time.monotonic() + MAX_WAIT_S
    while True:
        page = client.get("/api/summaries").json()
        if page["read"] == page["there"]:
            break
        assert time.monotonic() < deadline, f"the runs were not read within {MAX_WAIT_S:g} s"
    for row in page["runs"]:
        jsonschema.validate(row, ROW)
    return {row["run"]: row for row in page["runs"]}


def test_a_run_is_shown_in_one_row(recorded: Recorded, visitor: httpx.Client) -> None:
    """Verdict, worst finding, coverage, targets, length, size and the line of the series that the finding is of."""
    folder = recorded("night", reboot_s=300, ended=True)
    well, bad = finding("gap", Outcome.PASS), finding("reboot", Outcome.FAIL, reason="1 reboot")
    judged(folder, "fail", well, finding("hang", Outcome.WARN), bad)
    row = rows(visitor)["night"]
    assert (row["verdict"], row["reason"], row["state"]) == ("fail", "it is fail", "ended")
    worst = {"outcome": "fail", "symbol": "✗", "rule": "reboot", "target": "dut", "about": "system.uptime"}
    assert row["worst"] == {**worst, "title": "dut rebooted", "reason": "1 reboot"}
    assert row["counts"] == {"fail": 1, "warn": 1, "pass": 1}
    assert row["targets"] == [{"name": "dut", "role": "dut"}]
    assert (row["coverage"], row["covered"], row["duration"], row["samples"]) == (1.0, "100 %", "10 min", 601)
    spark = row["spark"]
    assert isinstance(spark, dict)
    assert (spark["target"], spark["about"], spark["reach"]) == ("dut", "system.uptime", "0 s to 21 min 39 s")
    assert row["bytes"] == sum(file.stat().st_size for file in folder.glob("record.sqlite*"))


def test_an_inconclusive_finding_that_blocked_nothing_is_none(recorded: Recorded) -> None:
    """Of a run that passed the warning matters most, or nothing; of one that did not, the inconclusive finding."""
    inconclusive, warning = finding("growth", Outcome.INCONCLUSIVE), finding("hang", Outcome.WARN)
    for verdict, rule in (("pass", "hang"), ("inconclusive", "growth")):
        worst = summary_of(judged(recorded(verdict, ended=True), verdict, inconclusive, warning)).worst
        assert worst is not None
        assert worst.rule == rule
    assert summary_of(judged(recorded("calm", ended=True), "pass", inconclusive)).worst is None


def test_a_run_that_goes_on_shows_how_far_it_is(recorded: Recorded, visitor: httpx.Client) -> None:
    """It is running while its writer holds the lock, and broken off when that died, though its record is the same."""
    folder = recorded("night")
    with Record.open(folder) as record:
        record.set_meta(PLANNED_KEY, planned_text(1800, ["soak"]))
    lock = take_lock(folder / "record.sqlite")
    try:
        row = rows(visitor)["night"]
        assert (row["state"], row["planned"], row["seconds"]) == ("running", "30 min", pytest.approx(600, abs=1))
    finally:
        release_lock(lock)
    assert rows(visitor)["night"]["state"] == "broken off"


def test_what_cannot_be_read_is_listed_with_the_reason(
    recorded: Recorded, visitor: httpx.Client, tmp_path: Path
) -> None:
    """A damaged record, an empty one and one whose name cannot be used in a URL hide no other run."""
    recorded("good", ended=True)
    for name, content in (("damaged", b"no record at all"), ("a name <b>", b"x")):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "record.sqlite").write_bytes(content)
    Record.create(tmp_path / "runs" / "empty").close()
    listed = rows(visitor)
    assert listed["good"]["trouble"] is None
    troubles = {name: str(row["trouble"]) for name, row in listed.items() if row["state"] == "unreadable"}
    assert troubles.keys() == {"damaged", "a name <b>", "empty"}
    assert "is not a record" in troubles["damaged"]
    assert "no poll yet" in troubles["empty"]
    assert "cannot be used in a URL" in troubles["a name <b>"]
    assert str(tmp_path) not in "".join(troubles.values())


def test_the_list_is_sent_once(recorded: Recorded, visitor: httpx.Client) -> None:
    """Nothing changed: 304 without a body. A run more: the list again."""
    recorded("one", ended=True)
    rows(visitor)
    first = visitor.get("/api/summaries")
    again = visitor.get("/api/summaries", headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    recorded("two", ended=True)
    assert rows(visitor).keys() == {"one", "two"}
    other = visitor.get("/api/summaries", headers={"if-none-match": first.headers["etag"]})
    assert other.status_code == 200


def test_the_first_answer_does_not_wait_for_the_last_record(recorded: Recorded, tmp_path: Path) -> None:
    """With many records what is known is returned at once, and how many are still to be read; each is read once."""
    record_folder = recorded("r000", ended=True)
    template = summary_of(record_folder)
    for number in range(1, 120):
        (tmp_path / "runs" / f"r{number:03}").mkdir()
        (tmp_path / "runs" / f"r{number:03}" / "record.sqlite").write_bytes(b"")
    read: list[str] = []
    gate = threading.Semaphore(0)

    def slow(folder: Path) -> RunSummary:
        gate.acquire()
        read.append(folder.name)
        return replace(template, line=replace(template.line, folder=folder))

    summaries = Summaries(tmp_path / "runs", slow)
    first = summaries.overview()
    assert (len(first.summaries), first.unread, first.runs) == (0, 120, 120)
    for _ in range(40):
        gate.release()
    while len(read) < 40:
        time.sleep(0.01)
    for _ in range(80):
        gate.release()
    last = summaries.overview(20.0)
    assert (len(last.summaries), last.unread) == (120, 0)
    assert sorted(read) == [f"r{number:03}" for number in range(120)]
    assert summaries.overview().unread == 0
    assert len(read) == 120


def test_a_record_is_read_again_when_it_changed_and_a_running_one_after_a_rest(
    recorded: Recorded, tmp_path: Path
) -> None:
    """A run that goes on changes each second: it is not read each time that someone asks."""
    folder = recorded("night")
    reads, now = 0, 1000.0

    def counted(run: Path) -> RunSummary:
        nonlocal reads
        reads += 1
        return summary_of(run)

    summaries = Summaries(tmp_path / "runs", counted, lambda: now)

    def change() -> None:
        with Record.open(folder) as record:
            record.add_event("", Event("mark", "", "", time.time_ns(), None), "user")

    def asked() -> int:
        before = reads
        summaries.overview(10.0)
        while any(thread.name == "summaries" for thread in threading.enumerate()):
            time.sleep(0.01)
        return reads - before

    assert (asked(), asked()) == (1, 0)
    change()
    assert asked() == 1
    lock = take_lock(folder / "record.sqlite")
    try:
        change_state = summaries.overview().summaries[0].line.state
        assert change_state == "running"
        (tmp_path / "runs" / "night" / "record.sqlite").touch()
        asked()
        for _ in range(3):
            (tmp_path / "runs" / "night" / "record.sqlite").touch()
            assert asked() == 0
        now += 60.0
        assert asked() == 1
    finally:
        release_lock(lock)


def test_a_defect_in_one_record_hides_no_other(recorded: Recorded, tmp_path: Path) -> None:
    """Whatever goes wrong with one is reported for that one, by its kind and without its text."""
    recorded("a", ended=True)
    recorded("b", ended=True)

    def broken(folder: Path) -> RunSummary:
        if folder.name == "a":
            raise LookupError("a secret")
        return summary_of(folder)

    broken_line, other = Summaries(tmp_path / "runs", broken).overview(20.0).summaries
    assert (broken_line.line.state, other.line.state) == ("unreadable", "ended")
    assert broken_line.line.trouble is not None
    assert "LookupError" in broken_line.line.trouble
    assert "secret" not in broken_line.line.trouble


def test_hostile_names_reach_the_page_as_text_only(tmp_path: Path, visitor: httpx.Client) -> None:
    """The page holds no name of a run; the data are JSON, and what would turn the text beside it is gone."""
    folder = tmp_path / "runs" / "night"
    with Record.create(folder) as record:
        record.set_meta("run", HOSTILE)
    row = row_data(RunSummary(replace(run_line(folder), name=HOSTILE), reason=HOSTILE))
    assert row["name"] == row["reason"] == "<script>alert(1)</script>\u05d0"
    page = visitor.get("/")
    assert page.status_code == 200
    assert "alert(1)" not in page.text
    assert "<script>" not in re.sub(r'<script src="/static/[\w.]+"( defer)?></script>', "", page.text)


def test_the_page_acts_only_for_those_who_may(recorded: Recorded, visitor: httpx.Client) -> None:
    """A viewer sees no way to delete, and has none."""
    recorded("night", ended=True)
    acting = visitor.get("/").text
    assert 'data-acting="1"' in acting
    assert "deletion.js" in acting
    foreign = {"origin": "http://elsewhere.example"}
    viewer_page = visitor.get("/", headers=foreign).text
    assert 'data-acting="0"' in viewer_page
    assert "<dialog" not in viewer_page
    assert visitor.delete("/api/runs/night?confirm=night", headers=foreign).status_code == 403
    assert "night" in rows(visitor)


@pytest.mark.parametrize("name", ["runs.js", "runs.css", "deletion.js", "shade.js", "compare.js"])
def test_its_files_are_served_and_never_set_markup(visitor: httpx.Client, name: str) -> None:
    """Everything the pages load comes from here, and no script makes markup of data."""
    text = visitor.get(f"/static/{name}").text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_server_of_one_run_has_no_list(served: ServedRun, client: httpx.Client, run: Path) -> None:
    """Its first page is that of the run; comparing and deleting are for the folder's server."""
    assert client.get(served.url).headers["location"] == f"/runs/{run.name}/"
    for path in ("/api/summaries", f"/compare?run={run.name}&run=other", f"/api/runs/{run.name}/loss"):
        assert client.get(f"{served.url}{path}").status_code == 404, path
    assert client.delete(f"{served.url}/api/runs/{run.name}?confirm={run.name}").status_code == 404
    assert run.is_dir()


def line_of(unit: str, time_ns: list[int], value: list[float]) -> Series:
    """A series of a gauge."""
    times, values = np.array(time_ns, dtype=np.int64), np.array(value, dtype=np.float64)
    return Series("dut", "m", "", Trait(unit, "gauge"), times, values, 1.0)


def test_a_sparkline_keeps_spikes_and_gaps() -> None:
    """The lowest and highest of each stretch are in the path; a long silence breaks it; it stays in its box."""
    time_ns = [n * SECOND for n in (*range(1000), *range(2000, 3000))]
    value = [1.0] * 2000
    value[500], value[1500] = 9.0, -5.0
    drawn = sparkline(line_of("By", time_ns, value))
    assert drawn is not None
    assert drawn.path.count("M") == 2
    points = [(float(x), float(y)) for x, y in re.findall(r"[ML](\d+) ([\d.]+)", drawn.path)]
    assert {min(y for _, y in points), max(y for _, y in points)} == {2.0, HEIGHT - 2.0}
    assert all(0 <= x <= WIDTH for x, _ in points)
    assert drawn.reach == "-5 to 9 B"
    assert sparkline(line_of("By", [], [])) is None


def test_a_sparkline_of_extreme_or_equal_values_is_a_path() -> None:
    """Neither a constant nor numbers at the end of what floats hold break it."""
    for value in ([5.0, 5.0, 5.0], [-1.7e308, 1.7e308], [float("nan"), 1.0]):
        drawn = sparkline(line_of("1", [n * SECOND for n in range(len(value))], value))
        assert drawn is not None
        assert re.fullmatch(r"M\d+ [\d.]+h1(L\d+ [\d.]+)*", drawn.path), drawn.path


def test_the_release_is_what_the_devices_reported() -> None:
    """The versions of devices, each once, with the change that came in between; generators do not count."""
    roles = {"fw": "dut", "old": "dut", "tg": "generator"}

    def identity(target: str, **detail: str) -> Event:
        return Event("device.identity", target, "", 0, None, detail)

    events = [
        identity("fw", version="7.2.1"),
        identity("tg", version="9"),
        identity("fw", version="OS 7.2.1"),
        identity("fw", version="7.4.0", changed="version"),
    ]
    stored = [StoredEvent(number, "probe", event) for number, event in enumerate(events)]
    assert release_of(stored, roles, None) == "OS 7.2.1 → 7.4.0"
    machines = '{"old": {"host": {"kernel": "6.1.0-9"}}, "tg": {"host": {"kernel": "5"}}, "odd": []}'
    assert release_of(stored, roles, machines) == "OS 7.2.1 → 7.4.0, kernel 6.1.0-9"
    assert release_of([], roles, "no JSON") == ""
    assert release_of(stored, roles, machines, {"build": "9"}) == "OS 7.2.1 → 7.4.0, kernel 6.1.0-9"
    assert release_of(stored, roles, machines, {"release": "nginx 1.22"}) == "nginx 1.22", "the label is what is tested"


def test_an_imported_baseline_is_known(recorded: Recorded) -> None:
    """A run that was held against another's baseline names it."""
    folder = recorded("later", ended=True)
    frozen = BaselineSnapshot("earlier", Window(0, 1), ()).text()
    assert summary_of(judged(folder, "pass", **{BASELINE: frozen})).baseline_run == "earlier"


def test_the_terminal_lists_the_same(recorded: Recorded, soakwatch: Callable[..., object]) -> None:
    """`soakwatch runs` has the summaries too, and says below the table what it cannot read."""
    folder = recorded("night", ended=True)
    judged(folder, "fail", finding("reboot", Outcome.FAIL))
    (folder.parent / "damaged").mkdir()
    (folder.parent / "damaged" / "record.sqlite").write_bytes(b"no record")
    printed = str(getattr(soakwatch("runs"), "stdout", ""))
    assert re.search(r"night .* ended +fail +✗ dut rebooted +100 %", printed)
    assert "damaged cannot be read: record.sqlite is not a record" in printed


def test_the_series_of_a_dead_process_is_its_memory(tmp_path: Path) -> None:
    """And not a line that is up, or down; nor is what the monitor costs the worst of any run."""
    folder = incident_record(tmp_path / "run", long=True)
    with RecordView.open(folder) as view:
        verdict = judge_record(view, ended=True)
    died = replace(next(f for f in verdict.findings if f.rule == "process_restart"), outcome=Outcome.FAIL, object=AUTHD)
    own = replace(died, rule="growth", target="monitor", metric="monitor.memory.usage", object="")
    spark = summary_of(judged(folder, "fail", own, died)).spark
    assert spark is not None
    assert (spark.target, spark.metric, spark.object) == ("gw", "process.memory.usage", AUTHD)
