"""What holds of every dashboard, whatever it shows: its JSON is what the code makes, whole, and consistent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import combinations
from typing import cast

import pytest
from soakwatch_dashboards import compare
from soakwatch_dashboards.__main__ import HOME, boards, texts
from soakwatch_dashboards.fleet import ZERO_MS
from soakwatch_dashboards.influx import SOURCE_UID as ASKED_UID
from soakwatch_dashboards.influx import series
from soakwatch_dashboards.reading import Dashboard, Heading, Link, Override, Panel, asked, headings, panels, parse
from soakwatch_dashboards.style import AXIS, GREEN, LOAD, OUTCOMES, PHASES, RED, STATES, TILE, unit_of

from soakwatch.plan.phase import PHASES as PLANNED_PHASES
from soakwatch.transfer.sinks.aligned import METRICS, ZERO_NS
from soakwatch.transfer.sinks.annotations import RANK
from soakwatch.transfer.sinks.grafana import SOURCE_UID, dashboards
from soakwatch.transfer.sinks.timeline import ENDED, NO_PHASE, NO_READING, OK
from soakwatch_model.metric import BY_NAME

GLOBALS = {"__interval", "__range_s", "__from", "__to", "timeFilter", "__data"}
UNITS = {
    *("none", "short", "percentunit", "bytes", "binBps", "bps", "reqps", "cps", "s", "celsius", "hertz"),
    *("watt", "rotrpm", "volt", "dBm", "amp"),
    *(
        "dtdurations",
        "dthms",
        "dateTimeAsIso",
        "count:packets/s",
        "count:/s",
        "time:MM-DD HH:mm",
        "time:YYYY-MM-DD HH:mm",
    ),
}
"""Ids of Grafana's list of units that these dashboards use; those with a colon are Grafana's prefixes of own ones."""
TAGS = {"run", "target", "role", "phase"}
OWN = {
    "soakwatch_poll": {"source", "outcome"},
    "soakwatch_event": {"kind", "origin", "object"},
    "soakwatch_finding": {"rule", "metric", "object"},
    "soakwatch_verdict": {"label_release", "label_testbed"},
    "soakwatch_phase": set(),
    "soakwatch_timeline": {"kind", "row"},
    "soakwatch_moment": {"rule"},
    "soakwatch_load": {"what"},
    "soakwatch_aligned": {"metric", "since", "what", *(label for name in METRICS for label in BY_NAME[name].labels)},
}
BOARDS = {name: parse(text) for name, text in dashboards().items()}
EVERY = [pytest.param(board, id=board["uid"]) for board in BOARDS.values()]
ASKED = [
    pytest.param(part.query, id=f"{part.board}: {part.where}") for board in BOARDS.values() for part in asked(board)
]


def test_five_dashboards_and_what_is_committed_is_what_the_code_makes() -> None:
    """``python -m soakwatch_dashboards`` was run after the last change, and twice gives the same."""
    made, committed = dict(texts()), dashboards()
    assert made == dict(texts())
    stale = [name for name in {*made, *committed} if made.get(name) != committed.get(name)]
    assert {file.name for file in HOME.iterdir()} == set(committed), "the command writes where the collector reads"
    assert stale == [], "run: PYTHONPATH=dashboards .venv/bin/python -m soakwatch_dashboards"
    assert {board.title.split(" · ")[1] for board in boards()} == {"Run", "Device", "Compare", "Fleet", "Monitor"}


def test_uids_and_titles_are_unique_and_short_enough() -> None:
    """Two of one uid or title would replace each other with no more than a line in Grafana's log."""
    for names in ([board["uid"] for board in BOARDS.values()], [board["title"] for board in BOARDS.values()]):
        assert len(set(names)) == len(names)
        assert all(0 < len(name) <= 40 for name in names)
    assert all(name == f"{board['uid']}.json" for name, board in BOARDS.items())


@pytest.mark.parametrize("board", EVERY)
def test_panels_have_numbers_and_places_of_their_own(board: Dashboard) -> None:
    """Within 24 columns, none over another, each with a title, a sentence about it, and its own number."""
    numbers = [panel["id"] for panel in panels(board)] + [heading["id"] for heading in headings(board)]
    assert len(set(numbers)) == len(numbers)
    for panel in panels(board):
        grid = panel["gridPos"]
        assert 0 <= grid["x"] < grid["x"] + grid["w"] <= 24, panel["title"]
        # A strip and a sentence are too low for a title: they say what they are in their rows, axis or text.
        assert panel["title"] or grid["h"] <= 3, panel["description"]
        assert panel["description"]
    closed: list[Sequence[Panel | Heading]] = [heading["panels"] for heading in headings(board)]
    for together in (board["panels"], *closed):
        for upper, lower in combinations(together, 2):
            assert not _overlap(upper, lower), (upper["title"], lower["title"])


