"""Puts the agent on a host over SSH, asks how it stands, removes it; builds the zipapp."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from soakwatch.sources.pollers.agent.bundle import Psutil
    from soakwatch.sources.transport.ssh.connection import SshLine

T = TypeVar("T")
Decorated = TypeVar("Decorated", bound=Callable[..., object])
_FOLDER = ".soakwatch-agent"


@click.group(
    epilog="""\b
Examples:
  soakwatch agent install soak@198.18.0.5
  soakwatch agent status soak@198.18.0.5
  soakwatch agent remove soak@198.18.0.5
  soakwatch agent bundle -o agent.pyz
  soakwatch agent certificate agent-papers --name fw1
\b
In a plan: sources: [{agent: {host: 198.18.0.5, user: soak, interval: 1s}}]; its keys: soakwatch pollers agent"""
)
def command() -> None:
    """Work with the agent, which looks at its host by itself and keeps what a cut network hides."""


def _access(function: Decorated) -> Decorated:
    """The options of a command that goes to a host."""
    for decorate in reversed(
        (
            click.argument("where", metavar="USER@HOST[:PORT]"),
            click.option("--key", help="Private key: a path or env:NAME (default: the keys of ~/.ssh)."),
            click.option("--password", metavar="REF", help="Password of the account: env:NAME or file:PATH."),
            click.option("--known-hosts", metavar="FILE", help="Trusted host keys (default: ~/.ssh/known_hosts)."),
            click.option("--host-key", metavar="SHA256:…", help="The one host key that is accepted."),
            click.option("--jump", multiple=True, metavar="USER@HOST[:PORT]", help="Jump host. May be repeated."),
            click.option(
                "--dir",
                "folder",
                default=_FOLDER,
                show_default=True,
                help="The agent's folder, from the account's home.",
            ),
        )
    ):
        function = decorate(function)
    return function


_WHEEL = click.option(
    "--wheel", type=click.Path(path_type=Path), help="psutil for hosts of another kind: a wheel file (pip download)."
)


@command.command(
    epilog="""\b
Example:
  soakwatch agent install soak@198.18.0.5 --key ~/.ssh/soak
\b
It runs as a user service of systemd, or in the background where there is none, opens no port, and writes only into
its folder. An agent of another version is replaced with --upgrade only; its spool is kept."""
)
@_access
@_WHEEL
@click.option("--service/--child", default=True, help="Run as a service, or per SSH session.")
@click.option("--upgrade", "--replace", is_flag=True, help="Replace an agent of another version.")
def install(
    where: str,
    key: str | None,
    password: str | None,
    known_hosts: str | None,
    host_key: str | None,
    jump: tuple[str, ...],
    folder: str,
    wheel: Path | None,
    service: bool,  # noqa: FBT001
    upgrade: bool,  # noqa: FBT001
) -> None:
    """Put the agent on a host over SSH and start it."""
    from soakwatch.sources.pollers.agent.install import install as put
    from soakwatch.sources.pollers.agent.install import shown

    psutil = _psutil(wheel)
    done = _on_host(
        where,
        key,
        password,
        known_hosts,
        host_key,
        jump,
        lambda line: put(line, _plain(folder), psutil, service=service, upgrade=upgrade),
    )
    for sentence in done.actions:
        click.echo(sentence)
    click.echo(f"it greets: {shown(done.hello)}")


@command.command(epilog="\b\nExample:\n  soakwatch agent status soak@198.18.0.5")
@_access
def status(
    where: str,
    key: str | None,
    password: str | None,
    known_hosts: str | None,
    host_key: str | None,
    jump: tuple[str, ...],
    folder: str,
) -> None:
    """Show how the agent on a host stands: version, spool, losses, cost."""
    from soakwatch.sources.pollers.agent.install import shown
    from soakwatch.sources.pollers.agent.install import status as ask

    hello, standing = _on_host(
        where, key, password, known_hosts, host_key, jump, lambda line: ask(line, _plain(folder))
    )
    click.echo(shown(hello))
    for name in (
        "up_s",
        "run",
        "served",
        "interval_s",
        "first",
        "last",
        "acked",
        "lost",
        "bytes",
        "trouble",
        "skipped",
        "cpu_s",
        "recorder_every_s",
        "recorder_cpu_s",
    ):
        value = standing.get(name)
        click.echo(f"  {name:<18}{'-' if value is None else value}")


@command.command(epilog="\b\nExample:\n  soakwatch agent remove soak@198.18.0.5")
@_access
def remove(
    where: str,
    key: str | None,
    password: str | None,
    known_hosts: str | None,
    host_key: str | None,
    jump: tuple[str, ...],
    folder: str,
) -> None:
    """End the agent on a host and delete it, with its spool."""
    from soakwatch.sources.pollers.agent.install import remove as take_away

    for sentence in _on_host(
        where, key, password, known_hosts, host_key, jump, lambda line: take_away(line, _plain(folder))
    ):
        click.echo(sentence)


@command.command(
    epilog="""\b
