"""Runs side by side: what the rules said, what of the set-up differs, the figures, and the same series overlaid."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from soakwatch.core.labels import LABELS_KEY, labels_json
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.runs.compare import differences, matrix, setup_of
from soakwatch.runs.compare_figures import figures
from soakwatch.web.access import Token
from soakwatch.web.comparison import Comparisons, comparison
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_rules.rule import Event, Finding, Outcome, Window

SECOND = 10**9
T0 = 1_790_000_000 * SECOND
Json = dict[str, object]
MakeRun = Callable[..., Path]
HOSTILE = "<img src=x onerror=alert(1)>"


def finding(rule: str, outcome: Outcome, target: str = "fw", **more: object) -> Finding:
    """What a rule said, with its reason."""
    reason = str(more.pop("reason", f"{rule} says {outcome.value}"))
    numbers = cast("dict[str, float]", more.pop("numbers", {}))
    metric, unit = str(more.pop("metric", "")), str(more.pop("unit", ""))
    return Finding(
        rule, 1, outcome, target, metric, "", Window(0, 1), "as defined", reason, 1, unit=unit, numbers=numbers
    )


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A record of a device whose CPU was at ``level`` per cent and whose interface dropped a packet each second."""

    def make(
        name: str,
        *findings: Finding,
        begin_s: int = 0,
        level: float = 20.0,
        dropping: bool = False,
        seconds: int = 120,
        plan: str = "",
        machine: str = "{}",
        version: str = "7.2",
    ) -> Path:
        folder = tmp_path / "runs" / name
        begin_ns = T0 + begin_s * SECOND
        with Record.create(folder) as record:
            metas = {"run": name, "plan": plan, "fingerprint": machine, "verdict": "pass", "ended_ns": "1"}
            for key, text in metas.items():
                record.set_meta(key, text)
            record.target("fw", "dut")
            source = record.source("fw", "snmp", "fw/snmp", SECOND, required=True)
            record.begin_phase("soak", begin_ns)
            record.add_event(
                "fw", Event("device.identity", "fw", "fw/snmp", begin_ns, None, {"version": version}), "probe"
            )
            polls = []
            for second in range(seconds):
                due = begin_ns + second * SECOND
                cpu = 0.99 if second == seconds // 2 else level / 100
                samples = (
                    Sample("system.cpu.utilization", "", cpu, due),
                    Sample("system.network.packet.dropped", "interface=a,direction=receive", second * dropping, due),
                )
                polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
            record.put(polls)
            record.put_findings(findings, live=False, judged_ns=1)
        return folder

    return make


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[httpx.Client]:
    """Someone with the token, at the server of all runs."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    headers = {"authorization": "Bearer a token for tests"}
    with (
        serve(WebPlan("127.0.0.1:0"), Token("a token for tests"), RunFolder(tmp_path / "runs")) as served,
        httpx.Client(base_url=served.url, headers=headers, trust_env=False, timeout=240) as client,
    ):
        yield client


def test_the_matrix_puts_what_differs_first() -> None:
    """A rule and a target a line, each with the worst outcome of a run; where nobody asked, nothing was said."""
    first = [
        finding("drops", Outcome.PASS),
        finding("drops", Outcome.FAIL),
        finding("gap", Outcome.FAIL),
        finding("hang", Outcome.PASS),
        finding("growth", Outcome.INCONCLUSIVE),
    ]
    other = [finding("drops", Outcome.PASS), finding("gap", Outcome.FAIL), finding("hang", Outcome.PASS)]
    rows = matrix([first, other])
    assert [(row.rule, row.differs) for row in rows] == [
        ("drops", True),
        ("gap", False),
        ("growth", False),
        ("hang", False),
    ]
    drops = rows[0].cells
    assert [(cell.outcome, cell.count, cell.findings) for cell in drops] == [(Outcome.FAIL, 1, 2), (Outcome.PASS, 1, 1)]
    assert drops[0].reason == "drops says fail"
    alone = matrix([[finding("reboot", Outcome.FAIL)], []])
    assert [(row.differs, row.cells[1].outcome) for row in alone] == [(True, None)]


def test_only_what_differs_of_the_set_up_is_shown(make_run: MakeRun) -> None:
    """Machine, plan and software, by the way to each value; what all runs have comes before what some have."""
    plan = (
        "name: n\nphases:\n- soak: {}\ntargets:\n  fw:\n    sources:\n    - snmp: {{host: 198.18.0.1, interval: {}}}\n"
    )
    machine = '{{"tg": {{"host": {{"kernel": "{}", "os": "same"}}{}}}}}'
    old = make_run("old", plan=plan.format("2m", "10s"), machine=machine.format("6.1", ""), version="7.2")
    new = make_run("new", plan=plan.format("2m", "1s"), machine=machine.format("6.6", ', "smt": true'), version="7.4")
    with RecordView.open(old) as first, RecordView.open(new) as second:
        lines = differences([setup_of(first), setup_of(second)])
    assert [(line.of, line.head, line.cells, line.differs) for line in lines] == [
        ("device", "fw/snmp version", ("7.2", "7.4"), True),
        ("machine", "tg host kernel", ("6.1", "6.6"), True),
        ("plan", "targets fw sources 1 snmp interval", ("10s", "1s"), True),
        ("machine", "tg smt", ("–", "yes"), False),
    ]
    assert differences([{"plan": "a"}, {"plan": "a"}]) == ()
    (line,) = differences([{"plan": "a" * 500}, {"plan": "a" * 499 + "b"}])
    assert (line.cells[0], line.differs) == ("a" * 300, True)


def test_labels_differ_like_the_rest_of_the_set_up(make_run: MakeRun, visitor: httpx.Client) -> None:
    """Once, as labels: what the plan says of them is not told again."""
    plan = "labels: {{release: '{0}', testbed: rack-3}}\n"
    for run, release in (("old", "7.2"), ("new", "7.4")):
        folder = make_run(run, plan=plan.format(release))
        with Record.open(folder) as record:
            record.set_meta(LABELS_KEY, labels_json({"release": release, "testbed": "<rack>"}))
    with RecordView.open(folder.with_name("old")) as first, RecordView.open(folder) as second:
        (line,) = differences([setup_of(first), setup_of(second)])
    assert (line.of, line.head, line.cells, line.differs) == ("label", "release", ("7.2", "7.4"), True)
    page = visitor.get("/compare?run=new&run=old").text
    assert '<bdi class="name">testbed=&lt;rack&gt;</bdi>' in page
    assert "<dt>release</dt><dd><bdi>7.4</bdi></dd>" in page


def test_a_set_up_that_is_not_json_or_yaml_is_shown_as_it_is(make_run: MakeRun) -> None:
    """A record that someone's tool wrote does not break the page."""
    with RecordView.open(make_run("odd", plan="a: [", machine="no JSON")) as view:
        assert {"plan": "cannot be read", "machine": "no JSON"}.items() <= setup_of(view).items()


