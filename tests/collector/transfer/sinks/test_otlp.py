"""The sink ``otlp``: what a receiver of the real protocol got, also when it was killed, refused, or wanted a token."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.core.labels import LABELS_KEY, labels_json
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.backlog import cursor_text
from soakwatch.transfer.sinks.abc import Destination, RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.block import Block
from soakwatch.transfer.sinks.feed import Feed
from soakwatch.transfer.sinks.push import push
from soakwatch.transfer.sinks.registry import destinations
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_otlp.points import Points
from soakwatch_otlp.write import Writer
from soakwatch_testing.otlp_receiver import OtlpReceiver, ReceivedPoint, new_receiver
from soakwatch_testing.ports import free_port
from soakwatch_testing.records import KEYS, SECOND, T0, small_record
from soakwatch_testing.servers import client_of, ended, started

RUN = "20231114T221320Z-recorded"
PLAN = "name: fed\nduration: 6s\ntargets: {{dut: {{sources: [local]}}}}\nsinks: [{{otlp: {{url: '{url}'{more}}}}}]\n"


def sink_of(url: str, more: str = "") -> Destination:
    """The sink of a plan."""
    (to,) = destinations(plan_from_text(PLAN.format(url=url, more=more), "p.yaml").sinks).values()
    return to


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[OtlpReceiver]:
    """A receiver that runs."""
    made = new_receiver(tmp_path / "receiver")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A minute of fifty gauges and a counter that starts again, in two phases, with a label and a verdict."""
    folder = tmp_path / RUN
    with small_record(folder, 60) as record:
        record.target("dut", "dut")
        source = record.source("dut", "more", "dut/more", SECOND, required=True)
        for second in range(60):
            at_ns = T0 + second * SECOND
            sample = Sample("system.context_switches", "", second if second < 40 else second - 40, at_ns)
            record.put([Poll(source.id, at_ns, at_ns, 1, PollOutcome.OK, None, Answer((sample,), (), ()))])
        record.begin_phase("baseline", T0)
        record.begin_phase("soak", T0 + 30 * SECOND)
        record.end_phase(T0 + 60 * SECOND)
        for key, value in {"run": "recorded", "start_ns": str(T0), "verdict": "pass", "reason": "fine"}.items():
            record.set_meta(key, value)
        record.set_meta(LABELS_KEY, labels_json({"release": "7.2"}))
        record.set_meta("ended_ns", str(T0 + 60 * SECOND))
    return folder


def of(points: list[ReceivedPoint], metric: str) -> list[ReceivedPoint]:
    """The points of a metric, in order of time."""
    return sorted((point for point in points if point.metric == metric), key=lambda point: point.time_ns)


def test_a_record_arrives_as_gauges_and_sums(receiver: OtlpReceiver, recorded: Path) -> None:
    """Every sample once, with unit, kind and start time; run, target and labels are attributes of the resource."""
    sent = push(recorded, RUN, sink_of(receiver.url, ", resource: {deployment.environment: lab}"), 60)
    assert (sent.error, sent.rejected) == (None, 0)
    points = receiver.points()
    with RecordView.open(recorded) as view:
        first = view.series(KEYS[0])
    memory = of(points, "process.memory.usage")
    assert len(memory) == 60 * len(KEYS)
    mine = [point for point in memory if point.attributes["process"] == "p0"]
    assert [point.value for point in mine] == first.value.tolist()
    assert [point.time_ns for point in mine] == first.time_ns.tolist()
    assert (mine[0].kind, mine[0].unit) == ("gauge", "By")
    assert {point.attributes["phase"] for point in mine} == {"baseline", "soak"}
    assert mine[0].resource == {
        "service.name": "soakwatch",
        "service.instance.id": f"{RUN}/dut",
        "soakwatch.run": RUN,
        "soakwatch.target": "dut",
        "soakwatch.role": "dut",
        "soakwatch.label.release": "7.2",
        "deployment.environment": "lab",
    }
    switches = of(points, "system.context_switches")
    assert (switches[0].kind, switches[0].monotonic) == ("sum", True)
    assert len(switches) == 60
    assert {point.start_ns for point in switches[:40]} == {T0}
    assert {point.start_ns for point in switches[40:]} == {T0 + 39 * SECOND}, "it began anew after that sample"
    assert {point.value for point in of(points, "soakwatch.poll.ok")} == {1.0}
    assert of(points, "soakwatch.verdict.rank")[-1].value == 0
    assert of(points, "soakwatch.verdict.rank")[-1].attributes["verdict"] == "pass"


