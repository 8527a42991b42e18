"""Serve a folder of runs: a page to filter, compare and delete runs, the page of each run, and the HTTP API."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS

_LINK_VALID_S = 3600.0


def _no_port(_context: click.Context, _parameter: click.Parameter, port: str | None) -> None:
    """Reject ``--port``, which other servers have, and name ``--listen``."""
    if port is not None:
        raise click.UsageError(f"--port is part of --listen: write --listen 127.0.0.1:{port}")


@click.command(
    epilog="""\b
Examples:
  soakwatch serve
  soakwatch serve /srv/runs --listen 127.0.0.1:8800
  soakwatch serve --listen 192.0.2.7:8443 --cert web.pem --key web.key --token env:SOAK_TOKEN
  curl -H "Authorization: Bearer $(cat runs/web.token)" -H 'Content-Type: application/json'
       -d '{"kind": "failover", "expect": {"reboot": 1}, "within": "5m"}' http://127.0.0.1:8720/api/runs/last/events
\b
A running soak serves its own page (its first line shows the address); this command serves finished runs as well.
The token is kept in DIR/web.token, which only you can read, unless --token names another.
Addresses other than loopback require TLS. Ctrl-C ends the server."""
)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
@click.option("--listen", default="", metavar="HOST:PORT", show_default="127.0.0.1:8720", help="Address to listen on.")
@click.option("--port", hidden=True, expose_value=False, callback=_no_port)
@click.option("--token", metavar="REF", show_default="a new one in DIR/web.token", help="Token: env:NAME or file:PATH.")
@click.option("--cert", metavar="FILE", help="Certificate (PEM); serves HTTPS.")
@click.option("--key", metavar="FILE", help="Key of the certificate (PEM).")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    show_default="its address, localhost, and the names of the certificate",
    help="Further name that browsers ask for, such as that of a proxy. May be repeated.",
)
def command(
    folder: Path, listen: str, token: str | None, cert: str | None, key: str | None, names: tuple[str, ...]
) -> None:
    """Serve the pages and the API of the runs in DIR (default: runs) until Ctrl-C."""
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.core.secrets import reference
    from soakwatch.plan.web import PORT, WebPlan, address
    from soakwatch.web.access import one_time_code, token_for, write_address
    from soakwatch.web.listener import remove_address
    from soakwatch.web.run_folder import RunFolder
    from soakwatch.web.server import serve

    if not folder.is_dir():
        raise SoakwatchError(f"{folder} is not a folder: name a folder of runs, or start a run first")
    try:
        plan = WebPlan(
            listen=listen or f"127.0.0.1:{PORT}",
            token=None if token is None else reference(token),
            cert=cert,
            key=key,
            names=names,
        )
    except ValueError:
        raise click.BadParameter(
            "a token must not be given in clear text: write env:NAME or file:PATH", param_hint="--token"
        ) from None
    address(plan)
    shown = token_for(plan, folder)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with serve(plan, shown, RunFolder(folder)) as served:
        click.echo(f"serving {folder} at {served.url}" + (f" (token in {shown.file})" if shown.file else ""))
        if sys.stdout.isatty():
            code = one_time_code(shown, time.time() + _LINK_VALID_S)
            click.echo(f"page by a one-time link (for a new one: soakwatch open {folder}):\n{served.url}/enter/{code}")
        try:
            write_address(folder, served.url)
            while served.alive and not ended.wait(1.0):
                pass
        except OSError as error:
            raise SoakwatchError(f"the server's address cannot be written to {folder}: {error.strerror}") from None
        finally:
            remove_address(folder)
    if not ended.is_set():
        raise SoakwatchError("the server ended unexpectedly: start it again")
    click.echo("ended")
