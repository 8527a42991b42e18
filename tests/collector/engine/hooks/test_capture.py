"""Evidence of a device at the moment of a finding: over a real SSH server, and of this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import FAIL, T0, finding, noting, plan
from tests.needs import needs

from soakwatch.engine.hooks.evidence import MAX_FILE_SIZE, MAX_FILES, MAX_OUTPUT
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.record import Artifact, RecordView
from soakwatch_model.finding import Finding
from soakwatch_testing.cli_device import CliDevice, run_cli_device
from soakwatch_testing.sshd import SSHD, Sshd, run_sshd


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A real server that gives files as well."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd", Subsystem="sftp internal-sftp") as server:
        yield server


def keys(server: Sshd) -> str:
    """The keys of a login, as a plan writes them."""
    return ", ".join(f"{key}: {value!r}" for key, value in server.keys.items())


def captured(
    folder: Path, text: str, targets: str, *findings_by_poll: list[Finding]
) -> tuple[dict[str, Artifact], list[str]]:
    """What hooks kept of successive evaluations, by name; and why something is not there."""
    with noting(folder) as (notes, record):

        async def main() -> None:
            hooks = hooks_of(plan(text, targets), folder, notes, lambda: T0)
            for findings in findings_by_poll:
                hooks.on_findings(findings)
                await hooks.finish()

        asyncio.run(main())
        reasons = [stored.event.detail["reason"] for stored in record.events_after(0)]
    with RecordView.open(folder) as view:
        return {artifact.name: artifact for artifact in view.artifacts()}, reasons


def test_commands_and_files_come_over_the_targets_own_ssh(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, exit codes and core files are kept, without secrets; a file that was fetched is not fetched again."""
    monkeypatch.setenv("DUT_SECRET", "hunter2hunter2")
    cores = tmp_path / "cores"
    cores.mkdir()
    (cores / "core.1").write_bytes(b"\x7fELF hunter2hunter2 \0")
    (cores / "sub").mkdir()
    text = (
        "hooks: [{capture: {commands: ['echo up; echo hunter2hunter2 >&2; exit 2', 'head -c 3000000 /dev/zero', "
        f"'sleep 60'], files: ['{cores}/*', '/no/such/*'], timeout: 2s}}, run: [echo, env:DUT_SECRET]}}]"
    )
    targets = f"{{dut: {{sources: [{{ssh: {{{keys(sshd)}}}}}]}}}}"
    second_findings = [FAIL, finding("hang")]
    kept, reasons = captured(tmp_path / "run", text, targets, [FAIL], second_findings)
    contents = {
        name.removeprefix("capture/dut/"): artifact for name, artifact in kept.items() if name.startswith("capture/")
    }
    first = "20231114T221320.000Z-001-memory_growth"
    assert sorted(contents) == [
        f"{first}/01-echo_up_echo_hunter2hunter2_2_exit_2.txt",
        f"{first}/02-head_-c_3000000_dev_zero.txt",
        f"{first}/04-core.1",
        "20231114T221320.000Z-002-hang/01-echo_up_echo_hunter2hunter2_2_exit_2.txt",
        "20231114T221320.000Z-002-hang/02-head_-c_3000000_dev_zero.txt",
    ]
    assert contents[f"{first}/01-echo_up_echo_hunter2hunter2_2_exit_2.txt"].data == b"up\n***\n"
    assert contents[f"{first}/02-head_-c_3000000_dev_zero.txt"].data == bytes(MAX_OUTPUT)
    core = contents[f"{first}/04-core.1"]
    assert (core.data, core.media) == (b"\x7fELF ************** \0", "application/octet-stream")
    assert core.about == f"{cores}/core.1 (fail memory_growth dut process=bgpd)"
    assert len(reasons) == 6
    assert sum("exit code 2" in reason for reason in reasons) == 2
    assert sum("output over 1 MiB: the rest is cut off" in reason for reason in reasons) == 2
    assert sum(f"127.0.0.1:{sshd.port} did not end 'sleep 60' within 2 s" in reason for reason in reasons) == 2


