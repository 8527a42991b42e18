"""Every query of every panel, variable and annotation, asked of a real InfluxDB that the sink filled from records."""

from __future__ import annotations

import re

import pytest
from soakwatch_dashboards.common import DROP_COUNTERS
from soakwatch_dashboards.reading import Asked
from tests.dashboards.filling import (
    ASKED,
    CORES,
    EVERY_S,
    KILLED,
    METRICS_ASKED,
    NAMES,
    OLDEST,
    OTHER,
    POLLS,
    RUNNING,
    RUNS,
    View,
    ask,
    escaped,
    labels_of,
    put_in,
    view_of,
)

from soakwatch_testing.influxd import Influxd


def test_every_dashboard_asks(influx: Influxd) -> None:
    """The list of queries is not empty by accident, and the database holds what the sink wrote."""
    assert {asked.board for asked in ASKED} == {
        f"soakwatch-{name}" for name in ("run", "device", "compare", "fleet", "monitor")
    }
    assert len(ASKED) > 100
    for name in METRICS_ASKED:
        assert influx.influxql(f'SELECT count("value") FROM "{name}"'), name


@pytest.mark.parametrize("asked", ASKED, ids=[f"{asked.board}: {asked.where}" for asked in ASKED])
def test_query_brings_rows(influx: Influxd, asked: Asked) -> None:
    """No error, at least one row with a value, and the columns and tags that the query names: of one of the runs."""
    views = [view_of(asked.board, run, "dut") for run in RUNS]
    stale = view_of(asked.board, RUNNING, "dut")
    views.append(View(stale.begin_ms, stale.end_ms + 3_600_000, stale.values))
    rows = next((rows for view in views if (rows := ask(influx, asked.query, view))), [])
    assert rows, asked.query
    select, _, rest = asked.query.partition(" FROM ")
    named = set(re.findall(r'AS "([^"]+)"', select)) or set(re.findall(r'"(\w[^"]*)"', select))
    outer = re.sub(r"\(SELECT.*\)", "", rest)
    grouped = re.search(r"GROUP BY (.*?)(?: fill|$)", outer)
    tags = set(re.findall(r'"(\w+)"', grouped[1] if grouped else ""))
    assert named | tags <= set(rows[0]), asked.query
    assert any(value is not None for row in rows for name, value in row.items() if name != "time" and name not in tags)


def test_growth_per_hour_is_that_of_the_readings_however_wide_the_view(influx: Influxd) -> None:
    """A run of a quarter of an hour in a view of a day grows no slower."""
    table = next(asked for asked in ASKED if asked.where == "Processes C")
    view = view_of("soakwatch-device", RUNS[0], "dut")
    wide = View(view.begin_ms - 40_000_000, view.end_ms + 40_000_000, view.values)
    narrow, day = (ask(influx, table.query, asked)[0]["an hour"] for asked in (view, wide))
    assert narrow == day
    assert float(str(narrow)) == pytest.approx(360)  # a byte in ten seconds, a lost poll or not


def test_names_that_are_regular_expressions_are_found(influx: Influxd) -> None:
    """A run with a plus and an interface with brackets: chosen in a variable, they bring their own rows only."""
    chosen = view_of("soakwatch-device", RUNS[1], "dut")
    assert offered(influx, "interface", chosen) == set(NAMES)
    traffic = query_of("soakwatch-device", "Interfaces that are up A")
    for names in (*((name,) for name in NAMES), NAMES[:2], NAMES[2:5], NAMES):
        only = View(chosen.begin_ms, chosen.end_ms, {**chosen.values, "worst_interface": escaped(*names)})
        assert {row["interface"] for row in ask(influx, traffic, only)} == set(names)


def test_a_device_and_its_processes_may_have_any_name(influx: Influxd) -> None:
    """Spaces, slashes, quotes of both kinds, letters beyond ASCII: listed, chosen, and each with its own rows."""
    chosen = view_of("soakwatch-device", RUNS[1], OTHER)
    assert offered(influx, "target", chosen) == {"dut", OTHER}  # no generator, no monitor: there is nothing of a device
    assert offered(influx, "process", chosen) == {"bgpd", *NAMES[1:]}
    table = query_of("soakwatch-device", "Processes B")
    for names in ((NAMES[2],), (NAMES[3], NAMES[4])):
        only = View(chosen.begin_ms, chosen.end_ms, {**chosen.values, "process": escaped(*names)})
        rows = ask(influx, table, only)
        assert {row["process"] for row in rows} == set(names)
        assert {row["most"] for row in rows} == {189.0}


