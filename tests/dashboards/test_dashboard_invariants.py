"""What holds of every dashboard, whatever it shows: its JSON is what the code makes, whole, and consistent."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import pytest
from soakwatch_dashboards import compare
from soakwatch_dashboards.__main__ import boards, texts
from soakwatch_dashboards.influx import SOURCE_UID as ASKED_UID
from soakwatch_dashboards.influx import series
from soakwatch_dashboards.reading import Dashboard, Override, Panel, asked, headings, panels, parse
from soakwatch_dashboards.style import AXIS, LOAD, OUTCOMES, RED, STATES, TILE, unit_of

from soakwatch.sinks.aligned import METRICS, ZERO_NS
from soakwatch.sinks.annotations import SEVERITY
from soakwatch.sinks.grafana import SOURCE_UID, dashboards
from soakwatch_agent.metric import BY_NAME

GLOBALS = {"__interval", "__range_s", "__from", "__to", "timeFilter", "__data"}
UNITS = {"none", "short", "percentunit", "bytes", "binBps", "bps", "pps", "reqps", "cps", "s", "celsius", "dtdurations"}
"""Ids of Grafana's list of units that these dashboards use."""
TAGS = {"run", "target", "role", "phase"}
OWN = {
    "soakwatch_poll": {"source", "outcome"},
    "soakwatch_event": {"kind", "origin", "object"},
    "soakwatch_finding": {"rule", "metric", "object"},
    "soakwatch_verdict": set(),
    "soakwatch_phase": set(),
    "soakwatch_aligned": {"metric", *(label for name in METRICS for label in BY_NAME[name].labels)},
}
BOARDS = {name: parse(text) for name, text in dashboards().items()}
EVERY = [pytest.param(board, id=board["uid"]) for board in BOARDS.values()]
ASKED = [pytest.param(one.query, id=f"{one.board}: {one.where}") for board in BOARDS.values() for one in asked(board)]


def test_five_dashboards_and_what_is_committed_is_what_the_code_makes() -> None:
    """``python -m soakwatch_dashboards`` was run after the last change, and twice gives the same."""
    assert dict(sorted(texts())) == dashboards() == dict(sorted(texts()))
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
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24, panel["title"]
        assert panel["title"]
        assert panel["description"]
    for one, other in combinations(panels, 2):
        assert not _overlap(one, other), (one["title"], other["title"])


def _overlap(one: Panel, other: Panel) -> bool:
    a, b = one["gridPos"], other["gridPos"]
    return (
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )


@pytest.mark.parametrize("board", EVERY)
def test_nothing_asks_another_data_source_than_the_provisioned_one(board: Dashboard) -> None:
    """Panels, queries, variables and annotations; and the letters of a panel's queries are unique."""
    assert ASKED_UID == SOURCE_UID
    sources = [panel["datasource"] for panel in panels(board)]
    sources += [target["datasource"] for panel in panels(board) for target in panel["targets"]]
    sources += [one["datasource"] for one in board["templating"]["list"]]
    sources += [one["datasource"] for one in board["annotations"]["list"]]
    assert all(source == {"type": "influxdb", "uid": SOURCE_UID} for source in sources)
    for panel in panels(board):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters, panel["title"]
        assert len(set(letters)) == len(letters), panel["title"]


@pytest.mark.parametrize("board", EVERY)
def test_every_variable_that_is_used_is_defined(board: Dashboard) -> None:
    """In queries and links; and a variable comes behind those that it depends on."""
    known = {one["name"] for one in board["templating"]["list"]}
    for one in asked(board):
        assert _used(one.query) <= known | GLOBALS, one
    for panel in panels(board):
        for link in panel["fieldConfig"]["defaults"].get("links", []):
            assert _used(link["url"]) <= known | GLOBALS, link
    before: set[str] = set()
    for variable in board["templating"]["list"]:
        assert _used(variable["query"]) <= before, variable["name"]
        before.add(variable["name"])


def _used(text: str) -> set[str]:
    found = re.findall(r"\$(?:\{(\w+)[^}]*\}|(\w+))", text)
    return {name for pair in found for name in pair if name}


@pytest.mark.parametrize("board", EVERY)
def test_links_lead_to_dashboards_that_take_what_they_bring(board: Dashboard) -> None:
    """A link names a dashboard of ours, its variables, columns that the query has, and a window."""
    by_uid = {other["uid"]: other for other in BOARDS.values()}
    for panel in panels(board):
        for link in panel["fieldConfig"]["defaults"].get("links", []):
            where = re.match(r"/d/([\w-]+)\?", link["url"])
            assert where, link
            taken = {f"var-{one['name']}" for one in by_uid[where[1]]["templating"]["list"]} | {"from", "to"}
            given = {part.split("=")[0] for part in link["url"].split("?")[1].split("&")}
            assert {"from", "to", "var-run"} <= given <= taken, link
            for column in re.findall(r"__data\.fields\.(\w+)", link["url"]):
                assert f'"{column}"' in panel["targets"][0]["query"], (panel["title"], column)
            # By itself Grafana leaves +, & and # in an address: a run "nightly+" would be asked for as "nightly ".
            said = re.findall(r"\$\{([^}]+)\}", link["url"])
            assert all(one.endswith((".numeric", ":percentencode")) for one in said), link


