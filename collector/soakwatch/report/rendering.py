"""A verdict in every format of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource

if TYPE_CHECKING:
    from soakwatch.report.page import Page


class Renders(Protocol):
    """Something in every format that it has."""

    def text(self, kind: str) -> str:
        """The text of a format. Raises SoakwatchError for one that cannot be made of it."""
        ...


class Rendering:
    """A verdict in every format; each is made when it is first asked for, and once.

    ``earlier`` is a run that this one is compared with.
    """

    def __init__(self, source: ReportSource, verdict: Verdict, earlier: ReportSource | None = None) -> None:
        self.source, self.verdict, self.earlier = source, verdict, earlier
        self._texts: dict[str, str] = {}
        self._page: Page | None = None

    def text(self, kind: str) -> str:
        """The text of a format. Raises RecordError for an attestation of a record that is not sealed."""
        if kind not in self._texts:
            self._texts[kind] = self._made(kind)
        return self._texts[kind]

    def _made(self, kind: str) -> str:
        # Imported late: a collector that runs for days, and its live judge, need no pages.
        from soakwatch.report.annotations import render_annotations
        from soakwatch.report.answer import answer_of
        from soakwatch.report.attestation import render_attestation
        from soakwatch.report.badge import badge_of, render_badge
        from soakwatch.report.ctrf import render_ctrf
        from soakwatch.report.html import html_of
        from soakwatch.report.json import render_json
        from soakwatch.report.junit import render_junit
        from soakwatch.report.markdown import markdown_of
        from soakwatch.runs.setup_changes import changed

        source, verdict = self.source, self.verdict
        makers: dict[str, Callable[[], str]] = {
            "html": lambda: html_of(self._opened(last=True)),
            "json": lambda: render_json(
                verdict, changed(source, self.earlier), answer_of(self._opened()), self._opened().headroom[0]
            ),
            "junit": lambda: render_junit(verdict, changed(source, self.earlier)),
            "md": lambda: markdown_of(self._opened()),
            "ctrf": lambda: render_ctrf(verdict, changed(source, self.earlier)),
            "attest": lambda: render_attestation(source, verdict),
            "badge": lambda: render_badge(badge_of(verdict)),
            "annotations": lambda: render_annotations(verdict),
        }
        return makers[kind]()

    def _opened(self, *, last: bool = False) -> Page:
        """The page, opened once; HTML draws its plots into it, so it is the ``last`` that is made of it."""
        from soakwatch.report.page import open_page

        page = self._page or open_page(self.source, self.verdict, self.earlier)
        self._page = None if last else page
        return page