def test_only_so_many_files_and_none_that_is_too_large(sshd: Sshd, tmp_path: Path) -> None:
    """The newest files come first; the rest, and what is larger than the bound, stays on the device and is reported."""
    cores = tmp_path / "cores"
    cores.mkdir()
    for number in range(MAX_FILES + 2):
        (cores / f"core.{number}").write_bytes(b"x" * number)
        os.utime(cores / f"core.{number}", (1_700_000_000 + number,) * 2)
    with (cores / "core.9").open("wb") as file:
        file.truncate(MAX_FILE_SIZE + 1)
    os.utime(cores / "core.9", (1_800_000_000,) * 2)
    text = f"hooks: [{{capture: {{ssh: {{{keys(sshd)}}}, files: ['{cores}/core.*']}}}}]"
    kept, reasons = captured(tmp_path / "run", text, "{dut: {sources: [local]}}", [FAIL])
    assert sorted(name.rpartition("-")[2] for name in kept) == [f"core.{n}" for n in range(2, 9)]
    assert len(reasons) == 2
    assert "core.9 has 16 MiB, over 16 MiB: it is left on" in reasons[0]
    assert "2 older files are left on" in reasons[1]


def test_a_local_target_is_captured_here(tmp_path: Path) -> None:
    """A device under test that is this machine needs no SSH."""
    (tmp_path / "core").write_bytes(b"\0")
    os.mkfifo(tmp_path / "corepipe")
    text = f"hooks: [{{capture: {{commands: ['echo a | tr a b'], files: ['{tmp_path}/core*']}}}}]"
    kept, reasons = captured(tmp_path / "run", text, "{dut: {sources: [local]}}", [FAIL])
    assert [artifact.data for artifact in kept.values()] == [b"b\n", b"\0"]
    assert reasons == []


def test_what_cannot_be_captured_is_reported_and_nothing_else_happens(sshd: Sshd, tmp_path: Path) -> None:
    """A target without SSH, a device that is gone, a file system that says no: a sentence each."""
    text = "hooks: [{capture: {commands: [uptime]}}]"
    kept, reasons = captured(tmp_path / "a", text, "{dut: {sources: [{icmp: {host: 127.0.0.1}}]}}", [FAIL])
    assert (kept, reasons) == (
        {},
        ["capture: nothing can be captured of dut: it has no source ssh; give capture the key ssh"],
    )
    login = keys(sshd)
    sshd.close()
    kept, (reason,) = captured(tmp_path / "b", text, f"{{dut: {{sources: [{{ssh: {{{login}}}}}]}}}}", [FAIL])
    assert kept == {}
    assert "refused the connection: no SSH server listens there" in reason


@pytest.mark.parametrize("system", ["auto", "cisco-asa"])
def test_a_network_system_is_asked_at_its_prompt(tmp_path: Path, system: str) -> None:
    """A device without a shell gives what it shows at its prompt, also where the plan leaves open what it is."""
    device = CliDevice(answers={"show tech": "asa tech\n" * 300}, unpage=("terminal pager 0",), rows=20)
    device.answers["terminal pager 0"] = ""
    with noting(tmp_path / "run") as (notes, record):

        async def main() -> None:
            async with run_cli_device(device, tmp_path):
                login = ", ".join(f"{key}: {value!r}" for key, value in device.keys(tmp_path).items())
                targets = f"{{dut: {{sources: [{{ssh: {{{login}, os: {system}}}}}]}}}}"
                planned = plan(
                    "hooks: [{capture: {commands: [show tech, reload, show nothing], timeout: 10s}}]", targets
                )
                hooks = hooks_of(planned, tmp_path / "run", notes, lambda: T0)
                hooks.on_findings([FAIL])
                await hooks.finish()

        asyncio.run(main())
        reasons = [stored.event.detail["reason"] for stored in record.events_after(0)]
    with RecordView.open(tmp_path / "run") as view:
        (tech,) = view.artifacts()
    assert tech.data.decode().split("\n").count("asa tech") == 300
    assert len(reasons) == 2
    assert "'reload' is not a query" in reasons[0]
    assert "the device refused it" in reasons[1]
    assert "reload" not in device.typed


def test_a_server_without_files_still_gives_what_commands_say(tmp_path: Path) -> None:
    """Many network systems have no SFTP: that is reported once, and the outputs are there."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd") as server:
        text = f"hooks: [{{capture: {{ssh: {{{keys(server)}}}, commands: [echo a], files: [/var/core/*]}}}}]"
        kept, reasons = captured(tmp_path / "run", text, "{dut: {sources: [local]}}", [FAIL])
    assert [artifact.data for artifact in kept.values()] == [b"a\n"]
    assert len(reasons) == 1
    assert "/var/core/* on " in reasons[0]
