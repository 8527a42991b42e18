"""Times of samples that are cut to milliseconds, where someone asks for it, and to no less where nobody does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text
from soakwatch.record import Record
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import influxdb_of
from soakwatch.transfer.sinks.push import push
from soakwatch.transfer.sinks.registry import destination
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import SECOND, T0


def test_milliseconds_where_they_are_asked_for(
    tmp_path: Path, bucket_of: Callable[[str], Influxdb], influxd: Influxd
) -> None:
    with Record.create(tmp_path / "run") as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        times = [T0 + index * SECOND + index * 1_234_567 for index in range(100)]
        record.put(
            [
                Poll(
                    source.id,
                    T0 + index * SECOND,
                    time,
                    1,
                    PollOutcome.OK,
                    None,
                    Answer((Sample("process.memory.usage", "process=p0", index, time),), (), ()),
                )
                for index, time in enumerate(times)
            ]
        )
        record.finish()
    for name, grain_ns in (("exact", 1), ("coarse", 1_000_000)):
        push(tmp_path / "run", "run", replace(bucket_of(name), grain_ns=grain_ns), 30)
        rows = influxd.influxql('SELECT value FROM "process.memory.usage"', name)
        assert [(row["time"], row["value"]) for row in rows] == [
            (time // grain_ns * grain_ns, index) for index, time in enumerate(times)
        ]
        polls = influxd.influxql("SELECT ok FROM soakwatch_poll", name)
        assert [row["time"] for row in polls] == [T0 + index * SECOND for index in range(100)]


def test_plan_and_address_say_it() -> None:
    plan = "duration: 1m\ntargets: {dut: {sources: [local]}}\nsinks: [{influxdb: {url: 'http://h', org: o, bucket: b,"
    (output,) = plan_from_text(f"{plan} token: 'env:T', precision: ms, replay: 1m}}}}]\n", "plan.yaml").sinks
    to = destination(output)
    assert (to.grain_ns, to.replay_s) == (1_000_000, 60)
    (silent,) = plan_from_text(f"{plan} token: 'env:T'}}}}]\n", "plan.yaml").sinks
    to = destination(silent)
    assert (to.grain_ns, to.replay_s) == (1, 30)
    address = "influxdb://h?org=o&bucket=b&token=env:T"
    assert influxdb_of(f"{address}&precision=us", None, None, None).grain_ns == 1_000
    with pytest.raises(PlanError, match="precision: write ns, us, ms"):
        influxdb_of(f"{address}&precision=h", None, None, None)
