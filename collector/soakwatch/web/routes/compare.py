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
from soakwatch.web.folder import Folder
from soakwatch.web.rendering import page

_LEAST = 2


def _compare(question: Question) -> Response:
    if not isinstance(question.runs, Folder):
        raise HTTPException(404, "this server shows one run only: soakwatch serve compares the runs of a folder")
    from soakwatch.web.comparison import COMPARISONS, MOST  # Bokeh: not for a server that is not asked for plots

    names = list(dict.fromkeys(question.words.get("run", ())))
    if not names:
        return RedirectResponse("/", 303, {"cache-control": "no-store"})
    problem, folders = "", []
    for name in names:
        folder = question.runs.folder(name)
        if folder is None:
            problem = f"{name[:100]} is no run here."
            break
        folders.append(folder)
    if not problem and not _LEAST <= len(names) <= MOST:
        problem = f"{_LEAST} to {MOST} runs can be compared, and {len(names)} were named."
    if problem:
        return page("compare.html.jinja", 400, problem=problem)
    try:
        found = COMPARISONS.of(folders)
    except RecordError as error:
        return page("compare.html.jinja", 409, problem=f"{error}.")
    *earlier, newest = sorted(found.runs, key=lambda run: run.line.begin_ns or 0)
    return page(
        "compare.html.jinja",
        problem="",
        found=found,
        newest=quote(newest.line.folder.name),
        earlier=[quote(run.line.folder.name) for run in earlier],
        place=quote(str(question.runs.place)),
        utc=utc,
        show_seconds=show_seconds,
        share_text=share_text,
        subject=subject,
        shared=Markup(found.pieces.shared),  # noqa: S704 - JSON of base64 texts
        pieces=[(one.element, Markup(one.text)) for one in found.pieces.parts],  # noqa: S704 - JSON without a "<"
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