def test_figures_are_of_the_whole_run_and_of_what_two_runs_have(make_run: MakeRun) -> None:
    """Means, highest values, counts and slopes, with what was never dropped left out."""
    slope = finding(
        "memory_growth", Outcome.PASS, metric="system.memory.usage", unit="By", numbers={"rise_per_hour": 1048576.0}
    )
    old, new = make_run("old", slope, level=20.0), make_run("new", slope, level=30.0, dropping=True)
    quiet = make_run("quiet")
    with RecordView.open(old) as first, RecordView.open(new) as second, RecordView.open(quiet) as third:
        findings = [view.findings(live=False) for view in (first, second)]
        cells = {line.head: line.cells for line in figures([first, second], findings)}
        none = {line.head for line in figures([first, third], [[], []])}
    assert cells["CPU, mean"] == ("20.7 %", "30.6 %")
    assert cells["CPU, highest"] == ("99 %", "99 %")
    assert cells["packets dropped"] == ("0", "119")
    assert cells["memory slope"] == ("1 MiB/h", "1 MiB/h")
    assert none == {"CPU, mean", "CPU, highest"}


def pieces_of(page: str) -> list[Json]:
    """The plots of a page: their documents, with what they share put in."""
    shared = json.loads(re.findall(r'<script type="application/json" id="plots-shared">(.*?)</script>', page)[0])
    pieces = re.findall(r'class="plot-piece" data-element="([\w-]+)">(.*?)</script>', page, re.DOTALL)
    assert all(f'id="{element}"' in page for element, _ in pieces)
    return [
        json.loads(re.sub(r'"data":"#(\d+)"', lambda hit: f'"data":"{shared[int(hit[1])]}"', text))
        for _, text in pieces
    ]


def sources_of(tree: object) -> Iterator[Json]:
    """The data sources of series in a document."""
    if isinstance(tree, dict):
        attributes = tree.get("attributes")
        if tree.get("name") == "ColumnDataSource" and isinstance(attributes, dict) and "name" in attributes:
            yield attributes
        for inner in tree.values():
            yield from sources_of(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from sources_of(inner)


def numbers(source: Json, column: str) -> list[float]:
    """A column of a data source."""
    entries = cast("list[tuple[str, Json]]", cast("Json", source["data"])["entries"])
    column_of = dict(entries)[column]
    data = cast("Json", column_of["array"])["data"] if "array" in column_of else column_of["data"]
    raw = base64.b64decode(str(data))
    raw = zlib.decompress(raw, 47) if raw[:2] == b"\x1f\x8b" else raw
    kind = {"float32": "f", "float64": "d"}[str(column_of["dtype"])]
    return list(struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw))


