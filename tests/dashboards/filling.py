"""Records that hold all that the dashboards show, sent to an InfluxDB by the sink; their queries as Grafana asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event as Stop
from typing import TypedDict

from soakwatch_dashboards.compare import END, ZERO
from soakwatch_dashboards.reading import asked, parse

from soakwatch.core.labels import LABELS_KEY, labels_json
from soakwatch.record import Record
from soakwatch.transfer.sinks.abc import RefusedLine
from soakwatch.transfer.sinks.aligned import METRICS
from soakwatch.transfer.sinks.feed import Feed
from soakwatch.transfer.sinks.grafana import dashboards
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window
from soakwatch_testing.influxd import BUCKET, ORG, Influxd

SECOND, EVERY_S, POLLS = 10**9, 10, 90
T0 = 1_767_225_600 * SECOND
BOARDS = [parse(text) for text in dashboards().values()]
ASKED = [query for board in BOARDS for query in asked(board)]
METRICS_ASKED = sorted(
    {name for query in ASKED for name in re.findall(r'FROM "([^"]+)"', query.query) if name in BY_NAME} | METRICS
)
RUNS = (
    "20260101T000000Z-one",
    "20260102T000000Z-two (nightly+)",
    "20260103T000000Z-three",
    "20260104T000000Z-four",
    "20260105T000000Z-five",
)
OLDEST = "7.2-r1"
"""A run that began a day before all others, and whose name is the last of all."""
VERDICTS = ("fail", "pass", "inconclusive", None, None)
RUNNING, KILLED = RUNS[3], RUNS[4]
"""One that is still recorded while the sink writes, and one whose collector was killed before there was a verdict."""
PLAN = """\
name: four
targets: {dut: {sources: [{local: {interval: 10s}}]}}
phases: [{baseline: 120s}, {soak: 880s}]
"""
NAMES = (
    "eth0",
    r"Gi0/0/1 [a.b]\c|d",
    'O\'Brien "uplink" (core)',
    r"\\host\share\/x^$",
    "łącze-北京 ⇄ ü, a=b",
    "eth0.1",
)
"""Interfaces and processes whose names are regular expressions, quotes or more than ASCII, if nobody looks."""
CORES = ("0", "2", "10", "100")
OTHER = "fw 1/2 'west' \"ü\""
"""A second device, which has little more than a name."""
OF_OTHER = ("system.cpu.core.utilization", "system.network.io", "process.memory.usage")
LABELS = {RUNS[0]: {"release": "7.2 (a)", "testbed": "rack 3"}, RUNS[1]: {"release": "8"}}
"""The labels of some runs; the others have none."""


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


def fill(server: Influxd, folder: Path) -> None:
    """Five runs a day apart and one before them, each as its record has it."""
    token = token_file(server, folder)
    make_record(folder / OLDEST, T0 - 86_400 * SECOND, "pass")
    send(folder / OLDEST, OLDEST, server, token)
    for day, run in enumerate(RUNS):
        begin_ns = T0 + day * 86_400 * SECOND
        if run == RUNNING:
            path = folder / run
            make_record(path, begin_ns, None, partial(send, path, run, server, token, over=False))
        else:
            make_record(folder / run, begin_ns, VERDICTS[day])
            send(folder / run, run, server, token)


def token_file(server: Influxd, folder: Path) -> Path:
    """Where the server's token lies."""
    file = folder / "token"
    file.write_text(server.token)
    file.chmod(0o600)
    return file


def send(path: Path, run: str, server: Influxd, token: Path, *, over: bool = True) -> None:
    """Through the sink, all of it, and nothing refused; not ``over``: as while the run goes on."""
    refused: list[RefusedLine] = []
    writer = Writer(Influxdb(server.url, ORG, BUCKET, f"file:{token}"), refused.append)
    feed = Feed(path, run, writer, Stop(), lambda _: None)
    try:
        if over:
            feed.finish()
        else:
            while feed.step():
                pass
            feed.step()
    finally:
        writer.close()
    assert refused == []


