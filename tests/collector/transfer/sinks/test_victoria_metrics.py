"""The sink before a real VictoriaMetrics: what arrives there of a record, what does not, and what a SIGKILL costs."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import wait_until
from tests.needs import needs

from soakwatch.record import Record, RecordView
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.feed import Feed, FeedState
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer
from soakwatch.transfer.sinks.push import push
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_testing.records import KEYS, SECOND, T0, small_poll, small_record
from soakwatch_testing.victoria import Exported, Victoria, find_victoria, start_gate, start_victoria

MS = 1_000_000
ONCE = "-dedup.minScrapeInterval=1ms"


@pytest.fixture(scope="module")
def program() -> Path:
    binary = find_victoria()
    if binary is None:
        needs("victoria-metrics")
    assert binary is not None
    return binary


@pytest.fixture
def victoria(program: Path, tmp_path: Path) -> Iterator[Victoria]:
    """A server that keeps each sample once."""
    with ExitStack() as stack:
        yield start_victoria(program, tmp_path / "victoria", stack, ONCE)


@pytest.fixture
def address(victoria: Victoria, monkeypatch: pytest.MonkeyPatch) -> Influxdb:
    """It as a sink's address: it asks for no token, and has neither organisations nor buckets."""
    return address_of(victoria, monkeypatch)


def address_of(victoria: Victoria, monkeypatch: pytest.MonkeyPatch) -> Influxdb:
    monkeypatch.setenv("SINK_TOKEN", "any")
    return Influxdb(victoria.url, "-", "-", "env:SINK_TOKEN", timeout_s=10)


def samples(victoria: Victoria) -> dict[str, Exported]:
    """The series of the small records that are stored, by their process."""
    return {exported.labels["process"]: exported for exported in victoria.export("process.memory.usage_value")}


