"""Puts the agent on a host over SSH, starts it, sees it greet; asks how it stands; removes it."""

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
from soakwatch.sources.pollers.agent.bundle import Psutil, bundle, fits
from soakwatch.sources.pollers.agent.remote import CLOSE, CRON, LOOK, PUT, REMOVE, SERVICE
from soakwatch.sources.pollers.agent.ways import SshWay
from soakwatch.sources.transport.ssh.connection import SshLine
from soakwatch.sources.transport.ssh.errors import printable
from soakwatch_agent.framing import Object

_PYTHONS = "python3 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/libexec/platform-python"
_NO_PYTHON = 41
_PATIENCE_S = 120.0
_LOOK_S = 30.0  # for the first questions, before anything is sent: a host that does not answer them is none of ours
_MAX_OUTPUT_BYTES = 1 << 20
_TRIES, _PAUSE_S = 10, 0.2  # a server that allows one session (MaxSessions) may not have done with the last one yet
DEFAULT_FOLDER = ".soakwatch-agent"


@dataclass(frozen=True, slots=True)
class Host:
    """What a host told of itself: its Python, its kind, the agent's folder there, and what could keep a service."""

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
    """What was done, as sentences, and how the agent greeted."""

    did: tuple[str, ...]
    hello: Object


async def look_at(line: SshLine, folder: str) -> Host:
    """What kind of host it is. Raises SourceError, and SoakwatchError if it has no Python that will do."""
    wrapped = shlex.quote(LOOK)
    script = (
        f"for p in {_PYTHONS}; do if command -v $p >/dev/null 2>&1 && $p -c "
        f"'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then exec $p -I -c {wrapped} "
        f"{shlex.quote(folder)}; fi; done; exit {_NO_PYTHON}"
    )
    code, out, err = await _run(line, f"exec sh -c {shlex.quote(script)}", patience_s=_LOOK_S)
    if code == _NO_PYTHON:
        raise SoakwatchError(f"{line.name} has no Python 3.9 or newer: install one, or poll it with the source ssh")
    try:
        told = json.loads(out.splitlines()[-1]) if out.strip() else None
        assert isinstance(told, dict)
        python, version, machine, libc, there, digest = (
            str(told[key]) for key in ("python", "version", "machine", "libc", "folder", "digest")
        )
        systemd, crontab = told["systemd"] is True, told["crontab"] is True
        return Host(python, version, machine, libc, there, digest, systemd=systemd, crontab=crontab)
    except (ValueError, KeyError, AssertionError):
        raise SoakwatchError(
            f"{line.name} ran the questions of the installation and answered something else: {_short(out + err)}"
        ) from None


async def install(line: SshLine, folder: str, psutil: Psutil, *, service: bool, upgrade: bool) -> Installed:
    """Puts the agent there and starts it. The same agent is left as it is; another one needs ``upgrade``. Its folder
    is for the account alone from then on: tokens and readings lie in it.

    Raises SourceError, and SoakwatchError with the remedy.
    """
    host = await look_at(line, folder)
    fits(psutil, host.machine, host.libc)
    data = bundle(psutil)
    digest = hashlib.sha256(data).hexdigest()
    did = []
    if host.digest == digest:
        await _python(line, host, CLOSE, host.folder)
        did.append(f"the same agent is in {host.folder} already")
    elif host.digest and not upgrade:
        raise SoakwatchError(
            f"another agent is in {host.folder} on {line.name} already: replace it with "
            f"soakwatch agent install {line.name} --upgrade"
        )
    else:
        await _python(line, host, PUT, host.folder, digest, data=data)
        did.append(f"put the agent into {host.folder} ({show_bytes(len(data))}, Python {host.version})")
        if host.digest:
            await _stop(line, host)
            did.append("ended the one that was there; its spool is kept")
    if service:
        did.append(await _keep(line, host))
    talk = await SshWay(line, folder, child=not service).connect()
    try:
        return Installed(tuple(did), talk.hello)
    finally:
        await talk.close()


async def status(line: SshLine, folder: str) -> tuple[Object, Object]:
    """The agent's greeting and how it stands. Raises SourceError."""
    host = await look_at(line, folder)
    if not host.digest:
        raise SoakwatchError(_none_there(line, host))
    code, out, err = await _run(line, f"exec {_agent(host)} status --dir {shlex.quote(host.folder)}")
    lines = out.splitlines()
    greets = next((at for at, text in enumerate(lines) if text.startswith("hello ")), 0)  # behind a .bashrc's words
    lines = lines[greets:]
    if code != 0 or len(lines) < 2:
        raise SourceError(f"the agent in {host.folder} on {line.name} does not answer: {_short(err) or 'no word'}")
    return _told(line, lines[0]), _told(line, lines[1])


