"""``soakwatch agent install`` over a real sshd: put there, greeted, followed, cut, upgraded, removed."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import signal
import subprocess
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.agent import agent_bundle as bundle_module
from soakwatch_testing.agents import config, follow
from soakwatch_testing.sshd import Sshd, fingerprint_of
from soakwatch_testing.tcp_relay import TcpRelay


def agent(sshd: Sshd, word: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``soakwatch agent WORD`` on the server."""
    keys = sshd.keys
    where = ("--key", keys["key"], "--known-hosts", keys["known_hosts"], "--dir", folder)
    return command_in(Path.cwd())("agent", word, f"{getpass.getuser()}@127.0.0.1:{sshd.port}", *where, *arguments)


def test_install_follow_cut_and_remove(tmp_path: Path, sshd: Sshd) -> None:
    """One agent's whole life: nothing is lost when the sessions are killed, nor (but for its absence) the agent."""
    folder = tmp_path / "guest"
    try:
        done = agent(sshd, "install", folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert "put the agent into" in done.stdout
        assert "the agent answers: agent 0." in done.stdout
        again = agent(sshd, "install", folder)
        assert again.returncode == 0
        assert "the same agent is already in" in again.stdout
        asyncio.run(_follow(tmp_path, sshd, folder))
        shown = agent(sshd, "status", folder)
        assert shown.returncode == 0
        assert re.search(r"polls lost +0\n", shown.stdout)
    finally:
        gone = agent(sshd, "remove", folder)
    assert (gone.returncode, gone.stderr) == (0, "")
    assert not folder.exists()
    missing = agent(sshd, "status", folder)
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1


async def _follow(tmp_path: Path, sshd: Sshd, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        follower = await follow(config(**sshd.keys, folder=str(folder)), tmp_path, stack)
        await follower.poll(4)
        sshd.kill_sessions()
        await asyncio.sleep(1.0)
        await follower.poll(4)
        slots = follower.slots()
        assert slots == list(range(slots[0], slots[0] + len(slots)))
        assert len(slots) >= 12
        assert follower.late
        facts = follower.poller.facts()
        assert facts.identity["host key"].startswith("SHA256:")
        pid = int((folder / "lock").read_text().split()[1])
        os.kill(pid, signal.SIGKILL)
        follower.answers.clear()
        deadline = time.monotonic() + 120
        while not follower.answers:
            assert time.monotonic() < deadline
            await follower.poll()


@pytest.mark.slow
def test_a_link_that_falls_silent_is_noticed_and_made_up_for(tmp_path: Path, sshd: Sshd) -> None:
    """No packet comes through and no connection ends: the polls fail in their time, and nothing is lost in the end."""
    folder = tmp_path / "guest"

    async def run() -> None:
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(TcpRelay(sshd.port))
            pinned = {**sshd.keys, "port": relay.port, "known_hosts": None, "host_key": fingerprint_of(sshd.host_key)}
            follower = await follow(config(**pinned, folder=str(folder), keepalive="1s"), tmp_path, stack)
            await follower.poll(4)
            relay.carries.clear()
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await follower.poller.poll(follower.clock.now_ns())
            relay.carries.set()
            await follower.poll(4)
        slots = follower.slots()
        assert slots == list(range(slots[0], slots[0] + len(slots)))
        assert len(slots) >= 4 + 10 + 4

    try:
        assert agent(sshd, "install", folder).returncode == 0
        asyncio.run(run())
    finally:
        agent(sshd, "remove", folder)


@pytest.mark.slow
def test_another_agent_is_replaced_only_when_asked_to(
    tmp_path: Path, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the command; ``--upgrade`` keeps the spool."""
    folder = tmp_path / "guest"
    try:
        assert agent(sshd, "install", folder).returncode == 0
        before = (folder / "spool.json").read_text()
        (folder / "agent.pyz").write_bytes((folder / "agent.pyz").read_bytes() + b"\n")
        refused = agent(sshd, "install", folder)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert "--upgrade" in refused.stderr
        assert agent(sshd, "install", folder, "--upgrade").returncode == 0
        assert (folder / "spool.json").read_text() == before
    finally:
        agent(sshd, "remove", folder)


@pytest.mark.slow
def test_a_child_of_the_session_and_a_host_without_the_agent(tmp_path: Path, sshd: Sshd) -> None:
    """``mode: child`` opens no socket and ends with the session; where nothing is installed, the remedy is named."""
    folder = tmp_path / "guest"

    async def run() -> None:
        async with AsyncExitStack() as stack:
            with pytest.raises(SourceError, match="install it with soakwatch agent install"):
                await follow(config(**sshd.keys, folder=str(folder)), tmp_path, stack)
        assert agent(sshd, "install", folder, "--child").returncode == 0
        async with AsyncExitStack() as stack:
            follower = await follow(config(**sshd.keys, folder=str(folder), mode="child"), tmp_path, stack)
            await follower.poll(3)
            assert follower.poller.facts().identity["agent runs as"] == "child of the SSH session"
            assert not (folder / "socket").exists()
            sshd.kill_sessions()
            await follower.poll(5)
        assert len(follower.answers) >= 6

    try:
        asyncio.run(run())
    finally:
        agent(sshd, "remove", folder)


def test_a_host_of_another_kind_is_reported_before_anything_is_put_there(
    tmp_path: Path, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel for another architecture, given by mistake."""
    import zipfile

    wheel = tmp_path / "psutil-7.2.2-cp36-abi3-manylinux_2_17_aarch64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("psutil/_psutil_linux.abi3.so", b"\x7fELF")
        packed.writestr("psutil-7.2.2.dist-info/WHEEL", "Tag: cp36-abi3-manylinux_2_17_aarch64\n")
    assert bundle_module.psutil_of_wheel(wheel).machine == "aarch64"
    refused = agent(sshd, "install", tmp_path / "guest", "--wheel", str(wheel))
    if os.uname().machine == "aarch64":
        pytest.skip("this machine is of that kind")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "this psutil is for aarch64" in refused.stderr
    assert not (tmp_path / "guest").exists()