def assert_all_there(record: Path, victoria: Victoria) -> None:
    """Every sample of the record is stored, at its time, with its value, and nothing else."""
    stored = samples(victoria)
    with RecordView.open(record) as view:
        assert len(stored) == len(KEYS)
        for key in KEYS:
            series, samples_kept = view.series(key), stored[key.object.removeprefix("process=")]
            assert list(samples_kept.time_ms) == (series.time_ns // MS).tolist()
            assert list(samples_kept.values) == series.value.tolist()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A minute of fifty series, with a phase, an event, a finding and a verdict."""
    folder = tmp_path / "20261121T000000Z-told"
    with small_record(folder, 60) as record:
        record.target("dut", "dut")
        record.begin_phase("soak", T0)
        record.end_phase(T0 + 62 * SECOND)
        record.add_event("dut", Event("failover", "dut", "a,b", T0 + SECOND, None, {"why": 'a "test"'}), "user")
        window = Window(T0, T0 + 60 * SECOND)
        finding = Finding(
            "memory_growth",
            1,
            Outcome.FAIL,
            "dut",
            "process.memory.usage",
            "process=p0",
            window,
            "a definition",
            "it grows",
            60,
            measured=4096.0,
            limit=1.0,
            unit="By/h",
        )
        record.put_findings([finding], live=False, judged_ns=T0)
        record.set_meta("verdict", "fail")
        record.set_meta("ended_ns", str(T0 + 62 * SECOND))
        record.finish()
    return folder


def test_every_sample_is_there_and_of_the_words_only_their_figures(
    recorded: Path, victoria: Victoria, address: Influxdb
) -> None:
    pushed = push(recorded, recorded.name, address, 30)
    assert (pushed.rejected, pushed.error) == (0, None)
    assert_all_there(recorded, victoria)
    assert set(samples(victoria)["p0"].labels.items()) == {
        ("run", recorded.name),
        ("target", "dut"),
        ("role", "dut"),
        ("phase", "soak"),
        ("process", "p0"),
    }
    figures = {exported.name: exported for exported in victoria.export('{__name__=~"soakwatch_.*"}')}
    assert list(figures["soakwatch_poll_ok"].values) == [1.0] * 60
    finding, verdict = figures["soakwatch_finding_severity"], figures["soakwatch_verdict_severity"]
    assert (finding.labels["rule"], list(finding.values)) == ("memory_growth", [3.0])
    assert (list(verdict.values), list(figures["soakwatch_verdict_failed"].values)) == ([3.0], [1.0])
    assert list(figures["soakwatch_event_begin_ms"].values) == [T0 / MS + 1000]
    for words in ("event_text", "phase_text", "finding_reason", "verdict_headline", "verdict_verdict"):
        assert list(figures[f"soakwatch_{words}"].values) == [0.0]
    assert not any(name.startswith("soakwatch_aligned") for name in figures)  # nothing that is two days ahead
    wait_until(lambda: victoria.reading("vm_rows_ignored_total") > 0, "nothing is counted as ignored")


def test_times_are_cut_to_milliseconds_and_values_share_a_scale(
    tmp_path: Path, victoria: Victoria, address: Influxdb
) -> None:
    chance = random.Random(6)
    of_all_sizes = [chance.random() * 10.0 ** chance.randint(-6, 9) for _ in range(300)]
    counters = [float(chance.randrange(10**15)) for _ in range(300)]
    with Record.create(tmp_path / "run") as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        polls = []
        for index, pair in enumerate(zip(of_all_sizes, counters, strict=True)):
            due = T0 + index * SECOND + 123_456_789
            two = tuple(Sample("process.memory.usage", f"process=p{n}", value, due) for n, value in enumerate(pair))
            polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(two, (), ())))
        record.put(polls)
        record.finish()
    push(tmp_path / "run", "run", address, 30)
    stored = samples(victoria)
    assert list(stored["p0"].time_ms) == [T0 // MS + index * 1000 + 123 for index in range(300)]
    assert list(stored["p1"].values) == counters
    off = [abs(got - sent) for got, sent in zip(stored["p0"].values, of_all_sizes, strict=True)]
    assert 0 < max(off) <= 1e-12 * max(of_all_sizes)


def test_sending_twice_changes_nothing_only_where_the_server_deduplicates(
    recorded: Path,
    program: Path,
    victoria: Victoria,
    address: Influxdb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    push(recorded, recorded.name, address, 30)
    push(recorded, recorded.name, address, 30)
    assert_all_there(recorded, victoria)
    with ExitStack() as stack:
        other = start_victoria(program, tmp_path / "other", stack)
        push(recorded, recorded.name, address_of(other, monkeypatch), 30)
        push(recorded, recorded.name, address_of(other, monkeypatch), 30)
        merged = samples(other)["p0"]
        assert len(merged.time_ms) == 120
        assert len(set(zip(merged.time_ms, merged.values, strict=True))) == 60


def test_what_is_older_than_it_keeps_is_dropped_without_a_word(
    recorded: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        server = start_victoria(program, tmp_path / "month", stack, "-retentionPeriod=1")  # in months, as by default
        pushed = push(recorded, recorded.name, address_of(server, monkeypatch), 30)
        assert (pushed.rejected, pushed.error) == (0, None)
        assert not samples(server)
        wait_until(lambda: server.reading("vm_rows_ignored_total") >= 60 * len(KEYS), "nothing is counted as ignored")


@pytest.mark.parametrize("noticed", [True, False], ids=["while-it-is-away", "between-two-requests"])
def test_what_a_killed_server_had_accepted_is_sent_again(
    tmp_path: Path, victoria: Victoria, address: Influxdb, *, noticed: bool
) -> None:
    run = tmp_path / "run"
    refused: list[RefusedLine] = []
    stack = ExitStack()
    with stack, small_record(run, 200) as record:
        record.add_event("dut", Event("failover", "dut", "x", T0, T0 + SECOND, {}), "user")
        writer = Writer(address, refused.append)
        stack.callback(writer.close)

        def report(state: FeedState) -> None:
            if state.error is not None and victoria.process is None:
                victoria.start()

        feed = Feed(run, "run", writer, threading.Event(), report)
        feed.step()
        feed.step()
        assert writer.written >= 200 * len(KEYS)
        victoria.kill()  # at once: nothing of it is on a disk
        if not noticed:
            victoria.start()
        record.put([small_poll(1, index) for index in range(200, 300)])
        feed.step()
        feed.finish()
        assert not refused
        events = [exported for exported in victoria.export() if exported.name == "soakwatch_event_begin_ms"]
        assert len(events) == 1
    assert_all_there(run, victoria)


@pytest.mark.slow
def test_a_server_that_is_killed_beside_a_run_has_every_sample_in_the_end(
    tmp_path: Path, victoria: Victoria, address: Influxdb
) -> None:
    folder, messages = tmp_path / "run", list[str]()
    with ExitStack() as stack:
        record = stack.enter_context(small_record(folder))
        record.set_meta(
            "plan",
            (
                "name: fed\nduration: 1m\ntargets: {dut: {sources: [local]}}\nsinks: [{influxdb: {"
                f"url: '{address.url}', org: '-', bucket: '-', token: 'env:SINK_TOKEN', timeout: 5s}}}}]\n"
            ),
        )
        sinks = SinkProcesses({"influxdb-1": address}, folder, record, lambda: T0, messages.append)
        stack.callback(sinks.close)
        sinks.start()
        for end in (50, 100, 150):
            record.put([small_poll(1, index) for index in range(end - 50, end)])
            wait_until(lambda end=end: f"1:{end}" in sinks.all[0].cursor.split(), f"it is not written: {messages}")  # type: ignore[misc]
            if end < 150:
                victoria.kill()
                victoria.start()
        sinks.quiet()
        sinks.finish()
        assert sinks.all[0].done, messages
        assert sinks.all[0].refused == 0
    assert_all_there(folder, victoria)


def test_behind_vmauth_only_the_token_opens(
    recorded: Path, victoria: Victoria, address: Influxdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        gate = start_gate(victoria, stack)
        refused: list[RefusedLine] = []
        monkeypatch.setenv("SINK_TOKEN", "hunter2")
        writer = Writer(replace(address, url=gate.url), refused.append)
        stack.callback(writer.close)
        with pytest.raises(SinkUnavailableError) as stopped:
            writer.write([b"a value=1.0 1", b"b value=1.0 1"])
        assert not refused, "good lines wait for a good token"
        assert "check url, or the token" in str(stopped.value)
        assert "hunter2" not in str(stopped.value)
        assert not victoria.export()
        monkeypatch.setenv("SINK_TOKEN", gate.token)
        with pytest.raises(SinkUnavailableError):  # after which it looks for the token again
            writer.try_out()
        writer.try_out()
        pushed = push(recorded, recorded.name, replace(address, url=gate.url), 30)
        assert (pushed.rejected, pushed.error) == (0, None)
    assert_all_there(recorded, victoria)
