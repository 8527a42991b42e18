"""``soakwatch drill PLAN``: announces the faults, asks, runs the plan with them, and shows which rules saw them."""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from soakwatch.cli.foreground import run_to_the_end
from soakwatch.cli.outlet import lasting_terminal
from soakwatch.cli.recorded_drill import Output
from soakwatch.core.clock import SteadyClock
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.formatting import iso
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_seconds
from soakwatch.engine.drill.faults import LiveFault, faults_of
from soakwatch.engine.drill.live import SPARE_S, Detection, InjectedFault, LiveDrill, Pace, detections_of
from soakwatch.engine.hooks.capturing import host_of
from soakwatch.engine.start import begin
from soakwatch.plan import Plan, TargetPlan, load_plan
from soakwatch.record import RecordView
from soakwatch.runs.catalog import new_folder
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch_rules.wording.quantities import cut_to

_JOIN_S = 60.0
HEAD = ("fault", "target", "made at", "seen by", "after", "while it ran", "what it said")


def drill_plan(
    file: Path, kinds: Sequence[str], lasts_s: float, rest_s: float, runs_folder: Path, output: Output, *, sure: bool
) -> int:
    """List the faults, ask, make them, and show which were seen. Raises PlanError if the plan allows none."""
    plan = load_plan(file)
    faults = _faults(plan, file, kinds, lasts_s)
    pace = Pace(rest_s)
    total_s = pace.total_s(faults)
    _announce(plan, faults, total_s)
    _ask(sure=sure)
    bare = plan.bare(total_s + SPARE_S)
    clock = SteadyClock()
    folder = new_folder(runs_folder, bare.name, clock.now_ns())
    course, record = begin(bare, folder, clock, ["soakwatch", *sys.argv[1:]], stop_on_fail=False)
    drill = LiveDrill(bare, folder, faults, pace, lambda text: click.echo(harmless(f"drill: {text}"), err=True))
    thread = threading.Thread(target=drill.run, name="drill", daemon=True)
    thread.start()
    try:
        with lasting_terminal() as terminal:
            run_to_the_end(terminal, course, record, clock, verdict_shown=False, web=None)
    finally:
        drill.over.set()
        thread.join(_JOIN_S)
    if drill.trouble:
        raise SoakwatchError(f"the drill ended early: {drill.trouble}; what it made ends by itself on the device")
    with RecordView.open(folder) as view:
        findings = view.findings(live=False)
    results = [(made, detections_of(made, findings, drill.noticed, rest_s)) for made in drill.made]
    _show(bare.name, faults, results, output)
    return 0


def _faults(plan: Plan, file: Path, kinds: Sequence[str], lasts_s: float) -> tuple[LiveFault, ...]:
    allowed = [target for target in plan.targets if target.drill is not None]
    if not allowed:
        raise PlanError(
            f"{file}: no target has the key drill, so nothing may be broken: name what may be under targets: NAME: "
            "drill: (docs/drill.md)"
        )
    token = secrets.token_hex(6)
    faults: list[LiveFault] = []
    for target in allowed:
        if host_of(target, Path()) is None:
            raise PlanError(
                f"{file}: {target.name} has the key drill, but neither a source ssh nor local to reach it by"
            )
        assert target.drill is not None
        faults += faults_of(target.name, target.drill, lasts_s, token)
    chosen = tuple(fault for fault in faults if not kinds or fault.kind in kinds)
    if not chosen:
        what = f"none of {', '.join(kinds)}" if kinds else "nothing"
        raise PlanError(
            f"{file}: the key drill allows {what}: name processes, interfaces, cpu, memory, filesystem or log"
        )
    return chosen


def _announce(plan: Plan, faults: Sequence[LiveFault], total_s: float) -> None:
    places = {target.name: _place(target) for target in plan.targets}
    click.echo(f"This takes about {show_seconds(total_s)} and does the following, one after the other:")
    for fault in faults:
        click.echo(harmless(f"  {fault.target} ({places[fault.target]}): {fault.words}"))
    click.echo("Each ends by itself on the device, also if this command is killed.")


def _place(target: TargetPlan) -> str:
    """Where the commands of a target run, consistent with ``host_of``."""
    hosts = [source.config.host for source in target.sources if isinstance(source.config, Access)]
    return f"over SSH on {hosts[0]}" if hosts else "on this machine"


def _ask(*, sure: bool) -> None:
    """Raise UsageError without a terminal, Abort if the answer is no."""
    if sure:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to agree: add --yes to do it unasked")
    click.confirm("Go ahead?", abort=True)


def _show(
    name: str,
    faults: Sequence[LiveFault],
    results: Sequence[tuple[InjectedFault, tuple[Detection, ...]]],
    output: Output,
) -> None:
    document = {"drill": 1, "run": name, "faults": [_document(made, seen) for made, seen in results]}
    output.write(output.json, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    rows = [row for made, seen in results for row in _rows(made, seen)]
    if output.markdown is not None:
        cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (HEAD, *rows)]
        lines = [f"| {line} |" for line in cells]
        output.write(output.markdown, "\n".join([lines[0], f"|{'---|' * len(HEAD)}", *lines[1:]]) + "\n")
    if output.printed:
        return
    show_table(HEAD, rows)
    missed = [made.fault.name for made, seen in results if not seen and not made.trouble]
    if missed:
        click.echo(harmless(f"missed: {', '.join(missed)}"))
    if len(results) < len(faults):
        click.echo(f"{len(faults) - len(results)} of {len(faults)} faults were not made: the drill was ended early")


def _rows(made: InjectedFault, seen: Sequence[Detection]) -> list[tuple[str, ...]]:
    head = (made.fault.name, made.fault.target, iso(made.begin_ns))
    if made.trouble:
        return [(*head, "not made", "–", "–", made.trouble)]
    if not seen:
        return [(*head, "missed", "–", "–", "–")]
    return [
        (
            *head,
            f"{each.rule} ({each.outcome})",
            show_seconds(round(each.after_s, 1)),
            "no, at the end" if each.live_after_s is None else f"after {show_seconds(round(each.live_after_s))}",
            cut_to(each.reason, 120),
        )
        for each in seen
    ]


def _document(made: InjectedFault, seen: Sequence[Detection]) -> dict[str, object]:
    return {
        "fault": made.fault.kind,
        "target": made.fault.target,
        "object": made.fault.object,
        "what": made.fault.words,
        "begin": iso(made.begin_ns),
        "end": iso(made.end_ns),
        "trouble": made.trouble or None,
        "seen": [
            {
                "rule": each.rule,
                "outcome": each.outcome.value,
                "after_s": each.after_s,
                "live_after_s": each.live_after_s,
                "reason": each.reason,
            }
            for each in seen
        ],
    }
