"""A night that failed, as it is seen: what a real Grafana showed to be unreadable or wrong, asked of an InfluxDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from soakwatch_dashboards.reading import panels
from tests.dashboards.filling import ASKED, BOARDS, SECOND, View, ask, escaped, view_of
from tests.dashboards.night import (
    BEGIN_NS,
    CORES,
    DOWN,
    END_NS,
    EVERY_S,
    FAILING,
    FLAPPING,
    FLOW_PACKETS,
    INCONCLUSIVE,
    LEAKING,
    NIGHT,
    POLLS,
    PORT_ERRORS,
    PROCESSES,
    SHORT,
    SHORT_NS,
    SHORT_S,
    TICK_PACKETS,
    USED,
    WARNING,
    fill,
)
from tests.dashboards.test_dashboard_invariants import matches
from tests.dashboards.test_dashboard_queries import query_of

from soakwatch_testing.influxd import Influxd, run_influxd

Merged = dict[tuple[object, ...], dict[str, object]]
"""Rows of a table by what names them."""
RUN, DEVICE, COMPARE = "soakwatch-run", "soakwatch-device", "soakwatch-compare"


@pytest.fixture(scope="module")
def influx(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server with the night in it."""
    folder = tmp_path_factory.mktemp("night")
    with run_influxd(influxd_program, folder / "server") as server:
        fill(server, folder)
        yield server


