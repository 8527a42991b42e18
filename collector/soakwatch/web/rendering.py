"""Renders HTML pages from the templates in ``pages``; content is escaped, and there is no inline script."""

from __future__ import annotations

import functools
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.responses import HTMLResponse

from soakwatch.core.formatting import SYMBOLS, printable


def page(name: str, status: int = 200, **facts: object) -> HTMLResponse:
    """Render a page; it is never cached. Characters that would reverse or hide others are removed from texts."""
    text = _environment().get_template(name).render(facts)
    return HTMLResponse(text, status, {"cache-control": "no-store"})


@functools.cache
def _environment() -> Environment:
    def load(name: str) -> str:
        return resources.files("soakwatch.web").joinpath("pages", name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(load),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value, lines=True) if type(value) is str else value,
    )
    environment.globals |= {"symbols": SYMBOLS}
    return environment
