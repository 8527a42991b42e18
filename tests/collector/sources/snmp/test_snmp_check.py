"""The check before the run, of devices that renew their counters every few seconds or more seldom."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.collector.sources.snmp.snmpd import Snmpd

from soakwatch.cli.tables import show_source_check
from soakwatch.engine.plan_check import SourceCheck, check_sources
from soakwatch.plan import plan_from_text
from soakwatch_testing.snmp_cells import Cell, name_of
from soakwatch_testing.snmp_mib import system
from soakwatch_testing.snmp_responder import responder

PLAN = """\
phases: [{{soak: 1h}}]
targets:
  dut:
    role: dut
    sources: [{{snmp: {{host: 127.0.0.1, port: {port}, version: 2c, interval: {interval}, timeout: 60s, {keys}}}}}]
"""
CPU = "system.cpu.utilization"
BUSY, IDLE = "1.3.6.1.4.1.99999.1.0", "1.3.6.1.4.1.99999.2.0"
UP_TIME = "1.3.6.1.2.1.1.3.0"
GROWN_CS = 700  # before, net-snmp answers 0 for what it has not read yet
BOX = f"""\
title: box
snmp:
  groups:
    shares:
      refresh: 60s
      scalars: {{busy: {{oid: {BUSY}, bits: 32}}, idle: {{oid: {IDLE}, bits: 32}}}}
      metrics: [{{metric: {CPU}, value: busy / (busy + idle), of: change}}]
"""


def checked(port: int, keys: str, interval: str) -> SourceCheck:
    """What ``soakwatch check`` finds."""
    plan = plan_from_text(PLAN.format(port=port, keys=keys, interval=interval), "plan.yaml")
    (check,) = asyncio.run(check_sources(plan, Path()))
    return check


@pytest.mark.parametrize("interval", ["3s", "10s"])
def test_the_share_of_the_cpu_is_seen_though_net_snmp_renews_it_every_five_seconds(snmpd: Snmpd, interval: str) -> None:
    """One poll more, when the agent has renewed its counters: whatever the planned interval is."""
    deadline = time.monotonic() + 120
    while int(snmpd.get(UP_TIME) or 0) < GROWN_CS:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    checks = [checked(snmpd.access().port, "profile: linux, groups: [ucd_cpu]", interval) for _ in range(2)]
    for check in checks:
        assert check.error is None
        assert CPU in {sample.metric for sample in check.samples}
        assert not check.slow


def test_what_a_check_is_too_short_for_is_reported_and_not_called_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "box.yaml").write_text(BOX)
    rows = system() | {name_of(BUSY): Cell(65, 500), name_of(IDLE): Cell(65, 700)}
    with responder(rows) as device:
        check = checked(device.address[1], f"profile: box, profiles: {tmp_path}", "10s")
    assert check.error is None
    assert (check.slow, check.lacking) == ({CPU: 60.0}, ())
    show_source_check(check)
    assert f"  no value yet: {CPU}: the device updates it every 1 min\n" in capsys.readouterr().out