@pytest.mark.parametrize("board", EVERY)
def test_a_closed_section_holds_its_panels_and_an_open_one_does_not(board: Dashboard) -> None:
    """As Grafana stores them; a section that repeats does so over a variable whose All are values, not a pattern."""
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    for heading in headings(board):
        assert bool(heading["panels"]) == heading["collapsed"], heading["title"]
        if repeat := heading.get("repeat"):
            assert f"${repeat}" in heading["title"]
            assert not variables[repeat].get("allValue")
            assert all(f"${{{repeat}:regex}}" in panel["targets"][0]["query"] for panel in heading["panels"])


def _overlap(panel: Panel | Heading, other: Panel | Heading) -> bool:
    a, b = panel["gridPos"], other["gridPos"]
    return (
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )


@pytest.mark.parametrize("board", EVERY)
def test_nothing_asks_another_data_source_than_the_provisioned_one(board: Dashboard) -> None:
    """Panels, queries, variables and annotations ask the one that is chosen at the head, at first the provisioned one;
    and the letters of a panel's queries are unique."""
    assert ASKED_UID == SOURCE_UID
    sources = [panel["datasource"] for panel in panels(board)]
    sources += [target["datasource"] for panel in panels(board) for target in panel["targets"]]
    sources += [part["datasource"] for part in board["templating"]["list"] if part["type"] == "query"]
    sources += [part["datasource"] for part in board["annotations"]["list"]]
    assert all(source == {"type": "influxdb", "uid": "${source}"} for source in sources)
    first = board["templating"]["list"][0]
    assert (first["name"], first["type"], first["query"]) == ("source", "datasource", "influxdb")
    assert str(first["current"]["value"]) == SOURCE_UID
    for panel in panels(board):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters, panel["title"]
        assert len(set(letters)) == len(letters), panel["title"]


@pytest.mark.parametrize("board", EVERY)
def test_every_variable_that_is_used_is_defined(board: Dashboard) -> None:
    """In queries and links; and a variable comes behind those that it depends on."""
    known = {part["name"] for part in board["templating"]["list"]}
    for part in asked(board):
        assert _used(part.query) <= known | GLOBALS, part
    for panel in panels(board):
        for link in links_of(panel):
            assert _used(link["url"]) <= known | GLOBALS, link
    before: set[str] = set()
    for variable in board["templating"]["list"]:
        assert _used(variable.get("query", "")) <= before | GLOBALS, variable["name"]
        before.add(variable["name"])


def links_of(panel: Panel) -> list[Link]:
    """The links of a panel's data: of all of its fields, and of single columns."""
    links = list(panel["fieldConfig"]["defaults"].get("links", []))
    for override in panel["fieldConfig"]["overrides"]:
        for setting in override["properties"]:
            if setting["id"] == "links":
                links += cast("list[Link]", setting["value"])
    return links


def _used(text: str) -> set[str]:
    names = re.findall(r"\$(?:\{(\w+)[^}]*\}|(\w+))", text)
    return {name for pair in names for name in pair if name}


@pytest.mark.parametrize("board", EVERY)
def test_links_lead_to_dashboards_that_take_what_they_bring(board: Dashboard) -> None:
    """A link names a dashboard of ours, its variables, columns that the query has, and a window."""
    by_uid = {other["uid"]: other for other in BOARDS.values()}
    for panel in panels(board):
        for link in links_of(panel):
            where = re.match(r"/d/([\w-]+)\?", link["url"])
            assert where, link
            taken = {f"var-{part['name']}" for part in by_uid[where[1]]["templating"]["list"]} | {"from", "to"}
            given = {part.split("=")[0] for part in link["url"].split("?")[1].split("&")}
            assert {"from", "to", "var-run"} <= given <= taken | {"${source:queryparam}"}, link
            assert "${source:queryparam}" in given, link
            for column in re.findall(r"__data\.fields\.(\w+)", link["url"]):
                assert f'"{column}"' in panel["targets"][0]["query"], (panel["title"], column)
            # By itself Grafana leaves +, & and # in an address: a run "nightly+" would be asked for as "nightly ".
            placeholders = re.findall(r"\$\{([^}]+)\}", link["url"])
            assert all(part.endswith((".numeric", ":percentencode", ":queryparam")) for part in placeholders), link


