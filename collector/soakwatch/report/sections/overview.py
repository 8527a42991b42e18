"""The overview: what every target did through the whole run, over one time axis, with the load and the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from soakwatch.core.formatting import SYMBOLS
from soakwatch.report.blocks import Block, Layout
from soakwatch.report.overview import draw_panel, flags_of, numbered_findings
from soakwatch.report.page import Page
from soakwatch.report.panels import panels_of

ORDER = 23
TITLE = "Overview"
_OPEN = 4  # targets; the further ones are folded


def blocks(page: Page) -> Sequence[Block]:
    """The panels of each target in order; nothing where nothing was recorded that could be drawn."""
    return (Layout("overview", partial(_facts, page)),)


def _facts(page: Page) -> Mapping[str, object] | None:
    """The panels of each target in order; nothing where nothing was recorded that could be drawn."""
    findings = page.verdict.findings
    window = page.verdict.window
    numbered_all = numbered_findings(findings)
    roles = page.source.roles()
    targets: list[dict[str, object]] = []
    drawn: set[int] = set()
    recorded = page.source.window()
    whole = window.begin_ns <= recorded.begin_ns and window.end_ns >= recorded.end_ns
    seen = page.glances if whole else {}
    shown = panels_of(page.source, window, findings, seen=seen)
    for name, panels in groupby(shown, key=lambda panel: panel.target):
        rows = []
        for panel in panels:
            flags = flags_of(panel, numbered_all, window)
            drawn.update(flag.number for flag in flags)
            rows.append({"title": panel.title, "note": panel.note, "places": draw_panel(page.drawing, panel, flags)})
        folded = len(targets) >= _OPEN
        targets.append({"name": name, "role": roles.get(name, ""), "panels": rows, "folded": folded})
    if not targets:
        return None
    numbered = [(number, f, page.finding_anchors.get(id(f), "")) for number, f in numbered_all if number in drawn]
    return {"targets": targets, "findings": numbered, "symbols": SYMBOLS}