def test_the_page_shows_them_side_by_side_with_their_series_overlaid(make_run: MakeRun, visitor: httpx.Client) -> None:
    """Verdicts, matrix, figures, the command that tells whether they differ, and plots that hold the readings of each
    run from its own begin on, spike included."""
    make_run("old", finding("drops", Outcome.PASS), level=20.0)
    make_run("new", finding("drops", Outcome.FAIL, reason=HOSTILE), begin_s=100_000, level=30.0, seconds=240)
    answer = visitor.get("/compare?run=new&run=old")
    assert answer.status_code == 200
    page = answer.text
    assert page.index('href="/runs/new/"') < page.index('href="/runs/old/"')
    assert "✗ fail" in page
    assert HOSTILE not in page
    assert "&lt;img src=x" in page
    assert "soakwatch judge new --rule run_difference --against old" in page
    plots = pieces_of(page)
    (sources,) = [list(sources_of(plot)) for plot in plots if "system.cpu.utilization" in json.dumps(plot)]
    series = {str(source["name"]): source for source in sources if str(source.get("name")).startswith("compared:")}
    for run, level, seconds in (("old", 20.0, 120), ("new", 30.0, 240)):
        source = series[f'compared:["{run}","fw","system.cpu.utilization",""]']
        time, value = numbers(source, "time"), numbers(source, "value")
        assert (time[0], round(time[-1] * 60)) == (0.0, seconds - 1)
        assert value[0] == pytest.approx(level)
        assert max(value) == pytest.approx(99.0)
    ours = r'<script src="/static/[\w.]+"( defer)?></script>|<script type="application/json".*?</script>'
    assert "<script" not in re.sub(ours, "", page, flags=re.DOTALL)


def test_what_cannot_be_compared_is_explained_in_one_sentence(
    make_run: MakeRun, visitor: httpx.Client, tmp_path: Path
) -> None:
    """Too few, too many, unknown and damaged ones; none at all leads to the list."""
    for number in range(7):
        make_run(f"r{number}", seconds=5)
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "record.sqlite").write_bytes(b"no record")
    every = "&".join(f"run=r{number}" for number in range(7))
    for query, status, sentence in (
        ("run=r0", 400, "2 to 6 runs can be compared, but 1 were selected"),
        ("run=r0&run=r0", 400, "but 1 were selected"),
        (every, 400, "but 7 were selected"),
        ("run=r0&run=%3Cb%3E", 400, "No run &lt;b&gt; in this folder"),
        ("run=r0&run=../x", 400, "No run ../x in this folder"),
        ("run=r0&run=damaged", 409, "is not a record"),
    ):
        answer = visitor.get(f"/compare?{query}")
        assert (answer.status_code, sentence in answer.text) == (status, True), query
    assert visitor.get("/compare").headers["location"] == "/"


def test_runs_that_have_nothing_in_common_are_shown(make_run: MakeRun, visitor: httpx.Client, tmp_path: Path) -> None:
    """No shared series, no findings: the page says so."""
    make_run("one", seconds=5)
    folder = tmp_path / "runs" / "other"
    with Record.create(folder) as record:
        record.target("tg", "generator")
        source = record.source("tg", "command", "tg/command", SECOND, required=False)
        record.put([Poll(source.id, T0, T0, 1, PollOutcome.FAILED, "no", Answer((), (), ()))])
    page = visitor.get("/compare?run=one&run=other").text
    assert "Every rule has the same outcome" in page
    assert "No key series" in page


def test_a_comparison_is_made_again_only_when_a_record_changed(make_run: MakeRun) -> None:
    """Reloading the page reads no record; an event more does."""
    folders = [make_run("old", seconds=10), make_run("new", seconds=10)]
    kept = Comparisons()
    first = kept.of(folders)
    assert kept.of(folders) is first
    with Record.open(folders[0]) as record:
        record.add_event("", Event("mark", "", "", T0, None), "user")
    assert kept.of(folders) is not first


def test_gone_metrics_and_gaps_do_not_break_a_plot(make_run: MakeRun) -> None:
    """A run of one reading beside one of many, and a series that only one of them has."""
    compared = comparison([make_run("short", seconds=1), make_run("long", seconds=400)])
    assert [plot.key.metric for plot in compared.plots] == ["system.cpu.utilization"]
    assert [line.cells[0] for line in compared.figures if line.head == "CPU, mean"] == ["99 %"]
