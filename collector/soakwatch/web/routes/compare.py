"""The page that shows some runs side by side."""

from __future__ import annotations

from shlex import quote

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from soakwatch.core.errors import RecordError
from soakwatch.core.formatting import share_text, subject, utc
from soakwatch.core.units import show_seconds
from soakwatch.web.endpoint import Endpoint, May, Param, Question
from soakwatch.web.rendering import page
from soakwatch.web.run_folder import RunFolder

_MIN_RUNS = 2


def _compare(question: Question) -> Response:
    if not isinstance(question.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: use soakwatch serve to compare the runs of a folder")
    from soakwatch.web.comparison import COMPARISONS, MAX_RUNS  # loads Bokeh: only if plots are requested

    names = list(dict.fromkeys(question.words.get("run", ())))
    if not names:
        return RedirectResponse("/", 303, {"cache-control": "no-store"})
    problem, folders = "", []
    for name in names:
        folder = question.runs.folder(name)
        if folder is None:
            problem = f"No run {name[:100]} in this folder."
            break
        folders.append(folder)
    if not problem and not _MIN_RUNS <= len(names) <= MAX_RUNS:
        problem = f"{_MIN_RUNS} to {MAX_RUNS} runs can be compared, but {len(names)} were selected."
    if problem:
        return page("compare.html.jinja", 400, problem=problem)
    try:
        comparison = COMPARISONS.of(folders)
    except RecordError as error:
        return page("compare.html.jinja", 409, problem=f"{error}.")
    *earlier, newest = sorted(comparison.runs, key=lambda run: run.line.begin_ns or 0)
    return page(
        "compare.html.jinja",
        problem="",
        comparison=comparison,
        newest=quote(newest.line.folder.name),
        earlier=[quote(run.line.folder.name) for run in earlier],
        folder=quote(str(question.runs.path)),
        utc=utc,
        show_seconds=show_seconds,
        share_text=share_text,
        subject=subject,
        shared=Markup(comparison.pieces.shared),  # noqa: S704 - JSON of base64 texts
        pieces=[(piece.element, Markup(piece.text)) for piece in comparison.pieces.parts],  # noqa: S704 - JSON without a "<"
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/compare",
        May.VIEW,
        "Some runs side by side.",
        _compare,
        params=(Param("run", "the name of a run; 2 to 6 of them", many=True),),
        media="text/html",
    ),
)