def make_record(
    folder: Path, begin_ns: int, verdict: str | None, while_open: Callable[[], None] = lambda: None
) -> None:
    """A record that has every metric that is asked for, a lost poll, events, findings of each kind, and a verdict.

    ``while_open`` is called before the record is closed.
    """
    end_ns = begin_ns + POLLS * EVERY_S * SECOND
    goes_on = folder.name == RUNNING
    with Record.create(folder) as record:
        roles = {"dut": "dut", OTHER: "dut", "tg": "generator", "monitor": "monitor"}
        numbers = {}
        for target, role in roles.items():
            record.target(target, role)
            numbers[target] = record.source(target, "local", f"{target}/local", EVERY_S * SECOND, required=True).id
        record.set_meta("plan", PLAN)
        record.set_meta("start_ns", str(begin_ns))
        record.set_meta(LABELS_KEY, labels_json(LABELS.get(folder.name, {})))
        record.begin_phase("baseline", begin_ns)
        record.put(
            [poll for index in range(POLLS) for poll in polls(numbers, index, begin_ns + index * EVERY_S * SECOND)]
        )
        middle = begin_ns + 120 * SECOND
        record.begin_phase("soak", middle)
        record.add_event("dut", Event("failover", "dut", "", middle, middle + 30 * SECOND, {"of": "line card"}), "user")
        record.add_event("dut", Event("upgrade", "dut", "", middle, end_ns, {"to": "2.3"}), "user")
        record.add_event(
            "dut", Event("process.restart", "dut", "process=bgpd,instance=0", middle, middle, {"pid": "7"}), "probe"
        )
        if not goes_on:
            record.end_phase(end_ns)
        forecast = Forecast("system.memory.limit (3.80 GiB)", 3600.0, 3000.0, 4000.0)
        judged = [
            ("memory_growth", Outcome.FAIL, begin_ns, end_ns, forecast),
            ("cpu_spike", Outcome.WARN, begin_ns, middle, None),
            ("gap", Outcome.PASS, begin_ns, end_ns, None),
            ("latency", Outcome.INCONCLUSIVE, begin_ns, end_ns, None),
        ]
        record.put_findings(
            [
                Finding(
                    rule,
                    1,
                    outcome,
                    "dut",
                    "process.memory.usage",
                    "process=bgpd,instance=0",
                    Window(low, high),
                    "grows",
                    "it grows",
                    POLLS,
                    measured=1e6,
                    limit=1e5,
                    unit="By",
                    forecast=ahead,
                )
                for rule, outcome, low, high, ahead in judged
            ],
            live=verdict is None,
            judged_ns=end_ns,
        )
        if verdict is not None:
            record.set_meta("verdict", verdict)
            record.set_meta("reason", "bgpd's memory grows")
        while_open()


def polls(numbers: Mapping[str, int], index: int, due_ns: int) -> Iterator[Poll]:
    """The polls of all targets that are due at one time; one of the device's is lost, one of the monitor's missed."""
    for target, number in numbers.items():
        if target == "monitor" and index == 20:
            yield Poll(number, due_ns, due_ns, 0, PollOutcome.MISSED, "the monitor was late", Answer((), (), ()))
            continue
        if target == "dut" and index == 13:
            yield Poll(number, due_ns, due_ns, SECOND, PollOutcome.TIMEOUT, "no answer", Answer((), (), ()))
            continue
        samples = tuple(
            Sample(name, object_text(**labels), reading(name, index), due_ns)
            for name in METRICS_ASKED
            if target in (owner(name), OTHER if name in OF_OTHER else "")
            for labels in labels_of(name)
        )
        yield Poll(number, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, Answer(samples, (), ()))


def owner(name: str) -> str:
    """Which target tells of a metric."""
    return {"load": "tg", "monitor": "monitor"}.get(name.split(".", 1)[0], "dut")


