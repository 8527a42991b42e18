"""Serve a folder of runs: pages to find, compare and delete them, the HTTP API, and with --plans a queue of plans."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.runs.catalog import DEFAULT_RUNS

if TYPE_CHECKING:
    from soakwatch.lab.dispatcher import Dispatcher
    from soakwatch.lab.lab import Lab
    from soakwatch.web.run_folder import RunFolder

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
  soakwatch serve /srv/runs --plans /srv/plans
  soakwatch serve --listen 192.0.2.7:8443 --cert web.pem --key web.key --token env:SOAK_TOKEN
  curl -H "Authorization: Bearer $(cat runs/web.token)" -H 'Content-Type: application/json'
       -d '{"kind": "failover", "expect": {"reboot": 1}, "within": "5m"}' http://127.0.0.1:8720/api/runs/last/events
\b
A running soak serves its own page (its first line shows the address); this command serves finished runs as well.
The token is kept in DIR/web.token, which only you can read, unless --token names another. More people: soakwatch token.
With --plans the server starts, queues, schedules and stops the plans of a folder (soakwatch submit, soakwatch queue,
the page Queue). Runs are processes of their own, which go on when the server ends or is killed.
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
@click.option(
    "--plans", type=click.Path(path_type=Path), metavar="DIR", help="Folder of plans that users may run and schedule."
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Runs on different testbeds that may go on at once.",
)
@click.option(
    "--trust-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a proxy that logs users in and names them in headers. May be repeated.",
)
@click.option(
    "--user-header", default="X-Remote-User", show_default=True, metavar="NAME", help="Header of the proxy: the user."
)
@click.option(
    "--role-header",
    default="X-Remote-Role",
    show_default=True,
    metavar="NAME",
    help="Header of the proxy: viewer, operator or admin.",
)
def command(
    folder: Path,
    listen: str,
    token: str | None,
    cert: str | None,
    key: str | None,
    names: tuple[str, ...],
    plans: Path | None,
    at_once: int,
    proxies: tuple[str, ...],
    user_header: str,
    role_header: str,
) -> None:
    """Serve the pages and the API of the runs in DIR (default: runs) until Ctrl-C."""
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.core.private_files import make_private_folder
    from soakwatch.core.secrets import reference
    from soakwatch.plan.web import PORT, WebPlan, address
    from soakwatch.web.access import one_time_code, token_for, write_address
    from soakwatch.web.listener import remove_address
    from soakwatch.web.named_tokens import NamedTokens
    from soakwatch.web.server import serve
    from soakwatch.web.trusted_proxy import trusted_proxy

    if plans is not None and not folder.exists():
        make_private_folder(folder)  # a lab server has its first run still to come
    if not folder.is_dir():
        if str(folder) == "token":
            raise click.UsageError(
                "people get tokens by a command of its own: soakwatch token add NAME --role operator"
            )
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
    people, proxy = NamedTokens(folder), trusted_proxy(proxies, user_header, role_header) if proxies else None
    people.all()  # a damaged file is told now, not to the first who asks
    hidden = [] if token is None else [token.removeprefix("env:")]
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        _lab(folder, plans, at_once, hidden, lambda: bool(proxies or people.all())) as runs,
        serve(plan, shown, runs, people=people, proxy=proxy) as served,
    ):
        try:
            write_address(folder, served.url)  # before it is said: who reads that may ask at once
            what = "" if plans is None else f", and runs plans of {plans}"
            click.echo(f"serving {folder} at {served.url}" + (f" (token in {shown.file})" if shown.file else "") + what)
            if sys.stdout.isatty():
                code = one_time_code(shown, time.time() + _LINK_VALID_S)
                click.echo(f"page by a one-time link (for a new one: soakwatch open {folder}):")
                click.echo(f"{served.url}/enter/{code}")
            while served.alive and not ended.wait(1.0):
                pass
        except OSError as error:
            raise SoakwatchError(f"the server's address cannot be written to {folder}: {error.strerror}") from None
        finally:
            remove_address(folder)
    if not ended.is_set():
        raise SoakwatchError("the server ended unexpectedly: start it again")
    click.echo("ended")


@contextmanager
def _lab(
    folder: Path, plans: Path | None, at_once: int, hidden: list[str], audited: Callable[[], bool]
) -> Iterator[RunFolder]:
    """The folder as it is served: with a queue if there are plans, with the audit alone once people have roles."""
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.lab.dispatcher import Dispatcher
    from soakwatch.lab.lab import Lab
    from soakwatch.lab.lab_model import JobState
    from soakwatch.lab.plans_folder import PlansFolder
    from soakwatch.web.run_folder import RunFolder

    opened: list[Lab] = []
    refused: list[str] = []
    with ExitStack() as stack:

        def opens() -> tuple[Lab, Dispatcher]:
            lab = Lab(folder, None if plans is None else PlansFolder(plans))
            stack.callback(lab.close)
            opened.append(lab)
            dispatcher = Dispatcher(lab, at_once, hidden)
            stack.enter_context(dispatcher.working())
            return lab, dispatcher

        def when_people_have_roles() -> tuple[Lab, Dispatcher] | None:
            if refused or not audited():
                return None
            try:
                return opens()
            except SoakwatchError as error:
                refused.append(str(error))
                click.echo(f"soakwatch: warning: nothing is kept of who does what: {error}", err=True)
                return None

        if plans is not None or audited():
            yield RunFolder(folder, opens())
        else:
            yield RunFolder(folder, opens=when_people_have_roles)
        for lab in opened:
            if going := len(lab.store.jobs(JobState.RUNNING)):
                click.echo(f"{going} {'runs go' if going > 1 else 'run goes'} on: the next server takes the verdicts")
