"""The drill on a device, here this machine: it asks first, breaks only what is named, and all of it ends by itself.

Only processes that a test started, a tmpfs, and interfaces in a network namespace of its own are touched.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from tests.commands import MAX_WAIT_S, SOAKWATCH, environment
from tests.needs import needs

from soakwatch.cli.main import soakwatch
from soakwatch.core.errors import PlanError
from soakwatch.engine.drill.faults import LiveFault, end_script, faults_of, held_by
from soakwatch.plan.drill_plan import DrillPlan, VictimPlan
from soakwatch_testing.ports import free_port
from soakwatch_testing.sshd import Sshd, run_sshd

TARGET = "targets: {dut: {sources: [{local: {interval: 500ms}}]"


def plan(folder: Path, drill: object = None, watch: object = None, more: str = "") -> Path:
    """A plan of this machine; JSON is YAML."""
    keys = f", drill: {json.dumps(drill)}" if drill is not None else ""
    watched = f"\nwatch: {json.dumps(watch)}" if watch is not None else ""
    file = folder / "plan.yaml"
    file.write_text(f"duration: 1h\n{TARGET[:-1]}{more}]{keys}}}}}{watched}\n", encoding="utf-8")
    return file


def wait_until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _none_alive(pids: tuple[int, ...]) -> bool:
    return not any(map(alive, pids))


def named(name: str) -> list[int]:
    """The living processes of a name."""
    return [p.pid for p in psutil.process_iter(["name"]) if p.info["name"] == name and alive(p.pid)]


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A process of a name that no other has: its name, and the command that starts it."""
    name = f"swv{os.getpid()}x{time.monotonic_ns() % 10**4:04d}"
    program = tmp_path / name
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    first = subprocess.Popen([program, "600"])
    yield name, f"{program} 600"
    for pid in named(name):
        os.kill(pid, signal.SIGKILL)
    first.wait()


def made(fault: LiveFault, *within: str) -> tuple[int, ...]:
    """Makes a fault from a shell that is killed behind it, as a drill may be; the processes that hold it."""
    shell = subprocess.Popen([*within, "sh", "-c", f"{fault.inject}\nexec sleep 600"], stdout=subprocess.PIPE)
    assert shell.stdout is not None
    said = b""
    try:
        while not held_by(said):
            line = shell.stdout.readline()
            assert line, said
            said += line
    finally:
        if fault.kind != "cpu":
            time.sleep(0.3)  # the fault is made behind the line that names its dead-man
        shell.kill()
        shell.wait()
        shell.stdout.close()
    return held_by(said)


def one(kind: str, drill: DrillPlan, lasts_s: float) -> LiveFault:
    (fault,) = [fault for fault in faults_of("dut", drill, lasts_s, f"test{os.getpid()}") if fault.kind == kind]
    return fault


def test_nothing_is_broken_that_is_not_named_or_agreed_to(tmp_path: Path) -> None:
    """Without the key there is nothing to break; without anybody to ask nothing is done; patterns are no names."""
    refused = CliRunner().invoke(soakwatch, ["drill", str(plan(tmp_path))])
    assert isinstance(refused.exception, PlanError)
    assert "no target has the key drill, so nothing may be broken" in str(refused.exception)
    allowed = plan(tmp_path, {"processes": ["bgpd"], "interfaces": ["eth9"], "cpu": True, "log": True})
    unasked = CliRunner().invoke(soakwatch, ["drill", str(allowed), "--runs", str(tmp_path / "runs")])
    assert unasked.exit_code == 2
    assert "nobody is there to agree: add --yes" in unasked.stderr
    for words in ("kill -9 of the first process bgpd", "take interface eth9 down", "keep every core busy", "segfault"):
        assert words in unasked.stdout
    assert not (tmp_path / "runs").exists()
    for wrong, why in (
        ({"processes": ["*"]}, "is not the name of a process"),
        ({"interfaces": ["eth0; reboot"]}, "is not the name of an interface"),
        ({"filesystem": "1TB"}, "write a size from 1 MiB to 1 GiB"),
        ({"log": "nowhere"}, "HOST:PORT of a syslog listener"),
        ({"disk": True}, "unknown key 'disk'"),
    ):
        answer = CliRunner().invoke(soakwatch, ["drill", str(plan(tmp_path, wrong))])
        assert isinstance(answer.exception, PlanError)
        assert why in str(answer.exception)
    option = CliRunner().invoke(soakwatch, ["drill", str(allowed), "--places", "3"])
    assert "--places does not apply" in option.stderr