def test_from_one_dashboard_to_another() -> None:
    """Those that show one run in one window keep both; Compare keeps the run, on its own clock; from the list of runs a
    row leads to a run, and no link at the head opens a run that nobody has chosen."""
    of_a_run = {"soakwatch-run", "soakwatch-device", "soakwatch-monitor"}
    every = {board["uid"] for board in BOARDS.values()}
    for board in BOARDS.values():
        links = {
            link["url"].removeprefix("/d/").partition("?")[0]: link
            for link in board["links"]
            if "from=" not in link["url"]
        }
        chosen = board["uid"] in of_a_run
        assert set(links) == (every if chosen else every - of_a_run) - {board["uid"]}
        for uid, link in links.items():
            assert link["keepTime"] == (chosen and uid in of_a_run), (board["uid"], uid)
            keeps_run = chosen and uid != "soakwatch-fleet"
            assert link["url"].endswith("?${source:queryparam}&var-run=${run:percentencode}") == keeps_run
            assert "?${source:queryparam}" in link["url"]
            assert not link["includeVars"]  # "All" targets is none of the targets that the device's dashboard offers
    windows = [link["url"] for link in BOARDS["soakwatch-compare.json"]["links"] if "from=" in link["url"]]
    begin = ZERO_NS // 10**6
    assert windows[0] == f"/d/soakwatch-compare?from={begin}&to={begin + 2 * 3_600_000}"
    assert len(windows) == 4
    assert begin == ZERO_MS


def test_a_run_that_is_over_is_shown_whole_by_a_click() -> None:
    """From the list of runs and from the verdict: the default window is the last day."""
    for name, title in (("soakwatch-fleet.json", "Runs"), ("soakwatch-run.json", "Verdict")):
        (panel,) = [panel for panel in panels(BOARDS[name]) if panel["title"] == title]
        whole, live = (link["url"] for link in links_of(panel)[:2])
        assert whole.endswith("from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}")
        assert live.endswith("from=${__data.fields.begin_ms.numeric}&to=now")
        assert panel["targets"][0]["resultFormat"] == "table"  # only a table has other columns beside the word
    (runs,) = [panel for panel in panels(BOARDS["soakwatch-fleet.json"]) if panel["title"] == "Runs"]
    laid = links_of(runs)[2]["url"]
    assert laid.startswith("/d/soakwatch-compare?${source:queryparam}&var-run=")
    assert laid.endswith("&from=4102444800000&to=${__data.fields.aligned_end_ms.numeric}")


@pytest.mark.parametrize("board", EVERY)
def test_every_dashboard_says_its_times_in_utc_and_opens_on_a_window_of_its_own(board: Dashboard) -> None:
    """As the report does; a night is seen whole the next morning."""
    assert board["timezone"] == "utc"
    opens = {"soakwatch-fleet": "now-90d", "soakwatch-compare": compare.ZERO}
    assert board["time"]["from"] == opens.get(board["uid"], "now-24h")


@pytest.mark.parametrize("board", EVERY)
def test_one_crosshair_and_a_refresh_that_is_no_burden(board: Dashboard) -> None:
    """All panels show the same moment; a wall screen asks each half minute, for each of its queries a
    busy server takes seconds, and a refresh cancels those of the last one; what has ended is not asked again."""
    assert board["graphTooltip"] == 1
    assert board["refresh"] == {"soakwatch-compare": "", "soakwatch-fleet": "1m"}.get(board["uid"], "30s")
    assert not board["editable"]


@pytest.mark.parametrize("board", EVERY)
def test_all_is_what_is_chosen_at_first(board: Dashboard) -> None:
    """Where several can be chosen; the run, of which there is one, is the newest. Compare begins with the newest
    as well: All may be a hundred lines."""
    for variable in board["templating"]["list"]:
        if (board["uid"], variable["name"]) == ("soakwatch-compare", "run"):
            assert (variable["multi"], variable["sort"], variable.get("current")) == (True, 0, None)
        elif variable.get("multi"):
            assert variable["current"]["value"] == ["$__all"]
            assert variable.get("allValue", ".*") == ".*"
        elif variable["name"] == "run":
            assert variable["sort"] == 0  # as the database has them, the newest first
            assert variable["query"].endswith(" ORDER BY time DESC")


