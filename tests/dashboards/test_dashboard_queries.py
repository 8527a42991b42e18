"""Every query of every panel, variable and annotation, asked of a real InfluxDB that the sink filled from records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Stop
from typing import TypedDict

import pytest
from soakwatch_dashboards.compare import END, ZERO
from soakwatch_dashboards.reading import Asked, asked, parse

from soakwatch.grafana import dashboards
from soakwatch.record import Record
from soakwatch.sinks.aligned import METRICS
from soakwatch.sinks.feed import Feed
from soakwatch.sinks.influxdb import Influxdb, Refused, Writer
from soakwatch.testing.influxd import BUCKET, ORG, Influxd, find_influxd, run_influxd
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_rules.rule import Event, Finding, Forecast, Outcome, Window

SECOND, EVERY_S, POLLS = 10**9, 10, 90
T0 = 1_767_225_600 * SECOND
BOARDS = [parse(text) for text in dashboards().values()]
ASKED = [one for board in BOARDS for one in asked(board)]
METRICS_ASKED = sorted(
    {name for one in ASKED for name in re.findall(r'FROM "([^"]+)"', one.query) if name in BY_NAME} | METRICS
)
RUNS = ("20260101T000000Z-one", "20260102T000000Z-two (nightly+)", "20260103T000000Z-three", "20260104T000000Z-four")
VERDICTS = ("fail", "pass", "inconclusive", None)  # the fourth still runs
HOSTILE = r"Gi0/0/1 [a.b]\c|d"
"""An interface whose name is a regular expression, if nobody looks."""


class Found(TypedDict, total=False):
    """One series of an answer."""

    tags: dict[str, object]
    columns: list[str]
    values: list[list[object]]


class Result(TypedDict, total=False):
    """One statement's answer."""

    series: list[Found]
    error: str


@dataclass(frozen=True, slots=True)
class View:
    """What a dashboard looks at: from, to (milliseconds), and the values of its variables as Grafana puts them in."""

    begin_ms: int
    end_ms: int
    values: Mapping[str, str]


def test_every_dashboard_asks(influx: Influxd) -> None:
    """The list of queries is not empty by accident, and the database holds what the sink wrote."""
    assert {one.board for one in ASKED} == {
        f"soakwatch-{name}" for name in ("run", "device", "compare", "fleet", "monitor")
    }
    assert len(ASKED) > 60
    for name in METRICS_ASKED:
        assert influx.influxql(f'SELECT count("value") FROM "{name}"'), name


@pytest.mark.parametrize("one", ASKED, ids=[f"{one.board}: {one.where}" for one in ASKED])
def test_query_brings_rows(influx: Influxd, one: Asked) -> None:
    """No error, at least one row with a value, and the columns and tags that the query names."""
    rows = ask(influx, one.query, view_of(one.board, RUNS[0], "dut"))
    assert rows, one.query
    named = set(re.findall(r'AS "([^"]+)"', one.query.split(" FROM ")[0]))
    grouped = re.search(r"GROUP BY (.*?)(?: fill|$)", one.query)
    tags = set(re.findall(r'"(\w+)"', grouped[1] if grouped else ""))
    assert named | tags <= set(rows[0]), one.query
    assert any(value is not None for row in rows for name, value in row.items() if name != "time" and name not in tags)


def test_growth_per_hour_is_that_of_the_readings_however_wide_the_view(influx: Influxd) -> None:
    """A run of a quarter of an hour in a view of a day grows no slower."""
    table = next(one for one in ASKED if one.where == "Processes B")
    view = view_of("soakwatch-device", RUNS[0], "dut")
    wide = View(view.begin_ms - 40_000_000, view.end_ms + 40_000_000, view.values)
    narrow, day = (ask(influx, table.query, one)[0]["an hour"] for one in (view, wide))
    assert narrow == day
    assert float(str(narrow)) == pytest.approx(360)  # a byte in ten seconds, a lost poll or not


def test_names_that_are_regular_expressions_are_found(influx: Influxd) -> None:
    """A run with a plus and an interface with brackets: chosen in a variable, they bring their own rows only."""
    device = next(board for board in BOARDS if board["uid"] == "soakwatch-device")
    (variable,) = [one for one in device["templating"]["list"] if one["name"] == "interface"]
    chosen = view_of("soakwatch-device", RUNS[1], "dut")
    names = {row["value"] for row in ask(influx, variable["query"], chosen)}
    assert names == {"eth0", HOSTILE}
    traffic = next(one for one in ASKED if one.where == "Interfaces: traffic A")
    only = View(chosen.begin_ms, chosen.end_ms, {**chosen.values, "interface": escaped(HOSTILE)})
    assert {row["interface"] for row in ask(influx, traffic.query, only)} == {HOSTILE}