def test_the_table_of_processes_has_its_names_in_columns(influx: Influxd) -> None:
    """Not as tags of a series, which Grafana puts into columns in any order."""
    for where in ("Processes A", "Processes B", "Processes C"):
        view = view_of("soakwatch-device", RUNS[0], "dut")
        answer = influx.ask(
            "POST", "/query", params={"db": "soak"}, data={"q": put_in(query_of("soakwatch-device", where), view)}
        )
        (series,) = answer.json()["results"][0]["series"]
        assert "tags" not in series
        assert series["columns"][-2:] == ["process", "instance"]
        assert {row[-2] for row in series["values"]} == {"bgpd", *NAMES[1:]}


def test_cores_are_in_the_order_of_their_numbers(influx: Influxd) -> None:
    """From the first query to the last, each in the database's order."""
    view = view_of("soakwatch-device", RUNS[0], "dut")
    asked = [ask(influx, query_of("soakwatch-device", f"Busy share per core {ref}"), view) for ref in "ABC"]
    assert tuple(dict.fromkeys(str(row["core"]) for rows in asked for row in rows)) == CORES


def test_the_load_is_one_line_a_generator(influx: Influxd) -> None:
    """Of six metrics that a generator reports, the first that the sink knows stands for its load."""
    query = query_of("soakwatch-run", "CPU, with the load E")
    rows = ask(influx, query, view_of("soakwatch-run", RUNS[0], "dut"))
    assert {(row["target"], row["what"]) for row in rows} == {("tg", "requests")}
    assert {row["value"] for row in rows} - {None} == {float(100 + index) for index in range(7)}


def test_none_is_counted_as_zero_and_nothing_as_nothing(influx: Influxd) -> None:
    """Of a run without a missed poll 0, of a run that is not there no figure at all."""
    query = query_of("soakwatch-monitor", "Missed by the monitor A")
    view = view_of("soakwatch-monitor", RUNS[0], "dut")
    early = View(view.begin_ms, view.begin_ms + 60_000, view.values)
    nobody = View(view.begin_ms, view.end_ms, {**view.values, "run": "nobody"})
    assert [row["missed"] for row in ask(influx, query, view)] == [1]
    assert [row["missed"] for row in ask(influx, query, early)] == [0]
    assert ask(influx, query, nobody) == []
    passed = query_of("soakwatch-fleet", "Passed A")
    assert [row["runs"] for row in ask(influx, passed, view_of("soakwatch-fleet", "", ""))] == [1]
    running = query_of("soakwatch-fleet", "Running A")
    assert [row["runs"] for row in ask(influx, running, view_of("soakwatch-fleet", "", ""))] == [0]


def offered(influx: Influxd, name: str, view: View) -> set[object]:
    """What a variable of the dashboard of a device offers."""
    return {row["value"] for row in ask(influx, query_of("soakwatch-device", f"${name}"), view)}


def query_of(board: str, where: str) -> str:
    """A query of a dashboard by where it stands."""
    (query,) = [asked.query for asked in ASKED if (asked.board, asked.where) == (board, where)]
    return query


def test_runs_lie_over_each_other(influx: Influxd) -> None:
    """Two runs a day apart have the same minutes on the clock of the comparison."""
    cpu = next(asked for asked in ASKED if asked.board == "soakwatch-compare" and asked.where == "CPU A")
    rows = [row for row in ask(influx, cpu.query, view_of("soakwatch-compare", "", "")) if row["value"] is not None]
    minutes = {run: [row["time"] for row in rows if row["run"] == run] for run in RUNS}
    assert minutes[RUNS[0]] == minutes[RUNS[1]] == minutes[RUNS[2]]
    assert len(minutes[RUNS[0]]) >= POLLS * EVERY_S // 60


