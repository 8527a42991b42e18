"""Searches by the command, over a generator on a socket and over a process that is killed with its monitor."""

from __future__ import annotations

import json
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.collector.sources.loads.generator_kit import values, whole_run
from tests.commands import Command, Started, wait_until

from soakwatch.judge.capacity import SearchState, recorded_searches
from soakwatch.record import RecordView
from soakwatch_testing.pktgen_server import FakePort, PktgenServer, pktgen_server

GOAL = "{loss: 0, at_most: 3m, width: 10%, trial: 1s, first_trial: 1s, sum: 1s, settle: 300ms}"


LINE = 10e9 / (8 * (64 + 20))
"""Frames of 64 bytes a second on a link of 10 Gbit/s."""


@dataclass(slots=True)
class LimitedServer(PktgenServer):
    """A port that sends by its rate while time passes; a device behind it forwards 62 % of the line."""

    at_s: float = field(default_factory=time.monotonic)

    def answer(self, line: str) -> str:
        """See PktgenServer: what was sent until now first."""
        now_s = time.monotonic()
        passed_s, self.at_s = now_s - self.at_s, now_s
        for port in self.ports.values():
            port.loss = max(0.0, 1 - 0.62 * LINE / port.sends) if port.sends else 0.0
        self.advance(passed_s)
        return PktgenServer.answer(self, line)


@pytest.mark.slow
def test_pktgen_is_driven_through_a_search(tmp_path: Path) -> None:
    """Of all packets at full rate 62 % come back: that is found, and the soak runs at half of it."""
    server = LimitedServer(ports={0: FakePort(line=LINE)})
    with pktgen_server(server):
        source = f"{{pktgen: {{port: {server.port}, interval: 250ms, drive: true, send: '0', latency: false}}}}"
        record = whole_run(tmp_path, source, f"{{capacity: {GOAL}}}, {{soak: {{for: 2s, load: 50% of capacity}}}}")
    with RecordView.open(record) as view:
        (search,) = recorded_searches(view)
        (goal,) = search.goals
        assert search.state is SearchState.FOUND
        assert goal.lower is not None
        assert goal.upper is not None
        assert goal.lower <= 0.62 < goal.upper
        assert values(view, "load.level")[-1] == pytest.approx(0.5 * goal.lower)
    document = json.loads(record.with_name("verdict.json").read_text(encoding="utf-8"))
    assert document["capacity"][0]["goals"][0]["bound"] == "found"
    assert "<circle" in record.with_name("report.html").read_text(encoding="utf-8")
    assert "Capacity at loss 0" in record.with_name("report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_killed_monitor_begins_its_search_again(tmp_path: Path, soakwatch: Command, started: Started) -> None:
    """SIGKILL in the search; the resumed run searches anew and finds the 6,234 packets/s of the double."""
    words = [sys.executable, "-m", "soakwatch_testing.limited_load", "--rate", "{rate}", "--capacity", "6234"]
    source = {"interval": "300ms", "drive": True, "full": 10000, "run": [*words, "--noise", "0.002"]}
    phases = f"[{{capacity: {GOAL.replace('width: 10%', 'width: 3%')}}}, {{soak: {{for: 3s, load: 80% of capacity}}}}]"
    (tmp_path / "plan.yaml").write_text(
        f"name: killed\nphases: {phases}\ntargets:\n  dut: {{sources: [local]}}\n"
        f"  gen: {{role: generator, sources: [{{command: {json.dumps(source)}}}]}}\n",
        encoding="utf-8",
    )
    running = started("run", "plan.yaml", "--runs", "runs")
    wait_until(lambda: _trials(tmp_path) >= 2, "the second trial")
    running.send_signal(signal.SIGKILL)
    running.wait()
    resumed = soakwatch("resume", "last")
    assert resumed.returncode in {0, 1, 3}, resumed.stdout + resumed.stderr
    (record,) = tmp_path.glob("runs/*/record.sqlite")
    with RecordView.open(record) as view:
        (search,) = recorded_searches(view)
    assert search.state is SearchState.FOUND
    assert search.goals[0].rate == pytest.approx(6234, rel=0.06)
    assert search.notes[0] == "the monitor was interrupted; the search began again"


def _trials(folder: Path) -> int:
    for record in folder.glob("runs/*/record.sqlite"):
        with RecordView.open(record) as view:
            return sum(len(search.trials) for search in recorded_searches(view))
    return 0