def test_nothing_is_lost_when_the_receiver_dies(
    receiver: OtlpReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed amid the writing and started again later: each sample is there, none is counted as refused."""
    seconds = 400
    folder = tmp_path / RUN
    with small_record(folder, seconds) as record:
        record.target("dut", "dut")
        for key, value in {"run": "recorded", "start_ns": str(T0), "ended_ns": str(T0 + seconds * SECOND)}.items():
            record.set_meta(key, value)
    said: list[str] = []
    write, calls = Writer.write, iter(range(10**6))

    def write_and_die(writer: Writer, lines: Block) -> None:
        if next(calls) == 2:  # after two requests of the samples were taken
            receiver.kill()
            threading.Timer(1.0, receiver.start).start()
        write(writer, lines)

    monkeypatch.setattr(Writer, "write", write_and_die)
    sent = push(folder, RUN, sink_of(receiver.url), 120, said.append)
    assert sent.error is None
    assert any("cannot be reached" in words for words in said), said
    memory = of(receiver.points(), "process.memory.usage")
    got = {(point.attributes["process"], point.time_ns) for point in memory}
    assert len(got) == seconds * len(KEYS)
    assert sent.rejected == 0


def test_what_a_receiver_answers(receiver: OtlpReceiver) -> None:
    """What may pass is tried again, what cannot is set aside with its reason, and what somebody must correct says
    how; a request of which a part was refused is counted."""
    refused: list[RefusedLine] = []
    writer = sink_of(receiver.url).open(refused.append)
    good = [b"system.uptime,run=r,target=dut value=%d %d" % (n, T0 + n * SECOND) for n in range(4)]
    receiver.answer(503)
    with pytest.raises(SinkUnavailableError, match="answers 503"):
        writer.write(Block.of(good))
    receiver.answer(403)
    with pytest.raises(SinkUnavailableError, match="does not authorise") as error:
        writer.write(Block.of(good))
    assert error.value.wrong
    receiver.answer(404)
    with pytest.raises(SinkUnavailableError, match=r"4317 is gRPC"):
        writer.write(Block.of(good))
    receiver.answer(400, "too old")
    with pytest.raises(SinkUnavailableError, match=r"refuses every line \(400: too old\)"):
        writer.write(Block.of(good))
    writer.write(Block.of(good[:1]))
    assert [(line.line, line.reason) for line in refused] == [(good[0], "400: too old")]
    receiver.answer(0, "out of order")
    writer.write(Block.of(good))
    assert writer.refused == 2
    assert refused[-1].reason == "1 points of a request: out of order"
    receiver.answer(None)
    writer.try_out()
    assert writer.connections == 1
    receiver.kill()
    receiver.start()
    writer.try_out()
    assert writer.connections == 2, "a receiver that was started anew may have lost what it took last"
    writer.close()


def test_a_token_is_asked_for_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the token it writes; without it says so; over plain HTTP to elsewhere no secret is sent."""
    receiver = new_receiver(tmp_path / "receiver", token="geheim-geheim-geheim")
    receiver.start()
    try:
        monkeypatch.setenv("OTLP_TOKEN", receiver.token)
        line = b"system.uptime,run=r,target=dut value=1 %d" % T0
        with pytest.raises(SinkUnavailableError, match="does not authorise"):
            sink_of(receiver.url).open(lambda _: None).write(Block.of([line]))
        to = sink_of(receiver.url, ", token: env:OTLP_TOKEN")
        to.open(lambda _: None).write(Block.of([line]))
        assert [point.metric for point in receiver.points()] == ["system.uptime"]
        assert receiver.token not in to.where + repr(to)
    finally:
        receiver.kill()
    for url, sentence in (
        ("http://192.0.2.1:4318", "would cross the network in the clear"),
        ("ftp://h", "is not an address of an OTLP receiver"),
    ):
        with pytest.raises(PlanError) as refused:
            sink_of(url, ", token: env:OTLP_TOKEN")
        assert sentence in " ".join(refused.value.problems)


def test_nobody_listens(tmp_path: Path) -> None:
    """A sentence with address and remedy, and the record is not harmed."""
    receiver = new_receiver(tmp_path / "receiver")
    with pytest.raises(SinkUnavailableError, match="cannot be reached: is an OTLP receiver running there"):
        sink_of(receiver.url).open(lambda _: None).try_out()


def test_what_is_sent_again_is_no_restart() -> None:
    """A counter whose samples come twice keeps its start; hostile names stay as they are."""
    points = Points()
    name = b"system.context_switches,run=20231114T221320Z-r,target=d"
    lines = [b"%b value=%d %d" % (name, number, T0 + number) for number in (*range(5), *range(3), 9)]
    first, _ = points.data(lines)
    (metric,) = first.resource_metrics[0].scope_metrics[0].metrics
    assert {point.start_time_unix_nano for point in metric.data.data_points} == {T0}
    hostile = b"process.memory.usage,process=a\\,b\\=c\\ \xc3\xa9,run=r value=1 5"
    odd, count = points.data([hostile, b'soakwatch_event text="a b" 5'])
    assert count == 1
    (point,) = odd.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    assert dict(point.attributes or {}) == {"process": "a,b=c é"}


def test_a_sink_that_is_started_again_knows_when_its_counters_began(receiver: OtlpReceiver, recorded: Path) -> None:
    """It was killed after the counter had begun anew: each sample has the start that it would have had, also what is
    sent again from before that, and a fall between the two processes is none that is missed."""
    push(recorded, RUN, sink_of(receiver.url), 60)
    whole = {point.time_ns: point.start_ns for point in of(receiver.points(), "system.context_switches")}
    for sent in (50, 40, 20):
        with RecordView.open(recorded) as view:
            cursor = cursor_text({source.id: sent for source in view.sources()})
        before = len(receiver.points())
        sink = sink_of(receiver.url).open(lambda _: None)
        Feed(recorded, RUN, sink, threading.Event(), lambda _: None, cursor).finish()
        sink.close()
        again = {point.time_ns: point.start_ns for point in of(receiver.points()[before:], "system.context_switches")}
        assert len(again) == 60 - sent
        assert again == {time_ns: whole[time_ns] for time_ns in again}


def test_a_restart_that_is_sent_again_keeps_both_starts() -> None:
    """What is replayed from before a fall began when it began, whatever came since; labels that come later change
    nothing, nor do attributes of the plan."""
    points = Points({"service.instance.id": "mine"})

    def starts(*samples: tuple[str, int, int]) -> list[int]:
        lines = [
            b"system.context_switches,run=%s,target=%b value=%d %d"
            % (RUN.encode(), target.encode(), value, T0 + at * SECOND)
            for target, value, at in samples
        ]
        data, _ = points.data(lines)
        return [
            round((point.start_time_unix_nano - T0) / SECOND)
            for resource in data.resource_metrics
            for metric in resource.scope_metrics[0].metrics
            for point in metric.data.data_points
        ]

    assert starts(("a", 5, 1), ("a", 6, 2), ("a", 1, 3)) == [0, 0, 2]
    assert starts(("a", 6, 2), ("a", 1, 3), ("b", 0, 3)) == [0, 2, 0]
    points.data([b"soakwatch_verdict,run=%s,label_release=7.2 rank=-1 5" % RUN.encode()])
    assert starts(("a", 4, 4)) == [2]


@pytest.mark.slow
def test_a_real_collector_takes_it(recorded: Path, tmp_path: Path) -> None:
    """An OpenTelemetry Collector prints what it got: every sample, sums with their start, no complaint."""
    program = _collector()
    port = free_port()
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"debug": {"verbosity": "detailed", "sampling_initial": 100_000}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["debug"]}},
        },
    }
    file = tmp_path / "collector.yaml"
    file.write_text(json.dumps(config))
    log = tmp_path / "collector.log"

    def listens() -> bool:
        with client_of(f"http://127.0.0.1:{port}") as client:
            return client.get("/v1/metrics").status_code == 405

    collector = started([program, "--config", str(file)], log, listens)
    try:
        sent = push(recorded, RUN, sink_of(f"http://127.0.0.1:{port}"), 60)
    finally:
        ended(collector, signal.SIGTERM)
    assert (sent.error, sent.rejected) == (None, 0)
    text = log.read_text()
    about = text.partition("Name: system.context_switches")[2].partition("Metric #")[0]
    assert "IsMonotonic: true" in about
    assert "AggregationTemporality: Cumulative" in about
    assert about.count("StartTimestamp: 2023-11-14 22:13:20") == 40
    assert text.count("-> soakwatch.run: Str(") >= 1
    assert len(re.findall(r"-> process: Str\(p\d+\)", text)) == 60 * len(KEYS)
    assert "error" not in {line.split("\t")[1] for line in text.splitlines() if line.count("\t") > 2}


