"""What polls cost devices that count nothing themselves: whole runs with pauses, against devices whose CPU rises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch.record import RecordView
from soakwatch_testing.snmp_polled_cpu import polled_device

PLAN = """\
name: pauses
duration: 190s
targets:
  dear: {{sources: [{{snmp: {{host: 127.0.0.1, port: {dear}, interval: 2s, timeout: 10s}}}}]}}
  cheap: {{sources: [{{snmp: {{host: 127.0.0.1, port: {cheap}, interval: 2s, timeout: 10s}}}}]}}
observer: {{probe: 20s, pairs: 4, settle: 6s}}
"""


@pytest.mark.slow
def test_pauses_tell_what_polls_cost_a_black_box(tmp_path: Path) -> None:
    """80 ms a request warn, 1 ms passes; the report has both."""
    with polled_device(0.08) as dear, polled_device(0.001) as cheap:
        (tmp_path / "plan.yaml").write_text(PLAN.format(dear=dear.address[1], cheap=cheap.address[1]))
        soakwatch = command_in(tmp_path)
        check = soakwatch("check", "plan.yaml", "--no-connect")
        assert (
            "observer: in soak, 4 pauses of 20 s within 3 min, in which only the CPU of dear, cheap is read"
            in check.stdout
        )
        run = soakwatch("run", "plan.yaml", "--no-web", "--runs", "runs", timeout=900)
    folder = next((tmp_path / "runs").iterdir())
    verdict = json.loads((folder / "verdict.json").read_text())
    judged = {f["target"]: f for f in verdict["findings"] if f["rule"] == "observer_cost"}
    assert {target: finding["outcome"] for target, finding in judged.items()} == {"dear": "warn", "cheap": "pass"}
    for line in ("dear: the monitor took", "cheap: the monitor took"):
        assert line in run.stdout
        assert line in (folder / "report.html").read_text()
    with RecordView.open(folder) as view:
        rests = [stored.event for stored in view.events() if stored.event.kind == "observer.rest"]
    assert [event.target for event in rests].count("dear") == 4
    assert all(event.end_ns is not None and 15e9 < event.end_ns - event.begin_ns <= 20e9 for event in rests)
