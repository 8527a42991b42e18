"""A campaign as one page that opens offline, and its body for the page of a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from soakwatch.campaign.campaign_model import CellRun
from soakwatch.campaign.tables.cell_figures import CellData
from soakwatch.campaign.tables.result import DEFINITION, CampaignResult, extent_words, verdict_words
from soakwatch.campaign.tables.sheet import CellText
from soakwatch.campaign.tables.spec import ExpectedLoss, Figure, Measured, Per, ScaleUp, Share
from soakwatch.core.formatting import utc
from soakwatch.core.units import show_seconds
from soakwatch.report.html import asset, page_environment, script_text
from soakwatch_model.finding import Outcome

Link = Callable[[CellRun], str]
"""The address of a run's report, empty where it has none."""
_STEPS = 5
_FEW, _MOST_LINKS = 12, 8


def render_html(result: CampaignResult, link: Link) -> str:
    """The campaign as one HTML document. Nothing is fetched: styles and scripts are inside, and its own security policy
    forbids the rest."""
    environment = _environment()
    facts = _facts(result, link)
    return environment.get_template("page.html.jinja").render(
        **facts,
        body=Markup(environment.get_template("body.html.jinja").render(facts)),  # noqa: S704 - autoescaped
        style=Markup(asset("style.css") + _own("tables.css")),  # noqa: S704 - our own files
        script=Markup(script_text("shade.js") + script_text("report.js")),  # noqa: S704
    )


def campaign_body(result: CampaignResult, link: Link) -> Markup:
    """The body of the page without its head, for a page of the server that has the styles of reports and
    ``tables.css``."""
    return Markup(_environment().get_template("body.html.jinja").render(_facts(result, link)))  # noqa: S704


def beside(file: Path) -> Link:
    """Links from a page to the reports of runs, as paths relative to the page."""

    def link(run: CellRun) -> str:
        if run.folder is None or not (run.folder / "report.html").is_file():
            return ""
        way = os.path.relpath((run.folder / "report.html").resolve(), file.resolve().parent)
        return quote(Path(way).as_posix())

    return link


def _facts(result: CampaignResult, link: Link) -> Mapping[str, object]:
    index = {data.cell.id: number for number, data in enumerate(result.cells, 1)}
    sheets = [sheet for table in result.tables for sheet in table]
    return {
        "result": result,
        "definition": DEFINITION,
        "extent": extent_words(result),
        "facts": _numbers(result),
        "sheets": sheets,
        "contents": _contents([sheet.title for sheet in sheets]),
        "href": partial(_href, link=link, index=index),
        "step": lambda shade: round(_STEPS * shade),
        "open_findings": [finding for finding in result.findings if finding.outcome is not Outcome.PASS],
        "passed": [finding for finding in result.findings if finding.outcome is Outcome.PASS],
        "standing": verdict_words(result),
        "runs": [_row(data, link) for data in result.cells],
        "few": len(result.cells) <= _FEW,
        "figures": [(result.spec.words(figure.name), _expression(figure)) for figure in result.spec.figures],
    }


def _contents(titles: Sequence[str]) -> list[tuple[int, str]]:
    """The table of contents: number and title of each table; of several views of one figure the first."""
    first: dict[str, int] = {}
    for number, title in enumerate(titles, 1):
        first.setdefault(title.partition(": ")[0].partition(" (")[0], number)
    return [(number, title) for title, number in first.items()][:_MOST_LINKS]


def _numbers(result: CampaignResult) -> list[tuple[str, str]]:
    begun = [run.begin_ns for run in result.state.runs if run.begin_ns is not None]
    over = [run.end_ns for run in result.state.runs if run.end_ns is not None]
    facts = [("cells", str(len(result.cells))), ("runs", str(sum(result.states.values())))]
    facts += [(state, str(number)) for state, number in sorted(result.states.items())]
    if begun:
        facts.append(("first run (UTC)", utc(min(begun))))
    if begun and over:
        facts.append(("lasted", show_seconds(max(0, max(over) - min(begun)) * 1e-9)))
    facts += [(name, text) for name, text in result.state.labels.items()]
    return facts + ([("compared with", result.earlier)] if result.earlier else [])


def _href(words: CellText, link: Link, index: Mapping[str, int]) -> str:
    """The link of a cell: to its run where it has one, to the line that lists them where it has several."""
    began = [run for run in words.runs if run.folder is not None]
    return link(began[0]) if len(began) == 1 else f"#cell-{index[began[0].cell.id]}" if began else ""


def _row(data: CellData, link: Link) -> dict[str, object]:
    runs = []
    for run in data.runs:
        again = f" (attempt {run.attempt})" if run.attempt > 1 else ""
        state = run.verdict if run.state == "ended" and run.verdict else run.state
        runs.append({"words": f"{run.repetition}: {state}{again}", "href": link(run)})
    verdict = data.verdict
    words = ", ".join(f"{axis} {value}" for axis, value in data.cell.values.items())
    reason = "" if verdict.outcome is None else verdict.reason
    return {"cell": words, "outcome": verdict.outcome, "words": verdict.words, "runs": runs, "reason": reason}


def _expression(figure: Figure) -> str:
    """How a figure is made, in one line."""
    if isinstance(figure, Measured):
        at = figure.ceiling
        limit = "" if at is None else f"; at the generator's limit within {at.within:.3g} of {at.axis} {at.of}"
        return figure.spec.text + limit
    if isinstance(figure, ScaleUp):
        return f"{figure.of} at {figure.along} n / (n · {figure.of} at the least {figure.along})"
    if isinstance(figure, Share):
        ratio = f"{figure.of} / {figure.of} at {figure.along} {figure.to}"
        return f"1 - {ratio}" if figure.cost else ratio
    if isinstance(figure, Per):
        return f"{figure.of} / {figure.per}, run by run"
    assert isinstance(figure, ExpectedLoss)
    overload = figure.overload
    expected = f"1 - capacity / {overload.offered}"
    where = f"capacity: highest {overload.received} without loss along {overload.along}"
    return f"{overload.loss} - ({expected}); {where}" if figure.excess else f"{expected}; {where}"


def _environment() -> Environment:
    return page_environment(lambda name: _own(name) if name in {"page.html.jinja", "body.html.jinja"} else asset(name))


def _own(name: str) -> str:
    return resources.files("soakwatch.campaign.tables").joinpath(name).read_text(encoding="utf-8")
