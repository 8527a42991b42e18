"""Devices as a person reaches them: one plan with every way to a device, its troubles, and what is said of them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.device_fixtures import SECRETS, Device, needs_programs, run_device, spilled

from soakwatch.plan import load_plan
from soakwatch.record import RecordView
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch_model.case import Ledger
from soakwatch_testing.sshd import run_sshd

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Started = Callable[..., "subprocess.Popen[str]"]
Until = Callable[[Callable[[], bool], str], None]

LINK_DOWN = "1.3.6.1.6.3.1.1.5.3"
IF_INDEX, IF_NAME = "1.3.6.1.2.1.2.2.1.1.2", "1.3.6.1.2.1.31.1.1.1.1.2"
CRASH = "bgpd[4711]: segfault at 10 ip 000055d5 sp 00007ffc error 4 in libfrr.so.0"


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """A device that nobody harms."""
    needs_programs()
    with run_device(tmp_path_factory.mktemp("device")) as running:
        yield running


@pytest.fixture
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """A device to kill the parts of."""
    needs_programs()
    with run_device(tmp_path_factory.mktemp("fragile")) as running:
        yield running


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets, where references find them."""
    for name, text in SECRETS.items():
        monkeypatch.setenv(name, text)


def plan_of(device: Device, duration: str, **keys: str) -> dict[str, object]:
    """One device under test, polled by every way there is; the keys are every source's."""
    sources: list[dict[str, dict[str, object]]] = [
        {"snmp": {**device.snmp, "interval": "500ms"}},
        {"ssh": {**device.login, "interval": "500ms"}},
        {"agent": {"socket": str(device.agent.socket), "interval": "500ms"}},
        {"icmp": {"host": "127.0.0.1", "interval": "1s"}},
        {"tcp": {"host": "127.0.0.1", "port": device.sshd.port, "interval": "1s"}},
        {"traps": {"listen": f"127.0.0.1:{device.trap_port}", "communities": ["env:SOAK_COMMUNITY"]}},
        {"syslog": {"listen": f"127.0.0.1:{device.log_port}"}},
    ]
    sources = [{poller: {**own, **keys} for poller, own in source.items()} for source in sources]
    return {"name": "devices", "duration": duration, "targets": {"dut": {"sources": sources}}}


def ledgers(run: Path) -> tuple[Ledger, ...]:
    """The account of each source by now; none before the first poll."""
    if not (run / "record.sqlite").exists():
        return ()
    with RecordView.open(run) as view:
        return view.ledgers(view.window()) if view.counts().polls else ()


def got(run: Path, source: str, more_than: int = 0) -> bool:
    """Whether a record has more than so many answers of a source by now."""
    return any(each.got > more_than for each in ledgers(run) if each.source == source)


def failed(run: Path, source: str) -> int:
    """How many polls of a source have failed by now."""
    return sum(each.lost.get("failed", 0) for each in ledgers(run) if each.source == source)


