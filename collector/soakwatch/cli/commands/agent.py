"""Install the agent on a host over SSH, show its status, remove it, or build it as a zipapp."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from soakwatch.sources.pollers.agent.agent_bundle import Psutil
    from soakwatch.sources.transport.ssh.ssh_connection import SshConnection

T = TypeVar("T")
_FOLDER = ".soakwatch-agent"


@click.group(
    epilog="""\b
Examples:
  soakwatch agent install soak@198.18.0.5
  soakwatch agent status soak@198.18.0.5
  soakwatch agent remove soak@198.18.0.5
  soakwatch agent bundle -o agent.pyz
  soakwatch agent certificate agent-tls --name fw1
\b
In a plan: sources: [{agent: {host: 198.18.0.5, user: soak, interval: 1s}}]; its keys: soakwatch pollers agent"""
)
def command() -> None:
    """Manage the agent, which samples its host on its own and keeps what a network outage would hide."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """How to reach a host over SSH, and the agent's folder on it."""

    where: str
    key: str | None
    password: str | None
    known_hosts: str | None
    host_key: str | None
    jump: tuple[str, ...]
    folder: str

    def agent_folder(self) -> str:
        """The agent's folder, relative to the account's home. Raises BadParameter for an invalid one."""
        plain = self.folder.removeprefix("~/")
        if not plain or plain.startswith(("~", "-")) or not plain.isprintable():
            raise click.BadParameter(f"{self.folder!r} is not a folder of the account", param_hint="--dir")
        return plain


_HOST_OPTIONS = (
    click.argument("where", metavar="USER@HOST[:PORT]"),
    click.option("--key", show_default="the keys of ~/.ssh", help="Private key: a path or env:NAME."),
    click.option("--password", metavar="REF", help="Password of the account: env:NAME or file:PATH."),
    click.option("--known-hosts", metavar="FILE", show_default="~/.ssh/known_hosts", help="Trusted host keys."),
    click.option("--host-key", metavar="SHA256:…", help="The only host key to accept."),
    click.option("--jump", multiple=True, metavar="USER@HOST[:PORT]", help="Jump host. May be repeated."),
    click.option(
        "--dir",
        "folder",
        default=_FOLDER,
        show_default=True,
        help="Folder of the agent, relative to the account's home.",
    ),
)


def _host_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that connects to a host, and pass them to it as one HostOptions."""

    @functools.wraps(function)
    def with_host(
        where: str,
        key: str | None,
        password: str | None,
        known_hosts: str | None,
        host_key: str | None,
        jump: tuple[str, ...],
        folder: str,
        **others: object,
    ) -> None:
        function(HostOptions(where, key, password, known_hosts, host_key, jump, folder), **others)

    decorated: Callable[..., None] = with_host
    for option in reversed(_HOST_OPTIONS):
        decorated = option(decorated)
    return decorated


_WHEEL = click.option(
    "--wheel",
    type=click.Path(path_type=Path),
    help="Wheel of psutil for hosts of another platform (from pip download).",
)


@command.command(
    epilog="""\b
Example:
  soakwatch agent install soak@198.18.0.5 --key ~/.ssh/soak
\b
The agent runs as a systemd user service, or in the background on hosts without systemd. It opens no port and writes
only to its folder. An agent of another version is replaced only with --upgrade; its spool is kept."""
)
@_host_options
@_WHEEL
@click.option("--service/--child", default=True, help="Run as a service, or per SSH session.")
@click.option("--upgrade", "--replace", is_flag=True, help="Replace an agent of another version.")
def install(host: HostOptions, wheel: Path | None, *, service: bool, upgrade: bool) -> None:
    """Put the agent on a host over SSH and start it."""
    from soakwatch.sources.pollers.agent.install import install as put
    from soakwatch.sources.pollers.agent.install import shown

    psutil = _psutil(wheel)
    done = _on_host(host, lambda line: put(line, host.agent_folder(), psutil, service=service, upgrade=upgrade))
    for sentence in done.actions:
        click.echo(sentence)
    click.echo(f"the agent answers: {shown(done.hello)}")


_STATUS = {
    "uptime (s)": "up_s",
    "run": "run",
    "serving a collector": "served",
    "interval (s)": "interval_s",
    "first poll in spool": "first",
    "last poll in spool": "last",
    "last acknowledged poll": "acked",
    "polls lost": "lost",
    "spool size (bytes)": "bytes",
    "spool error": "trouble",
    "polls skipped": "skipped",
    "CPU time (s)": "cpu_s",
    "recorder interval (s)": "recorder_every_s",
    "recorder CPU time (s)": "recorder_cpu_s",
}
"""The labels that ``agent status`` prints, each with a key of the agent's answer."""


