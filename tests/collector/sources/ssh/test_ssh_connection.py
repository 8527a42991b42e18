"""Connections over SSH: which keys are trusted, which accounts get in, and the message where they do not."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path

import asyncssh
import pytest
from pydantic import ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection, open_line
from soakwatch.sources.transport.ssh.ssh_errors import printable
from soakwatch_testing.ports import free_port
from soakwatch_testing.sshd import Sshd, fingerprint_of, make_key
from soakwatch_testing.tcp_relay import TcpRelay

Make = Callable[..., Sshd]


def opened(access: Access, folder: Path) -> SshConnection:
    """Connects, runs a command, closes; returns the connection for its facts."""

    async def go() -> SshConnection:
        async with AsyncExitStack() as stack:
            line = await open_line(access, folder, stack)
            echoed = await (await line.connection()).run("echo hello", timeout=240)
            assert echoed.stdout == "hello\n"
            return line

    return asyncio.run(go())


def refused(access: Access, folder: Path) -> str:
    """The message of a connection that fails."""
    with pytest.raises((SourceError, PlanError)) as caught:
        opened(access, folder)
    text = str(caught.value)
    assert "\n" not in text
    return text


def access(server: Sshd, **more: object) -> Access:
    """A login at a server."""
    return Access.model_validate({**server.keys, **more})


def test_a_known_host_is_connected_and_its_key_is_shown(sshd: Sshd, tmp_path: Path) -> None:
    line = opened(access(sshd), tmp_path)
    assert line.identity()["host key"] == f"{fingerprint_of(sshd.host_key)} (in known_hosts)"
    assert line.identity()["ssh"].startswith("SSH-2.0-OpenSSH")
    assert line.notes() == ()


def test_a_changed_host_key_is_refused_with_file_and_line(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    public = other.with_suffix(".pub").read_text()
    sshd.known_hosts.write_text(f"# two lines\nbroken line\n\n[127.0.0.1]:{sshd.port} {public}")
    text = refused(access(sshd), tmp_path)
    assert f"{sshd.known_hosts}:4 " in text
    assert fingerprint_of(sshd.host_key) in text
    assert fingerprint_of(other) in text
    assert "ssh-keygen -f" in text


def test_an_unknown_host_key_is_refused_with_the_remedy(sshd: Sshd, tmp_path: Path) -> None:
    sshd.known_hosts.write_text("")
    text = refused(access(sshd), tmp_path)
    assert "unknown" in text
    assert f"host_key: {fingerprint_of(sshd.host_key)}" in text


def test_a_revoked_host_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    public = sshd.host_key.with_suffix(".pub").read_text()
    with sshd.known_hosts.open("a") as file:
        file.write(f"@revoked [127.0.0.1]:{sshd.port} {public}")
    assert "revoked" in refused(access(sshd), tmp_path)


def test_a_hashed_known_hosts_is_read(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-Hf", str(sshd.known_hosts)], check=True, capture_output=True)
    assert str(sshd.port) not in sshd.known_hosts.read_text()
    opened(access(sshd), tmp_path)


def test_a_missing_known_hosts_file_is_reported(sshd: Sshd, tmp_path: Path) -> None:
    assert "no known_hosts file" in refused(access(sshd, known_hosts=str(tmp_path / "none")), tmp_path)


def test_a_pinned_key_is_enough_and_a_wrong_one_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    sshd.known_hosts.unlink()
    pinned = fingerprint_of(sshd.host_key)
    line = opened(access(sshd, host_key=pinned), tmp_path)
    assert line.identity()["host key"] == f"{pinned} (pinned in the plan)"
    wrong = "SHA256:" + "A" * 43
    text = refused(access(sshd, host_key=wrong), tmp_path)
    assert wrong in text
    assert pinned in text


def test_trust_on_first_use_is_stored_reported_and_not_repeated(sshd: Sshd, tmp_path: Path) -> None:
    sshd.known_hosts.write_text("")
    first = access(sshd, trust="first_use")
    line = opened(first, tmp_path)
    assert [note for note in line.notes() if "trusted on first use" in note]
    assert "trusted on first use" in line.identity()["host key"]
    kept = tmp_path / "known_hosts"
    assert kept.stat().st_mode & 0o777 == 0o600
    again = opened(first, tmp_path)
    assert again.notes() == ()
    assert len(kept.read_text().splitlines()) == 1
    sshd.stop()
    sshd.host_key.unlink()
    make_key(sshd.host_key)
    sshd.start()
    assert f"{kept}:1 " in refused(first, tmp_path)


def test_first_use_does_not_override_known_hosts(sshd: Sshd, tmp_path: Path) -> None:
    public = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {public}")
    assert f"{sshd.known_hosts}:1 " in refused(access(sshd, trust="first_use"), tmp_path)
    assert not (tmp_path / "known_hosts").exists()


def test_a_wrong_key_is_denied_and_named(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    text = refused(access(sshd, key=str(other)), tmp_path)
    assert "denied the login" in text
    assert str(other) in text


def test_a_wrong_password_is_denied_and_never_shown(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUT_PASSWORD", "s3cret-of-mine")
    keys = {**sshd.keys, "password": "env:DUT_PASSWORD"}
    del keys["key"]
    text = refused(Access.model_validate(keys), tmp_path)
    assert "denied the login" in text
    assert "env:DUT_PASSWORD" in text
    assert "s3cret" not in text


def test_a_password_lets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH checks passwords of real accounts only: the server is asyncssh's here."""

    class Door(asyncssh.SSHServer):
        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return (username, password) == ("ops", "right")

    async def go(secret: str) -> str:
        monkeypatch.setenv("DUT_PASSWORD", secret)
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        server = await asyncssh.create_server(Door, "127.0.0.1", 0, server_host_keys=[host_key])
        wanted = {
            "host": "127.0.0.1",
            "port": server.get_port(),
            "user": "ops",
            "password": "env:DUT_PASSWORD",
            "host_key": host_key.get_fingerprint(),
        }
        try:
            async with AsyncExitStack() as stack:
                line = await open_line(Access.model_validate(wanted), tmp_path, stack)
                return line.name
        finally:
            server.close()
            await server.wait_closed()

    assert asyncio.run(go("right")).startswith("ops@127.0.0.1:")
    with pytest.raises(LoginRefusedError, match="denied the login"):
        asyncio.run(go("wrong"))