@pytest.mark.parametrize("board", EVERY)
def test_no_value_is_never_a_number_and_never_green(board: Dashboard) -> None:
    """A panel without samples says so; where a stat has no value it is a dash in grey, whatever its limits."""
    for panel in panels(board):
        nothing = panel["fieldConfig"]["defaults"]["noValue"]
        words = {"–", "none in this window", "no samples in this window, which is not the same as zero"}
        assert nothing in words, panel["title"]
        if panel["type"] == "stat" and panel["fieldConfig"]["defaults"].get("mappings"):
            special = panel["fieldConfig"]["defaults"]["mappings"][-1]
            assert (special["type"], special["options"]["match"]) == ("special", "null+nan")
            assert special["options"]["result"]["text"] == "–"
        for target in panel["targets"]:
            assert "fill(0)" not in target["query"]
            assert "fill(previous)" not in target["query"]


@pytest.mark.parametrize("board", EVERY)
def test_what_is_read_from_three_metres_is_large(board: Dashboard) -> None:
    """Figures of a stat: 1/250 of three metres, on a screen of 1080 lines and 0.7 m, is 18 pixels, and 12 of those of
    the wall, which is shown at 150 %."""
    for panel in panels(board):
        if panel["type"] == "stat":
            sizes = panel["options"]["text"]
            if panel["title"] == "Verdict":  # as large as its longest word lets it be
                assert "valueSize" not in sizes
                continue
            assert sizes["valueSize"] >= (18 if panel["gridPos"]["h"] == 2 else TILE)
            assert sizes.get("titleSize", 18) >= 18


@pytest.mark.parametrize("board", EVERY)
def test_a_text_or_word_shows_its_column_only(board: Dashboard) -> None:
    """A stat of all columns would show the time and the columns that its links need."""
    for panel in panels(board):
        shown = panel["options"]["reduceOptions"]["fields"] if panel["type"] == "stat" else ""
        if shown:
            for target in panel["targets"]:
                named = re.findall(r'AS "([^"]+)"', target["query"])
                assert [name for name in ("Time", *named) if re.search(shown.strip("/"), name)] == [shown.strip("/^$")]
                assert target["resultFormat"] == "table"


@pytest.mark.parametrize("board", EVERY)
def test_tables_have_no_tags(board: Dashboard) -> None:
    """Grafana puts the tags of a table into columns in the order of a map in Go: two of them get mixed up."""
    for target in (target for panel in panels(board) for target in panel["targets"]):
        if target["resultFormat"] == "table":
            assert " GROUP BY " not in re.sub(r"\(.*\)", "", target["query"]), target["query"]


def test_a_finding_leads_to_its_window() -> None:
    """On the dashboards of the run, the device and the fleet."""
    for uid in ("soakwatch-run", "soakwatch-device", "soakwatch-fleet"):
        (panel,) = [panel for panel in panels(BOARDS[f"{uid}.json"]) if panel["title"] == "Findings"]
        links = [link["url"] for link in links_of(panel)]
        assert len(links) == 2
        window = "from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}"
        assert all(window in link for link in links)


@pytest.mark.parametrize("query", ASKED)
def test_queries_name_what_the_sink_writes(query: str) -> None:
    """Measurements are metrics of the catalogue or the sink's own; tags are those that they have."""
    measurements = set(re.findall(r'FROM "([^"]+)"', query))
    assert measurements
    for name in measurements:
        assert name in BY_NAME or name in OWN, name
        tags = TAGS | (set(BY_NAME[name].labels) if name in BY_NAME else OWN[name])
        tags |= {"verdict", "headline", "labels", "devices"} if name == "soakwatch_verdict" else set()  # its texts
        grouped = " ".join(re.findall(r"GROUP BY (.*?)(?: fill|\)|$)", query))
        conditions = set(re.findall(r'"(\w+)" =~', query))
        assert set(re.findall(r'"(\w+)"', grouped)) | conditions <= tags, query