def view(board: str = RUN, run: str = NIGHT, **chosen: str) -> View:
    """The whole night, or the short run, as a dashboard opens it from a link."""
    begin_ns, end_ns = (BEGIN_NS, END_NS) if run == NIGHT else (SHORT_NS, SHORT_NS + SHORT_S * SECOND)
    values = view_of(COMPARE, "", "").values
    return View(begin_ns // 10**6, end_ns // 10**6, {**values, "run": escaped(run), "target": "firewall", **chosen})


def of_measurement(measurement: str, where: str) -> str:
    """The query of a panel without a title, by what it reads."""
    (query,) = [
        one.query for one in ASKED if (one.board, one.where) == (RUN, where) and f'"{measurement}"' in one.query
    ]
    return query


def test_no_finding_shades_a_plot(influx: Influxd) -> None:
    """A hundred findings on the whole run are lines at their moments; the only region is the short event."""
    assert [row["title"] for row in ask(influx, query_of(RUN, "annotation Events"), view())] == ["failover"]
    failures = ask(influx, query_of(RUN, "annotation Failures"), view())
    assert len(failures) == FAILING
    restarts = [row for row in failures if row["title"] == "process_restart"]
    hours = [(int(str(row["time"])) - BEGIN_NS // 10**6) / 3_600_000 for row in restarts]
    assert [round(hour, 3) for hour in hours] == [1, 2, 3]  # at their moments, not at the begin of their windows
    assert len(ask(influx, query_of(RUN, "annotation Warnings"), view())) == WARNING


def test_the_strip_of_rules_shows_windows_and_moments(influx: Influxd) -> None:
    """A row a rule: what grows is red all night, a restart for a two-hundredth of it, so that it can be seen."""
    rows = ask(influx, query_of(RUN, "Findings by rule A"), view())
    states = {
        rule: [(int(str(row["time"])), row["state"]) for row in rows if row["row"] == rule]
        for rule in ("memory_growth", "process_restart")
    }
    assert states["memory_growth"][0] == (BEGIN_NS // 10**6, "fail")
    assert states["memory_growth"][-1] == (END_NS // 10**6, "ok")
    assert [state for _, state in states["process_restart"]] == ["ok", *["fail", "ok"] * 3, "ok"][
        : len(states["process_restart"])
    ]
    phases = ask(influx, of_measurement("soakwatch_timeline", " A"), view())
    assert [state for state, _ in groupby(row["state"] for row in phases)] == ["soak", "ended"]


def test_findings_that_failed_stand_above_warnings_and_what_is_inconclusive_stands_apart(influx: Influxd) -> None:
    """The table is sorted by rank: a warning was under 85 rows of what could not be judged."""
    table = ask(influx, query_of(RUN, "Findings A"), view())
    assert Counter(row["rank"] for row in table) == {3: FAILING, 2: WARNING}
    assert all(row["at_ms"] for row in table)
    apart = ask(influx, query_of(RUN, "Inconclusive findings A"), view())
    assert [row["rank"] for row in apart] == [1] * INCONCLUSIVE


def test_the_table_of_processes_has_one_row_a_process_and_all_of_its_columns(influx: Influxd) -> None:
    """As Grafana merges three answers by what has the same name: 24 rows, where one query of two aggregates gave 46."""
    merged: dict[tuple[object, object], dict[str, object]] = {}
    for letter in "ABC":
        rows = ask(influx, query_of(DEVICE, f"Processes {letter}"), view(DEVICE))
        assert len(rows) == len(PROCESSES)
        for row in rows:
            merged.setdefault((row["process"], row["instance"]), {}).update(row)
    assert {name for name, _ in merged} == set(PROCESSES)
    assert all({"now", "most", "an hour"} <= row.keys() for row in merged.values())
    assert all(None not in row.values() for row in merged.values())
    idle = merged["worker0", "0"]
    assert float(str(idle["now"])) < float(str(idle["most"]))  # its last reading is not its highest


def test_no_rate_is_made_of_two_ticks_two_nanoseconds_apart(influx: Influxd) -> None:
    """722 packets in 2 ns are 3.6e11 packets/s, which Compare drew: no minute lost more than it counted."""
    view_of_all = view_of(COMPARE, "", "")
    chosen = View(view_of_all.begin_ms, view_of_all.end_ms, {**view_of_all.values, "run": escaped(NIGHT)})
    rates = [row["value"] for row in ask(influx, query_of(COMPARE, "Lost a second, as the generator counts A"), chosen)]
    known = [float(str(rate)) for rate in rates if rate is not None]
    assert len(known) > 700
    assert max(known) <= 2 * TICK_PACKETS / EVERY_S
    assert sum(known) / len(known) == pytest.approx(TICK_PACKETS / EVERY_S, rel=0.05)
    drawn = ask(influx, query_of(RUN, "Drops and losses a second, with the load F"), view(), "60s")
    assert max(float(str(row["value"])) for row in drawn if row["value"] is not None) <= 2 * TICK_PACKETS / EVERY_S


def test_the_device_that_opens_is_the_device(influx: Influxd) -> None:
    """The generator is first in the alphabet, and has nothing that a device has."""
    assert [row["value"] for row in ask(influx, query_of(DEVICE, "$target"), view(DEVICE))] == ["firewall"]


def test_the_load_is_one_line_where_a_generator_reports_and_counts(influx: Influxd) -> None:
    """Rate and counter were both drawn, in one colour: together they looked like a solid line."""
    rows = ask(influx, query_of(RUN, "CPU, with the load E"), view(), "60s")
    assert {(row["target"], row["what"]) for row in rows} == {("a-generator", "packets")}
    assert {row["value"] for row in rows} - {None} == {20_000}


def test_no_host_of_the_monitor_flattens_what_leaks(influx: Influxd) -> None:
    """Its memory swings by 1 GB, the leak has 36 MB: only devices under test are drawn, and all of a device's memory
    has an axis of its own."""
    title = "Memory growth since the view began, with the load: what grows most"
    rows = ask(influx, query_of(RUN, f"{title} C"), view(target=".*"), "600s")
    assert {row["target"] for row in rows} == {"firewall"}
    assert max(abs(float(str(row["value"]))) for row in rows) < 40e6
    (panel,) = [panel for board in BOARDS for panel in panels(board) if panel["title"] == title]
    (aside,) = [o for o in panel["fieldConfig"]["overrides"] if matches(o, "firewall, all of it")]
    assert ("custom.axisPlacement", "right") in {
        (s["id"], s["value"]) for s in aside["properties"] if s["id"] != "color"
    }
    assert not any(matches(o, "firewall worker3 0") for o in panel["fieldConfig"]["overrides"])


def test_the_strip_of_interfaces_shows_those_that_lost_their_link(influx: Influxd) -> None:
    """80 ports, 70 of them unused and down all night: 48 names overprinted each other, and red was the usual colour."""
    shown = [
        str(row["value"] if "value" in row else row["interface"])
        for row in ask(influx, query_of(DEVICE, "$worst_interface"), view(DEVICE))
    ]
    assert set(FLAPPING) <= set(shown) <= {f"eth{port}" for port in USED}
    assert len(shown) == len(USED)
    strip = query_of(DEVICE, "Interfaces that are up A")
    rows = ask(influx, strip, view(DEVICE, worst_interface=escaped(*shown)), "240s")
    assert {row["interface"] for row in rows if row["up"] == 0} == set(FLAPPING)


def merged(
    influx: Influxd, board: str, title: str, letters: str, *keys: str
) -> dict[tuple[object, ...], dict[str, object]]:
    """A table of several queries as Grafana merges them, by the columns that name its rows."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for letter in letters:
        for row in ask(influx, query_of(board, f"{title} {letter}"), view(board)):
            rows.setdefault(tuple(row[key] for key in keys), {}).update(row)
    return rows


def test_flows_and_ports_of_the_generator_have_a_row_each(influx: Influxd) -> None:
    """With what each counted, although its counters began anew at half of the night."""
    flows = merged(influx, RUN, "By flow", "ABC", "target", "flow")
    polls = POLLS - 2  # between the first and the last of each half
    for flow, packets in FLOW_PACKETS.items():
        row = flows["a-generator", flow]
        assert row["sent"] == packets * polls
        assert row["received"] == pytest.approx(packets * polls * (0.9 if flow == "bulk" else 1))
        assert row["at most"] == pytest.approx(0.1 if flow == "bulk" else 0)
    ports = merged(influx, RUN, "By port", "AD", "target", "port")
    assert {port: (row["link"], row["errors"]) for (_, port), row in ports.items()} == {
        "0": (1, 0),
        "1": (0, PORT_ERRORS * polls),
    }


def test_the_tile_of_the_load_counts_what_it_lost(influx: Influxd) -> None:
    """All of the night, and no figure where the generator counts none: it sends packets and no requests."""
    lost = ask(influx, query_of(RUN, "Lost A"), view())
    assert len(lost) == 1
    assert float(str(lost[0]["lost"])) == pytest.approx(TICK_PACKETS * POLLS, rel=0.11)
    assert ask(influx, query_of(RUN, "Lost B"), view()) == []


def test_a_session_that_flapped_is_a_bar(influx: Influxd) -> None:
    """The rule ``session_flap`` fails a run, and no panel showed why."""
    rows = ask(influx, query_of(DEVICE, "Changes of sessions A"), view(DEVICE), "240s")
    changed = [(row["peer"], row["value"]) for row in rows if row["value"]]
    assert changed == [("192.0.2.2", 2)]


@pytest.mark.slow
def test_the_wall_shows_what_grows_and_what_is_busy(influx: Influxd) -> None:
    """Of 24 processes the four that leak, of 32 cores the busiest, the median and the idlest."""
    growing = [str(row["process"]) for row in ask(influx, query_of(RUN, "$growing"), view())]
    assert set(growing) == set(LEAKING)
    of_these = view(growing=escaped(*growing))
    title = "Memory growth since the view began, with the load: what grows most"
    rows = ask(influx, query_of(RUN, f"{title} A"), of_these, "600s")
    assert {row["process"] for row in rows} == set(LEAKING)
    highest = max(float(str(row["value"])) for row in rows)
    assert highest == pytest.approx(50e3 * 710, rel=0.02)  # from zero, whatever each had at first
    band = ask(influx, query_of(RUN, "CPU, with the load A"), view(), "60s")
    known = [row for row in band if row["highest"] is not None]
    assert {round(float(str(row["highest"])), 1) for row in known} <= {0.9, 1.0}
    assert {round(float(str(row["median"])), 1) for row in known} == {0.2}
    assert CORES > 20


def test_only_the_place_that_drops_is_a_line_above_zero(influx: Influxd) -> None:
    """80 interfaces are one line on the wall: 406 packets a minute and direction of one of them."""
    rows = ask(influx, query_of(RUN, "Drops and losses a second, with the load A"), view(), "60s")
    known = {round(float(str(row["value"])), 2) for row in rows if row["value"] is not None}
    assert known
    assert max(known) == pytest.approx(2 * 406 / 60, rel=0.02)


def test_the_strip_of_processes_shows_those_that_were_down(influx: Influxd) -> None:
    """24 names overprint each other: twelve rows, and those that were down are among them."""
    worst = [str(row["process"]) for row in ask(influx, query_of(DEVICE, "$worst_process"), view(DEVICE))]
    assert len(worst) == 12
    assert set(DOWN) <= set(worst)
    rows = ask(influx, query_of(DEVICE, "Processes that run A"), view(DEVICE, worst_process=escaped(*worst)), "240s")
    assert {row["process"] for row in rows if row["up"] == 0} == set(DOWN)


def test_a_strip_has_the_time_axis_of_the_view(influx: Influxd) -> None:
    """A run of five minutes in a view of six hours was two giant cells: each stretch of the view is one."""
    short = view(run=SHORT)
    wide = View(short.begin_ms - 3 * 3_600_000, short.begin_ms + 3 * 3_600_000, short.values)
    rows = [
        row
        for row in ask(influx, query_of(RUN, "Coverage: polls that were answered, by source A"), wide, "120s")
        if row["target"] == "firewall"
    ]
    assert len(rows) >= 180
    assert sum(row["ok"] is not None for row in rows) <= 4
    coverage = ask(influx, of_measurement("soakwatch_poll", " A"), view(), "180s")
    shares = [float(str(row["share"])) for row in coverage if row["share"] is not None]
    assert sum(share < 1 for share in shares) == 1  # the stretch of the lost poll
    assert len(shares) == 12 * 20