def test_a_key_with_a_passphrase(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = make_key(tmp_path / "locked", "rsa", "open sesame", "-m", "PEM")
    (sshd.folder / "authorized_keys").write_bytes(locked.with_suffix(".pub").read_bytes())
    assert "needs a passphrase" in refused(access(sshd, key=str(locked)), tmp_path)
    monkeypatch.setenv("WRONG", "close sesame")
    monkeypatch.setenv("RIGHT", "open sesame")
    text = refused(access(sshd, key=str(locked), passphrase="env:WRONG"), tmp_path)
    assert "cannot be opened" in text
    assert "sesame" not in text
    opened(access(sshd, key=str(locked), passphrase="env:RIGHT"), tmp_path)


def test_files_that_are_not_keys(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not exist" in refused(access(sshd, key=str(tmp_path / "none")), tmp_path)
    (tmp_path / "noise").write_text("no key at all")
    assert "not a usable private key" in refused(access(sshd, key=str(tmp_path / "noise")), tmp_path)
    monkeypatch.setenv("KEY_TEXT", sshd.user_key.read_text())
    opened(access(sshd, key="env:KEY_TEXT"), tmp_path)


def test_the_ssh_agent(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {**sshd.keys, "agent": True}
    del keys["key"]
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert "SSH_AUTH_SOCK is not set" in refused(Access.model_validate(keys), tmp_path)
    path = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
        for _ in range(200):
            add = ["ssh-add", "-q", str(sshd.user_key)]
            if subprocess.run(add, env=environment, capture_output=True, check=False).returncode == 0:
                break
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        opened(Access.model_validate(keys), tmp_path)
    finally:
        agent.terminate()
        agent.wait(240)
    path.unlink(missing_ok=True)
    assert "does not exist" in refused(Access.model_validate(keys), tmp_path)


def test_a_connection_over_a_jump_host(make_sshd: Make, tmp_path: Path) -> None:
    gate, device = make_sshd(), make_sshd()
    (gate.folder / "authorized_keys").write_bytes(device.user_key.with_suffix(".pub").read_bytes())
    both = tmp_path / "both"
    both.write_text(gate.known_hosts.read_text() + device.known_hosts.read_text())
    jump = {"host": "127.0.0.1", "port": gate.port, "key": str(device.user_key)}
    line = opened(access(device, known_hosts=str(both), jump=[jump]), tmp_path)
    assert f"127.0.0.1:{gate.port}" in line.identity()["way"]
    # the jump host is verified by itself
    text = refused(access(device, jump=[jump]), tmp_path)
    assert f"127.0.0.1:{gate.port} is unknown" in text


def test_a_jump_host_without_means_of_its_own_is_tried_with_the_key_of_the_device(
    make_sshd: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``--jump ops@gate --key FILE`` means it; and a gate that forwards nothing is named, not the device."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    device = make_sshd()
    gate, shut = make_sshd(), make_sshd(AllowTcpForwarding="no")
    for each in (gate, shut):
        (each.folder / "authorized_keys").write_bytes(device.user_key.with_suffix(".pub").read_bytes())
    every = tmp_path / "every"
    every.write_text("".join(each.known_hosts.read_text() for each in (device, gate, shut)))
    user = getpass.getuser()
    line = opened(access(device, known_hosts=str(every), jump=[f"{user}@127.0.0.1:{gate.port}"]), tmp_path)
    assert line.identity()["way"] == f"{user}@127.0.0.1:{gate.port}"
    text = refused(access(device, known_hosts=str(every), jump=[f"{user}@127.0.0.1:{shut.port}"]), tmp_path)
    assert text.startswith(f"the jump host {user}@127.0.0.1:{shut.port} does not connect to 127.0.0.1:{device.port}")


def test_jump_hosts_as_people_write_them() -> None:
    access = Access.model_validate({"host": "dut", "jump": ["ops@gate:2222", "[fe80::1]:22"]})
    assert [(hop.user, hop.host, hop.port) for hop in access.jump] == [("ops", "gate", 2222), (None, "fe80::1", 22)]
    for wrong in ("gate:", "a b", "@x", "x:port"):
        with pytest.raises(ValidationError):
            Access.model_validate({"host": "dut", "jump": wrong})


def test_wrong_keys_of_a_plan() -> None:
    for wrong in (
        {"host": "-oProxyCommand=x"},
        {"host": "dut", "host_key": "MD5:00:11"},
        {"host": "dut", "password": "hunter2"},
        {"host": "dut", "trust": "first_use", "host_key": "SHA256:" + "A" * 43},
        {"host": "dut", "port": 0},
    ):
        with pytest.raises(ValidationError) as caught:
            Access.model_validate(wrong)
        assert "hunter2" not in str(caught.value).replace("input_value='hunter2'", "")


def test_a_port_without_a_server(sshd: Sshd, tmp_path: Path) -> None:
    assert "refused the connection" in refused(access(sshd, port=free_port(), trust="first_use"), tmp_path)


def test_a_silent_server(sshd: Sshd, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = refused(access(sshd, port=port, connect_timeout="500ms"), tmp_path)
    assert "no connection within 0.5 s" in text


def test_a_server_of_another_protocol(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> str:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-1.0-ancient\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server, AsyncExitStack() as stack:
            port = server.sockets[0].getsockname()[1]
            try:
                await open_line(access(sshd, port=port), tmp_path, stack)
            except SourceError as failure:
                return str(failure)
        return ""

    assert "violates the SSH protocol" in asyncio.run(go())


def test_no_sessions_left(make_sshd: Make, tmp_path: Path) -> None:
    server = make_sshd(MaxSessions="0")

    async def go() -> str:
        async with AsyncExitStack() as stack:
            line = await open_line(access(server), tmp_path, stack)
            try:
                await (await line.connection()).create_process("exec sh")
            except asyncssh.Error as error:
                return str(line.failed(error))
            return ""

    assert "MaxSessions" in asyncio.run(go())


def test_a_lost_connection_is_opened_again(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncExitStack() as stack:
            line = await open_line(access(sshd), tmp_path, stack)
            before = await line.connection()
            assert await line.connection() is before
            sshd.kill_sessions()
            async with asyncio.timeout(200):
                await before.wait_closed()
            after = await line.connection()
            assert after is not before
            line.drop()
            assert (await (await line.connection()).run("echo on", timeout=240)).stdout == "on\n"

    asyncio.run(go())


def test_a_stalled_line_is_noticed_by_its_keepalive(sshd: Sshd, tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(TcpRelay(sshd.port))
            there = access(sshd, port=relay.port, host_key=fingerprint_of(sshd.host_key), keepalive="1s")
            line = await open_line(there, tmp_path, stack)
            connection = await line.connection()
            relay.carries.clear()
            async with asyncio.timeout(60):
                await connection.wait_closed()
            relay.carries.set()
            await line.connection()

    asyncio.run(go())


def test_what_a_device_says_is_shown_in_one_line() -> None:
    assert printable("a\x1b[31m\r\n\tb" + "x" * 500).startswith("a [31m bxx")
    assert len(printable("x" * 5000)) < 200


def test_an_openssh_key_with_a_passphrase(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = make_key(tmp_path / "locked", passphrase="open sesame")
    (sshd.folder / "authorized_keys").write_bytes(locked.with_suffix(".pub").read_bytes())
    assert "needs a passphrase" in refused(access(sshd, key=str(locked)), tmp_path)
    monkeypatch.setenv("RIGHT", "open sesame")
    wanted = access(sshd, key=str(locked), passphrase="env:RIGHT")
    if find_spec("bcrypt") is None:
        assert "needs the Python package bcrypt" in refused(wanted, tmp_path)
    else:
        opened(wanted, tmp_path)
