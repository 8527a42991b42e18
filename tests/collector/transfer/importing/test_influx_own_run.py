"""A run that a sink wrote comes back as the same record, or as an error: never as less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.collector.transfer.importing.influx_runs import T0, S, everything

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch.record.inventory import inventory_of
from soakwatch.report.json import render_json
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks import account
from soakwatch.transfer.sinks.account import account_lines
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.read import asking, copied
from soakwatch.transfer.sinks.influxdb.read.address import Database, database_of
from soakwatch.transfer.sinks.influxdb.read.own_run import read_run
from soakwatch.transfer.sinks.push import push
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_testing.influxd import ORG, Influxd

AddressOf = Callable[..., str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that is sent."""
    return everything(tmp_path_factory.mktemp("run") / "night")


def sent(folder: Path, influxd: Influxd, database: Database) -> None:
    """Send a run whole."""
    assert database.token is not None
    pushed = push(folder, database.run or "", Influxdb(influxd.url, ORG, database.bucket, database.token), 30)
    assert (pushed.rejected, pushed.error) == (0, None)


@pytest.mark.parametrize("at_once", [10**9, pytest.param(2_000, marks=pytest.mark.slow)])
def test_the_verdict_from_the_database_is_the_verdict_from_the_record(
    recorded: Path,
    influxd: Influxd,
    address_of: AddressOf,
    tmp_path: Path,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole, and in many pieces of time and of answers."""
    monkeypatch.setattr(copied, "MAX_READINGS_AT_ONCE", at_once)
    monkeypatch.setattr(asking, "MAX_ROWS", min(10_000, at_once))
    database = database_of(address_of(f"own{at_once}", run="night"))
    sent(recorded, influxd, database)
    messages: list[str] = []
    restored = read_run(database, tmp_path / "copy", messages.append)
    assert len(messages) == (2 if at_once > 10_000 else 1 + -(-(restored.readings + restored.polls) // at_once))
    with RecordView.open(recorded) as original, RecordView.open(tmp_path / "copy") as other:
        verdict = render_json(judge_record(original))
        assert {f'"{word}"' in verdict for word in ("fail", "pass", "inconclusive")} == {True}
        assert render_json(judge_record(other)) == verdict
        for key in original.keys():  # noqa: SIM118
            before, after = original.series(key), other.series(key)
            assert np.array_equal(before.time_ns, after.time_ns)
            assert np.array_equal(before.value, after.value)
            assert before.value.dtype == after.value.dtype
            assert (before.trait, before.cadence_s) == (after.trait, after.cadence_s)
        assert original.ledgers(original.window()) == other.ledgers(other.window())
        assert [ledger.recovered for ledger in other.ledgers(other.window())] == [2, 0, 0, 0]
        assert original.phases() == other.phases()
        assert original.events() == other.events()
        assert original.faults() == other.faults()
        assert original.spans() == other.spans()
        assert {"read_from": f"{database.shown}?run=night", **original.metas()} == other.metas()


def test_times_that_were_cut_are_reported(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    """Sent with ``precision: ms``: every reading comes back, to the millisecond, and who reads is told so."""
    database = database_of(address_of("coarse", run="night"))
    assert database.token is not None
    push(recorded, "night", Influxdb(influxd.url, ORG, database.bucket, database.token, grain_ns=10**6), 30)
    assert read_run(database, tmp_path / "copy").grain_ns == 10**6
    with RecordView.open(recorded) as original, RecordView.open(tmp_path / "copy") as other:
        for key in original.keys():  # noqa: SIM118
            before, after = original.series(key), other.series(key)
            assert np.array_equal(before.time_ns // 10**6, after.time_ns // 10**6), key
            assert np.array_equal(before.value, after.value)


def test_the_account_of_a_record_does_not_change_when_it_is_sent_again(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "PART", 500)
    lines = list(account_lines(recorded, "night"))
    assert len(lines) > 1
    assert lines == list(account_lines(recorded, "night"))
    assert max(map(len, lines)) < 2_000


def test_an_extent_counts_each_time_once(recorded: Path) -> None:
    inventory = inventory_of(recorded)
    with RecordView.open(recorded) as view:
        for extent in inventory.series:
            assert extent.readings == len(view.series(extent.key))
            assert extent.whole == (view.series(extent.key).value.dtype.kind != "f")
        assert sum(inventory.polls.values()) == view.counts().polls


def delete(influxd: Influxd, bucket: str, predicate: str, begin: int = 0) -> None:
    """Take points away, as a person or a retention does."""
    body = {"start": f"{np.datetime64(begin, 'ns')}Z", "stop": "2100-01-01T00:00:00Z", "predicate": predicate}
    params = {"org": ORG, "bucket": bucket}
    influxd.ask("POST", "/api/v2/delete", params=params, json=body).raise_for_status()


@pytest.mark.parametrize(
    ("bucket", "predicate", "message"),
    [
        ("less1", '_measurement="system.uptime"', r"holds \d+ of the \d+ readings .*\(system\.uptime\): send"),
        (
            "less2",
            '_measurement="soakwatch_poll" AND outcome="missed"',
            r"holds \d+ of the \d+ polls .* recorded: send",
        ),
        ("less3", '_measurement="soakwatch_record"', "is still running, or was not sent completely"),
        ("less4", '_measurement="soakwatch_poll"', "without the polls that they belong to: send the run again"),
    ],
)
def test_what_is_gone_is_an_error_and_never_less_data(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path, bucket: str, predicate: str, message: str
) -> None:
    database = database_of(address_of(bucket, run="night"))
    sent(recorded, influxd, database)
    delete(influxd, bucket, predicate)
    with pytest.raises(DataError, match=message):
        read_run(database, tmp_path / "copy")


def test_half_of_an_account_is_an_error(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "PART", 500)
    database = database_of(address_of("half", run="night"))
    sent(recorded, influxd, database)
    delete(influxd, "half", '_measurement="soakwatch_record"', T0 + 1)
    with pytest.raises(DataError, match=r"is incomplete: send the run again with soakwatch sink RUN"):
        read_run(database, tmp_path / "copy")


def test_two_runs_under_one_name_are_reported(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    database = database_of(address_of("two", run="night"))
    sent(recorded, influxd, database)
    line = f"system.uptime,run=night,target=dut value=1.0 {T0 + 5 * S}"
    influxd.write(line.encode(), "two").raise_for_status()
    with pytest.raises(DataError, match=r"two runs have one name"):
        read_run(database, tmp_path / "copy")
    influxd.write(f"system.uptime,run=night,target=other value=1.0 {T0}".encode(), "two").raise_for_status()
    with pytest.raises(DataError, match=r"samples of system\.uptime \(target=other\) that the run does not have"):
        read_run(database, tmp_path / "copy2")


def test_a_series_of_two_sources_is_what_the_record_makes_of_it(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    """Another source stood in, and then the owner's own polls came late."""
    with Record.create(tmp_path / "run") as record:
        record.target("dut", "dut")
        snmp, other = (record.source("dut", name, name, 10 * S, required=True) for name in ("snmp", "ssh"))

        def poll_of(source: int, at_s: int, outcome: PollOutcome = PollOutcome.OK) -> Poll:
            due = T0 + at_s * S
            samples = (Sample("system.uptime", "", at_s * 10.0 + source, due + source),)
            answer = Answer(samples, (), ()) if outcome is PollOutcome.OK else NOTHING
            return Poll(source, due, due + source, 5, outcome, None, answer)

        for second in range(0, 2000, 10):
            outcome = PollOutcome.FAILED if 500 <= second < 900 else PollOutcome.OK
            record.put([poll_of(snmp.id, second, outcome), poll_of(other.id, second)])
        record.put([poll_of(snmp.id, second) for second in range(500, 900, 10)])
        record.finish()
    database = database_of(address_of("shared", run="night"))
    sent(tmp_path / "run", influxd, database)
    read_run(database, tmp_path / "copy")
    with RecordView.open(tmp_path / "run") as before, RecordView.open(tmp_path / "copy") as after:
        (key,) = before.keys()
        assert before.counts().samples > len(before.series(key))
        assert before.series(key).value.tolist() == after.series(key).value.tolist()
        assert before.ledgers(before.window()) == after.ledgers(after.window())


def test_points_that_were_sent_under_another_phase_are_still_one(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    database = database_of(address_of("phases", run="night"))
    sent(recorded, influxd, database)
    with RecordView.open(recorded) as view:
        key = next(key for key in view.keys() if key.metric == "system.uptime")  # noqa: SIM118
        time_ns, value = int(view.series(key).time_ns[7]), float(view.series(key).value[7])
    again = f"system.uptime,run=night,target=dut,role=dut,phase=other value={value!r} {time_ns}"
    poll = f"soakwatch_poll,run=night,target=dut,source=local,outcome=ok,phase=other ok=1.0,seq=1.0,late_s=0.0 {T0}"
    marker = f"soakwatch_poll,run=night,target=dut,source=local,outcome=timeout,phase=other ok=1.0 {T0 + 500 * S}"
    influxd.write("\n".join([again, poll, marker]).encode(), "phases").raise_for_status()
    read_run(database, tmp_path / "copy")
    with RecordView.open(recorded) as original, RecordView.open(tmp_path / "copy") as other:
        assert [ledger.due for ledger in original.ledgers(original.window())] == [
            ledger.due for ledger in other.ledgers(other.window())
        ]
        assert len(original.series(key)) == len(other.series(key))


def test_a_missing_run_is_reported_with_the_nearest_name(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    sent(recorded, influxd, database_of(address_of("near", run="night")))
    with pytest.raises(DataError, match=r"near holds no run 'nigth'; did you mean 'night'\?"):
        read_run(database_of(address_of("near", run="nigth")), tmp_path / "copy")


def test_a_record_without_a_poll_has_no_account(tmp_path: Path) -> None:
    Record.create(tmp_path / "empty").close()
    assert list(account_lines(tmp_path / "empty", "empty")) == []
