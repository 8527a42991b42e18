"""A file of line protocol in a real InfluxDB: the same as what the sink writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.commands import Command

from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.push import push
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import T0, small_record


def test_exported_lines_equal_the_sinks_writing(
    soakwatch: Command, tmp_path: Path, influxd: Influxd, bucket_of: Callable[[str], Influxdb]
) -> None:
    """Readings, polls and the verdict, whether the sink wrote them or the file was sent."""
    folder = tmp_path / "runs" / "night"
    with small_record(folder, 60) as record:
        record.target("dut", "dut")
        record.begin_phase("soak", T0)
        record.set_meta("verdict", "pass")
    assert soakwatch("export", "last", "--output", "night.lp").returncode == 0
    pushed = push(folder, folder.name, bucket_of("pushed"), 30)
    assert pushed.error is None
    influxd.make_bucket("written")
    assert influxd.write((tmp_path / "night.lp").read_bytes(), "written").status_code == 204
    for measurement in ("process.memory.usage", "soakwatch_poll", "soakwatch_verdict"):
        query = f'SELECT * FROM "{measurement}"'
        assert influxd.influxql(query, "written") == influxd.influxql(query, "pushed") != []
