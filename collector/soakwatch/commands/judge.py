"""Judges a finished record again, under its own plan, another plan, or single rules."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch judge last
  soakwatch judge runs/20261121T200000Z-fw-7.2 --plan stricter.yaml
  soakwatch judge mailed-record.sqlite --rule memory_growth --json verdict.json
\b
The verdict is computed from the record alone: the same record and rules give the same verdict, bit for bit.
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive, 4 the monitor itself broke."""
)
@click.argument("run", metavar="RUN")
@click.option("--plan", type=click.Path(path_type=Path), help="Take the rules from this plan instead of the run's own.")
@click.option("--rule", "names", multiple=True, help="Judge by this rule only. May be repeated.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write verdict.json here ('-': print it).")
@click.option("--runs", "runs_folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True,
              help="Folder in which RUN is looked up.")  # fmt: skip
def command(run: str, plan: Path | None, names: tuple[str, ...], json_file: Path | None, runs_folder: Path) -> int:
    """Judge RUN (a folder, a record file, or 'last') and print the verdict; the exit code is the verdict's."""
    from rich.console import Console

    from soakwatch.judging import judge_record
    from soakwatch.plan import load_plan
    from soakwatch.record import RecordView
    from soakwatch.registry import rule_class
    from soakwatch.report.json import render_json
    from soakwatch.report.terminal import print_verdict
    from soakwatch.runs import find_run

    for name in names:
        rule_class(name)
    told_plan = load_plan(plan) if plan is not None else None
    with RecordView.open(find_run(run, runs_folder)) as view:
        console = Console()
        with console.status("judging") as shown:
            verdict = judge_record(view, told_plan, names, lambda text: shown.update(f"judging: {text}"))
    if json_file is not None and str(json_file) == "-":
        click.echo(render_json(verdict), nl=False)
        return verdict.exit_code
    if json_file is not None:
        json_file.write_text(render_json(verdict), encoding="utf-8")
    print_verdict(verdict, console)
    return verdict.exit_code
