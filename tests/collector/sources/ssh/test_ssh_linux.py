"""A Linux device over a real sshd: the values of the machine's own probes, and the messages when something breaks."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.sources.ssh.device import linux, polls, sleeper, values

from soakwatch.sources.abc import Identifies, WatchedProcess
from soakwatch.sources.pollers.ssh import Config
from soakwatch.sources.source_modules import poller_module
from soakwatch_agent.context import SECOND, HostContext, watch
from soakwatch_agent.host import Host
from soakwatch_testing.sshd import Sshd, fingerprint_of

Make = Callable[..., Sshd]
_OWN = f"soak{os.getpid()}"  # runs of these tests side by side do not see one another


def test_values_are_those_of_the_machines_own_probes(sshd: Sshd, tmp_path: Path) -> None:
    with sleeper(f"{_OWN}over-ssh") as process:
        named = WatchedProcess("sleeper", "cmdline", f"{_OWN}over-ssh$")
        first, second = polls(sshd, tmp_path, 2, named)
        here = Host(HostContext("/", (watch("sleeper", "cmdline", f"{_OWN}over-ssh$"),)))
        now = time.time_ns()
        own = values(here.poll(now))
        own2 = values(here.poll(now + SECOND))
        here.close()
        far, again = values(first), values(second)
        for metric, name in (
            ("system.memory.limit", ""),
            ("system.cpu.logical.count", ""),
            ("system.boot.time", ""),
            ("system.boot.id", ""),
            ("process.pid", "process=sleeper,instance=0"),
            ("process.start_time", "process=sleeper,instance=0"),
            ("process.threads", "process=sleeper,instance=0"),
            ("process.memory.usage", "process=sleeper,instance=0"),
            ("process.memory.virtual", "process=sleeper,instance=0"),
            ("process.open_files", "process=sleeper,instance=0"),
            ("process.count", "process=sleeper"),
        ):
            assert far[metric, name] == own[metric, name], metric
        # pages that others share come and go with them
        uss = ("process.memory.uss", "process=sleeper,instance=0")
        assert far[uss] > 0
        assert abs(far[uss] - own[uss]) < 1 << 20
        assert far["process.threads", "process=sleeper,instance=0"] == 2
        assert far["process.pid", "process=sleeper,instance=0"] == process.pid
        # nothing that the local probes see is missing from afar
        assert {metric for metric, _ in own | own2} <= {metric for metric, _ in far | again}
        for owner in ("page_tables", "kernel_stacks", "percpu", "vmalloc"):  # they hold little: none moves far
            held = ("system.memory.owned", f"owner={owner}")
            assert abs(far[held] - own[held]) < 64 << 20, owner
        heap = ("process.memory.mapping", "process=sleeper,instance=0,mapping=heap")
        assert abs(far[heap] - own[heap]) < 1 << 20
        whole = sum(value for (metric, _), value in far.items() if metric == "system.memory.owned")
        whole += far["system.memory.unowned", ""]
        assert abs(whole - far["system.memory.limit", ""]) < 0.02 * whole
        assert ("system.filesystem.limit", "mountpoint=/") in far
        assert far["system.filesystem.limit", "mountpoint=/"] == own["system.filesystem.limit", "mountpoint=/"]
        assert abs(far["source.clock.offset", "source=ssh"]) < 0.5
        assert again["source.device.cpu.time", "source=ssh"] >= far["source.device.cpu.time", "source=ssh"] > 0


def test_what_the_device_is_becomes_facts(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with linux(sshd, tmp_path) as poller:
            assert isinstance(poller, Identifies)
            facts = poller.facts()
            assert facts.identity["profile"] == "linux"
            assert facts.identity["version"] == f"Linux {os.uname().release}"
            assert facts.identity["host key"].startswith(fingerprint_of(sshd.host_key))
            assert "system.memory.usage" in facts.promised

    asyncio.run(go())
    assert poller_module("ssh").config is Config


def test_a_restarted_process_keeps_its_series_and_is_reported(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        named = WatchedProcess("sleeper", "cmdline", f"{_OWN}comes-and-goes$")
        async with linux(sshd, tmp_path, named) as poller:
            now = time.time_ns()
            assert values(await poller.poll(now))["process.up", "process=sleeper,instance=0"] == 0
            with sleeper(f"{_OWN}comes-and-goes") as process:
                answer = await poller.poll(now + SECOND)
                assert [event.kind for event in answer.events] == ["process.start"]
                assert values(answer)["process.pid", "process=sleeper,instance=0"] == process.pid
                assert ("process.memory.pss", "process=sleeper,instance=0") in values(answer)
                assert not [fault for fault in answer.faults if fault.metric.startswith("process.memory")]
            with sleeper(f"{_OWN}comes-and-goes") as two:
                answer = await poller.poll(now + 2 * SECOND)
                kinds = [event.kind for event in answer.events]
                assert kinds == ["process.exit", "process.restart"]
                assert values(answer)["process.pid", "process=sleeper,instance=0"] == two.pid
            answer = await poller.poll(now + 3 * SECOND)
            assert values(answer)["process.up", "process=sleeper,instance=0"] == 0

    asyncio.run(go())


def test_watches_by_pid_and_pidfile(sshd: Sshd, tmp_path: Path) -> None:
    with sleeper("by-number") as process:
        (tmp_path / "it.pid").write_text(f"{process.pid}\n")
        (answer, later) = polls(
            sshd,
            tmp_path,
            2,
            WatchedProcess("number", "pid", str(process.pid)),
            WatchedProcess("file", "pidfile", str(tmp_path / "it.pid")),
        )
        for readings in (values(answer), values(later)):
            for name in ("number", "file"):
                assert readings["process.pid", f"process={name},instance=0"] == process.pid
                assert readings["process.memory.usage", f"process={name},instance=0"] > 0


def test_pss_is_read_again_when_it_is_due(sshd: Sshd, tmp_path: Path) -> None:
    with sleeper(f"{_OWN}has-maps"):
        answers = polls(sshd, tmp_path, 62, WatchedProcess("it", "cmdline", f"{_OWN}has-maps$"))
    polls_with_pss = [
        number
        for number, answer in enumerate(answers)
        if ("process.memory.pss", "process=it,instance=0") in values(answer)
    ]
    assert polls_with_pss == [0, 29, 58]
    assert not [fault for answer in answers for fault in answer.faults if "pss" in fault.metric]


def test_nothing_is_left_on_the_device(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with linux(sshd, tmp_path, WatchedProcess("sshd", "name", "sshd")) as poller:
            now = time.time_ns()
            for number in range(50):
                await poller.poll(now + number * SECOND)
            names = sorted(process.name() for process in sshd.sessions() if not process.name().startswith("sshd"))
            assert names == ["sh"], names
        deadline = time.monotonic() + 120
        while sshd.sessions() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        assert sshd.sessions() == []

    asyncio.run(go())
    assert not list(Path("/dev/shm").glob(f"soakwatch-ssh-{os.getpid()}-*")) if Path("/dev/shm").is_dir() else True


def test_core_files_are_reported_as_they_come(sshd: Sshd, tmp_path: Path) -> None:
    cores = tmp_path / "cores"
    cores.mkdir()
    (cores / "core.old").write_bytes(b"x" * 100)

    async def go() -> None:
        async with linux(sshd, tmp_path, core_folders=[str(cores)]) as poller:
            now = time.time_ns()
            first = await poller.poll(now)
            assert values(first)["system.core.files", f"folder={cores}"] == 1
            events = [event for event in first.events if event.detail.get("file", "").startswith(str(cores))]
            assert [(event.kind, event.detail["size"]) for event in events] == [("core.present", "100")]
            (cores / "core.new").write_bytes(b"y" * 4096)
            second = await poller.poll(now + 2 * SECOND)
            assert values(second)["system.core.files", f"folder={cores}"] == 2
            (event,) = second.events
            assert (event.kind, event.detail["file"], event.detail["size"]) == (
                "core.dump",
                str(cores / "core.new"),
                "4096",
            )
            shutil.rmtree(cores)
            third = await poller.poll(now + 4 * SECOND)
            assert ("system.core.files", f"folder={cores}") not in values(third)
            assert any("does not exist" in fault.text for fault in third.faults)

    asyncio.run(go())


@pytest.mark.slow
def test_processes_that_come_and_go_spoil_nothing(sshd: Sshd, tmp_path: Path) -> None:
    storm = subprocess.Popen(["sh", "-c", "while :; do sleep 0.001 & done"], start_new_session=True)
    try:
        answers = polls(sshd, tmp_path, 20, WatchedProcess("sshd", "glob", "ssh*"))
    finally:
        os.killpg(storm.pid, 9)
        storm.wait()
    for answer in answers:
        assert values(answer)["process.count", "process=sshd"] >= 2
        assert values(answer)["system.processes", ""] > 5


def test_programs_of_the_device_are_asked_where_they_are(make_sshd: Make, tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name, text in {
        "vtysh": 'echo "Memory statistics for zebra:"; echo "  Used ordinary blocks:  2118 KiB"',
        "ovs-appctl": "sleep 30",  # hangs: it is not taken for present
        "nft": 'case "$*" in *-t*) echo "[truncated";; esac',
    }.items():
        (stubs / name).write_text(f"#!/bin/sh\n{text}\n")
        (stubs / name).chmod(0o755)
    first, second = polls(make_sshd(ForceCommand=f"PATH={stubs}:$PATH exec sh"), tmp_path, 2)
    assert values(first)["system.memory.pool.usage", "pool=frr zebra heap"] == 2118 << 10
    assert not [sample for sample in first.samples if "ovs" in sample.object]
    assert [fault.text for fault in first.faults if "nft" in fault.text] == [
        "nft returned nothing: its output is not JSON"
    ]
    assert ("system.memory.pool.usage", "pool=frr zebra heap") not in values(second)  # every 30 s


def test_the_observers_effect_is_reported(sshd: Sshd, tmp_path: Path) -> None:
    answers = polls(sshd, tmp_path, 12, observer="5s")
    assert [len(answer.samples) > 0 for answer in answers] == [True, *[False] * 4, *[True] * 7]
    events = [event for answer in answers for event in answer.events if event.kind.startswith("observer")]
    assert [event.kind for event in events] == ["observer.rest", "observer.effect"]
    assert "points" in events[1].detail["text"]
