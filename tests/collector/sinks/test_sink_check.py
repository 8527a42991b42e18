"""`soakwatch check` asks each sink whether it takes lines; a run whose sink takes none begins all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from soakwatch.cli.main import run
from soakwatch.plan.sink import Influxdb
from soakwatch.sinks.beforehand import look_at_sinks
from soakwatch.testing.influxd import ORG, Influxd

BucketOf = Callable[[str], Influxdb]


def reader(server: Influxd) -> str:
    """A token that may read a bucket and not write."""
    bucket = server.ask("GET", "/api/v2/buckets", params={"name": "soak"}).json()["buckets"][0]
    resource = {"type": "buckets", "id": bucket["id"], "orgID": bucket["orgID"]}
    told = {"orgID": bucket["orgID"], "permissions": [{"action": "read", "resource": resource}]}
    return str(server.ask("POST", "/api/v2/authorizations", json=told).json()["token"])


def checked(tmp_path: Path, to: Influxdb) -> int:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: x\nduration: 1m\ntargets: {dut: {sources: [local]}}\n"
        f"sinks: [{{influxdb: {{url: '{to.url}', org: '{to.org}', bucket: '{to.bucket}', token: '{to.token}'}}}}]\n"
    )
    return run(["check", str(plan), "--runs", str(tmp_path)])


def test_a_sink_that_takes_lines_is_said_and_none_is_written(
    tmp_path: Path, bucket_of: BucketOf, influxd: Influxd, capsys: pytest.CaptureFixture[str]
) -> None:
    to = bucket_of("checked")
    assert checked(tmp_path, to) in {0, 1}  # 1: this machine may be short of room
    told = capsys.readouterr()
    assert f"sink: {to.url} {ORG}/checked accepts writes" in told.out
    assert "sinks:" not in told.err
    assert influxd.influxql("SHOW MEASUREMENTS", "checked") == []


@pytest.mark.parametrize(
    ("org", "bucket", "token", "told_of"),
    [
        (ORG, "soak", "wrong", "does not let this token write into lab/soak: mend token, org or bucket"),
        (ORG, "soak", "reader", "does not let this token write into lab/soak"),
        (ORG, "no-such", "right", "has no bucket no-such in lab: make it, or mend org and bucket"),
        ("no-such", "soak", "right", "has no bucket soak in no-such: make it, or mend org and bucket"),
    ],
)
def test_ping_is_true_even_with_a_bad_token_so_check_asks_whether_it_may_write(
    org: str, bucket: str, token: str, told_of: str, influxd: Influxd, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {"wrong": "hunter2", "reader": reader(influxd), "right": influxd.token}
    monkeypatch.setenv("SINK_TOKEN", tokens[token])
    (look,) = look_at_sinks([Influxdb(influxd.url, org, bucket, "env:SINK_TOKEN")])
    assert look.wrong
    assert look.trouble is not None
    assert told_of in look.trouble
    assert tokens[token] not in look.trouble


def test_a_wrong_bucket_ends_a_check_as_an_error_of_the_plan(
    tmp_path: Path, influxd: Influxd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SINK_TOKEN", influxd.token)
    assert checked(tmp_path, Influxdb(influxd.url, ORG, "no-such", "env:SINK_TOKEN")) == 2
    told = capsys.readouterr()
    assert "plan.yaml: sinks: " in told.err
    assert "has no bucket no-such in lab: make it" in told.err
    assert "What this run can detect" in told.out  # the sources are looked at all the same


def test_a_server_that_is_not_there_and_a_token_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_TOKEN", "x")
    away, unset, lost = look_at_sinks(
        [
            Influxdb("http://127.0.0.1:9", "o", "b", "env:SINK_TOKEN"),
            Influxdb("http://127.0.0.1:9", "o", "b", "env:NO_SUCH"),
            Influxdb("http://127.0.0.1:9", "o", "b", f"file:{tmp_path}/no-such"),
        ]
    )
    assert (away.wrong, away.trouble) == (False, "http://127.0.0.1:9 cannot be reached: is InfluxDB running there?")
    assert (unset.wrong, lost.wrong) == (True, True)
    assert "NO_SUCH is not set" in str(unset.trouble)
    assert "cannot be read" in str(lost.trouble)