@pytest.mark.parametrize("board", EVERY)
def test_units_are_grafanas_and_those_of_the_catalogue(board: Dashboard) -> None:
    """A unit that Grafana does not know is shown as text behind the number; a wrong one misleads."""
    for panel in panels(board):
        unit = panel["fieldConfig"]["defaults"].get("unit", "none")
        overrides = [value for over in panel["fieldConfig"]["overrides"] for value in over["properties"]]
        assert {unit, *(str(part["value"]) for part in overrides if part["id"] == "unit")} <= UNITS, panel["title"]
        if panel["type"] != "timeseries" or "non_negative_difference" in _text(panel):  # how many, no rate
            continue
        for target in panel["targets"]:
            laid = [("", name) for name in re.findall(r"\"metric\" = '([^']+)'", target["query"])]
            for factor, name in [*laid, *re.findall(r'(?: \* (8) AS "value")? FROM "([^"]+)"', target["query"])]:
                if unit == "count:/s" and name in BY_NAME and unit_of(name) in {"count:packets/s", "reqps", "cps"}:
                    continue  # packets and requests on one axis
                of_metric = "bps" if factor == "8" else unit_of(name) if name in BY_NAME else ""
                if of_metric:
                    assert unit_of_line(panel, target["alias"]) == of_metric, (panel["title"], target["alias"], name)


def matches(override: Override, name: str) -> bool:
    """As Grafana reads a pattern: between slashes as it is, else as the whole of the name."""
    pattern = str(override["matcher"]["options"])
    whole = not pattern.startswith("/")
    return re.search(f"^{pattern}$" if whole else pattern.strip("/"), name) is not None


def unit_of_line(panel: Panel, alias: str) -> str:
    """The unit that a line of this name has: the last override that matches, else the panel's."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for override in panel["fieldConfig"]["overrides"]:
        if matches(override, alias):
            unit = next((str(part["value"]) for part in override["properties"] if part["id"] == "unit"), unit)
    return unit


@pytest.mark.parametrize(
    "panel",
    [p for b in BOARDS.values() for p in panels(b) if p["type"] == "timeseries"],
    ids=lambda panel: panel["title"],
)
def test_lines_have_legends_and_show_holes(panel: Panel) -> None:
    """The SDK's legends are off by themselves; a long silence must not be drawn over."""
    custom = panel["fieldConfig"]["defaults"]["custom"]
    if custom.get("drawStyle") == "bars":
        return
    assert '"showLegend": true' in _text(panel)
    assert custom["spanNulls"] == 90000.0


def test_nothing_that_an_old_grafana_cannot_show() -> None:
    """Grafana 9.3 has no panels trend and datagrid, and no second schema of dashboards."""
    kinds = {panel["type"] for board in BOARDS.values() for panel in panels(board)}
    assert kinds <= {"timeseries", "stat", "status-history", "state-timeline", "table", "heatmap"}
    assert all(board["schemaVersion"] for board in BOARDS.values())
    assert not any("inControlsMenu" in text for text in dashboards().values())


EXPLAINED = (
    "system.cpu.core.utilization",
    "process.memory.usage",
    "queue.dropped",
    "load.latency",
    "system.sessions",
)
"""What a load explains: CPU, memory, drops, latency, sessions."""


OF_DEVICE = ("system.network.io", "system.network.packets", "network.session.prefixes", "system.power")
"""What else it explains of one device."""


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        *[(f"soakwatch-{board}.json", metric) for board in ("run", "device") for metric in EXPLAINED],
        *[("soakwatch-device.json", metric) for metric in OF_DEVICE],
    ],
)
def test_the_load_lies_under_everything_that_it_explains(name: str, metric: str) -> None:
    """One query, so one line a generator, dashed, in one colour, and one axis at the right."""
    laid = [
        panel
        for panel in panels(BOARDS[name])
        if panel["type"] == "timeseries"
        and any(f'"{metric}"' in target["query"] for target in panel["targets"])
        and any('"soakwatch_load"' in target["query"] for target in panel["targets"])
    ]
    assert laid, metric
    for panel in laid:
        (load,) = [target for target in panel["targets"] if '"soakwatch_load"' in target["query"]]
        for what in ("requests", "packets", "bits", "users"):
            alias = load["alias"].replace("$tag_what", what)
            (override,) = [o for o in panel["fieldConfig"]["overrides"] if matches(o, alias)]
            settings = {setting["id"]: setting["value"] for setting in override["properties"]}
            assert settings["custom.axisPlacement"] == "right"
            assert settings["unit"] == "short"  # "2.50M packets/s" is cut at any width of an axis
            assert what in str(settings["custom.axisLabel"])
            assert settings["custom.scaleDistribution"] == {"type": "linear"}
            assert settings["custom.hideFrom"] == {"legend": True, "tooltip": False, "viz": False}
            assert settings["color"] == {"mode": "fixed", "fixedColor": LOAD}


