"""Add runs to an archive: their verdicts and findings, a summary of each series, and their readings."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch archive add last
  soakwatch archive add runs --archive /srv/archive
  soakwatch archive add runs/*-fw-7.2 --no-readings --jobs 4
\b
A FOLDER stands for every record below it. A run that the archive has is left as
it is; one that was judged or sealed again since is replaced. Records are only
read. If this is killed, what was added stays, and the rest is added the next
time. An archive grows by 2 to 5 bytes a reading, and much less with
--no-readings.
\b
Exit codes: 0 every run is in the archive; 2 one could not be added: it is said.""",
)
@click.argument("names", metavar="RUN…|FOLDER", nargs=-1, required=True)
@click.option(
    "--archive",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="archive",
    show_default=True,
    help="Folder of the archive; it is made if there is none.",
)
@click.option("--no-readings", "bare", is_flag=True, help="Add summaries, findings and verdicts, and no readings.")
@click.option("--again", is_flag=True, help="Add also what the archive has: after it was damaged, or with readings.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    show_default="one a processor",
    help="Processes of this machine that read records.",
)
@runs_option()
def command(
    names: tuple[str, ...],
    folder: Path,
    bare: bool,  # noqa: FBT001 - click's signature
    again: bool,  # noqa: FBT001
    jobs: int | None,
    runs_folder: Path,
) -> int:
    """Add RUN… (folders, record files, or 'last') to an archive."""
    from soakwatch.cli.display.counting import counting
    from soakwatch.core.errors import EXIT_PASS, EXIT_USAGE
    from soakwatch.core.tables import harmless
    from soakwatch.core.workers.local import LocalProcesses, processors
    from soakwatch.runs.judge_again import records_in
    from soakwatch.transfer.archive.adding import add_runs
    from soakwatch_rules.wording.quantities import counted, cut_to

    records = [each.file for each in records_in(names, runs_folder)]
    wanted = min(jobs or processors(), len(records))
    with ExitStack() as stack:
        executor = stack.enter_context(LocalProcesses(wanted)) if wanted > 1 else None
        progress = stack.enter_context(counting(len(records), word="added"))
        added = add_runs(
            folder,
            records,
            executor,
            readings=not bare,
            again=again,
            waits=lambda: click.echo(f"another process adds to {folder}: waiting for its end", err=True),
            one_more=progress.one_more,
        )
    for run in added.failed:
        click.echo(harmless(f"{run.record} is not added: {run.trouble}"), err=True)
    if added.removed:
        click.echo(f"note: removed {counted(added.removed, 'file')} of an archive add that was broken off", err=True)
    fresh = (*added.new, *added.replaced)
    for what, some in (
        ("changed since written or sealed", [run for run in fresh if run.seal == "changed"]),
        ("not sealed", [run for run in fresh if run.seal == "unsealed"]),
        ("not judged", [run for run in fresh if not run.verdict]),
    ):
        if some:
            named = cut_to(", ".join(run.run for run in some[:5]), 300) + (" …" if len(some) > 5 else "")
            click.echo(harmless(f"note: {counted(len(some), 'run')} {what}, and marked so: {named}"), err=True)
    parts = [f"{counted(len(added.new), 'run')} added"]
    parts += [f"{len(added.replaced)} replaced"] if added.replaced else []
    parts += [f"{len(added.same)} there already"] if added.same else []
    parts += [f"{len(added.failed)} not added"] if added.failed else []
    series = f"; {counted(sum(run.series for run in fresh), 'series')}" if fresh else ""
    click.echo(f"{folder}: {', '.join(parts)}{series}")
    return EXIT_USAGE if added.failed else EXIT_PASS
