"""What holds of every dashboard, whatever it shows: its JSON is what the code makes, whole, and consistent."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from soakwatch_dashboards import compare
from soakwatch_dashboards.__main__ import boards, texts
from soakwatch_dashboards.influx import SOURCE_UID as ASKED_UID
from soakwatch_dashboards.influx import series
from soakwatch_dashboards.reading import Dashboard, Panel, asked, parse
from soakwatch_dashboards.style import SEVERITIES, unit_of

from soakwatch.grafana import SOURCE_UID, dashboards
from soakwatch.sinks.aligned import METRICS, ZERO_NS
from soakwatch.sinks.told import SEVERITY
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
    sources = [panel["datasource"] for panel in board["panels"]]
    sources += [target["datasource"] for panel in board["panels"] for target in panel["targets"]]
    sources += [one["datasource"] for one in board["templating"]["list"]]
    sources += [one["datasource"] for one in board["annotations"]["list"]]
    assert all(source == {"type": "influxdb", "uid": SOURCE_UID} for source in sources)
    for panel in board["panels"]:
        letters = [target["refId"] for target in panel["targets"]]
        assert letters, panel["title"]
        assert len(set(letters)) == len(letters), panel["title"]


@pytest.mark.parametrize("board", EVERY)
def test_every_variable_that_is_used_is_defined(board: Dashboard) -> None:
    """In queries and links; and a variable comes behind those that it depends on."""
    known = {one["name"] for one in board["templating"]["list"]}
    for one in asked(board):
        assert _used(one.query) <= known | GLOBALS, one
    for panel in board["panels"]:
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
    for panel in board["panels"]:
        for link in panel["fieldConfig"]["defaults"].get("links", []):
            where = re.match(r"/d/([\w-]+)\?", link["url"])
            assert where, link
            taken = {f"var-{one['name']}" for one in by_uid[where[1]]["templating"]["list"]} | {"from", "to"}
            given = {part.split("=")[0] for part in link["url"].split("?")[1].split("&")}
            assert {"from", "to", "var-run"} <= given <= taken, link
            for column in re.findall(r"__data\.fields\.(\w+)", link["url"]):
                assert f'"{column}"' in panel["targets"][0]["query"], (panel["title"], column)


def test_a_finding_leads_to_its_window() -> None:
    """On the dashboards of the run, the device and the fleet."""
    for uid in ("soakwatch-run", "soakwatch-device", "soakwatch-fleet"):
        (panel,) = [panel for panel in BOARDS[f"{uid}.json"]["panels"] if panel["title"] == "Findings"]
        links = [link["url"] for link in panel["fieldConfig"]["defaults"]["links"]]
        assert len(links) == 2
        window = "from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}"
        assert all(window in link for link in links)


@pytest.mark.parametrize("query", ASKED)
def test_queries_name_what_the_sink_writes(query: str) -> None:
    """Measurements are metrics of the catalogue or the sink's own; tags are those that they have."""
    measurements = re.findall(r'FROM "([^"]+)"', query)
    assert len(measurements) == 1, query
    name = measurements[0]
    assert name in BY_NAME or name in OWN, name
    tags = TAGS | (set(BY_NAME[name].labels) if name in BY_NAME else OWN[name])
    grouped = re.search(r"GROUP BY (.*?)(?: fill|$)", query)
    conditions = set(re.findall(r'"(\w+)" =~', query))
    assert set(re.findall(r'"(\w+)"', grouped[1] if grouped else "")) | conditions <= tags, query


@pytest.mark.parametrize("board", EVERY)
def test_units_are_grafanas_and_those_of_the_catalogue(board: Dashboard) -> None:
    """A unit that Grafana does not know is shown as text behind the number; a wrong one misleads."""
    for panel in board["panels"]:
        unit = panel["fieldConfig"]["defaults"].get("unit", "none")
        overrides = [value for over in panel["fieldConfig"]["overrides"] for value in over["properties"]]
        assert {unit, *(str(one["value"]) for one in overrides if one["id"] == "unit")} <= UNITS, panel["title"]
        if unit not in {"bytes", "percentunit", "s", "celsius"}:
            continue
        for target in panel["targets"]:
            name = re.findall(r'FROM "([^"]+)"', target["query"])[0]
            if name in BY_NAME and not target.get("alias", "").startswith("offered"):
                assert unit_of(name) == unit, (panel["title"], name)


@pytest.mark.parametrize("panel", [p for b in BOARDS.values() for p in b["panels"] if p["type"] == "timeseries"],
                         ids=lambda panel: panel["title"])  # fmt: skip
def test_lines_have_legends_and_show_holes(panel: Panel) -> None:
    """The SDK's legends are off by themselves; a long silence must not be drawn over."""
    assert '"showLegend": true' in _text(panel)
    assert '"spanNulls": 180000.0' in _text(panel)


def test_nothing_that_an_old_grafana_cannot_show() -> None:
    """Grafana 9.3 has no panels trend and datagrid, and no second schema of dashboards."""
    kinds = {panel["type"] for board in BOARDS.values() for panel in board["panels"]}
    assert kinds <= {"timeseries", "stat", "status-history", "table", "heatmap"}
    assert all(board["schemaVersion"] for board in BOARDS.values())
    assert not any("inControlsMenu" in text for text in dashboards().values())


def test_the_load_lies_over_what_the_device_did() -> None:
    """One time axis: CPU with the offered load, drops and queues with the offered load."""
    run = BOARDS["soakwatch-run.json"]
    for metric in ("system.cpu.core.utilization", "queue.depth", "system.network.packet.dropped"):
        (panel,) = [p for p in run["panels"] if any(f'"{metric}"' in t["query"] for t in p["targets"])]
        told = " ".join(target["query"] for target in panel["targets"])
        assert '"load.tx.packet.rate"' in told
        assert '"load.request.rate"' in told


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
