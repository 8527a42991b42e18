"""A record in a real InfluxDB: every figure is there, twice is once, and hostile names come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collector.transfer.sinks.test_influxdb_answers import Reply, serving

from soakwatch.cli.main import run
from soakwatch.core.errors import PlanError
from soakwatch.core.labels import LABELS_KEY, PENDING_KEY, labels_json
from soakwatch.record import Record, RecordView
from soakwatch.transfer.sinks.abc import RefusedLine
from soakwatch.transfer.sinks.feed import Backoff
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer, influxdb_of
from soakwatch.transfer.sinks.lines import key, line
from soakwatch.transfer.sinks.push import push
from soakwatch.transfer.sinks.verdict_line import VerdictLine
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window
from soakwatch_testing.influxd import Influxd, Row
from soakwatch_testing.records import KEYS, SECOND, T0, small_record

BucketOf = Callable[[str], Influxdb]


def a_finding(outcome: Outcome, rule: str = "memory_growth", begin: int = T0) -> Finding:
    return Finding(
        rule,
        1,
        outcome,
        "dut",
        "process.memory.usage",
        "process=p0",
        Window(begin, T0 + 60 * SECOND),
        "a definition",
        f'{rule} says "{outcome.value}"',
        60,
        measured=4096.0,
        limit=1.0,
        unit="By/h",
        forecast=Forecast("the limit", 3600.0, 1800.0, 7200.0),
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A minute of fifty series in two phases, with gaps, events, findings and a verdict."""
    folder = tmp_path / "20261121T000000Z-recorded"
    with small_record(folder, 60) as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        record.begin_phase("baseline", T0)
        record.begin_phase("soak", T0 + 30 * SECOND)
        record.end_phase(T0 + 62 * SECOND)
        due = T0 + 60 * SECOND
        record.put([Poll(source.id, due, due, SECOND // 2, PollOutcome.TIMEOUT, "took too long", NOTHING)])
        for index in (10, 10, 20):  # two of them are alike
            record.add_event(
                "dut", Event("failover", "dut", "a,b", T0 + index * SECOND, None, {"why": 'a "test"'}), "user"
            )
        record.end_event(3, T0 + 25 * SECOND)
        record.put_findings([a_finding(Outcome.WARN, "gap"), a_finding(Outcome.FAIL)], live=True, judged_ns=T0)
        record.put_findings([a_finding(Outcome.FAIL), a_finding(Outcome.PASS, "drops")], live=False, judged_ns=T0)
        record.set_meta("verdict", "fail")
        record.set_meta("reason", "dut fails")
        record.set_meta("ended_ns", str(T0 + 62 * SECOND))
        record.finish()
    return folder


def test_every_figure_of_a_record_is_in_the_database(recorded: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    to = bucket_of("figures")
    pushed = push(recorded, recorded.name, to, 30)
    assert (pushed.rejected, pushed.error) == (0, None)
    with RecordView.open(recorded) as view:
        assert view.keys() == tuple(sorted(KEYS))
        for series_key in KEYS:
            series = view.series(series_key)
            process = series_key.object.removeprefix("process=")
            rows = influxd.influxql(
                f"SELECT value, role, run FROM \"{series_key.metric}\" WHERE process='{process}'", "figures"
            )
            assert [(row["time"], row["value"]) for row in rows] == list(
                zip(series.time_ns.tolist(), series.value.astype(float).tolist(), strict=True)
            )
            assert {(row["role"], row["run"]) for row in rows} == {("dut", recorded.name)}


def test_polls_phases_events_findings_and_the_verdict_are_there(
    recorded: Path, bucket_of: BucketOf, influxd: Influxd
) -> None:
    push(recorded, recorded.name, bucket_of("recorded"), 30)

    def ask(query: str) -> list[Row]:
        return influxd.influxql(query, "recorded")

    counts = ask("SELECT count(ok), sum(ok) FROM soakwatch_poll GROUP BY outcome")
    assert [(row["outcome"], row["count"], row["sum"]) for row in counts] == [("ok", 60, 60), ("timeout", 1, 0)]
    lost = ask("SELECT source, error, duration_s, phase FROM soakwatch_poll WHERE outcome='timeout'")[0]
    assert (lost["source"], lost["error"], lost["duration_s"], lost["phase"]) == ("local", "took too long", 0.5, "soak")
    phased = ask('SELECT count(value) FROM "process.memory.usage" GROUP BY phase')
    assert [(row["phase"], row["count"]) for row in phased] == [("baseline", 1500), ("soak", 1500)]
    events = ask("SELECT * FROM soakwatch_event")
    assert [row["time"] - T0 for row in events] == [10 * SECOND, 10 * SECOND + 1, 20 * SECOND]
    assert [row["open"] for row in events] == [1, 1, 0]
    assert events[2]["end_ms"] - events[2]["begin_ms"] == 5000
    assert (events[0]["object"], events[0]["text"]) == ("a,b", 'failover a,b: why=a "test"')
    findings = {row["rule"]: row for row in ask("SELECT * FROM soakwatch_finding")}
    assert {rule: (row["outcome"], row["severity"]) for rule, row in findings.items()} == {
        "memory_growth": ("fail", 3),
        "drops": ("pass", 0),
        "gap": ("withdrawn", 0),
    }
    assert findings["memory_growth"]["reason"] == 'memory_growth says "fail"'
    assert findings["memory_growth"]["forecast_after_s"] == 3600
    (verdict,) = ask("SELECT * FROM soakwatch_verdict")
    shown = {name: verdict[name] for name in ("verdict", "severity", "headline", "failed", "devices", "run")}
    assert shown == {
        "verdict": "fail",
        "severity": 3,
        "headline": "dut fails",
        "failed": 1,
        "devices": "dut",
        "run": recorded.name,
    }


def test_labels_are_tags_of_the_verdict(recorded: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    """Runs are chosen by them; those that are still being read make no point of their own."""
    with Record.open(recorded) as record:
        record.set_meta(LABELS_KEY, labels_json({"release": "7.2 (a,b=c)", "test-bed": "rack 3"}))
        record.set_meta(PENDING_KEY, "1")
        with RecordView.open(recorded) as view:
            assert VerdictLine(recorded.name).line(view, (), "judged", ()).startswith(b"soakwatch_verdict,")
            assert VerdictLine(recorded.name).line(view, (), "running", ()) == b""
    push(recorded, recorded.name, bucket_of("labelled"), 30)
    tags = '"label_release" = \'7.2 (a,b=c)\' AND "label_test-bed" =~ /^rack/'
    (row,) = influxd.influxql(f"SELECT verdict, labels FROM soakwatch_verdict WHERE {tags}", "labelled")
    assert row["verdict"] == "fail"
    assert row["labels"] == "release=7.2 (a,b=c), test-bed=rack 3"
    (row,) = influxd.influxql("SELECT verdict FROM soakwatch_verdict", "labelled")
    assert row["verdict"] == "fail"


def test_sending_twice_changes_nothing(recorded: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    to = bucket_of("twice")
    everything = 'from(bucket: "twice") |> range(start: 0, stop: 2200-01-01T00:00:00Z)'
    first = push(recorded, recorded.name, to, 30)
    before = sorted(map(str, influxd.flux(everything)))
    assert len(before) > 3000
    assert push(recorded, recorded.name, to, 30) == first
    assert sorted(map(str, influxd.flux(everything))) == before


def test_the_command_sends_a_run_and_says_how_much(
    recorded: Path, bucket_of: BucketOf, influxd: Influxd, capsys: pytest.CaptureFixture[str]
) -> None:
    to = bucket_of("command")
    where = f"influxdb://127.0.0.1:{influxd.port}?org={to.org}&bucket={to.bucket}&token=env:SINK_TOKEN"
    assert run(["sink", str(recorded), "--to", where]) == 0
    assert f"lines of {recorded.name}" in capsys.readouterr().out
    assert influxd.influxql("SELECT verdict FROM soakwatch_verdict", "command")[0]["verdict"] == "fail"


def test_runs_of_two_campaigns_are_two_runs_and_each_is_judged(
    recorded: Path, bucket_of: BucketOf, influxd: Influxd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both folders are called ``7.2-r1``: in one bucket each has its own polls, its row in Fleet, and its verdict."""
    to = bucket_of("campaigns")
    where = f"influxdb://127.0.0.1:{influxd.port}?org={to.org}&bucket={to.bucket}&token=env:SINK_TOKEN"
    for name in ("releases", "sizes"):
        folder = tmp_path / name / "runs" / "7.2-r1"
        shutil.copytree(recorded, folder)
        (tmp_path / name / "ledger.jsonl").touch()
        assert run(["sink", str(folder), "--to", where]) == 0
    words = capsys.readouterr().out.split()
    tags = [word.rstrip(",") for word in words if word.rstrip(",").endswith(":7.2-r1")]
    assert len(set(tags)) == 2
    polls = influxd.influxql('SELECT count("ok") AS "polls" FROM "soakwatch_poll" GROUP BY "run"', "campaigns")
    assert len(polls) == 2
    assert len({row["polls"] for row in polls}) == 1
    for tag in tags:
        assert run(["judge", f"{where}&run={tag}"]) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "ftp://h"], "write influxdb://HOST"),
        (["--to", "influxdb://h"], "org is missing"),
        (["--to", "influxdb://h?org=o&bucket=b"], "token is missing"),
        (["--to", "influxdb://h?org=o&bucket=b&token=hunter2"], "must not be written in clear text"),
        (["--to", "influxdb://me:hunter2@h?org=o&bucket=b&token=env:T"], "contains a password"),
    ],
)
def test_a_bad_address_is_one_sentence_without_the_secret(
    recorded: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sink", str(recorded), *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "hunter2" not in error
    assert error.count("\n") == 1


def test_a_database_that_never_answers_ends_the_patience(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("T", "x")
    where = "influxdb://127.0.0.1:9?org=o&bucket=b&token=env:T"
    assert run(["sink", str(recorded), "--to", where, "--patience", "1s"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_a_wrong_token_is_reported_at_once_and_not_waited_for(
    recorded: Path, influxd: Influxd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("T", "hunter2")
    where = f"influxdb://127.0.0.1:{influxd.port}?org=lab&bucket=soak&token=env:T"
    assert run(["sink", str(recorded), "--to", where, "--patience", "10h"]) == 2
    error = capsys.readouterr().err
    assert "does not authorise this token for lab/soak: check token, org and bucket" in error
    assert "hunter2" not in error


def test_troubles_that_change_do_not_prolong_the_patience(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer(_: bytes) -> Reply:
        asked.append(1)
        return 500, {"retry-after": "0"}, f'{{"message": "trouble {len(asked)}"}}'.encode()

    monkeypatch.setenv("SINK_TOKEN", "x")
    monkeypatch.setattr(Backoff, "next_s", lambda *_: 0.05)
    with serving(answer) as to:
        pushed = push(recorded, recorded.name, to, 0.5)
    assert str(pushed.error).startswith(f"{to.url} answers 500: trouble")
    assert len(asked) > 1


def test_a_push_says_how_far_it_is(recorded: Path, bucket_of: BucketOf) -> None:
    words: list[str] = []
    push(recorded, recorded.name, bucket_of("shown"), 30, words.append)
    assert words[-1].startswith("100% sent, ")


def test_hostile_objects_come_back_as_they_were(tmp_path: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    names = [
        "a b",
        "a,b=c",
        'q"uo"te',
        "back\\slash",
        "a\\,b",
        "ü – 日本",
        "'",
        "%s %d %(x)s %r",
        "{}",
        "#",
        "$",
        "a\\ b",
    ]
    folder = tmp_path / "hostile run,=x"
    with Record.create(folder) as record:
        source = record.source("dut 1,=", "local", "dut/local", SECOND, required=True)
        samples = tuple(Sample("process.memory.usage", object_text(process=n), i, T0) for i, n in enumerate(names))
        record.put([Poll(source.id, T0, T0, 1, PollOutcome.OK, None, Answer(samples, (), ()))])
    assert push(folder, folder.name, bucket_of("hostile"), 30).rejected == 0
    rows = influxd.influxql('SELECT value, process, target, run FROM "process.memory.usage"', "hostile")
    assert {row["process"]: row["value"] for row in rows} == {name: i for i, name in enumerate(names)}
    assert {(row["target"], row["run"]) for row in rows} == {("dut 1,=", folder.name)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=30))
def test_no_name_breaks_a_line(influxd: Influxd, names: list[str]) -> None:
    lines = [
        line(key(name, {"run": name, "target": "t"}, {name: name, "n": str(n)}), {"value": 1.0, "text": name}, T0)
        for n, name in enumerate(names)
    ]
    answer = influxd.write(b"\n".join(lines))
    assert answer.status_code == 204, (answer.text, lines)


def test_bad_lines_are_named_and_the_good_ones_written(bucket_of: BucketOf, influxd: Influxd) -> None:
    to = bucket_of("bad")
    influxd.write(b"clash value=1i 1", "bad")
    refused: list[RefusedLine] = []
    writer = Writer(to, refused.append)
    lines = [f"good value={n}.0 {n + 1}".encode() for n in range(500)]
    lines[100] = b"clash value=1.5 7"
    lines[400] = b"clash value=2.5 8"
    writer.write(lines)  # a partial write
    lines[100], lines[400] = b"good value=100.0 101", b"no line at all"
    writer.write(lines)  # refused as a whole
    writer.close()
    assert [bad.line for bad in refused] == [b"clash value=1.5 7", b"clash value=2.5 8", b"no line at all"]
    assert "conflict" in refused[0].reason
    assert (writer.written, writer.refused) == (997, 3)
    assert influxd.influxql("SELECT count(value) FROM good", "bad")[0]["count"] == 499


def test_a_missing_token_is_a_sentence() -> None:
    with pytest.raises(PlanError, match="NO_SUCH is not set"):
        Writer(Influxdb("http://127.0.0.1:9", "o", "b", "env:NO_SUCH"), print)


def test_addresses() -> None:
    assert influxdb_of("influxdbs://[::1]:99/sub?org=o", None, "b", "file:x").url == "https://[::1]:99/sub"