def test_no_finding_is_shaded_over_the_plots() -> None:
    """A hundred findings on the whole run made each plot one solid red box. Only a short event is a region; failures
    and warnings are lines at their moments, and their windows are in the strip of rules."""
    for name in ("soakwatch-run.json", "soakwatch-device.json"):
        marks = {mark["name"]: mark["target"] for mark in BOARDS[name]["annotations"]["list"]}
        assert set(marks) == {"Phases", "Events", "Long events", "Failures", "Warnings"}
        regions = {word for word, target in marks.items() if "timeEndColumn" in target}
        assert regions == {"Events"}
        assert '"end_ms" - "begin_ms" < ($__to - $__from) / 8' in marks["Events"]["query"]


def test_the_wall_fits_a_screen_of_1080_lines_at_150_percent() -> None:
    """18 rows of 38 pixels are 684 of 720; all that a wall must say is above that fold, and the plots of its column
    have axes of one width, legends below, and so one time axis."""
    first = [panel for panel in panels(BOARDS["soakwatch-run.json"]) if panel["gridPos"]["y"] < 18]
    assert max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in first) == 18
    shown = {name for panel in first for target in panel["targets"] for name in measurements_of(target["query"])}
    assert shown >= {
        *("soakwatch_verdict", "soakwatch_timeline", "soakwatch_load", "soakwatch_poll", "soakwatch_finding"),
        *("system.cpu.core.utilization", "process.memory.usage", "queue.dropped", "load.lost.packets"),
    }
    tiles = [panel["title"] for panel in first if panel["gridPos"]["y"] == 0]
    assert tiles == [
        "Verdict",
        "Last poll",
        "Phase",
        "Ran, h:m:s",
        "Done",
        "Left, h:m:s",
        "Found",
        "Lost",
    ]
    for panel in first:
        if panel["type"] == "timeseries":
            assert panel["fieldConfig"]["defaults"]["custom"]["axisWidth"] == AXIS
            assert '"placement": "bottom"' in _text(panel)


@pytest.mark.parametrize("board", EVERY)
def test_a_strip_has_no_limits_of_grafanas_own(board: Dashboard) -> None:
    """Without limits of ours its legend says "< 80" and "80+"; without gaps its time axis is that of the data."""
    for panel in panels(board):
        if panel["type"] in {"status-history", "state-timeline"}:
            step, *others = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert step["value"] is None
            assert [other["value"] for other in others] == ([0.9999] if _is_share(panel) else [])
        if panel["type"] == "status-history":
            assert all("fill(null)" in target["query"] for target in panel["targets"])


def _is_share(panel: Panel) -> bool:
    return '"share"' in panel["targets"][0]["query"]


def test_the_strip_of_coverage_is_green_where_all_was_answered() -> None:
    """As bars with a colour scheme it was red from 0 to 0.9999 and green in its last pixel, with every poll answered:
    cells have one colour each. It has no pages, whose buttons took the height of its row."""
    strips = [panel for board in BOARDS.values() for panel in panels(board) if _is_share(panel)]
    assert len(strips) == 2
    for panel in strips:
        fields = panel["fieldConfig"]["defaults"]
        assert panel["type"] == "state-timeline"
        assert fields["color"] == {"mode": "thresholds"}
        assert [step["color"] for step in fields["thresholds"]["steps"]] == [RED, GREEN]
    one_row = [panel for board in BOARDS.values() for panel in panels(board) if is_strip(panel)]
    assert len(one_row) == 4
    assert not any('"perPage"' in _text(panel) for panel in one_row)


def test_strips_end_where_the_plots_below_them_do() -> None:
    """One time axis: the plots of the wall's column have the axis of the load at the right, the strips have none."""
    wall = [p for p in panels(BOARDS["soakwatch-run.json"]) if p["gridPos"]["x"] == 0 and 3 <= p["gridPos"]["y"] < 18]
    ends = {is_strip(panel): panel["gridPos"]["w"] for panel in wall}
    assert ends == {True: 11, False: 12}
    for panel in wall:
        drawn = panel["fieldConfig"]["defaults"]["custom"]["axisWidth"]
        assert drawn == (AXIS + 16 if is_strip(panel) else AXIS)  # a plot's axis has 16 pixels more beside it


def is_strip(panel: Panel) -> bool:
    """Whether it is a strip of one row."""
    return panel["type"] == "state-timeline" and not panel["title"]


