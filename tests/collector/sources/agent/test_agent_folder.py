"""Where ``soakwatch agent install`` puts an agent, and what ``remove`` takes away: never anybody else's files."""

from __future__ import annotations

import asyncio
import getpass
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import asyncssh
import pytest
from tests.commands import command_in

from soakwatch.core.errors import SoakwatchError
from soakwatch.sources.pollers.agent.install import examine
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch_testing.agents import config, follow
from soakwatch_testing.sshd import Sshd, run_sshd


def agent(sshd: Sshd, word: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``soakwatch agent WORD`` on the server."""
    keys = sshd.keys
    where = ("--key", keys["key"], "--known-hosts", keys["known_hosts"])
    return command_in(Path.cwd())("agent", word, f"{getpass.getuser()}@127.0.0.1:{sshd.port}", *where, *arguments)


@pytest.mark.slow
def test_a_folder_is_counted_from_the_home_wherever_a_session_begins(sshd: Sshd) -> None:
    """The session begins in the account's folder of /etc/passwd; its HOME is another one, and holds the agent."""
    home = sshd.folder / "home"
    try:
        done = agent(sshd, "install", "--dir", "guest of honour")
        assert (done.returncode, done.stderr) == (0, "")
        assert (home / "guest of honour" / "agent.pyz").exists()
        assert "the agent answers: agent 0." in done.stdout
    finally:
        gone = agent(sshd, "remove", "--dir", "guest of honour")
    assert (gone.returncode, gone.stderr) == (0, "")
    assert not (home / "guest of honour").exists()


def test_a_folder_with_other_files_is_left_alone(sshd: Sshd) -> None:
    """Nothing is put into a user's folder, and other files in the agent's folder survive its removal."""
    home = sshd.folder / "home"
    (home / "lib").mkdir()
    (home / "lib" / "thesis.tex").write_text("mine")
    refused = agent(sshd, "install", "--dir", ".")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "holds files that are not an agent's" in refused.stderr
    assert [each.name for each in home.iterdir()] == ["lib"]
    try:
        assert agent(sshd, "install", "--dir", "guest", "--child").returncode == 0
        (home / "guest" / "lib" / "thesis.tex").write_text("mine")
    finally:
        gone = agent(sshd, "remove", "--dir", "guest")
    assert "holds other files and was kept" in gone.stdout
    assert [str(each.relative_to(home / "guest")) for each in (home / "guest").rglob("*")] == ["lib", "lib/thesis.tex"]


def test_the_folder_is_for_the_account_alone_whoever_created_it(sshd: Sshd) -> None:
    """Tokens and readings lie in it; one that others could read is closed, with the same agent in it as well."""
    folder = sshd.folder / "home" / "guest"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    try:
        for outcome in ("put the agent into", "the same agent is already in"):
            done = agent(sshd, "install", "--dir", "guest", "--child")
            assert (done.returncode, done.stderr) == (0, "")
            assert outcome in done.stdout
            assert folder.stat().st_mode & 0o777 == 0o700
            folder.chmod(0o755)
    finally:
        assert agent(sshd, "remove", "--dir", "guest").returncode == 0


def test_where_no_agent_is_the_command_that_puts_it_there_is_named(sshd: Sshd) -> None:
    """The text of the device's shell about a file is not shown."""
    for word in ("status", "remove"):
        missing = agent(sshd, word)
        assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
        assert "there is no agent on" in missing.stderr
        assert "soakwatch agent install" in missing.stderr


@pytest.mark.parametrize("words", ["echo Welcome; echo 'to this host'", "echo 'hello [1]'; echo 'done [2]'"])
def test_an_invalid_status_is_reported_in_one_sentence(sshd: Sshd, words: str) -> None:
    """A profile that greets, or something that was put in the agent's place."""
    folder = sshd.folder / "home" / ".soakwatch-agent"
    folder.mkdir()
    (folder / "agent.pyz").write_bytes(b"of another time")
    (folder / "agent").write_text(f"#!/bin/sh\n{words}\n")
    (folder / "agent").chmod(0o700)
    refused = agent(sshd, "status")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "does not come from an agent, or other text is mixed in" in refused.stderr


def test_a_command_that_has_ended_before_it_was_given_any_input_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick host under a busy monitor: its words, its exit code and the end come in one piece (asyncssh's server)."""

    class Host(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    def ends(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write("so long\n")
        process.exit(0)

    async def go() -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        server = await asyncssh.create_server(Host, "127.0.0.1", 0, server_host_keys=[key], process_factory=ends)
        monkeypatch.setenv("GUEST", "no need of one")
        keys = {
            "host": "127.0.0.1",
            "port": server.get_port(),
            "user": "guest",
            "host_key": key.get_fingerprint(),
            "password": "env:GUEST",
        }
        try:
            async with SshConnection(Access.model_validate(keys), tmp_path) as line:
                await examine(line, "guest")
        finally:
            server.close()
            await server.wait_closed()

    with pytest.raises(SoakwatchError, match=r"gave an unexpected answer to the installation: so long"):
        asyncio.run(go())


def test_a_bashrc_that_greets_is_no_hindrance(tmp_path: Path, sshd: Sshd) -> None:
    """A shell that is started by sshd reads it for single commands as well."""
    (sshd.folder / "home" / ".bashrc").write_text("echo Welcome; echo 'to this host'\n")

    async def run() -> int:
        async with AsyncExitStack() as stack:
            follower = await follow(config(**sshd.keys), tmp_path, stack)
            await follower.poll(2)
            return len(follower.answers)

    try:
        assert agent(sshd, "install").returncode == 0
        assert "agent 0." in agent(sshd, "status").stdout
        assert asyncio.run(run()) == 2
    finally:
        assert agent(sshd, "remove").returncode == 0


@pytest.mark.slow
def test_a_server_that_allows_one_session_is_enough(tmp_path: Path) -> None:
    """The next session may be asked for before the server has done with the last one."""
    with run_sshd(tmp_path / "narrow", MaxSessions="1") as narrow:
        try:
            for _ in range(2):
                done = agent(narrow, "install")
                assert (done.returncode, done.stderr) == (0, "")
        finally:
            gone = agent(narrow, "remove")
        assert (gone.returncode, gone.stderr) == (0, "")


def test_an_account_that_answers_without_an_end_is_cut_off(tmp_path: Path) -> None:
    """Bounded memory, and a sentence at once."""
    with run_sshd(tmp_path / "endless", ForceCommand="yes 'no shell for you'") as endless:
        refused = agent(endless, "install")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "sends output without end" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("soak@127.0.0.1", "--password", "hunter2"), "--password: a secret must not be written in clear text"),
        (("soak@127.0.0.1", "--host-key", "abc"), "--host-key: a pinned host key is SHA256:"),
        (("soak@127.0.0.1:99999",), "port: "),
        (("soak@127.0.0.1", "--jump", "a b"), "--jump: "),
    ],
)
def test_a_wrong_option_is_named(arguments: tuple[str, ...], message: str) -> None:
    """And what it holds is not, for it may be a secret."""
    done = command_in(Path.cwd())("agent", "status", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr
    assert "hunter2" not in done.stderr
    assert "value error" not in done.stderr.lower()