def _shown(value: object) -> str:
    """A value of the agent's status as text; "-" for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


@command.command(epilog="\b\nExample:\n  soakwatch agent status soak@198.18.0.5")
@_host_options
def status(host: HostOptions) -> None:
    """Show the status of the agent on a host: version, spool, losses, cost."""
    from soakwatch.sources.pollers.agent.install import shown
    from soakwatch.sources.pollers.agent.install import status as ask

    hello, state = _on_host(host, lambda line: ask(line, host.agent_folder()))
    click.echo(shown(hello))
    for label, key in _STATUS.items():
        value = state.get(key)
        click.echo(f"  {label:<26}{_shown(value)}")


@command.command(epilog="\b\nExample:\n  soakwatch agent remove soak@198.18.0.5")
@_host_options
def remove(host: HostOptions) -> None:
    """Stop the agent on a host and delete it with its spool."""
    from soakwatch.sources.pollers.agent.install import remove as take_away

    for sentence in _on_host(host, lambda line: take_away(line, host.agent_folder())):
        click.echo(sentence)


@command.command(
    epilog="""\b
Example:
  soakwatch agent bundle -o agent.pyz
  scp agent.pyz host: && ssh host python3 agent.pyz run"""
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("soakwatch-agent.pyz"),
    show_default=True,
    help="File to write.",
)
@_WHEEL
def bundle(out: Path, wheel: Path | None) -> None:
    """Build the agent and psutil as one file that runs on Python 3.9 and later."""
    from soakwatch.core.units import show_bytes
    from soakwatch.sources.pollers.agent.agent_bundle import bundle as build
    from soakwatch.sources.pollers.agent.agent_bundle import write_bundle

    psutil = _psutil(wheel)
    data = build(psutil)
    write_bundle(data, out)
    click.echo(f"{out}: {show_bytes(len(data))}, psutil {psutil.version} for {psutil.machine} ({psutil.libc})")


@command.command(
    epilog="""\b
Example:
  soakwatch agent certificate agent-tls --name fw1
\b
On the host: soakwatch-agent run --https 198.18.0.5:8443 --token-file token --cert cert.pem --key key.pem"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", default="soakwatch-agent", show_default=True, help="Name in the certificate.")
def certificate(folder: Path, name: str) -> None:
    """Write a certificate, a key and a token to FOLDER, for an agent that serves HTTPS."""
    from soakwatch.sources.pollers.agent.certificate import write_certificate

    files = write_certificate(folder, name)
    click.echo(f"{files.cert}, {files.key}, {files.token}")
    click.echo("add to the plan:")
    click.echo(f"  - agent: {{url: https://HOST:PORT, token: file:{files.token}, fingerprint: {files.fingerprint}}}")


def _psutil(wheel: Path | None) -> Psutil:
    from soakwatch.sources.pollers.agent.agent_bundle import installed_psutil, psutil_of_wheel

    return installed_psutil() if wheel is None else psutil_of_wheel(wheel)


def _refused(detail: ErrorDetails) -> str:
    """What is wrong with an option; ``detail`` is pydantic's error on the plan key of the same name."""
    key = str(detail["loc"][0]) if detail["loc"] else "host"
    option = f"--{key.replace('_', '-')}" if key in {"key", "password", "known_hosts", "host_key", "jump"} else key
    return f"{option}: {detail['msg'].removeprefix('Value error, ')}"


def _on_host(host: HostOptions, work: Callable[[SshConnection], Coroutine[object, object, T]]) -> T:
    """Run ``work`` over one SSH connection. Raises SoakwatchError for everything that the user can correct."""
    from contextlib import AsyncExitStack

    from pydantic import ValidationError

    from soakwatch.core.errors import SoakwatchError
    from soakwatch.sources.abc import SourceError
    from soakwatch.sources.transport.ssh.ssh_access import Access, hop
    from soakwatch.sources.transport.ssh.ssh_connection import open_line

    try:
        keys = {
            "key": host.key,
            "password": host.password,
            "known_hosts": host.known_hosts,
            "host_key": host.host_key,
        }
        address = hop(host.where)
        assert isinstance(address, dict)
        access = Access.model_validate({**address, **keys, "jump": list(host.jump)})
    except ValidationError as error:
        raise click.UsageError(_refused(error.errors()[0])) from None
    except ValueError:
        raise click.BadParameter(f"invalid host {host.where!r}: write user@host or user@host:port") from None

    async def connect_and_work() -> T:
        async with AsyncExitStack() as stack:
            return await work(await open_line(access, Path(), stack))

    try:
        return asyncio.run(connect_and_work())
    except SourceError as failure:
        raise SoakwatchError(str(failure)) from None