def test_a_killed_process_is_started_again_though_the_drill_is_killed(victim: tuple[str, str]) -> None:
    name, start = victim
    (before,) = named(name)
    made(one("kill", DrillPlan(processes=(VictimPlan(name=name, start=start),)), 1.0))
    wait_until(lambda: not alive(before), "it is killed")
    wait_until(lambda: named(name), "it is started again")
    assert before not in named(name)


def left(script: str, slow: Path) -> bytes:
    """Runs a script as a drill does: all that is left in its process group is killed as it ends. ``slow`` is a folder
    for a ``setsid`` that takes its time."""
    slow.mkdir(exist_ok=True)
    (slow / "setsid").write_text(f'#!/bin/sh\nsleep 0.5\nexec {shutil.which("setsid")} "$@"\n', encoding="utf-8")
    (slow / "setsid").chmod(0o755)
    path = {**os.environ, "PATH": f"{slow}:{os.environ['PATH']}"}
    shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True, env=path)
    said, _ = shell.communicate()
    with suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said
    return said


def made_and_left(fault: LiveFault, slow: Path) -> tuple[int, ...]:
    """Makes a fault so; the processes that hold it."""
    return held_by(left(fault.inject, slow))


def test_what_holds_a_fault_is_gone_from_the_scripts_group_before_the_script_ends(
    victim: tuple[str, str], tmp_path: Path
) -> None:
    """Else the victim stays dead, and the cores idle, while the drill says that all went well."""
    name, start = victim
    (before,) = named(name)
    made_and_left(one("kill", DrillPlan(processes=(VictimPlan(name=name, start=start),)), 1.0), tmp_path / "bin")
    wait_until(lambda: not alive(before), "it is killed, which comes behind the script's end")
    wait_until(lambda: named(name), "it is started again")
    long = one("kill", DrillPlan(processes=(VictimPlan(name=name, start=start),)), 600.0)
    held = made_and_left(long, tmp_path / "bin")
    wait_until(lambda: not named(name), "it is killed")
    left(end_script(long, held), tmp_path / "bin")
    wait_until(lambda: named(name), "it is started again, though the drill was ended early")
    for fault in (one("cpu", DrillPlan(cpu=True), 600.0), one("leak", DrillPlan(memory=4 << 20), 600.0)):
        held = made_and_left(fault, tmp_path / "bin")
        assert held
        assert all(map(alive, held)), fault.kind
        subprocess.run(["sh", "-c", end_script(fault, held)], check=True)
        wait_until(partial(_none_alive, held), "ended early")


def test_a_leaking_process_ends_and_can_be_ended_early() -> None:
    long = one("leak", DrillPlan(memory=4 << 20), 600.0)
    held = made(long)
    assert all(map(alive, held))
    subprocess.run(["sh", "-c", end_script(long, held)], check=True)
    wait_until(lambda: not any(map(alive, held)), "ended early")
    short = made(one("leak", DrillPlan(memory=4 << 20), 1.0))
    wait_until(lambda: not any(map(alive, short)), "ended by its time")


def test_a_full_file_system_is_gone_though_the_drill_is_killed() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    fault = one("filesystem", DrillPlan(filesystem=1 << 20), 2.0)
    folder = Path(fault.object)
    made(fault)
    assert os.path.ismount(folder)
    wait_until(lambda: shutil.disk_usage(folder).free == 0 or not folder.exists(), "it is full")
    wait_until(lambda: not folder.exists(), "it is gone")


