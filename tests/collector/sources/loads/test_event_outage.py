"""A failover that a plan makes happen, and a load that loses three seconds of traffic by it: whole runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import command_in, start

from soakwatch.record import RecordView, SeriesKey
from soakwatch_testing.load_bench import LoadBench, series

OUTAGE_S = 3.0
TICK_S = 0.2
LEAD_S = 1.0
RATE = 1000

LOAD = f"""\
import json, pathlib, sys, time

switch, began, number, back, stopped = pathlib.Path(sys.argv[1]), time.monotonic(), 0, 0, None
while True:
    number += 1
    time.sleep(max(0.0, began + {TICK_S} * number - time.monotonic()))
    now = time.monotonic()
    if stopped is None and switch.exists():
        stopped = now
    out = 0.0 if stopped is None else min(now - stopped, {OUTAGE_S})
    sent = int({RATE} * (now - began))
    back = max(back, sent - round({RATE} * out))
    print(json.dumps({{"load.tx.packets": sent, "load.rx.packets": back, "load.latency": 0.001}}), flush=True)
"""
"""Sends a thousand packets a second; for three seconds from when it sees the switch nothing comes back."""

PLAN = """\
name: failover
targets:
  dut: {{sources: [{{local: {{interval: 500ms, probes: [cpu, memory, load]}}}}]}}
  tg: {{role: generator, sources: [{{command: {{interval: 500ms, run: [{python}, load.py, {switch}]}}}}]}}
phases: [{{soak: 13s}}]
events:
  - {{kind: failover, at: 5s, target: dut, run: [touch, {switch}], within: 6s}}
rules:
  event_impact: {{outage: {limit}, lead: {lead:g}s}}
  {others}
"""
_BUSY = ("cpu_spike", "cpu_saturation", "memory_growth", "drops", "core_dump", "oom_kill", "queue_growth", "loss")
"""Rules that judge the machine on which the test runs, which may be busy with anything: also how soon the generator is
up."""


def begun(folder: Path, limit: str) -> subprocess.Popen[str]:
    """`soakwatch run` of the plan with this limit, under way."""
    folder.mkdir()
    (folder / "load.py").write_text(LOAD, encoding="utf-8")
    plan = PLAN.format(
        python=sys.executable,
        switch=folder / "switch",
        limit=limit,
        lead=LEAD_S,
        others="\n  ".join(f"{rule}: false" for rule in _BUSY),
    )
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    return start(("run", "plan.yaml", "--no-web"), folder, stderr=subprocess.STDOUT)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit code, what it printed, its verdict as JSON, and its record."""

    code: int
    output: str
    verdict: dict[str, Any]
    record: Path

    @property
    def impact(self) -> dict[str, Any]:
        """The one finding on the event."""
        (finding,) = [f for f in self.verdict["findings"] if f["rule"] == "event_impact"]
        assert isinstance(finding, dict)
        return finding


def ended(folder: Path, run: subprocess.Popen[str]) -> Ended:
    """Wait for a run, and have it reported once more."""
    try:
        output, _ = run.communicate(timeout=240)
    finally:
        run.kill()
        run.wait()
    assert run.returncode in {0, 1, 3}, output
    assert "Traceback" not in output
    (record,) = (folder / "runs").iterdir()
    document = folder / "verdict.json"
    command_in(folder)("report", record, "--json", document)
    return Ended(run.returncode, output, json.loads(document.read_text(encoding="utf-8")), record)


@pytest.mark.slow
def test_an_outage_of_three_seconds_is_over_two_and_under_five(tmp_path: Path) -> None:
    """Two runs of one plan with two limits: the same outage by loss and by time stamps, one fails and one passes."""
    runs = {limit: begun(tmp_path / limit, limit) for limit in ("2s", "5s")}
    try:
        over, under = (ended(tmp_path / limit, run) for limit, run in runs.items())
    finally:
        for run in runs.values():
            run.kill()
            run.wait()
    for each in (over, under):
        numbers = each.impact["numbers"]
        assert numbers["events"] == numbers["agree"] == 1, each.impact["reason"]
        assert numbers["lost"] == pytest.approx(OUTAGE_S * RATE, abs=2)
        assert numbers["outage_1_loss_s"] == pytest.approx(OUTAGE_S, abs=uncertain_s(each.record))
        apart = abs(numbers["outage_1_time_s"] - numbers["outage_1_loss_s"])
        assert apart <= max(longest_reading(each.record), numbers["outage_1_time_error_s"])
        assert (each.impact["target"], each.impact["object"]) == ("dut", "event=failover")
        assert "by time stamps" not in each.impact["reason"], "they agree: one of the two is told"
    assert (over.code, over.verdict["verdict"], over.impact["outcome"]) == (1, "fail", "fail"), over.output
    sentence = re.search(r"outage of (\S+) s, limit 2 s", over.output)
    assert sentence, over.output
    assert float(sentence[1]) == pytest.approx(OUTAGE_S, abs=uncertain_s(over.record))
    assert over.verdict["targets"]["dut"]["verdict"] == "fail"
    assert (under.code, under.verdict["verdict"], under.impact["outcome"]) == (0, "pass", "pass"), under.output
    assert under.impact["limit"] == 5.0


def uncertain_s(record: Path) -> float:
    """How wrong the outage by loss may be, in seconds: the load's counter is exact by its own clock, so how late each
    reading was taken is in the record, and the rate that turns packets into seconds is wrong by that much."""
    with RecordView.open(record) as view:
        sent = view.series(SeriesKey("tg", "load.tx.packets", ""))
    late_s = sent.seconds - sent.values / RATE
    return 0.05 + OUTAGE_S * float(late_s.max() - late_s.min()) / LEAD_S


def longest_reading(record: Path) -> float:
    """The longest distance of two readings of what came back, in seconds."""
    with RecordView.open(record) as view:
        came = view.series(SeriesKey("tg", "load.rx.packets", ""))
    return float(np.diff(came.seconds).max())


def test_the_load_stops_when_it_sees_the_switch(tmp_path: Path) -> None:
    """The load by itself: everything comes back until the switch is there, and then nothing for a while."""
    (tmp_path / "load.py").write_text(LOAD, encoding="utf-8")
    switch = tmp_path / "switch"
    with LoadBench("command", {"run": [sys.executable, str(tmp_path / "load.py"), str(switch)]}) as bench:
        deadline = time.monotonic() + 120
        lost = 0.0
        while lost < RATE:
            bench.wait(TICK_S)
            answer = bench.poll(1)
            pairs = zip(series(answer, "load.tx.packets"), series(answer, "load.rx.packets"), strict=True)
            lost = max((sent - back for (_, sent), (_, back) in pairs), default=0.0)
            assert lost == 0 or switch.exists()
            switch.touch()
            assert time.monotonic() < deadline
