"""``ssh_config``: a device by its name in the SSH client's configuration, read by OpenSSH itself."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.ssh.ssh_access import Access, with_client_config
from soakwatch.sources.transport.ssh.ssh_connection import open_line
from soakwatch_testing.sshd import Sshd


def access(**keys: object) -> Access:
    """A device as a plan names it."""
    return Access.model_validate(keys)


def _file(folder: Path, text: str) -> str:
    file = folder / "ssh_config"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_device_by_its_name_in_the_configuration(sshd: Sshd, tmp_path: Path) -> None:
    """Address, port, user, key and trusted keys come from it; the host key is verified as ever."""
    needs("ssh")
    login = sshd.keys
    text = (
        f"Host fw-lab\n HostName {login['host']}\n Port {login['port']}\n User {login['user']}\n"
        f" IdentityFile {login['key']}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    named = access(host="fw-lab", ssh_config=_file(tmp_path, text))

    async def go() -> str:
        async with AsyncExitStack() as stack:
            line = await open_line(named, tmp_path, stack)
            return str((await (await line.connection()).run("echo hello", timeout=240)).stdout)

    assert asyncio.run(go()) == "hello\n"
    sshd.known_hosts.write_text("")
    with pytest.raises(Exception, match="unknown"):
        asyncio.run(go())


def test_what_the_plan_says_wins_and_jump_hosts_are_found(tmp_path: Path) -> None:
    needs("ssh")
    (tmp_path / "own_key").write_text("not read here")
    text = (
        f"Host fw\n HostName 10.0.0.7\n Port 2222\n User ops\n IdentityFile {tmp_path}/own_key\n"
        " ProxyJump gate,me@last:9\n"
        "Host gate\n HostName 10.0.0.1\n User jumper\n"
    )
    file = _file(tmp_path, text)
    found = with_client_config(access(host="fw", ssh_config=file))
    assert (found.host, found.port, found.user, found.key) == ("10.0.0.7", 2222, "ops", f"{tmp_path}/own_key")
    assert [(hop.host, hop.port, hop.user) for hop in found.jump] == [("10.0.0.1", 22, "jumper"), ("last", 9, "me")]
    own = with_client_config(access(host="fw", ssh_config=file, port=22, user="root", key="k", jump=("a@b",)))
    assert (own.host, own.port, own.user, own.key) == ("10.0.0.7", 22, "root", "k")
    assert [hop.host for hop in own.jump] == ["b"]
    unasked = access(host="fw")
    assert with_client_config(unasked) is unasked


def test_a_configuration_that_ssh_refuses_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("ssh")
    with pytest.raises(PlanError, match=r"ssh refuses its configuration for fw: .*Bad configuration option"):
        with_client_config(access(host="fw", ssh_config=_file(tmp_path, "Host fw\n NoSuchWord yes\n")))
    with pytest.raises(PlanError, match="ssh refuses its configuration for fw"):
        with_client_config(access(host="fw", ssh_config=str(tmp_path / "nothing")))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PlanError, match="install openssh-client"):
        with_client_config(access(host="fw", ssh_config=True))