def labels_of(name: str) -> tuple[dict[str, str], ...]:
    """The labels of some objects of a metric, or of the target as a whole."""
    words = {
        "interface": NAMES,
        "process": ("bgpd", *NAMES[1:]),
        "direction": ("receive", "transmit"),
        "core": CORES,
        "extent": ("some", "full"),
    }
    known = BY_NAME[name].labels
    if not known:
        return ({},)
    several = range(len(NAMES)) if {"interface", "process"} & set(known) else range(4 if "core" in known else 2)
    return tuple(
        {label: names[number % len(names)] for label in known for names in [words.get(label, ("0", "1"))]}
        for number in several
    )


def reading(name: str, index: int) -> float:
    """A value that the catalogue allows; counters grow."""
    entry = BY_NAME[name]
    if name == "process.memory.usage":
        return 100.0 + index
    if entry.kind == "counter":
        return 1000.0 * index
    if entry.unit in {"dBm", "A"}:
        return float(index % 3)
    return (0.0, 0.5, 0.25)[index % 3] if entry.high is not None and entry.high <= 1 else float(100 + index % 7)


def view_of(board: str, run: str, target: str) -> View:
    """What somebody looks at who has chosen a run and a target; all of the rest."""
    everything = {
        **dict.fromkeys(("role", "process", "interface", "worst_process", "worst_interface"), ".*"),
        **dict.fromkeys(("growing", "growing_on", "growing_as"), ".*"),
        **dict.fromkeys(("name", "device", "verdict", "release", "testbed"), ".*"),
        "since": "run",
        "search": "",
    }
    if board == "soakwatch-compare":
        begin, end = (round(datetime.fromisoformat(time).timestamp() * 1000) for time in (ZERO, END))
        return View(begin, end, {**everything, "run": ".*", "target": ".*"})
    if board == "soakwatch-fleet":
        return View(T0 // 10**6, T0 // 10**6 + len(RUNS) * 86_400_000, everything)
    begin_ns = T0 + RUNS.index(run) * 86_400 * SECOND
    begin, end = begin_ns // 10**6, (begin_ns + POLLS * EVERY_S * SECOND) // 10**6
    chosen = ".*" if board == "soakwatch-monitor" else escaped(target)
    return View(begin, end, {**everything, "run": escaped(run), "target": chosen})


def escaped(*values: str) -> str:
    """As Grafana's format ``regex`` writes one value, or several."""
    patterns = [re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value) for value in values]
    return patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})"


def put_in(query: str, view: View, every: str = "10s") -> str:
    """A query with its macros and variables replaced, as Grafana sends it."""
    macros = {
        "$timeFilter": f"time >= {view.begin_ms}ms and time <= {view.end_ms}ms",
        "$__interval": "1m" if view.begin_ms > 4e12 else every,
    }
    query = chosen(query, view)
    for name, value in macros.items():
        query = query.replace(name, value)
    return query


def chosen(query: str, view: View) -> str:
    """A query with what Grafana's page replaces before its server sees it: variables, from and to."""
    for name, value in (("$__from", view.begin_ms), ("$__to", view.end_ms)):
        query = query.replace(name, str(value))
    return re.sub(r"\$\{(\w+):regex\}", lambda match: view.values[match[1]], query)


def ask(influx: Influxd, query: str, view: View, every: str = "10s") -> list[dict[str, object]]:
    """The rows of a query, by POST, with the tags of their series as columns."""
    sent = put_in(query, view, every)
    answer = influx.ask("POST", "/query", params={"db": BUCKET, "epoch": "ms"}, data={"q": sent})
    assert answer.status_code == 200, answer.text
    result: Result = answer.json()["results"][0]
    assert "error" not in result, (sent, result)
    rows: list[dict[str, object]] = []
    for series in result.get("series", []):
        tags = series.get("tags", {})
        rows += [{**tags, **dict(zip(series["columns"], row, strict=True))} for row in series["values"]]
    return rows
