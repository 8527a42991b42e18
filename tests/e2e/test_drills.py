"""The drills in short: what a cut network and a killed collector cost each way to a device."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.bench.drill_lab import Lab
from tests.bench.drills import Collector, Exercise, Row, answers_of, rows_of
from tests.e2e.device_fixtures import needs_programs

from soakwatch.record import RecordView
from soakwatch_model.sample import PollOutcome


@pytest.mark.slow
def test_a_cut_cable_and_a_killed_collector_lose_nothing_of_the_agent(tmp_path: Path) -> None:
    """The agent's polls are all there afterwards; SNMP and SSH have a gap, reported as lost; echoes tell that nobody
    was there."""
    needs_programs()
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables", "ss"))):
        pytest.skip("network namespaces need root and iproute2")
    with ExitStack() as stack:
        lab = Lab(tmp_path, stack)
        lab.open()
        collector = Collector(lab)
        stack.callback(collector.kill)
        collector.start()
        exercise = Exercise(lab, collector)
        exercise.wait_until_settled(time.time_ns(), "the beginning")
        exercise.drill("cut", lab.cut, 15, lab.mend)
        exercise.drill("killed", collector.kill, 5, collector.resume)
        collector.end()
        with RecordView.open(collector.run) as view:
            answers = answers_of(view, view.sources())
            cut, killed = (_by_name(rows_of(view, drill, answers)) for drill in exercise.done)
    for row in (cut["agent"], killed["agent"]):
        # On a busy machine a poll may overrun its interval; the ledger counts it.
        assert set(row.account.lost) <= {PollOutcome.OVERRUN.value}
        assert row.account.due - row.account.got <= 1
        assert row.account.recovered >= 4
    for name in ("SNMP v2c", "SNMP v3", "SSH"):
        assert cut[name].account.due - cut[name].account.got >= 13
        assert killed[name].account.lost["gap"] >= 4
    assert cut["ICMP"].unreachable >= 13
    assert cut["ICMP"].account.got == cut["ICMP"].account.due


def _by_name(rows: list[Row]) -> dict[str, Row]:
    return {row.name: row for row in rows}