def test_from_one_dashboard_to_another() -> None:
    """Each leads to all others; those that show one run in one window keep both, the others have none to give."""
    of_a_run = {"soakwatch-run", "soakwatch-device", "soakwatch-monitor"}
    for board in BOARDS.values():
        ways = {
            link["url"].removeprefix("/d/").partition("?")[0]: link
            for link in board["links"]
            if "from=" not in link["url"]
        }
        assert set(ways) == {other["uid"] for other in BOARDS.values()} - {board["uid"]}
        for uid, link in ways.items():
            stays = {uid, board["uid"]} <= of_a_run
            assert link["keepTime"] == stays, (board["uid"], uid)
            assert link["url"].endswith("?var-run=${run:percentencode}") == stays
            assert not link["includeVars"]  # "All" targets is none of the targets that the device's dashboard offers
    windows = [link["url"] for link in BOARDS["soakwatch-compare.json"]["links"] if "from=" in link["url"]]
    begin = ZERO_NS // 10**6
    assert windows[0] == f"/d/soakwatch-compare?from={begin}&to={begin + 2 * 3_600_000}"
    assert len(windows) == 4


def test_a_run_that_is_over_is_shown_whole_by_a_click() -> None:
    """From the list of runs and from the verdict: the default window is that of a run that goes on."""
    for name, title in (("soakwatch-fleet.json", "Runs"), ("soakwatch-run.json", "Verdict")):
        (panel,) = [panel for panel in panels(BOARDS[name]) if panel["title"] == title]
        whole, live = (link["url"] for link in panel["fieldConfig"]["defaults"]["links"])
        assert whole.endswith("from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}")
        assert live.endswith("from=${__data.fields.begin_ms.numeric}&to=now")
        assert panel["targets"][0]["resultFormat"] == "table"  # only a table has other columns beside the word


@pytest.mark.parametrize("board", EVERY)
def test_one_crosshair_and_a_refresh_that_is_no_burden(board: Dashboard) -> None:
    """All panels show the same moment; a wall screen asks every ten seconds, and what has ended is not asked again."""
    assert board["graphTooltip"] == 1
    assert board["refresh"] == {"soakwatch-compare": "", "soakwatch-fleet": "1m"}.get(board["uid"], "10s")
    assert not board["editable"]


@pytest.mark.parametrize("board", EVERY)
def test_all_is_what_is_chosen_at_first(board: Dashboard) -> None:
    """Where several can be chosen; the run, of which there is one, is the newest."""
    for variable in board["templating"]["list"]:
        if variable["multi"]:
            assert (variable["current"]["value"], variable["allValue"]) == (["$__all"], ".*")
        elif variable["name"] == "run":
            assert variable["sort"] == 2  # by name, downwards: names begin with their time


@pytest.mark.parametrize("board", EVERY)
def test_no_value_is_never_a_number_and_never_green(board: Dashboard) -> None:
    """A panel without samples says so; where a stat has no value it is a dash in grey, whatever its limits."""
    for panel in panels(board):
        nothing = panel["fieldConfig"]["defaults"]["noValue"]
        assert nothing in {"–", "no samples in this window, which is not the same as zero"}, panel["title"]
        if panel["type"] == "stat" and panel["fieldConfig"]["defaults"].get("mappings"):
            special = panel["fieldConfig"]["defaults"]["mappings"][-1]
            assert (special["type"], special["options"]["match"]) == ("special", "null+nan")
            assert special["options"]["result"]["text"] == "–"
        for target in panel["targets"]:
            assert "fill(0)" not in target["query"]
            assert "fill(previous)" not in target["query"]


@pytest.mark.parametrize("board", EVERY)
def test_what_is_read_from_three_metres_is_large(board: Dashboard) -> None:
    """Figures of a stat: 1/250 of three metres, on a screen of 1080 lines and 0.7 m, is 18 pixels."""
    for panel in panels(board):
        if panel["type"] == "stat":
            sizes = panel["options"]["text"]
            assert sizes["valueSize"] >= 36
            assert sizes.get("titleSize", 18) >= 18