def test_runs_lie_over_each_other(influx: Influxd) -> None:
    """Two runs a day apart have the same minutes on the clock of the comparison."""
    cpu = next(one for one in ASKED if one.board == "soakwatch-compare" and one.where == "CPU A")
    rows = [row for row in ask(influx, cpu.query, view_of("soakwatch-compare", "", "")) if row["value"] is not None]
    minutes = {run: [row["time"] for row in rows if row["run"] == run] for run in RUNS}
    assert minutes[RUNS[0]] == minutes[RUNS[1]] == minutes[RUNS[2]]
    assert len(minutes[RUNS[0]]) >= POLLS * EVERY_S // 60


def test_marks_are_regions_of_what_touches_the_view(influx: Influxd) -> None:
    """A finding that began before the view and lasts into it is shaded; one that ended before it is not."""
    mark = next(one for one in ASKED if (one.board, one.where) == ("soakwatch-run", "annotation Findings"))
    whole = view_of("soakwatch-run", RUNS[0], "dut")
    late = View(whole.begin_ms + 200_000, whole.end_ms, whole.values)
    after = View(whole.end_ms + 10_000_000, whole.end_ms + 20_000_000, whole.values)
    shown = [ask(influx, mark.query, view) for view in (whole, late, after)]
    assert [len(rows) for rows in shown] == [2, 1, 0]
    (row,) = shown[1]
    assert (row["title"], row["outcome"]) == ("memory_growth", "fail")
    assert float(str(row["end_ms"])) == (T0 + POLLS * EVERY_S * SECOND) // 10**6


def test_a_lost_poll_is_seen_in_the_strip(influx: Influxd) -> None:
    """At any zoom: the worst of a stretch is what is shown."""
    strip = next(one for one in ASKED if (one.board, one.where[:8]) == ("soakwatch-run", "Coverage"))
    view = view_of("soakwatch-run", RUNS[0], "dut")
    for every in ("10s", "300s"):
        rows = ask(influx, strip.query, view, every)
        assert [row["ok"] for row in rows].count(0) == 1
        assert [row["ok"] for row in rows].count(1) > 1


def view_of(board: str, run: str, target: str) -> View:
    """What somebody looks at who has chosen a run and a target; all of the rest."""
    from datetime import datetime

    everything = {"role": ".*", "process": ".*", "interface": ".*"}
    if board == "soakwatch-compare":
        begin, end = (round(datetime.fromisoformat(time).timestamp() * 1000) for time in (ZERO, END))
        return View(begin, end, {**everything, "run": ".*", "target": ".*"})
    if board == "soakwatch-fleet":
        return View(T0 // 10**6, T0 // 10**6 + len(RUNS) * 86_400_000, {})
    at = T0 + RUNS.index(run) * 86_400 * SECOND
    begin, end = at // 10**6, (at + POLLS * EVERY_S * SECOND) // 10**6
    chosen = ".*" if board == "soakwatch-monitor" else escaped(target)
    return View(begin, end, {**everything, "run": escaped(run), "target": chosen})


def escaped(value: str) -> str:
    """As Grafana's format ``regex`` escapes one value."""
    return re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value)


