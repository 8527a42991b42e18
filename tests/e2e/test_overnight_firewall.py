"""The tutorial of docs/ about a night with a firewall and TRex: its commands as they stand there, at the addresses that
they name, against doubles; only its lengths are shorter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.doc_blocks import Step, blocks_of, run_steps, steps_of
from tests.e2e.firewall_and_trex import COMMUNITY, FIREWALL, GENERATOR, MAILBOX_PORT, PASSWORD
from tests.needs import needs

from soakwatch.record import RecordView

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "overnight-firewall.md"
SHORTER = {  # intervals are still such that a busy machine answers within them
    "for: 30m, load: 10%": "for: 4s, load: 10%",
    "for: 11h": "for: 16s",
    "for: 15m": "for: 4s",
    "for: 30m, load: 80%": "for: 4s, load: 80%",
    "interval: 10s": "interval: 5s",
    "interval: 60s": "interval: 5s",
    "at: 6h, within: 30s": "at: 6s, within: 10s",
    "soakwatch calibrate plan.yaml ": "soakwatch calibrate plan.yaml --for 15s --levels 125% ",
}
GEAR = f"""
ip link set lo up && ip address add {FIREWALL}/32 dev lo && ip address add {GENERATOR}/32 dev lo || exit 1
mkdir -p gear ~/.ssh
trap 'kill $(jobs -p)' EXIT
(cd {ROOT} && exec {sys.executable} -m tests.e2e.firewall_and_trex "$OLDPWD/gear") >gear/said 2>&1 &
until [ -e gear/ready ]; do kill -0 $! || exit 1; sleep 0.1; done
"""
RUNS = "until soakwatch event last note.begun 2>/dev/null; do sleep 0.5; done\n"
"""What stands between the first terminal of the page and the others: the run has begun."""


def shorter(text: str) -> str:
    """A block of the page, with the lengths of a test."""
    for of_the_page, here in SHORTER.items():
        text = text.replace(of_the_page, here)
    return text


def namespace() -> list[str]:
    """What runs a command in a network namespace of its own, where the addresses of the page are free."""
    command = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed here")
    return command


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_night_with_a_firewall(tmp_path: Path) -> None:
    """Probes, check, calibration and message, the night with its failover, and the morning's report and comparison."""
    needs("ip", "ssh-keyscan", "unshare")
    page = PAGE.read_text(encoding="utf-8")
    whole, differs = blocks_of(page, "yaml")
    for text in SHORTER:
        assert page.count(text) == 1, f"{text!r} stands on the page no more: make it shorter otherwise"
    (tmp_path / "plan.yaml").write_text(shorter(whole) + differs, encoding="utf-8")
    look, ready, night, morning = (shorter(step.commands) for step in steps_of(page))
    run, *others = night.splitlines(keepends=True)
    watch, event = others
    steps = [
        Step(GEAR),
        *map(Step, look.splitlines(keepends=True)),
        *map(Step, ready.splitlines(keepends=True)),
        Step(f"({run.partition('#')[0].strip()}) >run.log 2>&1 &\n{RUNS}{event}"),
        Step(f"{watch.partition(';')[0]}\nwait %2\ncp -r runs/*-overnight runs/20261101T200000Z-fw-7.1\n"),
        *map(Step, morning.splitlines(keepends=True)),
    ]
    around = {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COMMUNITY": COMMUNITY,
        "FW_PASSWORD": PASSWORD,
        "SOAK_NOTIFY_URL": f"json://127.0.0.1:{MAILBOX_PORT}",
        "COLUMNS": "160",
    }
    printed = run_steps(steps, tmp_path, around, 600, namespace())
    assert len(printed) == len(steps), printed
    _, _, snmp, ssh, check, calibrate, notify, event_said, watched, report, files, compare = printed
    assert "profile: fortinet-fortigate" in snmp
    assert "driver: fortinet-fortigate" in ssh
    assert "ready: 4 sources" in check
    assert "reference plan.reference.yaml" in calibrate
    assert "sent, with an attachment" in notify
    assert "failover started" in event_said
    assert "soakwatch report last" in watched
    assert "fw-7.2-overnight" in report
    assert "Findings" in report
    assert (tmp_path / "report.html").stat().st_size > 100_000, files
    assert (tmp_path / "report.xml").is_file(), files
    assert "fw-7.1" in compare
    messages = [json.loads(line) for line in (tmp_path / "gear" / "messages").read_text().splitlines()]
    assert len(messages) >= 3, "the trial, the begin and the end"
    (folder,) = (tmp_path / "runs").glob("*-fw-7.2-overnight")
    with RecordView.open(folder) as view:
        assert [phase.name for phase in view.phases()] == ["baseline", "soak", "stress", "recovery"]
        assert view.labels == {"release": "7.2", "testbed": "rack-3", "build": "1841"}
        assert view.meta("verdict") in {"pass", "fail", "inconclusive"}
        assert "failover" in {stored.event.kind for stored in view.events()}
