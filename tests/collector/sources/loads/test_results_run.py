"""Whole runs whose load is read from files that grow meanwhile: the figures arrive in the record."""

from __future__ import annotations

import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.commands import command_in

from soakwatch.record import RecordView

PLAN = """
duration: 7s
targets:
  dut: {sources: [{local: {probes: [cpu]}}]}
  k6: {role: generator, sources: [{k6: {file: k6.json}}]}
  jmeter: {role: generator, sources: [{jmeter: {file: soak.jtl}}]}
  locust: {role: generator, sources: [{locust: {file: soak_stats_history.csv}}]}
  wrk: {role: generator, sources: [{wrk: {file: wrk.txt}}]}
  ixia:
    role: generator
    sources:
      - csv:
          file: ports.csv
          tz: Europe/Berlin
          columns:
            Frames Tx.: {metric: load.port.tx.packets, labels: {port: "{Port}"}}
            Tx. Rate (Kbps): {metric: load.tx.bit.rate, total: true}
  broken: {role: generator, sources: [{csv: {file: broken.csv, required: false}}]}
"""
WRK = (Path(__file__).parent / "data" / "wrk-4.1.txt").read_text()


def write_all(folder: Path, over: threading.Event) -> None:
    """What five generators write, every tenth of a second."""
    (folder / "soak_stats_history.csv").write_text(
        "Timestamp,User Count,Type,Name,50%,100%,Total Request Count,Total Failure Count\n"
    )
    (folder / "soak.jtl").write_text("timeStamp,elapsed,success\n")
    (folder / "ports.csv").write_bytes("Time;Port;Frames Tx.;Tx. Rate (Kbps)\r\n".encode("utf-8-sig"))
    (folder / "broken.csv").write_text("time,colour\nred,blue\n")
    number = 0
    while not over.wait(0.1):
        number += 1
        now = time.time()
        iso = datetime.fromtimestamp(now, UTC).isoformat()
        point = f'"type":"Point","data":{{"time":"{iso}","value":'
        tags = ',"tags":null}}\n'
        berlin = datetime.fromtimestamp(now, ZoneInfo("Europe/Berlin")).strftime("%d.%m.%Y %H:%M:%S.%f")
        added = {
            "k6.json": f'{{"metric":"http_reqs",{point}1{tags}{{"metric":"http_req_duration",{point}20{tags}',
            "soak.jtl": f"{round(now * 1000) - 20},20,{'false' if number % 10 == 0 else 'true'}\n",
            "ports.csv": f"{berlin};1;{number};0,5\r\n{berlin};2;{number};1,5\r\n",
        }
        if number % 10 == 0:
            added["soak_stats_history.csv"] = f"{int(now)},3,,Aggregated,10,20,{number},0\n"
            added["wrk.txt"] = WRK
        for name, text in added.items():
            with (folder / name).open("a", newline="") as out:
                out.write(text)


def run_with_files(folder: Path, plan: str) -> subprocess.CompletedProcess[str]:
    """A run of the installed command, with the generators running meanwhile."""
    (folder / "plan.yaml").write_text(plan)
    over = threading.Event()
    writer = threading.Thread(target=write_all, args=(folder, over))
    writer.start()
    try:
        return command_in(folder)("run", "plan.yaml", "--no-web")
    finally:
        over.set()
        writer.join()


@pytest.mark.slow
def test_the_figures_of_all_files_arrive(tmp_path: Path) -> None:
    """Counters, rates and latencies of each generator; a file that is no table fails its source and nothing else."""
    done = run_with_files(tmp_path, PLAN)
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with RecordView.open(run) as view:
        begin = view.window().begin_ns
        values = {}
        for key in view.keys(None):
            if key.target != "dut":
                read = view.series(key)
                values[key.target, key.metric, key.object] = read.values.tolist()
                assert int(read.time_ns[0]) >= begin - 2 * 10**9
    for target in ("k6", "jmeter", "locust", "wrk"):
        counted = values[target, "load.requests", ""]
        assert counted == sorted(counted)
        assert counted[-1] > counted[0]
        assert values[target, "load.lines.unread", ""][-1] == 0
    assert 5 <= max(values["k6", "load.request.rate", ""]) <= 15
    assert values["k6", "load.latency", "quantile=p50"][0] == pytest.approx(0.02)
    assert values["jmeter", "load.failures", ""][-1] >= 1
    assert values["locust", "load.users", ""][-1] == 3
    assert values["wrk", "load.connections", ""][-1] == 5
    assert values["ixia", "load.port.tx.packets", "port=2"][-1] > 10
    assert set(values["ixia", "load.tx.bit.rate", ""]) == {2000.0}
    assert set(values["ixia", "load.sending", ""]) == {1}
    assert not any(target == "broken" for target, *_ in values)
    assert "broken" in done.stdout + done.stderr