def ask(influx: Influxd, query: str, view: View, every: str = "10s") -> list[dict[str, object]]:
    """The rows of a query, as Grafana would ask for it: macros and variables replaced, by POST."""
    for name, value in view.values.items():
        query = query.replace(f"${{{name}:regex}}", value)
    macros = {
        "$timeFilter": f"time >= {view.begin_ms}ms and time <= {view.end_ms}ms",
        "$__interval": "1m" if view.begin_ms > 4e12 else every,
        "$__range_s": str((view.end_ms - view.begin_ms) // 1000),
        "$__from": str(view.begin_ms),
        "$__to": str(view.end_ms),
    }
    for name, value in macros.items():
        query = query.replace(name, value)
    assert "$" not in query.replace("$/", ""), query
    answer = influx.ask("POST", "/query", params={"db": BUCKET, "epoch": "ms"}, data={"q": query})
    assert answer.status_code == 200, answer.text
    result: Result = answer.json()["results"][0]
    assert "error" not in result, (query, result)
    rows: list[dict[str, object]] = []
    for series in result.get("series", []):
        tags = series.get("tags", {})
        rows += [{**tags, **dict(zip(series["columns"], row, strict=True))} for row in series["values"]]
    return rows


@pytest.fixture(scope="module")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server with both runs in it."""
    program = find_influxd()
    if program is None:
        pytest.skip("no influxd 2: build it with tests/influxd/build, or name one in INFLUXD")
    folder = tmp_path_factory.mktemp("influx")
    with run_influxd(program, folder / "server") as server:
        (folder / "token").write_text(server.token)
        (folder / "token").chmod(0o600)
        for day, run in enumerate(RUNS):
            make_record(folder / run, T0 + day * 86_400 * SECOND, VERDICTS[day])
            send(folder / run, run, server, folder / "token")
        yield server


def send(path: Path, run: str, server: Influxd, token: Path) -> None:
    """Through the sink, all of it, and nothing refused."""
    refused: list[Refused] = []
    writer = Writer(Influxdb(server.url, ORG, BUCKET, f"file:{token}"), refused.append)
    try:
        Feed(path, run, writer, Stop(), lambda _: None).finish()
    finally:
        writer.close()
    assert refused == []


def make_record(folder: Path, begin_ns: int, verdict: str | None) -> None:
    """A record that has every metric that is asked for, a lost poll, events, findings of each kind, and a verdict."""
    end_ns = begin_ns + POLLS * EVERY_S * SECOND
    with Record.create(folder) as record:
        roles = {"dut": "dut", "tg": "generator", "monitor": "monitor"}
        numbers = {}
        for target, role in roles.items():
            record.target(target, role)
            numbers[target] = record.source(target, "local", f"{target}/local", EVERY_S * SECOND, required=True).id
        record.begin_phase("baseline", begin_ns)
        record.put([poll for at in range(POLLS) for poll in polls(numbers, at, begin_ns + at * EVERY_S * SECOND)])
        middle = begin_ns + 120 * SECOND
        record.begin_phase("soak", middle)
        record.add_event("dut", Event("failover", "dut", "", middle, middle + 30 * SECOND, {"of": "line card"}), "user")
        record.add_event(
            "dut", Event("process.restart", "dut", "process=bgpd,instance=0", middle, middle, {"pid": "7"}), "probe"
        )
        record.end_phase(end_ns)
        forecast = Forecast("system.memory.limit (3.80 GiB)", 3600.0, 3000.0, 4000.0)
        told = [("memory_growth", Outcome.FAIL, begin_ns, end_ns, forecast),
                ("cpu_spike", Outcome.WARN, begin_ns, middle, None),
                ("gap", Outcome.PASS, begin_ns, end_ns, None)]  # fmt: skip
        record.put_findings(
            [
                Finding(rule, 1, outcome, "dut", "process.memory.usage", "process=bgpd,instance=0", Window(low, high),
                        "grows", "it grows", POLLS, measured=1e6, limit=1e5, unit="By", forecast=ahead)
                for rule, outcome, low, high, ahead in told
            ],
            live=verdict is None,
            judged_ns=end_ns,
        )  # fmt: skip
        if verdict is not None:
            record.set_meta("verdict", verdict)
            record.set_meta("reason", "bgpd's memory grows")


def polls(numbers: Mapping[str, int], at: int, due_ns: int) -> Iterator[Poll]:
    """The polls of all targets that are due at one time; one of the device's is lost, one of the monitor's missed."""
    for target, number in numbers.items():
        if target == "monitor" and at == 20:
            yield Poll(number, due_ns, due_ns, 0, PollOutcome.MISSED, "the monitor was late", Answer((), (), ()))
            continue
        if target == "dut" and at == 13:
            yield Poll(number, due_ns, due_ns, SECOND, PollOutcome.TIMEOUT, "no answer", Answer((), (), ()))
            continue
        samples = tuple(
            Sample(name, object_text(**labels), reading(name, at), due_ns)
            for name in METRICS_ASKED
            if owner(name) == target
            for labels in labels_of(name)
        )
        yield Poll(number, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, Answer(samples, (), ()))


def owner(name: str) -> str:
    """Which target tells of a metric."""
    return {"load": "tg", "monitor": "monitor"}.get(name.split(".", 1)[0], "dut")


def labels_of(name: str) -> tuple[dict[str, str], ...]:
    """The labels of two objects of a metric, or of the target as a whole."""
    words = {"interface": ("eth0", HOSTILE), "process": ("bgpd", "snort 2"), "direction": ("receive", "transmit")}
    known = BY_NAME[name].labels
    if not known:
        return ({},)
    return tuple({label: words.get(label, ("0", "1"))[place] for label in known} for place in (0, 1))


def reading(name: str, at: int) -> float:
    """A value that the catalogue allows; counters grow."""
    entry = BY_NAME[name]
    if name == "process.memory.usage":
        return 100.0 + at
    if entry.kind == "counter":
        return 1000.0 * at
    return (0.0, 0.5, 0.25)[at % 3] if entry.high is not None and entry.high <= 1 else float(100 + at % 7)