Example:
  soakwatch agent bundle -o agent.pyz
  scp agent.pyz host: && ssh host python3 agent.pyz run"""
)
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("soakwatch-agent.pyz"), show_default=True)
@_WHEEL
def bundle(out: Path, wheel: Path | None) -> None:
    """Build the agent as one file that any Python from 3.9 on runs, with psutil inside."""
    from soakwatch.sources.pollers.agent.bundle import bundle as build
    from soakwatch.sources.pollers.agent.bundle import write_bundle

    psutil = _psutil(wheel)
    data = build(psutil)
    write_bundle(data, out)
    size = len(data) / 1024
    click.echo(f"{out}: {size:.0f} KiB, psutil {psutil.version} for {psutil.machine} ({psutil.libc})")


@command.command(
    epilog="""\b
Example:
  soakwatch agent certificate agent-papers --name fw1
\b
On the host: soakwatch-agent run --https 198.18.0.5:8443 --token-file token --cert cert.pem --key key.pem"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", default="soakwatch-agent", show_default=True, help="Name in the certificate.")
def certificate(folder: Path, name: str) -> None:
    """Write a certificate, its key and a token for an agent that serves HTTPS into FOLDER."""
    from soakwatch.sources.pollers.agent.certificate import write_certificate

    paper = write_certificate(folder, name)
    click.echo(f"{paper.cert}, {paper.key}, {paper.token}")
    click.echo("in the plan:")
    click.echo(f"  - agent: {{url: https://HOST:PORT, token: file:{paper.token}, fingerprint: {paper.fingerprint}}}")


def _psutil(wheel: Path | None) -> Psutil:
    from soakwatch.sources.pollers.agent.bundle import installed_psutil, psutil_of_wheel

    return installed_psutil() if wheel is None else psutil_of_wheel(wheel)


def _plain(folder: str) -> str:
    plain = folder.removeprefix("~/")
    if not plain or plain.startswith(("~", "-")) or not plain.isprintable():
        raise click.BadParameter(f"{folder!r} is no folder of the account", param_hint="--dir")
    return plain


def _refused(detail: ErrorDetails) -> str:
    """What is wrong with an option, in the words of the plan's key that it stands for."""
    key = str(detail["loc"][0]) if detail["loc"] else "host"
    option = f"--{key.replace('_', '-')}" if key in {"key", "password", "known_hosts", "host_key", "jump"} else key
    return f"{option}: {detail['msg'].removeprefix('Value error, ')}"


def _on_host(
    where: str,
    key: str | None,
    password: str | None,
    known_hosts: str | None,
    host_key: str | None,
    jump: tuple[str, ...],
    work: Callable[[SshLine], Coroutine[object, object, T]],
) -> T:
    """Does something over one SSH connection. Raises SoakwatchError for all that the user can mend."""
    from contextlib import AsyncExitStack

    from pydantic import ValidationError

    from soakwatch.core.errors import SoakwatchError
    from soakwatch.sources.abc import SourceError
    from soakwatch.sources.transport.ssh.access import Access, hop
    from soakwatch.sources.transport.ssh.connection import open_line

    try:
        keys = {"key": key, "password": password, "known_hosts": known_hosts, "host_key": host_key}
        told = hop(where)
        assert isinstance(told, dict)
        access = Access.model_validate({**told, **keys, "jump": list(jump)})
    except ValidationError as error:
        raise click.UsageError(_refused(error.errors()[0])) from None
    except ValueError:
        raise click.BadParameter(f"{where!r} is no host: write user@host or user@host:port") from None

    async def all_of_it() -> T:
        async with AsyncExitStack() as stack:
            return await work(await open_line(access, Path(), stack))

    try:
        return asyncio.run(all_of_it())
    except SourceError as failure:
        raise SoakwatchError(str(failure)) from None
