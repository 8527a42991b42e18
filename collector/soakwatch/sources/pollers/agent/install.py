"""Installs the agent on a host over SSH and starts it; shows its state; removes it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import asyncssh

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.units import show_bytes
from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.agent.agent_bundle import Psutil, bundle, fits
from soakwatch.sources.pollers.agent.remote import CLOSE, CRON, EXAMINE, PUT, REMOVE, SERVICE
from soakwatch.sources.pollers.agent.transports import SshTransport
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable
from soakwatch_agent.framing import Object

_PYTHONS = "python3 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/libexec/platform-python"
_NO_PYTHON = 41
_TIMEOUT_S = 120.0
_EXAMINE_S = 30.0  # for the first questions, before anything is sent: a host that does not answer them is not usable
_MAX_OUTPUT_BYTES = 1 << 20
_TRIES, _PAUSE_S = 10, 0.2  # a server that allows one session (MaxSessions) may not have done with the last one yet
DEFAULT_FOLDER = ".soakwatch-agent"


@dataclass(frozen=True, slots=True)
class Host:
    """What a host reports: its Python, its kind, the agent's folder there, and what could run a service."""

    python: str
    version: str
    machine: str
    libc: str
    folder: str
    digest: str
    systemd: bool
    crontab: bool


@dataclass(frozen=True, slots=True)
class Installed:
    """What was done, as sentences, and the agent's greeting."""

    actions: tuple[str, ...]
    hello: Object


async def examine(line: SshConnection, folder: str) -> Host:
    """What kind of host it is. Raises SourceError, and SoakwatchError if it has no suitable Python."""
    wrapped = shlex.quote(EXAMINE)
    script = (
        f"for p in {_PYTHONS}; do if command -v $p >/dev/null 2>&1 && $p -c "
        f"'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then exec $p -I -c {wrapped} "
        f"{shlex.quote(folder)}; fi; done; exit {_NO_PYTHON}"
    )
    code, out, err = await _run(line, f"exec sh -c {shlex.quote(script)}", timeout_s=_EXAMINE_S)
    if code == _NO_PYTHON:
        raise SoakwatchError(f"{line.name} has no Python 3.9 or newer: install one, or poll it with the source ssh")
    try:
        answer = json.loads(out.splitlines()[-1]) if out.strip() else None
        assert isinstance(answer, dict)
        python, version, machine, libc, there, digest = (
            str(answer[key]) for key in ("python", "version", "machine", "libc", "folder", "digest")
        )
        systemd, crontab = answer["systemd"] is True, answer["crontab"] is True
        return Host(python, version, machine, libc, there, digest, systemd=systemd, crontab=crontab)
    except (ValueError, KeyError, AssertionError):
        raise SoakwatchError(
            f"{line.name} gave an unexpected answer to the installation: {_short(out + err)}"
        ) from None


async def install(line: SshConnection, folder: str, psutil: Psutil, *, service: bool, upgrade: bool) -> Installed:
    """Puts the agent there and starts it. The same agent is left as it is; another one needs ``upgrade``. Its folder
    is for the account alone from then on: tokens and readings lie in it.

    Raises SourceError, and SoakwatchError with the remedy.
    """
    host = await examine(line, folder)
    fits(psutil, host.machine, host.libc)
    data = bundle(psutil)
    digest = hashlib.sha256(data).hexdigest()
    actions = []
    if host.digest == digest:
        await _python(line, host, CLOSE, host.folder)
        actions.append(f"the same agent is already in {host.folder}")
    elif host.digest and not upgrade:
        raise SoakwatchError(
            f"another agent is already in {host.folder} on {line.name}: replace it with "
            f"soakwatch agent install {line.name} --upgrade"
        )
    else:
        await _python(line, host, PUT, host.folder, digest, data=data)
        actions.append(f"put the agent into {host.folder} ({show_bytes(len(data))}, Python {host.version})")
        if host.digest:
            await _stop(line, host)
            actions.append("stopped the one that was there; its spool is kept")
    if service:
        actions.append(await _start_service(line, host))
    conversation = await SshTransport(line, folder, child=not service).connect()
    try:
        return Installed(tuple(actions), conversation.hello)
    finally:
        await conversation.close()


async def status(line: SshConnection, folder: str) -> tuple[Object, Object]:
    """The agent's greeting and its state. Raises SourceError."""
    host = await examine(line, folder)
    if not host.digest:
        raise SoakwatchError(_none_there(line, host))
    code, out, err = await _run(line, f"exec {_agent(host)} status --dir {shlex.quote(host.folder)}")
    lines = out.splitlines()
    greets = next(
        (index for index, text in enumerate(lines) if text.startswith("hello ")), 0
    )  # after the output of a .bashrc
    lines = lines[greets:]
    if code != 0 or len(lines) < 2:
        raise SourceError(f"the agent in {host.folder} on {line.name} does not answer: {_short(err) or 'no output'}")
    return _object_of(line, lines[0]), _object_of(line, lines[1])