async def remove(line: SshLine, folder: str) -> tuple[str, ...]:
    """Ends the agent and deletes it with its spool; other files in its folder are left. Raises SoakwatchError."""
    host = await look_at(line, folder)
    if not host.digest:
        raise SoakwatchError(_none_there(line, host))
    await _stop(line, host)
    if host.crontab:
        await _python(line, host, CRON, host.folder, "remove")
    kept = await _python(line, host, REMOVE, host.folder, _unit(host))
    rest = (f"{host.folder} holds other files and was kept",) if "kept" in kept else ()
    return (f"removed the agent from {host.folder}", *rest)


async def _keep(line: SshLine, host: Host) -> str:
    """Starts the service; says how it will come back."""
    if host.systemd:
        said = await _python(line, host, SERVICE, host.folder, _unit(host))
        if said.strip() == "linger":
            return f"runs as the user service {_unit(host)}, from the host's start on"
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
        return "runs in the background, and from the host's start on (crontab @reboot): there is no systemd for users"
    return (
        "runs in the background, but has neither systemd for users nor crontab: after a restart of the host it runs "
        "again from the collector's next connection on, and what was before that is not seen"
    )


def _told(line: SshLine, text: str) -> Object:
    """What stands behind the word of a line: an agent of any version tells it as an object."""
    try:
        told = json.loads(text.partition(" ")[2])
        assert isinstance(told, dict)
    except (ValueError, RecursionError, AssertionError):
        raise SourceError(
            f"what answers on {line.name} is no agent, or other text stands in its output (a login banner, a .bashrc): "
            f"{_short(text)}"
        ) from None
    return told


def _none_there(line: SshLine, host: Host) -> str:
    return f"there is no agent on {line.name} in {host.folder}: put it there with soakwatch agent install {line.name}"


async def _stop(line: SshLine, host: Host) -> None:
    await _run(line, f"{_agent(host)} stop --dir {shlex.quote(host.folder)} >/dev/null 2>&1; true")


def _agent(host: Host) -> str:
    return shlex.quote(f"{host.folder}/agent")


def _unit(host: Host) -> str:
    if host.folder.endswith(f"/{DEFAULT_FOLDER}"):
        return "soakwatch-agent"
    return "soakwatch-agent-" + hashlib.sha256(host.folder.encode()).hexdigest()[:8]


async def _python(line: SshLine, host: Host, program: str, *words: str, data: bytes = b"") -> str:
    arguments = " ".join(shlex.quote(each) for each in words)
    command = f"exec {shlex.quote(host.python)} -I -c {shlex.quote(program)} {arguments}"
    code, out, err = await _run(line, command, data)
    if code != 0:
        raise SoakwatchError(f"the installation failed on {line.name}: {_short(err or out) or f'exit code {code}'}")
    return out


async def _run(
    line: SshLine, command: str, data: bytes = b"", patience_s: float = _PATIENCE_S
) -> tuple[int | None, str, str]:
    """Runs a command with some input; exit code and output. Raises SourceError."""
    await line.connection()
    try:
        async with asyncio.timeout(patience_s):
            process = await _opened(line, command)
            try:
                with contextlib.suppress(BrokenPipeError):  # it has ended already; what it said is read all the same
                    process.stdin.write(data)
                    process.stdin.write_eof()
                out, err = await asyncio.gather(_all(line, process.stdout), _all(line, process.stderr))
                await process.wait_closed()
            finally:
                process.close()
    except TimeoutError:
        line.drop()
        raise SourceError(f"{line.name} did not finish within {patience_s:g} s") from None
    except (asyncssh.Error, OSError) as error:
        raise line.failed(error) from None
    return process.exit_status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


async def _opened(line: SshLine, command: str) -> asyncssh.SSHClientProcess[bytes]:
    for _ in range(_TRIES - 1):
        with contextlib.suppress(asyncssh.ChannelOpenError):
            return await (await line.connection()).create_process(command, encoding=None)
        await asyncio.sleep(_PAUSE_S)
    return await (await line.connection()).create_process(command, encoding=None)


async def _all(line: SshLine, reader: asyncssh.SSHReader[bytes]) -> bytes:
    """All that comes. Raises SourceError if it is more than any answer of ours."""
    kept = bytearray()
    while chunk := await reader.read(1 << 16):
        kept += chunk
        if len(kept) > _MAX_OUTPUT_BYTES:
            line.drop()
            raise SourceError(f"{line.name} answers without an end: is it a host with a shell?")
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