@pytest.mark.parametrize("name", ["soakwatch-run.json", "soakwatch-device.json"])
def test_annotations_name_their_columns_as_grafanas_server_does(name: str) -> None:
    """With the measurement before them: without it an event had a number for a title and no end. The names of tags are
    looked for within those of columns: ``phase`` was found in ``soakwatch_phase.end_ms``, a number without commas."""
    for mark in BOARDS[name]["annotations"]["list"]:
        target = cast("dict[str, str]", mark["target"])
        (measurement,) = measurements_of(target["query"])
        selected = target["query"].partition(" FROM ")[0]
        columns = {f"{measurement}.{column}" for column in re.findall(r'"(\w+)"(?=,|$)', selected)}
        tags = target["tagsColumn"].split(",")
        named = [target["titleColumn"], target["textColumn"], *tags, *filter(None, [target.get("timeEndColumn")])]
        assert set(named) <= columns, mark["name"]
        for tag in tags:
            assert [column for column in (*columns, f"{measurement}.end_ms") if tag in column] == [tag]


@pytest.mark.parametrize("board", EVERY)
def test_legends_lie_below_and_begin_with_the_largest(board: Dashboard) -> None:
    """At the right they took up to 69 % of the width, and 48 rows of zeros stood before the port that dropped."""
    for panel in panels(board):
        if panel["type"] == "timeseries":
            legend = panel["options"]["legend"]
            assert legend["placement"] == "bottom", panel["title"]
            if legend["displayMode"] == "table":
                assert (legend["sortBy"], legend["sortDesc"]) in {("Max", True), ("Total", True)}


def test_heat_is_read_on_dark_and_on_light() -> None:
    """Turbo is dark at both ends: 100 % could not be told from 0 %. One colour that rises is reversed with the page."""
    heats = [panel for board in BOARDS.values() for panel in panels(board) if panel["type"] == "heatmap"]
    assert heats
    assert all(panel["options"]["color"]["scheme"] == "Oranges" for panel in heats)


def test_colours_of_cells_are_seen_in_grafana_9_as_well() -> None:
    """It reads ``custom.displayMode`` where later ones read ``custom.cellOptions``."""
    for board in BOARDS.values():
        for panel in panels(board):
            for override in panel["fieldConfig"]["overrides"] if panel["type"] == "table" else ():
                settings = {setting["id"]: setting["value"] for setting in override["properties"]}
                if "custom.cellOptions" in settings:
                    assert settings["custom.displayMode"] == "color-background"


def test_findings_are_sorted_by_what_is_worse_and_inconclusive_ones_stand_apart() -> None:
    """A warning was under 85 inconclusive rows: the words of the rank rise with what is worse."""
    words = [text for _, (text, _) in sorted(OUTCOMES.items(), key=lambda item: int(item[0]))]
    assert words[3:] == ["PASS", "INCONCLUSIVE", "WARN", "FAIL"]
    for board in BOARDS.values():
        for panel in panels(board):
            if panel["title"].endswith("indings") and panel["type"] == "table":
                (target,) = panel["targets"]
                expected = '"rank" = 1' if panel["title"].startswith("Inconclusive") else '"rank" >= 2'
                assert expected in target["query"], panel["title"]


def test_one_colour_a_run_in_compare() -> None:
    """The line of a run has the run's name and nothing else, and its colour is that of its place, which is the
    same in each panel: of three runs two had one colour by their names."""
    plots = [panel for panel in panels(BOARDS["soakwatch-compare.json"]) if panel["type"] == "timeseries"]
    assert len(plots) >= 10
    for panel in plots:
        assert [target["alias"] for target in panel["targets"]] == ["$tag_run"], panel["title"]
        assert panel["fieldConfig"]["defaults"].get("color") is None
        assert '"since" =~' in panel["targets"][0]["query"]