async def remove(line: SshConnection, folder: str) -> tuple[str, ...]:
    """Stops the agent and deletes it with its spool; other files in its folder are left. Raises SoakwatchError."""
    host = await examine(line, folder)
    if not host.digest:
        raise SoakwatchError(_none_there(line, host))
    await _stop(line, host)
    if host.crontab:
        await _python(line, host, CRON, host.folder, "remove")
    kept = await _python(line, host, REMOVE, host.folder, _unit(host))
    rest = (f"{host.folder} holds other files and was kept",) if "kept" in kept else ()
    return (f"removed the agent from {host.folder}", *rest)


async def _start_service(line: SshConnection, host: Host) -> str:
    """Starts the service; returns a sentence on how it will start again."""
    if host.systemd:
        answer = await _python(line, host, SERVICE, host.folder, _unit(host))
        if answer.strip() == "linger":
            return f"runs as the user service {_unit(host)}, and starts with the host"
        return (
            f"runs as the user service {_unit(host)}, but ends with the last session of the account: ask an "
            "administrator for loginctl enable-linger"
        )
    agent = f"{_agent(host)} run --keep --detach --dir {shlex.quote(host.folder)}"
    code, _, err = await _run(line, f"exec {agent}")
    if code != 0:
        raise SoakwatchError(f"the agent on {line.name} does not start: {_short(err)}")
    if host.crontab:
        await _python(line, host, CRON, host.folder, "add")
        return "runs in the background and starts with the host (crontab @reboot): there is no systemd for users"
    return (
        "runs in the background, but has neither systemd for users nor crontab: after a restart of the host it runs "
        "again from the collector's next connection on; until then nothing is polled"
    )


def _object_of(line: SshConnection, text: str) -> Object:
    """The object after the word of a line: agents of all versions send one."""
    try:
        answer = json.loads(text.partition(" ")[2])
        assert isinstance(answer, dict)
    except (ValueError, RecursionError, AssertionError):
        raise SourceError(
            f"the answer on {line.name} does not come from an agent, or other text is mixed in (a login "
            f"banner, a .bashrc): "
            f"{_short(text)}"
        ) from None
    return answer


def _none_there(line: SshConnection, host: Host) -> str:
    return f"there is no agent on {line.name} in {host.folder}: install it with soakwatch agent install {line.name}"


async def _stop(line: SshConnection, host: Host) -> None:
    await _run(line, f"{_agent(host)} stop --dir {shlex.quote(host.folder)} >/dev/null 2>&1; true")


def _agent(host: Host) -> str:
    return shlex.quote(f"{host.folder}/agent")


def _unit(host: Host) -> str:
    if host.folder.endswith(f"/{DEFAULT_FOLDER}"):
        return "soakwatch-agent"
    return "soakwatch-agent-" + hashlib.sha256(host.folder.encode()).hexdigest()[:8]


async def _python(line: SshConnection, host: Host, program: str, *words: str, data: bytes = b"") -> str:
    arguments = " ".join(shlex.quote(each) for each in words)
    command = f"exec {shlex.quote(host.python)} -I -c {shlex.quote(program)} {arguments}"
    code, out, err = await _run(line, command, data)
    if code != 0:
        raise SoakwatchError(f"the installation failed on {line.name}: {_short(err or out) or f'exit code {code}'}")
    return out


async def _run(
    line: SshConnection, command: str, data: bytes = b"", timeout_s: float = _TIMEOUT_S
) -> tuple[int | None, str, str]:
    """Runs a command with some input; exit code and output. Raises SourceError."""
    await line.connection()
    try:
        async with asyncio.timeout(timeout_s):
            process = await _opened(line, command)
            try:
                with contextlib.suppress(BrokenPipeError):  # it has ended already; its output is read all the same
                    process.stdin.write(data)
                    process.stdin.write_eof()
                out, err = await asyncio.gather(_all(line, process.stdout), _all(line, process.stderr))
                await process.wait_closed()
            finally:
                process.close()
    except TimeoutError:
        line.drop()
        raise SourceError(f"{line.name} did not finish within {timeout_s:g} s") from None
    except (asyncssh.Error, OSError) as error:
        raise line.failed(error) from None
    return process.exit_status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


async def _opened(line: SshConnection, command: str) -> asyncssh.SSHClientProcess[bytes]:
    for _ in range(_TRIES - 1):
        with contextlib.suppress(asyncssh.ChannelOpenError):
            return await (await line.connection()).create_process(command, encoding=None)
        await asyncio.sleep(_PAUSE_S)
    return await (await line.connection()).create_process(command, encoding=None)


async def _all(line: SshConnection, reader: asyncssh.SSHReader[bytes]) -> bytes:
    """All output. Raises SourceError if it is longer than any expected answer."""
    kept = bytearray()
    while chunk := await reader.read(1 << 16):
        kept += chunk
        if len(kept) > _MAX_OUTPUT_BYTES:
            line.drop()
            raise SourceError(f"{line.name} sends output without end: is it a host with a shell?")
    return bytes(kept)


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return printable(lines[-1]) if lines else ""


def shown(hello: Mapping[str, object]) -> str:
    """An agent's greeting as a person reads it."""
    version, host, system, python = (
        printable(str(hello.get(key, "?"))) for key in ("version", "host", "system", "python")
    )
    return f"agent {version} on {host} ({system}, Python {python})"