def has_event(run: Path, kind: str) -> bool:
    """Whether a record has an event of a kind by now."""
    with RecordView.open(run) as view:
        return any(stored.event.kind == kind for stored in view.events())


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """What a command complained of: one line, no traceback, no secret."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for text in SECRETS.values():
        assert text not in done.stdout + done.stderr
    return lines[0]


@pytest.mark.slow
@pytest.mark.punctual
def test_a_device_by_all_ways_whose_parts_die(fragile: Device, started: Started, until: Until, tmp_path: Path) -> None:
    """snmpd is killed and comes back, SSH sessions are cut, a trap and a crash line come: each is in the record for
    what it was, the lost polls with their reason, and no secret is anywhere in the run's folder."""
    (tmp_path / "plan.yaml").write_text(json.dumps(plan_of(fragile, "2m")))
    process = started("run", "plan.yaml", "--into", "run", "--no-web")
    run = tmp_path / "run"
    polled = ("dut/snmp", "dut/ssh", "dut/agent", "dut/traps", "dut/syslog")
    until(lambda: all(got(run, source, 2) for source in polled), "three answers of each source")
    before = failed(run, "dut/snmp")  # the first survey may have taken longer than a poll
    fragile.snmpd.kill()
    fragile.sshd.kill_sessions()
    fragile.trap(LINK_DOWN, IF_INDEX, "i", "2", IF_NAME, "s", "eth7")
    fragile.log(CRASH)
    until(lambda: failed(run, "dut/snmp") > before + 1, "a failed poll of dut/snmp after the one that was under way")
    fragile.snmpd.start()
    until(lambda: has_event(run, "snmp.agent.restart"), "the restart of the agent in the record")
    answers = sum(fate.got for fate in ledgers(run) if fate.source == "dut/snmp")
    until(lambda: got(run, "dut/snmp", answers + 20), "more answers of dut/snmp")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 1, output  # the crash is reported, so it counts
    assert "Traceback" not in output

    verdict = json.loads((run / "verdict.json").read_text())
    coverage = {source["source"]: source for source in verdict["coverage"]}
    assert coverage["dut/snmp"]["lost"]["failed"] >= 1
    assert 0.3 < coverage["dut/snmp"]["coverage"] < 1
    assert any("the port is closed" in error for error in coverage["dut/snmp"]["errors"])
    assert coverage["dut/snmp"]["longest_gap_seconds"] > 1
    for source in ("dut/ssh", "dut/agent", "dut/icmp", "dut/tcp", "dut/traps", "dut/syslog"):
        assert coverage[source]["coverage"] > 0.5, coverage[source]  # on a busy machine polls overrun
    assert any("dut/snmp" in finding["reason"] for finding in verdict["findings"] if finding["rule"] == "coverage")

    with RecordView.open(run) as view:
        events = [stored.event for stored in view.events()]
    kinds = {event.kind for event in events}
    assert "reboot" not in kinds  # the agent died, the device did not
    (restart,) = [event for event in events if event.kind == "snmp.agent.restart"]
    assert "snmpEngineBoots 1 -> 2" in restart.detail["evidence"]
    (link,) = [event for event in events if event.kind == "link.down"]
    assert link.object == "interface=eth7"
    (crash,) = [event for event in events if event.kind == "kernel.segfault"]
    assert (crash.object, crash.detail["pid"]) == ("process=bgpd", "4711")
    assert CRASH in crash.detail["line"]
    identities = {event.object: event.detail for event in events if event.kind == "device.identity"}
    assert identities["dut/snmp"]["profile"] == "linux"
    assert identities["dut/snmp"]["protocol"] == "SNMP v3"
    assert identities["dut/ssh"]["host key"].startswith("SHA256:")
    assert identities["dut/agent"]["way"] == "socket"
    for text in (LINK_DOWN, "segfault", "snmp.agent.restart"):
        assert text in (run / "report.html").read_text(), text
    assert spilled(tmp_path) == []
    assert all(text not in output for text in SECRETS.values())


def test_check_shows_each_source_alive(device: Device, soakwatch: Command, tmp_path: Path) -> None:
    """`check` says what each source is, its values now, what a poll takes, what it costs, what is missing."""
    (tmp_path / "plan.yaml").write_text(json.dumps(plan_of(device, "8h", timeout="60s")))
    done = soakwatch("check", "plan.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    sections = {text.split(",")[0]: text for text in done.stdout.split("\ndut (dut): ")[1:]}
    assert sections.keys() == {"snmp", "ssh", "agent", "icmp", "tcp", "traps", "syslog"}
    assert "profile: linux" in sections["snmp"]
    assert "profile chosen by: sysObjectID" in sections["snmp"]
    assert "57,600 polls planned" in sections["snmp"]
    assert "host key: SHA256:" in sections["ssh"]
    for name in ("snmp", "ssh", "agent"):
        assert "system.memory.limit" in sections[name]
        assert "a poll took " in sections[name]
        assert "% of its interval" in sections[name]
    for name in ("ssh", "agent"):
        assert "cost on the device: " in sections[name]
    assert "reach.up" in sections["icmp"]
    assert f"127.0.0.1:{device.trap_port}" in sections["traps"]
    assert all(text not in done.stdout for text in SECRETS.values())


def test_probe_shows_a_device_without_a_plan(device: Device, soakwatch: Command) -> None:
    """`probe` with an address: SNMP v2c and v3 and SSH say the same of this machine's memory."""
    v3 = "version=3&auth=env:SOAK_AUTH&priv=env:SOAK_PRIV"
    limits = set()
    for address in (device.snmp_address(), device.snmp_address(v3, "common@"), device.ssh_address()):
        done = soakwatch("probe", address, "--interval", "60s")  # all is read in one poll, on a busy machine too
        assert done.returncode == 0, done.stdout + done.stderr
        assert "profile: linux" in done.stdout
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("  system.memory.limit ")]
        limits.add(tuple(line.split()))
        assert all(text not in done.stdout for text in SECRETS.values())
    assert len(limits) == 1