def test_what_an_engineer_looks_for_is_drawn() -> None:
    """What was in the database and on no dashboard, and limits beside what is used of them."""
    drawn = {name for name in BOARDS for query in asked(BOARDS[name]) for name in measurements_of(query.query)}
    assert drawn >= {
        *("load.failure.rate", "load.failures", "load.offered.rate", "load.offered.packet.rate", "load.rx.packet.rate"),
        *("load.users", "load.connections", "load.loss", "load.retransmits", "load.latency", "load.disordered.packets"),
        *("system.memory.oom_kills", "system.kernel.alarms", "system.core.files", "system.service.restarts"),
        *("system.filesystem.usage", "system.filesystem.limit", "system.disk.io", "system.disk.io_time"),
        *("system.memory.swap.usage", "system.memory.swap.limit", "system.tcp.retransmits", "system.softnet.squeezed"),
        *("system.conntrack.count", "system.conntrack.limit", "system.cpu.time", "system.cpu.load", "system.uptime"),
        *("system.memory.limit", "system.memory.pool.limit", "queue.limit", "system.sessions.limit"),
        *("network.session.up", "network.session.flaps", "network.session.prefixes", "network.session.uptime"),
        *("load.port.tx.packets", "load.port.up", "load.port.errors", "load.flow.loss", "load.flow.latency"),
        *("reach.lost", "system.memory.pool.failures", "system.memory.pool.largest_free"),
        *("system.pressure.time", "system.filesystem.inodes.usage", "system.filesystem.inodes.limit"),
        "system.filesystem.writable",
        *("system.sockets.usage", "system.sockets.memory", "system.sockets.memory.limit", "system.tcp.orphans"),
        *(
            "system.tcp.orphans.limit",
            "system.tcp.time_wait",
            "system.processes.created",
            "system.network.errors.by_kind",
        ),
        *("process.open_files.limit", "system.network.up", "reach.up", "reach.round_trip", "process.up"),
    }
    assert len(drawn & BY_NAME.keys()) >= 145


def measurements_of(query: str) -> set[str]:
    """The measurements that a query reads."""
    return set(re.findall(r'FROM "([^"]+)"', query))


CPU = {"system.cpu.utilization", "system.cpu.core.utilization", "system.cpu.module.utilization"}
MEMORY = {f"system.memory.{part}" for part in ("usage", "utilization", "pool.usage", "pool.utilization")}
LOST = {
    "system.network.packet.dropped",
    "system.forwarding.dropped",
    "system.ip.dropped",
    "queue.dropped",
    "queue.depth",
}


@pytest.mark.parametrize("name", ["soakwatch-run.json", "soakwatch-device.json"])
def test_a_device_is_seen_whatever_its_profile_brings(name: str) -> None:
    """Many firewalls tell of one CPU and of their memory as a share, or of pools: they are no blank panels."""
    drawn = {metric for part in asked(BOARDS[name]) for metric in re.findall(r'FROM "([^"]+)"', part.query)}
    assert drawn >= CPU | MEMORY | LOST | {"system.sessions"}
    bring = [
        profile.read_text()
        for profile in files("soakwatch.sources.profiles").joinpath("data").iterdir()
        if profile.name.endswith(".yaml")
    ]
    assert len(bring) > 100
    for kind in (CPU, MEMORY, LOST):
        assert kind & {metric for text in bring for metric in re.findall(r"metric: ([\w.]+)", text)}


def test_words_and_numbers_are_the_sinks() -> None:
    """The severities' words, hour zero, and the metrics that runs are compared by."""
    assert {float(number): text.lower() for number, (text, _) in OUTCOMES.items() if int(number) >= 0} == {
        number: outcome.value for outcome, number in RANK.items()
    }
    assert set(PHASES) == {*PLANNED_PHASES, NO_PHASE, NO_READING, ENDED}
    assert set(STATES) == {outcome.value for outcome in RANK if RANK[outcome]} | {OK}
    assert compare.ZERO == "2100-01-01T00:00:00.000Z"
    assert ZERO_NS == 4_102_444_800 * 10**9
    patterns = [
        pattern
        for query in asked(BOARDS["soakwatch-compare.json"])
        for pattern in re.findall(r'"metric" =~ /\^\((.+?)\)\$/', query.query)
    ]
    assert len(patterns) >= 10
    for pattern in patterns:
        named = {name for name in {*METRICS, "load"} if re.fullmatch(pattern, name)}
        assert len(named) == len(re.findall(r"\|", pattern.replace("(forwarding|ip)", ""))) + 1 or named, pattern


def test_a_query_of_a_metric_or_tag_that_is_not_there_is_refused() -> None:
    """Where it is written, not on the wall."""
    with pytest.raises(KeyError):
        series("system.cpu.magic", "", ())
    with pytest.raises(ValueError, match="has no label interface"):
        series("system.cpu.utilization", "", ("interface",))


def _text(panel: Panel) -> str:
    import json

    return json.dumps(panel)
