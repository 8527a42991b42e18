"""Open the page of a run, or of a served folder of runs, in a browser by a one-time link."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option

_LINK_VALID_S = 600.0


@click.command(
    epilog="""\b
Examples:
  soakwatch open last
  soakwatch open last --print
  soakwatch open last --view-only --print        for a wall screen or a colleague
  soakwatch open runs                            the folder that 'soakwatch serve' serves
\b
The link admits one browser, once, within ten minutes; the browser keeps a cookie.
A view-only link works until the token changes. If the run has ended and is not served, its report is opened."""
)
@click.argument("run", metavar="RUN", default="last")
@click.option("--view-only", is_flag=True, help="Create a link that cannot mark, acknowledge or stop anything.")
@click.option("--print", "printed", is_flag=True, help="Print the link instead of opening it.")
@runs_option()
def command(run: str, runs_folder: Path, *, view_only: bool, printed: bool) -> None:
    """Open the page of RUN (a folder, a record file, 'last', or a served folder of runs)."""
    import time

    from soakwatch.core.errors import SoakwatchError
    from soakwatch.runs.catalog import ADDRESS_FILE, find_run
    from soakwatch.web.access import served_at
    from soakwatch.web.passes import derived, one_time_code

    folder = Path(run) if (Path(run) / ADDRESS_FILE).is_file() else find_run(run, runs_folder)
    folder = folder if folder.is_dir() else folder.parent
    if served := served_at(folder):
        url, token = served
        code = one_time_code(token, time.time() + _LINK_VALID_S)
        link = f"{url}/view/{derived(token, 'view')}" if view_only else f"{url}/enter/{code}"
    elif (report := folder / "report.html").is_file():
        link = report.absolute().as_uri()
    else:
        raise SoakwatchError(
            f"{folder} is not served and has no report: write one with soakwatch report {folder} --html FILE"
        )
    if printed or not _opened(link):
        click.echo(link)


def _opened(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False
