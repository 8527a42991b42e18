"""The HTML report: one file that opens offline, with the verdict on top and the evidence below."""

from __future__ import annotations

import importlib
import pkgutil
from importlib import resources
from typing import cast

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from soakwatch.report import sections
from soakwatch.report.page import Section, open_page
from soakwatch.report.plots import javascript
from soakwatch.report.show import SYMBOLS, extent, iso, number, printable, quantity, share_text, span_text, subject, utc
from soakwatch.report.source import ReportSource
from soakwatch.units import show_bytes, show_seconds
from soakwatch.verdict import Verdict


def render_html(source: ReportSource, verdict: Verdict) -> str:
    """The report as one HTML document. Equal records and verdicts give equal bytes.

    Nothing is fetched: styles, scripts and data are inside, and the document's own security policy forbids the rest.
    """
    page = open_page(source, verdict)
    environment = _environment()
    parts = []
    for name, section in all_sections():
        facts = section.facts(page)
        if facts is not None:
            body = environment.from_string(section.TEMPLATE).render(facts)
            parts.append({"name": name, "title": section.TITLE, "body": Markup(body)})  # noqa: S704 - autoescaped
    document, items = page.drawing.payload()
    return environment.get_template("page.html.jinja").render(
        verdict=verdict,
        parts=parts,
        style=Markup(_text("style.css")),  # noqa: S704 - our own file
        bokeh=Markup(javascript() if items != "[]" else ""),  # noqa: S704 - Bokeh's own file
        document=Markup(document),  # noqa: S704 - JSON without a single "<"
        items=Markup(items),  # noqa: S704
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


def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_text),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value, lines=True) if type(value) is str else value,
    )
    environment.filters |= {
        "utc": utc, "span": span_text, "iso": iso, "number": number, "quantity": quantity, "extent": extent,
        "share": share_text, "bytes": show_bytes, "duration": show_seconds,
    }  # fmt: skip
    environment.globals |= {"symbols": SYMBOLS, "subject": subject}
    return environment