def _collector() -> str:
    """The Collector that ``tests/otelcol/build`` made, or one that is installed; skips where there is none."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soakwatch"
    found = os.environ.get("OTELCOL") or shutil.which("otelcol") or next(map(str, sorted(kept.glob("otelcol-*"))), None)
    if found is None:
        pytest.skip("there is no OpenTelemetry Collector: tests/otelcol/build makes one, or name it in OTELCOL")
    return found


@pytest.mark.slow
def test_a_run_sends_what_the_receiver_missed(tmp_path: Path) -> None:
    """The receiver starts when the run is half over: at the end it has every sample of the device, and the report
    says so."""
    receiver = new_receiver(tmp_path / "receiver")
    (tmp_path / "plan.yaml").write_text(PLAN.format(url=receiver.url, more=""))
    command = [str(Path(sys.executable).with_name("soakwatch")), "run", "plan.yaml", "--runs", "runs"]
    timer = threading.Timer(5.0, receiver.start)
    timer.start()
    try:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    finally:
        timer.join()
        receiver.kill()
    assert ran.returncode in {0, 1, 3}, ran.stdout + ran.stderr
    (folder,) = (tmp_path / "runs").glob("*fed*")
    memory = of(receiver.points(), "system.memory.usage")
    with RecordView.open(folder) as view:
        kept = view.series(SeriesKey("dut", "system.memory.usage", ""))
    assert {point.time_ns for point in memory} >= set(kept.time_ns.tolist())
    assert len(kept) >= 4
    assert {point.resource["soakwatch.run"] for point in memory} == {folder.name}