@pytest.mark.parametrize("board", EVERY)
def test_a_text_or_word_shows_its_column_only(board: Dashboard) -> None:
    """A stat of all columns would show the time and the columns that its links need."""
    for panel in panels(board):
        shown = panel["options"]["reduceOptions"]["fields"] if panel["type"] == "stat" else ""
        if shown:
            (target,) = panel["targets"]
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
        links = [link["url"] for link in panel["fieldConfig"]["defaults"]["links"]]
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
        grouped = " ".join(re.findall(r"GROUP BY (.*?)(?: fill|\)|$)", query))
        conditions = set(re.findall(r'"(\w+)" =~', query))
        assert set(re.findall(r'"(\w+)"', grouped)) | conditions <= tags, query


@pytest.mark.parametrize("board", EVERY)
def test_units_are_grafanas_and_those_of_the_catalogue(board: Dashboard) -> None:
    """A unit that Grafana does not know is shown as text behind the number; a wrong one misleads."""
    for panel in panels(board):
        unit = panel["fieldConfig"]["defaults"].get("unit", "none")
        overrides = [value for over in panel["fieldConfig"]["overrides"] for value in over["properties"]]
        assert {unit, *(str(one["value"]) for one in overrides if one["id"] == "unit")} <= UNITS, panel["title"]
        if panel["type"] != "timeseries":
            continue
        for target in panel["targets"]:
            laid = [("", name) for name in re.findall(r"\"metric\" = '([^']+)'", target["query"])]
            for factor, name in [*laid, *re.findall(r'(?: \* (8) AS "value")? FROM "([^"]+)"', target["query"])]:
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
            unit = next((str(one["value"]) for one in override["properties"] if one["id"] == "unit"), unit)
    return unit


@pytest.mark.parametrize(
    "panel",
    [p for b in BOARDS.values() for p in panels(b) if p["type"] == "timeseries"],
    ids=lambda panel: panel["title"],
)
def test_lines_have_legends_and_show_holes(panel: Panel) -> None:
    """The SDK's legends are off by themselves; a long silence must not be drawn over."""
    assert '"showLegend": true' in _text(panel)
    assert '"spanNulls": 90000.0' in _text(panel)


def test_nothing_that_an_old_grafana_cannot_show() -> None:
    """Grafana 9.3 has no panels trend and datagrid, and no second schema of dashboards."""
    kinds = {panel["type"] for board in BOARDS.values() for panel in panels(board)}
    assert kinds <= {"timeseries", "stat", "status-history", "table", "heatmap"}
    assert all(board["schemaVersion"] for board in BOARDS.values())
    assert not any("inControlsMenu" in text for text in dashboards().values())


def test_the_load_lies_over_what_the_device_did() -> None:
    """One time axis: CPU with the offered load, drops and queues with the offered load."""
    run = BOARDS["soakwatch-run.json"]
    for metric in ("system.cpu.core.utilization", "queue.depth", "system.network.packet.dropped"):
        (panel,) = [p for p in panels(run) if any(f'"{metric}"' in t["query"] for t in p["targets"])]
        load = [target for target in panel["targets"] if target["alias"].startswith("load of ")]
        told = " ".join(target["query"] for target in load)
        for rate, total in (
            ("tx.packet.rate", "tx.packets"),
            ("request.rate", "requests"),
            ("tx.bit.rate", "tx.bytes"),
        ):
            assert f'"load.{rate}"' in told
            assert f'"load.{total}"' in told  # pktgen and interfaces count, and tell no rate
        for target in load:
            (override,) = [o for o in panel["fieldConfig"]["overrides"] if matches(o, target["alias"])]
            looks = {one["id"]: one["value"] for one in override["properties"]}
            assert looks["custom.axisPlacement"] == "right"
            assert looks["color"] == {"mode": "fixed", "fixedColor": LOAD}


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
    told = {metric for one in asked(BOARDS[name]) for metric in re.findall(r'FROM "([^"]+)"', one.query)}
    assert told >= CPU | MEMORY | LOST | {"system.sessions", "system.temperature"}
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
    assert {float(number): text.lower() for number, (text, _) in SEVERITIES.items() if number != "-1"} == {
        number: outcome.value for outcome, number in SEVERITY.items()
    }
    assert compare.ZERO == "2100-01-01T00:00:00.000Z"
    assert ZERO_NS == 4_102_444_800 * 10**9
    told = " ".join(one.query for one in asked(BOARDS["soakwatch-compare.json"]))
    assert set(re.findall(r"\"metric\" = '([^']+)'", told)) <= METRICS


def test_a_query_of_a_metric_or_tag_that_is_not_there_is_refused() -> None:
    """Where it is written, not on the wall."""
    with pytest.raises(KeyError):
        series("system.cpu.magic", "", ())
    with pytest.raises(ValueError, match="has no label interface"):
        series("system.cpu.utilization", "", ("interface",))


def _text(panel: Panel) -> str:
    import json

    return json.dumps(panel)