def test_probe_tells_what_a_device_lacks(device: Device, soakwatch: Command) -> None:
    """A profile that promises what this device does not have: what is missing is named, and what is there is shown."""
    address = device.snmp_address("community=env:SOAK_COMMUNITY&profile=fortinet-fortigate")
    done = soakwatch("probe", address, "--interval", "60s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "profile: fortinet-fortigate" in done.stdout
    assert "profile chosen by: the plan names it" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "in the profile, but not on this device:" in line]
    assert "system.sessions" in line
    assert "  system.network.up " in done.stdout


@pytest.mark.slow
@pytest.mark.punctual
def test_a_run_without_a_plan(device: Device, soakwatch: Command, tmp_path: Path) -> None:
    """`run --target snmp://… --target ssh://…` needs no plan; its command line is recorded without a secret."""
    done = soakwatch(
        "run", "--target", device.snmp_address(), "--target", device.ssh_address(), "--duration", "10s", "--no-web"
    )
    assert done.returncode == 3, done.stdout + done.stderr
    (record,) = tmp_path.glob("runs/*/record.sqlite")
    with RecordView.open(record.parent) as view:
        ledgers = {ledger.source: ledger for ledger in view.ledgers(view.window())}
        assert {name for name in ledgers if not name.startswith("monitor")} == {"127.0.0.1/snmp", "127.0.0.1/ssh"}
        assert all(ledger.got >= 2 for name, ledger in ledgers.items() if name.startswith("127"))
    assert spilled(tmp_path) == []


BAD_ADDRESSES = [
    ("snmp://127.0.0.1:{snmp}?version=2c{slow}&community=env:SOAK_WRONG", 1, "not to this community"),
    ("snmp://common@127.0.0.1:{snmp}?version=3{slow}&auth=env:SOAK_WRONG&priv=env:SOAK_PRIV", 1, "authentication key"),
    ("snmp://common@127.0.0.1:{snmp}?version=3{slow}&auth=env:SOAK_AUTH&priv=env:SOAK_WRONG", 1, "privacy key"),
    ("snmp://nobody@127.0.0.1:{snmp}?version=3{slow}&auth=env:SOAK_AUTH&priv=env:SOAK_PRIV", 1, "not know this user"),
    ("snmp://common@127.0.0.1:{snmp}?version=3&auth=env:SOAK_SHORT", 1, "shorter than the 8 characters"),
    ("snmp://127.0.0.1:{closed}?version=2c{slow}&community=env:SOAK_COMMUNITY", 1, "the port is closed"),
    ("snmp://127.0.0.1:{snmp}?community=env:SOAK_NOT_SET", 1, "SOAK_NOT_SET is not set"),
    ("snmp://127.0.0.1:{snmp}?community=public", 2, "env:NAME or file:PATH"),
    ("snmp://127.0.0.1:{snmp}?version=4", 2, "version"),
    ("snmp://127.0.0.1:{snmp}?profile=linnux", 1, "did you mean 'linux'?"),
    ("snmp://127.0.0.1:{snmp}?communty=env:SOAK_COMMUNITY", 2, "did you mean 'community'?"),
    ("snnp://127.0.0.1", 2, "did you mean 'snmp'?"),
    ("127.0.0.1", 2, "has no scheme"),
    ("ssh://root:hunter2@127.0.0.1:{ssh}", 2, "contains a password"),
    ("ssh://127.0.0.1:{closed}?key={key}&known_hosts={known}", 1, "refused the connection"),
    ("ssh://127.0.0.1:{ssh}?key={key}&known_hosts=/dev/null", 1, "add it with ssh-keyscan"),
    ("ssh://127.0.0.1:{ssh}?key={guarded}&known_hosts={known}", 1, "needs a passphrase"),
    ("ssh://127.0.0.1:{ssh}?key={guarded}&passphrase=env:SOAK_WRONG&known_hosts={known}", 1, "SOAK_WRONG: check both"),
    ("ssh://127.0.0.1:{ssh}?key={other}&known_hosts={known}", 1, "denied the login"),
    ("tcp://127.0.0.1", 2, "port"),
]


@pytest.mark.parametrize(("address", "code", "sentence"), BAD_ADDRESSES, ids=[text for _, _, text in BAD_ADDRESSES])
def test_bad_input_is_one_sentence(
    device: Device, soakwatch: Command, tmp_path: Path, address: str, code: int, sentence: str
) -> None:
    """Wrong credentials, closed ports, strangers and slips: one sentence with the remedy, and the right exit code."""
    other = tmp_path / "other"
    if "{other}" in address:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    folder = device.sshd.folder
    filled = address.format(
        slow="&interval=10s",  # of a poll of a second a busy machine has none left for the cause
        snmp=device.snmpd.port,
        closed=device.trap_port,
        ssh=device.sshd.port,
        key=folder / "user",
        guarded=device.key,
        known=folder / "known_hosts",
        other=other,
    )
    done = soakwatch("probe", filled)
    assert done.returncode == code, done.stdout + done.stderr
    message = one_sentence(done)
    assert sentence in message
    assert "hunter2" not in message


