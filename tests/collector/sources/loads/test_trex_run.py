"""Whole runs with the load ``trex``, as a person runs them: the figures in the record, driven phases, nobody there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.commands import command_in

from soakwatch.record import RecordView, SeriesKey
from soakwatch_testing.ports import free_port
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_parts import Group, Port
from soakwatch_testing.trex_server import TrexServer, trex_server

PLAN = """\
name: trial
phases: [{phases}]
targets:
  dut: {{role: dut, sources: [{{local: {{interval: 500ms}}}}]}}
  tg:
    role: generator
    sources: [{{trex: {{host: 127.0.0.1, port: {port}, interval: 500ms{more}}}}}]
"""


def run(folder: Path, port: int, phases: str = "{soak: 4s}", more: str = "") -> subprocess.CompletedProcess[str]:
    """`soakwatch run` of a short plan."""
    (folder / "plan.yaml").write_text(PLAN.format(port=port, phases=phases, more=more))
    return command_in(folder)("run", "plan.yaml", "--no-web")


def values(view: RecordView, metric: str, name: str = "") -> list[float]:
    """The readings of one series of the generator."""
    return [float(value) for value in np.asarray(view.series(SeriesKey("tg", metric, name)).value)]


@pytest.mark.slow
@pytest.mark.punctual
def test_the_figures_arrive_in_the_record(tmp_path: Path) -> None:
    """Totals as counters, flows, latency, ports; the facts of the generator as an event."""
    model = TrexModel(ports=[Port(state="TX"), Port(state="TX")], groups={7: Group(latency=14.0)})
    with trex_server(TrexServer(model, speed=0.5)) as server:
        done = run(tmp_path, server.port)
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    (record,) = tmp_path.glob("runs/*/record.sqlite")
    with RecordView.open(record) as view:
        sent = values(view, "load.tx.packets")
        assert len(sent) >= 5
        assert set(np.diff(sent)) == {1000.0}
        assert set(values(view, "load.sending")) == {1.0}
        assert values(view, "load.port.tx.packets", "port=1")[0] > 0
        assert set(values(view, "load.flow.latency", "flow=7,quantile=max")) == {14e-6}
        (identity,) = [
            reported.event
            for reported in view.events()
            if reported.event.kind == "device.identity" and "trex" in reported.event.object
        ]
        assert identity.detail["generator"] == "TRex v3.04 STL"
        assert "drain" in identity.detail["notes"]


@pytest.mark.slow
def test_the_phases_drive_it_and_leave_it_at_rest(tmp_path: Path) -> None:
    """A phase says its load; the offered rate follows; at the end the ports rest and are released."""
    model = TrexModel()
    phases = "{baseline: {for: 2s, load: 0%}}, {soak: {for: 3s, load: 50%}}, {stress: {for: 3s, load: 100%}}"
    with trex_server(TrexServer(model, speed=0.5)) as server:
        done = run(tmp_path, server.port, phases, ", drive: true, rate: 2")
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    (record,) = tmp_path.glob("runs/*/record.sqlite")
    with RecordView.open(record) as view:
        assert set(values(view, "load.offered.packet.rate")) == {0.0, 2000.0, 4000.0}
        assert set(values(view, "load.level")) == {0.0, 0.5, 1.0}
        assert values(view, "load.sending")[0] == 0
        assert values(view, "load.sending")[-1] == 1
    assert [(port.state, port.owner) for port in model.ports] == [("STREAMS", ""), ("STREAMS", "")]


def test_a_missing_generator_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    """A generator that is required and cannot be reached: one sentence, no traceback."""
    port = free_port()
    done = run(tmp_path, port)
    assert done.returncode in {2, 3}, done.stdout + done.stderr
    assert f"cannot reach TRex at 127.0.0.1 port {port}" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
