"""The answer on the first screen: the verdict, the one plot that proves it, what to make of it; then the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from soakwatch.report.answer import answer_of, chain_title, issue_text
from soakwatch.report.blocks import Block, Layout
from soakwatch.report.matrix import matrix_of
from soakwatch.report.page import Page
from soakwatch.report.proof_plot import proof_plot

ORDER = 10
TITLE = ""
OPEN = True
_WIDE, _NARROW = (760, 300), (360, 160)
_MAX_ROWS = 20  # of the table of devices before the others are folded


def blocks(page: Page) -> Sequence[Block]:
    """The answer with its plot in two sizes, and the table of many devices."""
    return (Layout("verdict", partial(_facts, page)),)


def _facts(page: Page) -> Mapping[str, object]:
    """The answer with its plot in two sizes, and the table of many devices."""
    answer = answer_of(page)
    matrix = matrix_of(page.verdict)
    since_ns = answer.since_ns
    return {
        "answer": answer,
        "preliminary": page.verdict.preliminary,
        "chain_title": chain_title(answer),
        "issue": issue_text(answer),
        "wide": proof_plot(page, answer.proof, *_WIDE, since_ns),
        "narrow": proof_plot(page, answer.proof, *_NARROW, since_ns),
        "matrix": matrix,
        "most_rows": _MAX_ROWS,
        "several": len(page.verdict.targets) > 1,
        "links": page.cause_anchors,
        "window": page.verdict.window,
        "since_ms": None if since_ns is None else since_ns // 10**6,
    }
