"""Ask an archive: which processes grew in a release, what failed where, slopes, drops by night; or by SQL."""

from __future__ import annotations

from pathlib import Path

import click

_FORMATS = ("table", "csv", "json")
_TABLES = "tables"


@click.command(
    epilog="""\b
Examples:
  soakwatch query grew --release 7.2 --not-in 7.1
  soakwatch query failed
  soakwatch query slope --metric process.memory.usage --process 'bgp*'
  soakwatch query drops --night 2026-11-01..2026-11-30
  soakwatch query levels --metric load.latency --release '7.2*' --format csv
  soakwatch query --sql "SELECT device, max(hours) FROM runs GROUP BY device"
  soakwatch query tables
\b
Without QUESTION the questions are listed. Every option narrows every
question, and --sql. What is not known is never counted as zero: it is told on
standard error. Values in a table have their units; CSV and JSON have bare
numbers, and the column unit.
\b
--sql takes one SELECT of DuckDB over the tables of the archive (soakwatch
query tables). It can read no other file, write none, and change no setting.
\b
Exit codes: 0 answered, also by no row; 2 it cannot be asked: the reason is said.""",
)
@click.argument("question", required=False, metavar="[QUESTION]")
@click.option("--sql", metavar="SELECT", help="A question of your own, instead.")
@click.option("--show-sql", "shown", is_flag=True, help="Print the SQL of QUESTION, to change it for --sql.")
@click.option(
    "--archive",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="archive",
    show_default=True,
    help="Folder of the archive.",
)
@click.option(
    "--release", "releases", multiple=True, metavar="NAME", help="Release; 7.2* is any of 7.2. May be repeated."
)
@click.option(
    "--not-in", "others", multiple=True, metavar="NAME", help="Of grew: release that it is not to have grown in."
)
@click.option("--device", "devices", multiple=True, metavar="GLOB", help="Device. May be repeated.")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="Role: dut, generator or monitor. May be repeated."
)
@click.option("--metric", "metrics", multiple=True, metavar="GLOB", help="Metric. May be repeated.")
@click.option("--process", "processes", multiple=True, metavar="GLOB", help="Process. May be repeated.")
@click.option("--night", "night", default="", metavar="DAY[..DAY]", help="Day on which the run began, or from..to.")
@click.option("--phase", "phase", metavar="NAME", help="Phase of the run.  [the whole run]")
@click.option(
    "--format", "format_", type=click.Choice(_FORMATS), default="table", show_default=True, help="How to print."
)
@click.option(
    "--limit", type=click.IntRange(1), default=200, show_default=True, help="Rows of a table; CSV and JSON have all."
)
def command(
    question: str | None,
    sql: str | None,
    shown: bool,  # noqa: FBT001 - click's signature
    folder: Path,
    releases: tuple[str, ...],
    others: tuple[str, ...],
    devices: tuple[str, ...],
    roles: tuple[str, ...],
    metrics: tuple[str, ...],
    processes: tuple[str, ...],
    night: str,
    phase: str | None,
    format_: str,
    limit: int,
) -> None:
    """Ask an archive of runs."""
    from soakwatch.cli.archive_answer import show_answer
    from soakwatch.core.suggest import hint
    from soakwatch.core.tables import show_table
    from soakwatch.transfer.archive._database import Filters
    from soakwatch.transfer.archive.questions import Asked, answer, answer_sql, nights, questions, table_lines

    known = questions()
    if question is not None and question not in {*known, _TABLES}:
        raise click.UsageError(f"no question is called {question!r}{hint(question, [*known, _TABLES])}")
    if sql is not None and question is not None:
        raise click.UsageError(f"--sql is a question of its own: leave {question} out")
    if question == _TABLES:
        show_table(("table", "column", "type", "what it holds"), table_lines())
        return
    if sql is None and question is None:
        show_table(("question", "what is answered"), [(name, each.title) for name, each in known.items()])
        return
    if shown:
        if question is None:
            raise click.UsageError("--show-sql prints that of a QUESTION: name one")
        click.echo(known[question].sql, nl=False)
        return
    filters = Filters((), devices, roles, metrics, processes, nights(night) if night else ("", ""), phase)
    asked = Asked(releases, others, filters)
    opened = answer_sql(folder, sql, asked) if sql is not None else answer(folder, known[question or ""], asked)
    with opened as found:
        show_answer(found, format_, limit)