def test_a_changed_host_key_is_refused_with_the_line_that_it_breaks(
    device: Device, soakwatch: Command, tmp_path: Path
) -> None:
    """Another server behind a known name is not talked to; the line of known_hosts is named."""
    with run_sshd(tmp_path / "other") as other:
        known = tmp_path / "known_hosts"
        public = (device.sshd.folder / "host.pub").read_text()
        known.write_text(f"# the device\n[127.0.0.1]:{other.port} {public}")
        done = soakwatch("probe", f"ssh://127.0.0.1:{other.port}?key={other.folder / 'user'}&known_hosts={known}")
        assert done.returncode == 1
        assert f"{known}:2" in one_sentence(done) or "line 2" in one_sentence(done)


def test_a_plan_with_one_wrong_source_says_where(device: Device, soakwatch: Command, tmp_path: Path) -> None:
    """`check` checks all, names the line of the wrong one in the plan, and ends with 1."""
    (tmp_path / "plan.yaml").write_text(
        f"""name: half
duration: 1h
targets:
  dut:
    sources:
      - snmp: {{host: 127.0.0.1, port: {device.snmpd.port}, community: "env:SOAK_WRONG", interval: 2s}}
      - icmp: {{host: 127.0.0.1}}
"""
    )
    done = soakwatch("check", "plan.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    message = one_sentence(done)
    assert "plan.yaml:6" in message
    assert "check the community" in message
    assert "reach.up" in done.stdout


def test_a_plan_goes_through_a_jump_host(device: Device, soakwatch: Command, tmp_path: Path) -> None:
    """`jump` of a plan is used: the device is reached through it, and a jump host that refuses is reported as such."""
    login = device.sshd.keys
    host = {key: login[key] for key in ("host", "port", "user", "key")}
    for port, code in ((login["port"], 0), (device.trap_port, 1)):
        source = {"ssh": {**login, "jump": [{**host, "port": port}]}}
        plan = {"duration": "1h", "targets": {"dut": {"sources": [source]}}}
        (tmp_path / "plan.yaml").write_text(json.dumps(plan))
        done = soakwatch("check", "plan.yaml")
        assert done.returncode == code, done.stdout + done.stderr
    assert f":{device.trap_port}" in one_sentence(done)
    assert "refused the connection" in done.stderr


def test_a_run_with_a_wrong_key_says_why_it_saw_nothing(device: Device, soakwatch: Command, tmp_path: Path) -> None:
    """A device that refuses is a failing source: the run goes on, is inconclusive, and tells the remedy."""
    address = device.snmp_address("version=3&auth=env:SOAK_WRONG&priv=env:SOAK_PRIV", "common@")
    done = soakwatch("run", "--target", address, "--duration", "4s", "--into", "run", "--no-web")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "check auth and auth_protocol" in done.stdout
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    (source,) = [source for source in verdict["coverage"] if source["target"] == "127.0.0.1"]
    assert source["got"] == 0
    assert source["due"] >= 3
    assert spilled(tmp_path) == []


EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").glob("*/plan.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_plan_is_ready(example: Path, soakwatch: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example parses as its user checks it, names profiles and systems that exist, and its README its secrets."""
    for name in SECRETS:
        monkeypatch.delenv(name)
    done = soakwatch("check", example, "--no-connect")
    assert done.returncode == 0, done.stdout + done.stderr
    profiles = load_profiles()
    every = [profiles[head.name] for head in profiles.heads()]
    systems = {"auto", "linux"} | {profile.cli for profile in every if profile.cli}
    for source in (source for target in load_plan(example).targets for source in target.sources):
        keys = source.config.model_dump()
        if keys.get("profile") not in (None, "auto"):
            profile = profiles[keys["profile"]]
            known = {group.name for group in profile.groups}
            assert set(keys.get("groups") or ()) <= known
            assert source.poller != "gnmi" or profile.gnmi
        assert keys.get("os", "auto") in systems
    readme = example.with_name("README.md")
    for variable in set(re.findall(r"env:([A-Z_]+)", example.read_text(encoding="utf-8"))):
        assert variable in readme.read_text(encoding="utf-8")
