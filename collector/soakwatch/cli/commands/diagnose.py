"""Diagnose a process: take looks at its memory and compare them, or show what a run took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import runs_option

if TYPE_CHECKING:
    from soakwatch.plan import Plan, TargetPlan


@click.command(
    epilog="""\b
Examples:
  soakwatch diagnose last
  soakwatch diagnose last --json > taken.json
  soakwatch diagnose local --process nginx
  soakwatch diagnose ssh://root@fw1 --process bgpd --again 2 --every 30m
  soakwatch diagnose local --process pid:4711 --debugger --every 1m
  soakwatch diagnose local --process app --pprof http://127.0.0.1:6060
  soakwatch diagnose last --process bgpd --target fw
  soakwatch diagnose looks/20261114T200000Z-nginx
\b
A look reads /proc (mappings by kind, open files, threads) and asks the runtime: a JVM by jcmd, Go by net/http/pprof,
FRR by vtysh, and with --debugger malloc and Python (tracemalloc) by gdb, Node by its inspector. Nothing is written into
a run: what is taken goes into a folder (--out). In Python and Node the first look begins to trace and the last one ends
it, so that lines show from three looks on: --again 2.
Exit codes: 0 looks were taken or shown; 1 none could be had; 2 the command line is wrong."""
)
@click.argument("subject", metavar="RUN|TARGET")
@click.option("--process", metavar="NAME", help="Process to look at: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:FILE.")
@click.option("--target", metavar="NAME", help="Target of RUN, where several watch the process.")
@click.option(
    "--again", type=click.IntRange(0, 20), default=1, show_default=True, help="Further looks after the first."
)
@click.option("--every", default="30s", show_default=True, help="Time between two looks; growth must show in it.")
@click.option(
    "--stop-at-most",
    default="1s",
    show_default=True,
    help="Longest stop of the process that a look may cause; 0s: nothing that stops it.",
)
@click.option(
    "--debugger",
    is_flag=True,
    help="Let gdb call functions of the process (malloc, jemalloc, Python), and Node open its inspector.",
)
@click.option(
    "--pprof", multiple=True, metavar="URL", help="Where a program in Go serves net/http/pprof; may be repeated."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the looks.  [default: looks/TIME-PROCESS]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@runs_option()
def command(
    subject: str,
    process: str | None,
    target: str | None,
    again: int,
    every: str,
    stop_at_most: str,
    *,
    debugger: bool,
    pprof: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    runs_folder: Path,
) -> int:
    """Take looks at a process of TARGET (local, ssh://USER@HOST …) or of a target of RUN, and compare them; without
    --process show the looks that RUN took by itself ('diagnose' in its plan), or those in a folder.
    """
    import asyncio
    import re
    import time

    from soakwatch.cli.display.looks import show_looks
    from soakwatch.core.errors import EXIT_PASS
    from soakwatch.core.redaction import redaction_of
    from soakwatch.diagnose.allowance import Allowance
    from soakwatch.diagnose.reading import reading
    from soakwatch.engine.diagnose_by_hand import ByHand, find_process, looks_in, take_by_hand
    from soakwatch.runs.catalog import new_folder

    address = subject == "local" or "://" in subject
    if process is None:
        if address:
            raise click.UsageError(f"name the process to look at: soakwatch diagnose {subject} --process NAME")
        if looks := looks_in(Path(subject)):
            show_looks([(looks, reading(looks))], as_json=as_json)
            return EXIT_PASS
        return _shown(subject, runs_folder, as_json=as_json)
    every_s, stop_s = _seconds("--every", every), _seconds("--stop-at-most", stop_at_most)
    plan, chosen = _by_address(subject, process) if address else _of_run(subject, runs_folder, target, process)
    found = asyncio.run(find_process(plan, chosen, process))
    folder = out or new_folder(Path("looks"), re.sub(r"[^A-Za-z0-9._-]+", "-", process), time.time_ns())
    how = ByHand(1 + again, every_s, Allowance(stop_s, debugger, pprof))

    def tell(text: str) -> None:
        click.echo(text, err=True)

    looks, course = asyncio.run(take_by_hand(chosen, found, how, folder, redaction_of(plan.text), tell))
    show_looks([(looks, reading(looks, course))], as_json=as_json)
    tell(f"looks and what the programs wrote: {folder}/")
    return EXIT_PASS


def _seconds(option: str, text: str) -> float:
    from soakwatch.core.units import seconds

    try:
        return seconds(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def _by_address(address: str, process: str) -> tuple[Plan, TargetPlan]:
    from soakwatch.plan import quick_plan

    plan = quick_plan([address], [process], "1s", "1h", "diagnose")
    return plan, plan.targets[0]


def _of_run(name: str, runs: Path, target: str | None, process: str) -> tuple[Plan, TargetPlan]:
    """The plan of a run, and the target that watches the process."""
    from soakwatch.core.errors import PlanError
    from soakwatch.plan import plan_from_text
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run

    with RecordView.open(find_run(name, runs)) as view:
        text = view.meta("plan")
    if not text:
        raise PlanError(f"{name} has no plan, since it was imported: name its device, such as ssh://USER@HOST")
    plan = plan_from_text(text, name)
    fitting = [each for each in plan.targets if target in {None, each.name}]
    watching = [each for each in fitting if process in {watched.name for watched in each.processes}] or fitting
    if not watching:
        raise click.UsageError(f"--target: the run has no target {target!r}: {', '.join(t.name for t in plan.targets)}")
    if len(watching) > 1:
        raise click.UsageError(f"name one of the targets with --target: {', '.join(t.name for t in watching)}")
    return plan, watching[0]


def _shown(name: str, runs: Path, *, as_json: bool) -> int:
    from soakwatch.cli.display.looks import show_looks
    from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS
    from soakwatch.diagnose.kept import looks_of
    from soakwatch.plan import plan_from_text
    from soakwatch.record import RecordView
    from soakwatch.report.load import generators
    from soakwatch.report.looks import read_looks
    from soakwatch.runs.catalog import find_run

    with RecordView.open(find_run(name, runs)) as view:
        read = read_looks(view, generators(view))
        of_cpu = [look for look in looks_of(view.artifact_entries(), view.artifact) if look.of_cpu]
        text = view.meta("plan") or ""
    if not read and not of_cpu:
        asked = bool(text) and plan_from_text(text, name).diagnose is not None
        why = "no process that it watched was suspected before its end" if asked else "its plan asked for none"
        remedy = "look now: --process NAME" + ("" if asked else ", or write 'diagnose: {on: suspicion}' into its plan")
        click.echo(f"soakwatch: {name} holds no looks: {why}: {remedy}", err=True)
        return EXIT_FAIL
    show_looks([(each.looks, each.reading) for each in read], as_json=as_json, of_cpu=of_cpu)
    return EXIT_PASS
