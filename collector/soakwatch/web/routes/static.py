"""Scripts and styles of the pages."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from pathlib import PurePath

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.web.endpoint import Endpoint, EndpointRequest, May

OF_THE_REPORT = frozenset({"shade.js", "report.js", "theme.js", "figure.js", "plots.js"})
"""Scripts that a report has inline."""
OF_PLOTS = {
    "uplot.js": ("uplot/uPlot.iife.min.js",),
    "plots.css": ("uplot/uPlot.min.css", "plots.css"),
    "tables.css": ("tables.css",),
}
"""Files for plots and tables, and the files of the report that each consists of."""
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@functools.cache
def _content(name: str) -> tuple[bytes, str] | None:
    """The content and ETag of a file; None for an unknown one."""
    if name in OF_PLOTS:
        content = b"".join(resources.files("soakwatch.report").joinpath(part).read_bytes() for part in OF_PLOTS[name])
    elif name in OF_THE_REPORT:
        content = resources.files("soakwatch.report").joinpath(name).read_bytes()
    else:
        files = {file.name: file for file in resources.files("soakwatch.web.static").iterdir() if file.is_file()}
        if name not in files or PurePath(name).suffix not in _KINDS:
            return None
        content = files[name].read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:24]}"'


def _static(request: EndpointRequest) -> Response:
    name = request.path["name"]
    file = _content(name) if len(name) < 60 else None
    if file is None:
        raise HTTPException(404, "no such file")
    content, tag = file
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.known == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_KINDS[PurePath(name).suffix], headers=headers)


ENDPOINTS = (Endpoint("GET", "/static/{name}", May.NOTHING, "A file of the pages.", _static, media="text/javascript"),)
