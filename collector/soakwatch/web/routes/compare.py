"""The page that compares runs."""

from __future__ import annotations

from shlex import quote

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.formatting import share_text, subject, utc
from soakwatch.core.units import show_seconds
from soakwatch.runs.compare.targets import CompareOptions, match_of
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.rendering import page
from soakwatch.web.run_folder import RunFolder

_MIN_RUNS = 2


def _compare(request: EndpointRequest) -> Response:
    if not isinstance(request.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: use soakwatch serve to compare the runs of a folder")
    from soakwatch.runs.compare.compared_runs import MAX_RUNS
    from soakwatch.web.comparison import COMPARISONS

    names = list(dict.fromkeys(request.words.get("run", ())))
    if not names:
        return RedirectResponse("/", 303, {"cache-control": "no-store"})
    against = next(iter(request.words.get("against", ())), "") or names[0]
    problem, folders = "", []
    if against not in names:
        problem = f"No run {against[:100]} among those that were selected."
    names.sort(key=lambda name: name != against)
    for name in names:
        folder = request.runs.folder(name)
        if folder is None:
            problem = f"No run {name[:100]} in this folder."
            break
        folders.append(folder)
    if not problem and not _MIN_RUNS <= len(names) <= MAX_RUNS:
        problem = f"Select {_MIN_RUNS} to {MAX_RUNS} runs ({len(names)} selected)."
    if problem:
        return page("compare.html.jinja", 400, problem=problem)
    try:
        comparison = COMPARISONS.of(folders, _options(request))
    except RecordError as error:
        return page("compare.html.jinja", 409, problem=f"{error}.")
    except SoakwatchError as error:
        return page("compare.html.jinja", 400, problem=f"{error}.")
    data = comparison.data
    *earlier, newest = sorted(data.runs, key=lambda run: run.line.begin_ns or 0)
    return page(
        "compare.html.jinja",
        problem="",
        comparison=comparison,
        data=data,
        by_phase=_by_phase(request),
        reference_targets=list(data.targets[0].shown),
        newest=quote(newest.line.folder.name),
        earlier=[quote(run.line.folder.name) for run in earlier],
        folder=quote(str(request.runs.path)),
        utc=utc,
        show_seconds=show_seconds,
        share_text=share_text,
        subject=subject,
        shared=Markup(comparison.pieces.shared),  # noqa: S704 - JSON of base64 texts
        pieces=[(piece.element, Markup(piece.text)) for piece in comparison.pieces.parts],  # noqa: S704 - JSON without a "<"
    )


def _by_phase(request: EndpointRequest) -> bool:
    return next(iter(request.words.get("align", ())), "phase") != "start"


def _options(request: EndpointRequest) -> CompareOptions:
    """Raises SoakwatchError for an invalid pair of targets."""
    targets: dict[str, dict[str, str]] = {}
    for text in request.words.get("target", ()):
        pair = match_of(text)
        if pair is not None:
            run, own, theirs = pair
            targets.setdefault(run, {})[own] = theirs
    return CompareOptions(_by_phase(request), targets)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/compare",
        May.VIEW,
        "Some runs side by side.",
        _compare,
        params=(
            Param("run", "the name of a run; 2 to 6 of them", many=True),
            Param("against", "the run that the others are compared with; without it the first"),
            Param("align", "phase lays the same phases over one another, start the begins of the runs"),
            Param("target", "RUN:ITS_TARGET=TARGET: which target stands for which of the reference", many=True),
        ),
        media="text/html",
    ),
)
