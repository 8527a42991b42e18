"""`soakwatch check` asks each sink whether it accepts lines; a run whose sink accepts none begins all the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from soakwatch.cli.main import run
from soakwatch.core.errors import EXIT_USAGE
from soakwatch.transfer.sinks.check import check_sinks
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch_testing.influxd import ORG, Influxd

BucketOf = Callable[[str], Influxdb]


def reader(server: Influxd) -> str:
    """A token that may read a bucket and not write."""
    bucket = server.ask("GET", "/api/v2/buckets", params={"name": "soak"}).json()["buckets"][0]
    resource = {"type": "buckets", "id": bucket["id"], "orgID": bucket["orgID"]}
    output = {"orgID": bucket["orgID"], "permissions": [{"action": "read", "resource": resource}]}
    return str(server.ask("POST", "/api/v2/authorizations", json=output).json()["token"])


def checked(tmp_path: Path, to: Influxdb) -> int:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: x\nduration: 1m\ntargets: {dut: {sources: [local]}}\n"
        f"sinks: [{{influxdb: {{url: '{to.url}', org: '{to.org}', bucket: '{to.bucket}', token: '{to.token}'}}}}]\n"
    )
    return run(["check", str(plan), "--runs", str(tmp_path)])


def test_a_sink_that_takes_lines_is_reported_and_none_is_written(
    tmp_path: Path, bucket_of: BucketOf, influxd: Influxd, capsys: pytest.CaptureFixture[str]
) -> None:
    to = bucket_of("checked")
    assert checked(tmp_path, to) in {0, 1}  # 1: this machine may be short of room
    output = capsys.readouterr()
    assert f"sink: {to.url} {ORG}/checked accepts lines" in output.out
    assert "sinks:" not in output.err
    assert influxd.influxql("SHOW MEASUREMENTS", "checked") == []


@pytest.mark.parametrize(
    ("org", "bucket", "token", "reason"),
    [
        (ORG, "soak", "wrong", "does not authorise this token for lab/soak: check token, org and bucket"),
        (ORG, "soak", "reader", "does not authorise this token for lab/soak"),
        (ORG, "no-such", "right", "has no bucket no-such in lab: create it, or correct org and bucket"),
        ("no-such", "soak", "right", "has no bucket soak in no-such: create it, or correct org and bucket"),
    ],
)
def test_ping_is_true_even_with_a_bad_token_so_check_asks_whether_it_may_write(
    org: str, bucket: str, token: str, reason: str, influxd: Influxd, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {"wrong": "hunter2", "reader": reader(influxd), "right": influxd.token}
    monkeypatch.setenv("SINK_TOKEN", tokens[token])
    (check,) = check_sinks([Influxdb(influxd.url, org, bucket, "env:SINK_TOKEN")])
    assert check.wrong
    assert check.error is not None
    assert reason in check.error
    assert tokens[token] not in check.error


def test_a_wrong_bucket_ends_a_check_as_an_error_of_the_plan(
    tmp_path: Path, influxd: Influxd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SINK_TOKEN", influxd.token)
    assert checked(tmp_path, Influxdb(influxd.url, ORG, "no-such", "env:SINK_TOKEN")) == 2
    output = capsys.readouterr()
    assert "plan.yaml: sinks: " in output.err
    assert "has no bucket no-such in lab: create it" in output.err
    assert "What this run can detect" in output.out  # the sources are looked at all the same


def test_a_server_that_is_not_there_and_a_token_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_TOKEN", "x")
    away, unset, lost = check_sinks(
        [
            Influxdb("http://127.0.0.1:9", "o", "b", "env:SINK_TOKEN"),
            Influxdb("http://127.0.0.1:9", "o", "b", "env:NO_SUCH"),
            Influxdb("http://127.0.0.1:9", "o", "b", f"file:{tmp_path}/no-such"),
        ]
    )
    assert (away.wrong, away.error) == (False, "http://127.0.0.1:9 cannot be reached: is InfluxDB running there?")
    assert (unset.wrong, lost.wrong) == (True, True)
    assert "NO_SUCH is not set" in str(unset.error)
    assert "cannot be read" in str(lost.error)


def test_a_sink_without_its_package_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The extra is not installed: ``check`` says what adds it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "influxdb_client"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "influxdb_client", None)
    monkeypatch.setenv("SINK_TOKEN", "hunter2")
    assert checked(tmp_path, Influxdb("http://127.0.0.1:1", ORG, "soak", "env:SINK_TOKEN")) == EXIT_USAGE
    told = capsys.readouterr()
    assert "the sink influxdb needs the package influxdb-client: " in told.out + told.err
    assert "'influxdb-client<2,>=1.50'" in told.out + told.err
