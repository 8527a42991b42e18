"""The HTML report: one file that opens offline, with the verdict on top and the evidence below."""

from __future__ import annotations

import importlib
import pkgutil
import re
from importlib import resources
from typing import cast

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from soakwatch.core.formatting import (
    SYMBOLS,
    extent,
    iso,
    isolated,
    number,
    printable,
    quantity,
    share_text,
    span_text,
    subject,
    utc,
    zoom_of,
)
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report import sections
from soakwatch.report.page import Section, open_page
from soakwatch.report.plots import javascript

_COMMENT = re.compile(r"^[ ]*/\*.*?\*/\n", re.DOTALL | re.MULTILINE)


def render_html(source: ReportSource, verdict: Verdict, earlier: ReportSource | None = None) -> str:
    """The report as one HTML document. Equal records and verdicts give equal bytes.

    Nothing is fetched: styles, scripts and data are inside, and the document's own security policy forbids the rest.
    Each plot is a document of its own behind the text, so that a browser shows the text at once and draws what is
    looked at. ``earlier`` is a run whose set-up this one's is held against.
    """
    page = open_page(source, verdict, earlier)
    environment = _environment()
    # All facts before any text: what stands above may link to what is placed below.
    told = [(name, section, section.facts(page)) for name, section in all_sections()]
    parts = [
        {"name": name, "title": section.TITLE, "body": Markup(environment.from_string(section.TEMPLATE).render(facts))}  # noqa: S704 - autoescaped
        for name, section, facts in told
        if facts is not None
    ]
    pieces = page.drawing.pieces()
    drawn = bool(pieces.parts)
    return environment.get_template("page.html.jinja").render(
        verdict=verdict,
        window=verdict.window,
        parts=parts,
        style=Markup(_text("style.css")),  # noqa: S704 - our own files, and Bokeh's
        script=Markup(_script("shade.js") + _script("report.js")),  # noqa: S704
        bokeh=Markup(javascript() if drawn else ""),  # noqa: S704
        theme=Markup(_script("theme.js") if drawn else ""),  # noqa: S704
        plots=Markup(_script("plots.js") if drawn else ""),  # noqa: S704
        shared=Markup(pieces.shared),  # noqa: S704 - JSON without a single "<"
        pieces=[(piece.element, Markup(piece.text)) for piece in pieces.parts],  # noqa: S704
    )


def all_sections() -> tuple[tuple[str, Section], ...]:
    """The sections in the order of the page: every module of the folder is one."""
    found = []
    for module in pkgutil.iter_modules(sections.__path__):
        loaded = cast("Section", importlib.import_module(f"{sections.__name__}.{module.name}"))
        found.append((loaded.ORDER, module.name, loaded))
    return tuple((name, section) for _, name, section in sorted(found, key=lambda one: one[:2]))


def _text(name: str) -> str:
    return resources.files("soakwatch.report").joinpath(name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    """Without the comments that stand on lines of their own: they are for who reads the source."""
    return _COMMENT.sub("", _text(name))


def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_text),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: isolated(printable(value, lines=True)) if type(value) is str else value,
    )
    environment.filters |= {
        "utc": utc,
        "span": span_text,
        "iso": iso,
        "number": number,
        "quantity": quantity,
        "extent": extent,
        "share": share_text,
        "bytes": show_bytes,
        "duration": show_seconds,
        "zoom": zoom_of,
    }
    environment.globals |= {"symbols": SYMBOLS, "subject": subject}
    return environment
