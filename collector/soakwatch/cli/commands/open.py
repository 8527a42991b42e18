"""Opens the page of a run, or of a folder that is served, in a browser: by a link that works once."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS

_GOOD_S = 600.0


@click.command(
    epilog="""\b
Examples:
  soakwatch open last
  soakwatch open last --print
  soakwatch open last --view-only --print        for the wall screen, or a colleague
  soakwatch open runs                            the folder that 'soakwatch serve' shows
\b
The link lets one browser in, once, within ten minutes; the browser keeps a cookie.
A link for looking only works until the token changes. Of a run that ended and is not served, the report is opened."""
)
@click.argument("run", metavar="RUN", default="last")
@click.option("--view-only", is_flag=True, help="A link with which nothing can be marked, acknowledged or stopped.")
@click.option("--print", "printed", is_flag=True, help="Print the link instead of opening it.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
def command(run: str, runs_folder: Path, *, view_only: bool, printed: bool) -> None:
    """Open the page of RUN (a folder, a record file, 'last', or a folder of runs that is served)."""
    import time

    from soakwatch.core.errors import SoakwatchError
    from soakwatch.runs.catalog import ADDRESS_FILE, find_run
    from soakwatch.web.access import served_at
    from soakwatch.web.passes import derived, one_time_code

    folder = Path(run) if (Path(run) / ADDRESS_FILE).is_file() else find_run(run, runs_folder)
    folder = folder if folder.is_dir() else folder.parent
    if served := served_at(folder):
        url, token = served
        way = f"view/{derived(token, 'view')}" if view_only else f"enter/{one_time_code(token, time.time() + _GOOD_S)}"
        link = f"{url}/{way}"
    elif (report := folder / "report.html").is_file():
        link = report.absolute().as_uri()
    else:
        raise SoakwatchError(f"{folder} is not served and has no report: soakwatch report {folder} --html FILE")
    if printed or not _opened(link):
        click.echo(link)


def _opened(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False
