"""Devices over a real sshd that break, deny, hang, or are no Linux: a sentence each, and back as soon as can be."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.ssh.device import linux, polls, sleeper, values

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Poller, SourceContext, SourceError, WatchedProcess
from soakwatch.sources.transport.network_cli import cli_source
from soakwatch.sources.transport.network_cli.cli_source import CliWish
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch_agent.context import SECOND
from soakwatch_model.sample import NOTHING, Answer
from soakwatch_testing.sshd import Sshd, fingerprint_of
from soakwatch_testing.tcp_relay import TcpRelay

Make = Callable[..., Sshd]
_OWN = f"soak{os.getpid()}"  # runs of these tests side by side do not see one another


def test_a_killed_session_fails_one_poll_and_the_next_works(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with linux(sshd, tmp_path) as poller:
            now = time.time_ns()
            before = values(await poller.poll(now))
            running = asyncio.ensure_future(poller.poll(now + SECOND))
            sshd.kill_sessions()
            with pytest.raises(SourceError, match=r"closed|lost"):
                await _until_it_fails(poller, running, now + 2 * SECOND)
            after = values(await poller.poll(now + 100 * SECOND))
            assert after["system.memory.limit", ""] == before["system.memory.limit", ""]
            assert after["source.device.cpu.time", "source=ssh"] >= before["source.device.cpu.time", "source=ssh"]

    asyncio.run(go())


async def _until_it_fails(poller: Poller, running: asyncio.Future[Answer], now_ns: int) -> None:
    await running  # it may have been over before the kill
    for number in range(5):
        await poller.poll(now_ns + number * SECOND)


def test_the_listener_may_go_and_come_back(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with linux(sshd, tmp_path) as poller:
            now = time.time_ns()
            await poller.poll(now)
            sessions = sshd.sessions()
            sshd.stop()
            await poller.poll(now + SECOND)  # a session outlives its listener
            for session in sessions:
                session.kill()
            with pytest.raises(SourceError):
                await poller.poll(now + 2 * SECOND)
            with pytest.raises(SourceError, match="refused the connection"):
                await poller.poll(now + 3 * SECOND)
            sshd.start()
            assert values(await poller.poll(now + 4 * SECOND))["system.memory.limit", ""] > 0

    asyncio.run(go())


def test_a_stalled_line_fails_in_time_and_recovers(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(TcpRelay(sshd.port))
            pin = fingerprint_of(sshd.host_key)
            more = {"port": relay.port, "host_key": pin, "connect_timeout": "1s"}
            poller = await stack.enter_async_context(linux(sshd, tmp_path, **more))
            now = time.time_ns()
            await poller.poll(now)
            relay.carries.clear()
            with pytest.raises(SourceError, match=r"did not answer a poll within [23]"):
                await poller.poll(now + SECOND)
            with pytest.raises(SourceError, match="no connection within 1 s"):
                await poller.poll(now + 5 * SECOND)
            relay.carries.set()
            assert values(await poller.poll(now + 10 * SECOND))["system.memory.limit", ""] > 0

    asyncio.run(go())


def test_one_session_is_enough(make_sshd: Make, tmp_path: Path) -> None:
    (answer,) = polls(make_sshd(MaxSessions="1"), tmp_path, 1)
    assert values(answer)["system.memory.limit", ""] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_account_with_few_rights_learns_once_what_it_may_not_read(make_sshd: Make, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = make_sshd(ForceCommand="setpriv --reuid=65534 --regid=65534 --clear-groups sh")
    with sleeper(f"{_OWN}of-root"):
        named = WatchedProcess("it", "cmdline", f"{_OWN}of-root$")
        first, second, third = polls(server, tmp_path, 3, named, core_folders=[str(closed)])
    readings = values(first)
    name = "process=it,instance=0"
    assert readings["process.memory.usage", name] > 0
    assert readings["process.threads", name] == 2
    faults = {(fault.metric, fault.object): fault.text for fault in first.faults}
    assert "permission denied" in faults["process.memory.pss", name]
    assert "permission denied" in faults["process.open_files", name]
    assert "may not list" in faults["system.core.files", f"folder={closed}"]
    assert "it needs root or CAP_DAC_READ_SEARCH" in faults["system.memory.owned.part", "owner=slab"]
    assert readings["system.memory.owned", "owner=slab"] > 0
    assert ("process.open_files", name) not in readings
    assert ("system.core.files", f"folder={closed}") not in readings
    again = [fault for fault in (*second.faults, *third.faults) if "working folder" not in fault.text]
    assert again == []


def test_an_account_without_a_shell(make_sshd: Make, tmp_path: Path) -> None:
    server = make_sshd(ForceCommand="echo This account is currently not available.")
    with pytest.raises(SourceError, match=r"no POSIX shell.*not available.*set os: auto"):
        polls(server, tmp_path, 1, os="linux")


@pytest.mark.parametrize("command", ["head -c 300000 /dev/urandom", "yes", "true"])
def test_garbage_instead_of_a_shell(make_sshd: Make, tmp_path: Path, command: str) -> None:
    with pytest.raises(SourceError) as caught:
        polls(make_sshd(ForceCommand=command), tmp_path, 1, os="linux")
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


def test_a_greeting_before_the_shell_does_no_harm(make_sshd: Make, tmp_path: Path) -> None:
    server = make_sshd(ForceCommand="echo Welcome; printf 'no line end'; echo oh dear >&2; exec sh")
    (answer,) = polls(server, tmp_path, 1)
    assert values(answer)["system.memory.limit", ""] > 0


def test_another_posix_shell(make_sshd: Make, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    (answer,) = polls(make_sshd(ForceCommand="exec bash --norc"), tmp_path, 1, WatchedProcess("sshd", "name", "sshd"))
    readings = values(answer)
    assert readings["process.open_files", "process=sshd,instance=0"] > 0
    assert ("source.device.cpu.time", "source=ssh") in readings


def test_a_system_that_is_no_linux(make_sshd: Make, tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    (stubs / "uname").write_text("#!/bin/sh\necho FreeBSD\n")
    (stubs / "uname").chmod(0o755)
    with pytest.raises(SourceError, match=r"runs FreeBSD.*use SNMP"):
        polls(make_sshd(ForceCommand=f"PATH={stubs}:$PATH exec sh"), tmp_path, 1)


def test_a_program_that_hangs_later_costs_a_fault_and_not_the_poll(make_sshd: Make, tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    (stubs / "vtysh").write_text('#!/bin/sh\ncase "$2" in *version*) echo FRR;; *) sleep 30;; esac\n')
    (stubs / "vtysh").chmod(0o755)
    (answer,) = polls(make_sshd(ForceCommand=f"PATH={stubs}:$PATH exec sh"), tmp_path, 1)
    assert values(answer)["system.memory.limit", ""] > 0
    assert "frr returned nothing: it did not answer within 1 s" in [fault.text for fault in answer.faults]


def test_wrong_keys_are_plan_errors(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no probe 'memroy'; did you mean 'memory'"):
        polls(sshd, tmp_path, 1, probes=["memroy"])


class Cli:
    """Stands in for the drivers of network CLIs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.wish: CliWish | None = None

    def recognised(self, server_version: str, banner: str, greeting: str) -> str | None:
        self.asked.append((server_version, greeting))
        return "cisco-ios" if "Invalid input" in greeting else None

    async def start_cli(
        self, line: DeviceConnection, wish: CliWish, site: SourceContext, stack: AsyncExitStack
    ) -> Poller:
        self.wish = wish
        assert not (await line.connection()).is_closed()
        return Silent()


class Silent:
    """Answers nothing."""

    async def poll(self, now_ns: int) -> Answer:
        return NOTHING


def test_a_device_without_a_shell_goes_to_its_cli_driver(
    make_sshd: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli()
    monkeypatch.setattr(cli_source, "recognised", cli.recognised)
    monkeypatch.setattr(cli_source, "start_cli", cli.start_cli)
    router = make_sshd(ForceCommand="echo \\% Invalid input detected")
    assert polls(router, tmp_path, 1, commands=["show_version"], enable="env:ENABLE") == [NOTHING]
    assert cli.wish == CliWish("cisco-ios", "env:ENABLE", ("show_version",))
    assert cli.asked[0][0].startswith("SSH-2.0-OpenSSH")
    assert polls(router, tmp_path, 1, os="cisco-asa") == [NOTHING]
    assert cli.wish == CliWish("cisco-asa", None, None)
    with pytest.raises(SourceError, match="set os to one of arista-eos, aruba-aoscx"):
        polls(make_sshd(ForceCommand="echo hm"), tmp_path, 1)
    with pytest.raises(PlanError, match="there is no os 'cisco-as'; did you mean 'cisco-asa'"):
        polls(router, tmp_path, 1, os="cisco-as")