def test_an_interface_comes_back_and_loses_nothing_any_more() -> None:
    """In a namespace of its own; without netem in the kernel the loss is not made, and nothing is left of it."""
    needs("ip", "tc")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    space = f"swdrill{os.getpid()}"
    within = ("ip", "netns", "exec", space)

    def said(*words: str) -> str:
        return subprocess.run([*within, *words], capture_output=True, text=True, check=True).stdout

    subprocess.run(["ip", "netns", "add", space], check=True)
    try:
        said("ip", "link", "add", "sw0", "type", "veth", "peer", "name", "sw1")
        for name in ("sw0", "sw1"):
            said("ip", "link", "set", name, "up")
        drill = DrillPlan(interfaces=("sw0",), loss=0.25)
        made(one("link", drill, 1.5), *within)
        wait_until(lambda: "state DOWN" in said("ip", "link", "show", "sw0"), "it is down")
        wait_until(lambda: ",UP" in said("ip", "link", "show", "sw0"), "it is up again")
        made(one("loss", drill, 1.5), *within)
        if "netem" in said("tc", "qdisc", "show", "dev", "sw0"):
            assert "loss 25%" in said("tc", "qdisc", "show", "dev", "sw0")
        wait_until(lambda: "netem" not in said("tc", "qdisc", "show", "dev", "sw0"), "it loses nothing any more")
    finally:
        subprocess.run(["ip", "netns", "del", space], check=True)


@pytest.mark.slow
def test_a_whole_drill_says_who_saw_what(victim: tuple[str, str], tmp_path: Path) -> None:
    """A killed process, a full file system and a crash line, beside a run: announced in the record, seen by rules."""
    needs("logger")
    name, start = victim
    port = free_port()
    listens = f', {{syslog: {{listen: "127.0.0.1:{port}", over: [udp], from: [127.0.0.1], required: false}}}}'
    drill = {"processes": [{"name": name, "start": start}], "log": f"127.0.0.1:{port}", "cpu": True}
    drill |= {"filesystem": "2MiB"} if os.geteuid() == 0 else {}
    file = plan(tmp_path, drill, {"processes": [name]}, listens)
    words: list[str | Path] = [
        SOAKWATCH,
        "drill",
        file,
        "--yes",
        "--lasts",
        "4s",
        "--rest",
        "10s",
        "--json",
        "drill.json",
    ]
    done = subprocess.run(words, check=False, cwd=tmp_path, env=environment(), capture_output=True, text=True, input="")
    assert done.returncode == 0, done.stderr
    faults = {fault["fault"]: fault for fault in json.loads((tmp_path / "drill.json").read_text())["faults"]}
    assert set(faults) == {"cpu", "kill", "log", *(["filesystem"] if os.geteuid() == 0 else [])}
    assert not [fault["trouble"] for fault in faults.values() if fault["trouble"]]
    assert "process_restart" in {seen["rule"] for seen in faults["kill"]["seen"]}
    assert "kernel_fault" in {seen["rule"] for seen in faults["log"]["seen"]}
    assert "missed" in done.stdout or all(fault["seen"] for fault in faults.values())
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run

    with RecordView.open(find_run("last", tmp_path / "runs")) as view:
        told = [stored.event for stored in view.events() if stored.event.kind == "drill.fault"]
    assert [event.detail["fault"] for event in told] == list(faults)
    assert all(event.end_ns is not None and event.end_ns > event.begin_ns for event in told)
    assert named(name)


@pytest.mark.slow
def test_a_drill_that_is_killed_leaves_nothing_broken(victim: tuple[str, str], tmp_path: Path) -> None:
    """Over SSH: the connection dies with the drill, and what it has broken is mended by the device."""
    needs("ssh-keygen", "sshd")
    with run_sshd(tmp_path / "sshd") as server:
        _killed_in_the_middle(victim, server, tmp_path)


def _killed_in_the_middle(victim: tuple[str, str], server: Sshd, tmp_path: Path) -> None:
    name, start = victim
    file = tmp_path / "plan.yaml"
    target = {
        "sources": [{"ssh": {**server.keys, "interval": "2s"}}],
        "drill": {"processes": [{"name": name, "start": start}]},
        "watch": {"processes": [name]},
    }
    file.write_text(json.dumps({"duration": "1h", "targets": {"dut": target}}), encoding="utf-8")
    (before,) = named(name)
    drill = subprocess.Popen(
        [sys.executable, "-m", "soakwatch.cli", "drill", file, "--yes", "--lasts", "15s", "--rest", "2s"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: not alive(before), "the drill has killed it")
    finally:
        os.killpg(drill.pid, signal.SIGKILL)
        drill.wait()
    wait_until(lambda: named(name), "it is started again")