def test_a_run_has_one_colour_in_all_panels_of_compare(influx: Influxd) -> None:
    """Colours go by the order of the lines: each panel has one of each run, in one order, also of a run that has
    nothing of what it shows, whose line is empty."""
    view = view_of("soakwatch-compare", "", "")
    nobody = View(view.begin_ms, view.end_ms, {**view.values, "process": "nobody"})
    plots = [one for one in ASKED if one.board == "soakwatch-compare" and '"there"' in one.query]
    assert len(plots) >= 10
    compared = [run for run in sorted((*RUNS, OLDEST)) if run != RUNNING]
    for one in plots:
        rows = ask(influx, one.query, nobody)
        assert [run for run in dict.fromkeys(row["run"] for row in rows) if run != RUNNING] == compared, one.where
        empty = "process" in one.where
        assert any(row["value"] is not None for row in rows) != empty, one.where


def test_a_row_a_device_says_which_of_several_failed(influx: Influxd) -> None:
    """What failed, the busiest CPU, what it dropped, the polls it answered; of a device that tells less, less. No
    generator and no monitor is among them."""
    view = view_of("soakwatch-run", RUNS[0], "dut")
    every = View(view.begin_ms, view.end_ms, {**view.values, "target": ".*"})
    table: dict[object, dict[str, object]] = {"dut": {}, OTHER: {}}
    for one in ASKED:
        if one.board == "soakwatch-run" and one.where.startswith("Devices "):
            for row in ask(influx, one.query, every):
                table[row["target"]].update({name: value for name, value in row.items() if name != "time"})
    assert table["dut"]["failed"] == table["dut"]["warned"] == 1
    assert table["dut"]["all cores"] == table["dut"]["busiest module"] == 0.5
    assert float(str(table["dut"]["answered"])) == pytest.approx(1 - 1 / POLLS)
    for metric, _, place in DROP_COUNTERS:
        objects = len(labels_of(metric))
        assert table["dut"][f"dropped: {place}"] == objects * 1000 * (POLLS - 1)
    assert table[OTHER] == {"target": OTHER, "answered": 1}


def test_marks_are_what_touches_the_view_and_long_ones_are_no_regions(influx: Influxd) -> None:
    """An event of 30 s is a region, one that lasts most of the run a line; findings are lines at their moments."""
    whole = view_of("soakwatch-run", RUNS[0], "dut")
    after = View(whole.end_ms + 10_000_000, whole.end_ms + 20_000_000, whole.values)
    marks = {
        name: [ask(influx, query_of("soakwatch-run", f"annotation {name}"), view) for view in (whole, after)]
        for name in ("Phases", "Events", "Long events", "Failures", "Warnings")
    }
    assert [[row["title"] for row in rows] for rows in marks["Phases"]] == [["baseline", "soak"], []]
    assert {row["title"] for row in marks["Events"][0]} == {"failover", "process.restart"}
    assert [row["title"] for row in marks["Long events"][0]] == ["upgrade"]
    assert [row["title"] for row in marks["Failures"][0]] == ["memory_growth"]
    assert [row["title"] for row in marks["Warnings"][0]] == ["cpu_spike"]
    assert not any(rows[1] for rows in marks.values())


def test_a_run_goes_on_is_stale_or_was_never_judged(influx: Influxd) -> None:
    """RUNNING as long as readings come; STALE when the newest is older than a minute; NOT JUDGED when nobody writes."""
    fresh = view_of("soakwatch-run", RUNNING, "dut")
    late = View(fresh.begin_ms, fresh.end_ms + 3_600_000, fresh.values)
    goes_on, stale, age, old = (
        query_of("soakwatch-run", where) for where in ("Verdict A", "Verdict B", "Last poll A", "Last poll B")
    )
    assert [[row["rank"] for row in ask(influx, query, fresh)] for query in (goes_on, stale)] == [[-1], []]
    assert [[row["rank"] for row in ask(influx, query, late)] for query in (goes_on, stale)] == [[], [-3]]
    assert [row["age"] for row in ask(influx, age, fresh)] == [EVERY_S]
    assert [row["age"] for row in ask(influx, old, late)] == [EVERY_S + 3600]
    left = ask(influx, query_of("soakwatch-run", "Left, h:m:s A"), fresh)
    assert [row["left"] for row in left] == [1000 - POLLS * EVERY_S]  # its plan says 1000 s
    (phases,) = [one.query for one in ASKED if one.board == "soakwatch-run" and "'phase'" in one.query]
    assert [*dict.fromkeys(row["state"] for row in ask(influx, phases, late))] == ["baseline", "soak", "no reading"]
    killed = view_of("soakwatch-run", KILLED, "dut")
    assert [row["rank"] for row in ask(influx, goes_on, killed)] == [-2]
    assert ask(influx, age, killed) == []
    # Nobody judged it: that is no green zero of failures, but the failure that was found live is one.
    failed, warned = (query_of("soakwatch-run", f"Found {letter}") for letter in "AB")
    assert [row["failed"] for row in ask(influx, failed, killed)] == [1]
    unjudged = failed.replace('"failed" > 0', '"failed" > 1'), warned.replace('"warned" > 0', '"warned" > 1')
    assert [ask(influx, query, killed) for query in unjudged] == [[], []]


