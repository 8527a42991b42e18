"""What a host is, told by its agent, over SSH and by itself: the same, whoever tells it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.ssh.device import linux, site_for

from soakwatch.core.fingerprints import comparable
from soakwatch.sources.abc import Fingerprints, SourceError
from soakwatch.sources.pollers.agent import AgentPoller
from soakwatch.sources.pollers.agent import start as start_agent
from soakwatch.sources.pollers.local import Config as LocalConfig
from soakwatch.sources.pollers.local import start as start_local
from soakwatch.sources.transport.ssh.linux import linux_fingerprint as module
from soakwatch_model.tree import Tree, flatten
from soakwatch_testing.agents import LocalAgent
from soakwatch_testing.agents import config as agent_config
from soakwatch_testing.sshd import Sshd

DRIVERS_TELL = {"rings", "channels", "coalescing", "pause", "offloads", "rss", "firmware", "bus", "driver"}


def told(tree: Mapping[str, object]) -> dict[str, str]:
    """What must agree: not the program that read it, and not what a busy machine changes by itself."""
    plain: Tree = json.loads(json.dumps({key: inner for key, inner in tree.items() if key != "agent"}))
    return flatten(comparable(plain), "")


async def ask(poller: object) -> Mapping[str, object]:
    """As the engine asks."""
    assert isinstance(poller, Fingerprints)
    return await asyncio.wait_for(poller.fingerprint(), 120)


def test_agent_ssh_and_local_tell_the_same(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> tuple[Mapping[str, object], ...]:
        async with AsyncExitStack() as stack:
            agent = LocalAgent(tmp_path / "agent", ())
            stack.callback(agent.kill)
            agent.start()
            keys = agent_config(socket=str(tmp_path / "agent" / "socket"))
            over_agent = await start_agent(keys, site_for(tmp_path), stack)
            over_ssh = await stack.enter_async_context(linux(sshd, tmp_path))
            here = await start_local(LocalConfig.model_validate({}), site_for(tmp_path), stack)
            return await ask(here), await ask(over_agent), await ask(over_ssh)

    here, over_agent, over_ssh = asyncio.run(go())
    assert told(here) == told(over_agent) == told(over_ssh)
    assert isinstance(here["host"], dict)
    assert isinstance(over_ssh["host"], dict)
    assert {**here["host"], "uptime_s": 0} == {**over_ssh["host"], "uptime_s": 0}
    assert over_ssh["host"]["uptime_s"] == pytest.approx(here["host"]["uptime_s"], abs=300)
    assert over_ssh["host"]["kernel"] == os.uname().release
    assert over_ssh["notes"] == here["notes"]


def test_without_python_a_shell_prints_the_files(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMAND", "true")

    async def go() -> tuple[Mapping[str, object], Mapping[str, object]]:
        async with AsyncExitStack() as stack:
            poller = await stack.enter_async_context(linux(sshd, tmp_path))
            here = await start_local(LocalConfig.model_validate({}), site_for(tmp_path), stack)
            return await ask(here), await ask(poller)

    here, there = asyncio.run(go())
    nic_words = {f" {word}" for word in {*DRIVERS_TELL, "driver_version", "irqs", "irq_cores", "pci_address"}}

    def of_files(tree: Mapping[str, object]) -> dict[str, str]:
        return {path: text for path, text in told(tree).items() if not any(word in path for word in nic_words)}

    assert of_files(there) == of_files(here)
    assert isinstance(there["notes"], list)
    assert there["notes"][-1].startswith("no Python 3.9 or newer answered on the device: a shell read its files")
    assert "agent" not in there


def test_an_older_agent_is_noted_with_the_remedy(tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncExitStack() as stack:
            agent = LocalAgent(tmp_path / "agent", ())
            stack.callback(agent.kill)
            agent.start()
            keys = agent_config(socket=str(tmp_path / "agent" / "socket"))
            poller: AgentPoller = await start_agent(keys, site_for(tmp_path), stack)
            del poller._hello["fingerprint"]
            with pytest.raises(SourceError, match="is older than fingerprints: update it with soakwatch agent install"):
                await poller.fingerprint()

    asyncio.run(go())
