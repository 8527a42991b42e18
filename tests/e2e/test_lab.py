"""The lab: a real device under test made of network namespaces, and a verdict for each thing that happens to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from soakwatch.record import RecordView

LAB = Path(__file__).parents[2] / "deploy" / "lab"
NEEDED = ("ip", "/usr/lib/frr/bgpd", "keepalived", "snmpd", "sshd", "iperf3", "nsenter")
Json = dict[str, object]


@dataclass(frozen=True)
class Ran:
    """What came of one scenario."""

    output: str
    verdict: Json
    folder: Path

    def of(self, rule: str, outcome: str | None = None) -> list[Json]:
        """The findings of a rule on the first router, with an outcome if one is asked for."""
        findings = self.verdict["findings"]
        assert isinstance(findings, list)
        return [f for f in findings if f["rule"] == rule and f["target"] == "ra" and outcome in {None, f["outcome"]}]

    @property
    def kinds(self) -> set[str]:
        """Kinds of the events in its record."""
        with RecordView.open(self.folder) as view:
            return {stored.event.kind for stored in view.events()}

    @property
    def failed(self) -> set[str]:
        """Rules that failed on whatever target."""
        findings = self.verdict["findings"]
        assert isinstance(findings, list)
        return {f["rule"] for f in findings if f["outcome"] == "fail"}


Scenario = Callable[[str], Ran]


def lab(*words: object, patience_s: float = 300, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """The lab's own command."""
    command = [*under, str(LAB / "lab"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=patience_s, check=False)


def spaces() -> set[str]:
    """The lab's network namespaces that are there."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.startswith("swlab-")}


@pytest.fixture(scope="module")
def ground() -> None:
    """Skips where a lab cannot be; fails in CI where only packages are missing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("the lab needs Linux and root for its network namespaces")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for program in NEEDED:
        if shutil.which(program, path=path) is None:
            if os.environ.get("CI"):
                pytest.fail(f"{program} is not installed: tests/run installs it")
            pytest.skip(f"{program} is not installed: `deploy/lab/lab install` installs it")


@pytest.fixture(scope="module")
def standing(ground: None) -> Iterator[None]:
    """A lab that is up; it is removed in the end."""
    done = lab("up")
    assert done.returncode == 0, done.stderr
    yield
    lab("down")


@pytest.fixture
def scenario(standing: None, tmp_path: Path) -> Scenario:
    """Runs one as a command; its verdict must be the expected one."""

    def run(name: str) -> Ran:
        done = lab("run", name, "--runs", tmp_path, "--keep", patience_s=300)
        (folder,) = [each for each in tmp_path.iterdir() if each.is_dir()]
        log = folder.with_suffix(".log").read_text()
        assert done.returncode == 0, done.stdout + done.stderr + log
        assert "Traceback" not in log
        return Ran(done.stdout + log, json.loads((folder / "verdict.json").read_text()), folder)

    return run


def test_a_failover_is_measured_packet_by_packet() -> None:
    """The arithmetic of the table of failovers, as its documentation shows it."""
    words = [sys.executable, "-m", "doctest", "-v", str(LAB / "swlab" / "failovers.py")]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(LAB)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Outage(lost=10" in done.stdout


def test_without_root_it_says_so(ground: None) -> None:
    """One sentence, and nothing is made. In a user namespace it is nobody, who may read a checkout in root's home."""
    nobody = ("unshare", "--user")
    if subprocess.run([*nobody, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel allows no user namespaces")
    before = spaces()
    done = lab("up", under=nobody)
    assert done.returncode == 4, done.stdout + done.stderr
    assert (
        done.stderr.strip()
        == "lab: the lab needs root for its network namespaces: run it as root, for instance with sudo"
    )
    assert spaces() == before


@pytest.mark.slow
def test_a_soakwatch_of_another_python_is_run(tmp_path: Path) -> None:
    """The lab's Python has no package of Soakwatch; SOAKWATCH names one that has. Namespaces are left out here."""
    (tmp_path / "ip").write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    (tmp_path / "ip").chmod(0o755)
    (tmp_path / "plan.yaml").write_text(
        "name: short\nduration: 4s\ntargets: {dut: {sources: [local: {interval: 1s}]}}\n"
    )
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom swlab.running import observe\n"
        "from swlab.scenarios import Action\n"
        "try:\n    import soakwatch\nexcept ImportError:\n    pass\nelse:\n    sys.exit('this Python has it')\n"
        "done = Path('done')\nlate = Action(2.0, 'in the middle', lambda: done.write_text(str(time.time())) and None)\n"
        "print(observe(Path('plan.yaml'), Path('runs/one').resolve(), [late], '--no-web'))\n"
    )
    (tmp_path / "runs").mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", code.replace("Path('plan.yaml')", f"Path({str(tmp_path / 'plan.yaml')!r})")],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(LAB),
            "SOAKWATCH": str(Path(sys.executable).with_name("soakwatch")),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in {"0", "1", "3"}, done.stdout
    with RecordView.open(tmp_path / "runs" / "one") as view:
        (phase,) = view.phases()
    assert float((tmp_path / "done").read_text()) >= phase.window.begin_ns * 1e-9 + 1.99


def test_a_slip_is_one_sentence(ground: None) -> None:
    """A scenario that is not there, a number that cannot be."""
    for words, message in (
        (("run", "quite"), "there is no scenario 'quite': there are quiet, "),
        (("failover", "--repeat", "0"), "--repeat 0: use 1 to 50"),
    ):
        done = lab(*words)
        assert done.returncode == 4
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_it_comes_and_goes_whatever_happened(ground: None) -> None:
    """Up twice; a router whose first process is killed takes all its daemons with it and is made anew; down twice."""
    try:
        for _ in range(2):
            done = lab("up")
            assert done.returncode == 0, done.stderr
        assert spaces() == {"swlab-mon", "swlab-gen", "swlab-sink", "swlab-ra", "swlab-rb"}
        done = lab("exec", "ra", "vtysh", "-c", "show bgp l2vpn evpn summary")
        assert "198.18.3.12" in done.stdout
        done = lab("exec", "ra", "ps", "-e", "-o", "comm=")
        assert {"bgpd", "zebra", "watchfrr", "keepalived", "snmpd", "sshd"} <= set(done.stdout.split())
        inhabitants = subprocess.run(["ip", "netns", "pids", "swlab-ra"], capture_output=True, text=True, check=True)
        first = min(map(int, inhabitants.stdout.split()))
        os.kill(first, 9)
        done = lab("status")
        assert done.returncode == 1
        assert "not ready" in done.stdout
        done = lab("up")
        assert done.returncode == 0, done.stderr
        assert "the lab is up" in lab("status").stdout
    finally:
        for _ in range(2):
            done = lab("down")
            assert done.returncode == 0, done.stderr
    assert spaces() == set()
    assert not Path("/run/swlab").exists()


@pytest.mark.punctual
@pytest.mark.slow
class TestScenarios:
    """Each is a run of `soakwatch` as a command over real daemons; the lab's command compares the verdict."""

    def test_a_quiet_soak_passes(self, scenario: Scenario) -> None:
        """Nothing fails, and nothing was lost of thousands of packets."""
        ran = scenario("quiet")
        assert ran.verdict["verdict"] == "pass"
        assert len(ran.of("process_restart", "pass")) >= 4
        assert ran.of("drops", "pass")
        assert not ran.of("drops", "fail")

    def test_a_killed_daemon_is_one_incident(self, scenario: Scenario) -> None:
        """SIGKILL: what the probes saw (pid, start time), what watchfrr wrote to syslog, and the session of the daemon,
        if it was seen to go down, are one crash."""
        ran = scenario("kill")
        assert ran.failed - {"session_flap"} == {"core_dump", "process_restart"}
        causes = ran.verdict["causes"]
        assert isinstance(causes, list)
        (cause,) = [each for each in causes if each["outcome"] == "fail"]
        assert cause["kind"] == "incident"
        assert len(cause["findings"]) == len(ran.failed)
        assert "bgpd" in cause["headline"]
        (restart,) = ran.of("process_restart", "fail")
        assert re.search(r"restarted at .* UTC (after \S+ \S+ )?\(pid \d+ → \d+\)", str(restart["reason"]))
        assert "process=bgpd" in str(restart["object"])

    def test_a_failover_costs_what_was_lost(self, scenario: Scenario) -> None:
        """The outage by loss and by time stamps agree within a tick of the probe."""
        ran = scenario("failover")
        (impact,) = ran.of("event_impact")
        numbers = impact["numbers"]
        assert isinstance(numbers, dict)
        assert numbers["agree"] == 1
        assert 0.2 < numbers["outage_1_loss_s"] < 4
        assert abs(numbers["outage_1_loss_s"] - numbers["outage_1_time_s"]) <= numbers["outage_1_time_error_s"] + 0.02

    def test_a_restart_that_was_announced_passes(self, scenario: Scenario) -> None:
        """It is counted as announced, and nothing else is held against the router."""
        ran = scenario("restart")
        (restart,) = ran.of("process_restart", "pass")
        assert "1 planned" in str(restart["reason"])

    def test_a_session_that_flaps_fails_with_its_peer(self, scenario: Scenario) -> None:
        """BGP and OSPF by SNMP of FRR: down for some seconds, each with the peer's address; nothing else fails."""
        flaps = scenario("session").of("session_flap", "fail")
        reasons = sorted(str(each["reason"]) for each in flaps)
        assert len(reasons) == 2, reasons
        assert reasons[0].startswith("BGP session with 198.18.3.12 went down once: ")
        assert reasons[1].startswith("OSPF session with 198.18.3.12 went down once: ")

    def test_a_session_that_flaps_in_a_drill_passes(self, scenario: Scenario) -> None:
        """The same was announced."""
        (calm,) = scenario("drill").of("session_flap")
        assert calm["outcome"] == "pass"
        assert "2 announced times down, back in time" in str(calm["reason"])

    def test_a_cut_management_network_is_no_crash(self, scenario: Scenario) -> None:
        """Inconclusive for what nobody saw; the silence is the path's, for the traffic went through."""
        ran = scenario("cut")
        assert ran.failed == set()
        assert any("path" in str(finding["reason"]) for finding in ran.of("gap"))
        assert ran.of("coverage", "inconclusive")

    def test_a_leak_fails(self, scenario: Scenario) -> None:
        """And only the process that leaks."""
        ran = scenario("leak")
        (leak,) = ran.of("memory_growth", "fail")
        assert "process=helper" in str(leak["object"])

    def test_a_queue_that_overflows_in_a_spike_and_drains_passes(self, scenario: Scenario) -> None:
        """What it dropped was planned, and no more than the overload explains; its depth is proven to be back."""
        ran = scenario("spike")
        (queue,) = [f for f in ran.of("drops", "pass") if f["object"] == "queue=south pfifo 10:"]
        numbers = queue["numbers"]
        assert isinstance(numbers, dict)
        assert numbers["planned"] > 1000
        (overload,) = ran.of("overload_loss")
        assert overload["outcome"] == "pass"
        (back,) = [
            f
            for f in ran.of("recovery", "pass")
            if (f["metric"], f["object"]) == ("queue.depth", "queue=south pfifo 10:")
        ]
        assert back["outcome"] == "pass"

    def test_routes_that_flap_leave_nothing_behind(self, scenario: Scenario) -> None:
        """The routing daemon of the partner keeps no memory of routes that came and went."""
        ran = scenario("flap")
        judged = [f for f in ran.of("memory_growth", "pass") if "process=bgpd" in str(f["object"])]
        assert judged

    def test_a_setting_that_is_changed_is_named(self, scenario: Scenario) -> None:
        """Old and new, as a warning and as an event."""
        ran = scenario("setting")
        (change,) = ran.of("setup", "warn")
        assert change["object"] == "check=change"
        assert "sysctls net.ipv4.conf.all.rp_filter: 0 -> 2" in str(change["reason"])
        assert "setup.change" in ran.kinds

    def test_a_router_that_nobody_touches_has_no_change(self, scenario: Scenario) -> None:
        """The same plan; what the machine's own set-up lets be judged is no warning."""
        assert "setup.change" not in scenario("untouched").kinds

    def test_an_inlet_that_passes_its_own_limit_fails(self, scenario: Scenario) -> None:
        """The limit is the router's; the outlet, which stays cool, passes."""
        ran = scenario("heat")
        (hot,) = ran.of("hardware_limit", "fail")
        assert str(hot["reason"]).startswith("temperature inlet: 78 °C, above its limit of 75 °C from ")
        assert [f["object"] for f in ran.of("hardware_limit", "pass")] == ["sensor=outlet"]

    def test_a_warm_inlet_passes(self, scenario: Scenario) -> None:
        """Below what the router warns of."""
        assert len(scenario("warmth").of("hardware_limit", "pass")) == 2

    def test_a_tenant_whose_load_costs_the_other_fails(self, scenario: Scenario) -> None:
        """They share a queue: the blue one loses packets while the red one overloads it."""
        (finding,) = scenario("neighbour").of("tenant_isolation", "fail")
        assert finding["object"] == "tenant=red"
        assert "blue lost " in str(finding["reason"])

    def test_tenants_with_queues_of_their_own_pass(self, scenario: Scenario) -> None:
        """The same load."""
        (finding,) = scenario("apart").of("tenant_isolation", "pass")
        assert finding["object"] == "tenant=red"

    def test_a_monitor_that_asks_too_often_is_named(self, scenario: Scenario) -> None:
        """The partner, which is asked once in ten seconds, is well: the scenario's own expectation."""
        (dear,) = scenario("observer").of("observer_cost", "warn")
        assert "ssh" in str(dear["reason"])

    def test_the_faults_of_a_drill_are_made_seen_and_undone(self, standing: None, tmp_path: Path) -> None:
        """Over SSH, on the router that the plan allows to be broken; the lab forwards again afterwards."""
        done = lab("run", "firedrill", "--runs", tmp_path, "--keep", patience_s=300)
        (log,) = [each for each in tmp_path.iterdir() if each.suffix == ".log"]
        assert done.returncode == 0, done.stdout + done.stderr + log.read_text()
        assert "Traceback" not in log.read_text()

    def test_agent_ssh_and_snmp_tell_one_router(self, standing: None, tmp_path: Path) -> None:
        """Side by side: what all say is the same, and what SNMP does not tell is said."""
        done = lab("fingerprint", "--runs", tmp_path, "--keep", patience_s=300)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
        for fact in ("name", "kernel", "uptime in s"):
            assert rows[fact].endswith("all tell the same")
        for fact in ("FRR", "memory in bytes", "interfaces"):
            assert rows[fact].endswith("agent and SSH tell the same")
        assert rows["sysObjectID"].endswith("only SNMP tells it")
        assert "not told - licences: not read over SNMP" in done.stdout

    def test_failovers_one_after_the_other(self, standing: None, tmp_path: Path) -> None:
        """Both ways; each by two methods within one interval between packets and what those are out of step."""
        done = lab("failover", "--repeat", "2", "--runs", tmp_path, "--keep", patience_s=300)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
        assert [row[1] for row in rows] == ["ra", "rb"]
        assert "out of step" in done.stdout