def test_fleet_counts_each_run_once_by_how_it_stands(influx: Influxd) -> None:
    """Seen days later: the run that said it goes on is stale, the killed one not judged; what is chosen is counted."""
    view = view_of("soakwatch-fleet", "", "")
    titles = ("Passed", "Failed", "Inconclusive", "Running", "Stale or not judged")
    counts = [[row["runs"] for row in ask(influx, query_of("soakwatch-fleet", f"{title} A"), view)] for title in titles]
    assert dict(zip(titles, counts, strict=True)) == dict(zip(titles, ([1], [1], [1], [0], [2]), strict=True))
    listed = [ask(influx, query_of("soakwatch-fleet", f"Runs {letter}"), view) for letter in "AB"]
    assert sorted(str(row["run"]) for rows in listed for row in rows) == sorted(RUNS)
    assert [row["rank"] for row in listed[1]] == [-3]
    for name, value, runs in (
        ("name", escaped("two (nightly+)"), {RUNS[1]}),
        ("name", escaped(OLDEST), set[str]()),  # began before the view
        ("verdict", "(fail|pass)", set(RUNS[:2])),
        ("search", "thr", {RUNS[2]}),
        ("search", "bgpd's", set(RUNS[:3])),
        ("device", escaped(OTHER), set(RUNS)),
        ("device", "nobody", set[str]()),
        ("release", escaped("7.2 (a)"), {RUNS[0]}),
        ("release", escaped("7.2 (a)", "8"), set(RUNS[:2])),
        ("testbed", "nobody", set[str]()),
    ):
        chosen = View(view.begin_ms, view.end_ms, {**view.values, name: value})
        rows = [row for letter in "AB" for row in ask(influx, query_of("soakwatch-fleet", f"Runs {letter}"), chosen)]
        assert {row["run"] for row in rows} == runs, (name, value)


def test_the_run_that_opens_is_the_one_that_began_last(influx: Influxd) -> None:
    """Whatever runs are called: by name, a run of a campaign that begins with "7.2" was the newest for ever."""
    view = view_of("soakwatch-run", RUNS[0], "dut")
    for board in ("soakwatch-run", "soakwatch-device", "soakwatch-monitor"):
        assert [row["run"] for row in ask(influx, query_of(board, "$run"), view)] == [*reversed(RUNS), OLDEST]
    compared = [row["run"] for row in ask(influx, query_of("soakwatch-compare", "$run"), view)]
    assert compared == [*(run for run in reversed(RUNS) if run != RUNNING), OLDEST]


def test_runs_are_compared_from_the_start_of_a_phase_as_well(influx: Influxd) -> None:
    """The soak began at two minutes: aligned to it, its first minute is minute zero."""
    view = view_of("soakwatch-compare", "", "")
    offered_clocks = {row["value"] for row in ask(influx, query_of("soakwatch-compare", "$since"), view)}
    assert offered_clocks == {"run", "baseline", "soak"}
    cpu = query_of("soakwatch-compare", "CPU A")
    minutes = {}
    for since in ("run", "soak"):
        chosen = View(view.begin_ms, view.end_ms, {**view.values, "since": since})
        minutes[since] = len({row["time"] for row in ask(influx, cpu, chosen) if row["value"] is not None})
    assert minutes == {"run": 15, "soak": 13}


def test_a_lost_poll_is_seen_in_the_strip(influx: Influxd) -> None:
    """At any zoom: the worst of a stretch is what is shown."""
    strip = next(asked for asked in ASKED if (asked.board, asked.where[:8]) == ("soakwatch-run", "Coverage"))
    view = view_of("soakwatch-run", RUNS[0], "dut")
    for every in ("10s", "300s"):
        rows = ask(influx, strip.query, view, every)
        assert [row["ok"] for row in rows].count(0) == 1
        assert [row["ok"] for row in rows].count(1) > 1
