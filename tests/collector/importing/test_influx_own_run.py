"""A run that a sink wrote comes back as the same record, or as an error: never as less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.collector.importing.influx_runs import T0, S, everything

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch.record.inventory import inventory_of
from soakwatch.report.json import render_json
from soakwatch.sinks import account
from soakwatch.sinks.account import account_lines
from soakwatch.sinks.influxdb import Influxdb
from soakwatch.sinks.influxdb.read import asking, copied
from soakwatch.sinks.influxdb.read.address import Database, database_of
from soakwatch.sinks.influxdb.read.own_run import read_run
from soakwatch.sinks.push import push
from soakwatch.sources.tables.errors import DataError
from soakwatch.testing.influxd import ORG, Influxd
from soakwatch_agent.sample import NOTHING, Answer, Poll, PollOutcome, Sample

AddressOf = Callable[..., str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that is sent."""
    return everything(tmp_path_factory.mktemp("run") / "night")


def sent(folder: Path, influxd: Influxd, place: Database) -> None:
    """Send a run whole."""
    assert place.token is not None
    pushed = push(folder, place.run or "", Influxdb(influxd.url, ORG, place.bucket, place.token), 30)
    assert (pushed.rejected, pushed.error) == (0, None)


@pytest.mark.parametrize("at_once", [10**9, 2_000])
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
    place = database_of(address_of(f"own{at_once}", run="night"))
    sent(recorded, influxd, place)
    said: list[str] = []
    found = read_run(place, tmp_path / "copy", said.append)
    assert len(said) == (2 if at_once > 10_000 else 1 + -(-(found.readings + found.polls) // at_once))
    with RecordView.open(recorded) as one, RecordView.open(tmp_path / "copy") as other:
        verdict = render_json(judge_record(one))
        assert {f'"{word}"' in verdict for word in ("fail", "pass", "inconclusive")} == {True}
        assert render_json(judge_record(other)) == verdict
        for key in one.keys():  # noqa: SIM118
            before, after = one.series(key), other.series(key)
            assert np.array_equal(before.time_ns, after.time_ns)
            assert np.array_equal(before.value, after.value)
            assert before.value.dtype == after.value.dtype
            assert (before.trait, before.cadence_s) == (after.trait, after.cadence_s)
        assert one.ledgers(one.window()) == other.ledgers(other.window())
        assert [ledger.recovered for ledger in other.ledgers(other.window())] == [2, 0, 0, 0]
        assert one.phases() == other.phases()
        assert one.events() == other.events()
        assert one.faults() == other.faults()
        assert one.spans() == other.spans()
        assert {"read_from": f"{place.shown}?run=night", **one.metas()} == other.metas()


def test_times_that_were_cut_are_told(recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path) -> None:
    """Sent with ``precision: ms``: every reading comes back, to the millisecond, and who reads is told so."""
    place = database_of(address_of("coarse", run="night"))
    assert place.token is not None
    push(recorded, "night", Influxdb(influxd.url, ORG, place.bucket, place.token, grain_ns=10**6), 30)
    assert read_run(place, tmp_path / "copy").grain_ns == 10**6
    with RecordView.open(recorded) as one, RecordView.open(tmp_path / "copy") as other:
        for key in one.keys():  # noqa: SIM118
            before, after = one.series(key), other.series(key)
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
        for one in inventory.series:
            assert one.readings == len(view.series(one.key))
            assert one.whole == (view.series(one.key).value.dtype.kind != "f")
        assert sum(inventory.polls.values()) == view.counts().polls


def delete(influxd: Influxd, bucket: str, predicate: str, begin: int = 0) -> None:
    """Take points away, as a person or a retention does."""
    body = {"start": f"{np.datetime64(begin, 'ns')}Z", "stop": "2100-01-01T00:00:00Z", "predicate": predicate}
    params = {"org": ORG, "bucket": bucket}
    influxd.ask("POST", "/api/v2/delete", params=params, json=body).raise_for_status()


@pytest.mark.parametrize(
    ("bucket", "predicate", "told"),
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
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path, bucket: str, predicate: str, told: str
) -> None:
    place = database_of(address_of(bucket, run="night"))
    sent(recorded, influxd, place)
    delete(influxd, bucket, predicate)
    with pytest.raises(DataError, match=told):
        read_run(place, tmp_path / "copy")


def test_half_of_an_account_is_an_error(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "PART", 500)
    place = database_of(address_of("half", run="night"))
    sent(recorded, influxd, place)
    delete(influxd, "half", '_measurement="soakwatch_record"', T0 + 1)
    with pytest.raises(DataError, match=r"is incomplete: send the run again with soakwatch sink RUN"):
        read_run(place, tmp_path / "copy")


def test_two_runs_under_one_name_are_told(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    place = database_of(address_of("two", run="night"))
    sent(recorded, influxd, place)
    line = f"system.uptime,run=night,target=dut value=1.0 {T0 + 5 * S}"
    influxd.write(line.encode(), "two").raise_for_status()
    with pytest.raises(DataError, match=r"two runs have one name"):
        read_run(place, tmp_path / "copy")
    influxd.write(f"system.uptime,run=night,target=other value=1.0 {T0}".encode(), "two").raise_for_status()
    with pytest.raises(DataError, match=r"samples of system\.uptime \(target=other\) that the run does not have"):
        read_run(place, tmp_path / "copy2")


def test_a_series_of_two_sources_is_what_the_record_makes_of_it(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    """Another source stood in, and then the owner's own looks came late."""
    with Record.create(tmp_path / "run") as record:
        record.target("dut", "dut")
        one, other = (record.source("dut", name, name, 10 * S, required=True) for name in ("snmp", "ssh"))

        def look(source: int, at: int, outcome: PollOutcome = PollOutcome.OK) -> Poll:
            due = T0 + at * S
            samples = (Sample("system.uptime", "", at * 10.0 + source, due + source),)
            answer = Answer(samples, (), ()) if outcome is PollOutcome.OK else NOTHING
            return Poll(source, due, due + source, 5, outcome, None, answer)

        for at in range(0, 2000, 10):
            outcome = PollOutcome.FAILED if 500 <= at < 900 else PollOutcome.OK
            record.put([look(one.id, at, outcome), look(other.id, at)])
        record.put([look(one.id, at) for at in range(500, 900, 10)])
        record.finish()
    place = database_of(address_of("shared", run="night"))
    sent(tmp_path / "run", influxd, place)
    read_run(place, tmp_path / "copy")
    with RecordView.open(tmp_path / "run") as before, RecordView.open(tmp_path / "copy") as after:
        (key,) = before.keys()
        assert before.counts().samples > len(before.series(key))
        assert before.series(key).value.tolist() == after.series(key).value.tolist()
        assert before.ledgers(before.window()) == after.ledgers(after.window())


def test_points_that_were_sent_under_another_phase_are_still_one(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    place = database_of(address_of("phases", run="night"))
    sent(recorded, influxd, place)
    with RecordView.open(recorded) as view:
        key = next(key for key in view.keys() if key.metric == "system.uptime")  # noqa: SIM118
        time_ns, value = int(view.series(key).time_ns[7]), float(view.series(key).value[7])
    again = f"system.uptime,run=night,target=dut,role=dut,phase=other value={value!r} {time_ns}"
    poll = f"soakwatch_poll,run=night,target=dut,source=local,outcome=ok,phase=other ok=1.0,seq=1.0,late_s=0.0 {T0}"
    marker = f"soakwatch_poll,run=night,target=dut,source=local,outcome=timeout,phase=other ok=1.0 {T0 + 500 * S}"
    influxd.write("\n".join([again, poll, marker]).encode(), "phases").raise_for_status()
    read_run(place, tmp_path / "copy")
    with RecordView.open(recorded) as one, RecordView.open(tmp_path / "copy") as other:
        assert [ledger.due for ledger in one.ledgers(one.window())] == [
            ledger.due for ledger in other.ledgers(other.window())
        ]
        assert len(one.series(key)) == len(other.series(key))


def test_a_run_that_is_not_there_is_told_with_the_nearest(
    recorded: Path, influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    sent(recorded, influxd, database_of(address_of("near", run="night")))
    with pytest.raises(DataError, match=r"near holds no run 'nigth'; did you mean 'night'\?"):
        read_run(database_of(address_of("near", run="nigth")), tmp_path / "copy")


def test_a_record_without_a_poll_has_no_account(tmp_path: Path) -> None:
    Record.create(tmp_path / "empty").close()
    assert list(account_lines(tmp_path / "empty", "empty")) == []
