"""The files that a finished run gets: its verdict and its reports."""

from __future__ import annotations

from pathlib import Path

from soakwatch.judge.verdict import Verdict
from soakwatch.record import RecordView

REPORT_FILES = {"html": "report.html", "json": "verdict.json", "junit": "junit.xml", "md": "report.md"}


def write_reports(view: RecordView, verdict: Verdict, folder: Path) -> Path:
    """Write report.html, verdict.json, junit.xml and report.md; the path of the page."""
    # Bokeh and Jinja2 are not for a collector that runs for days, nor for its live judge.
    from soakwatch.report.html import render_html
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import render_markdown
    from soakwatch.runs.setup_changes import changed

    difference = changed(view, None)
    texts = {
        "html": render_html(view, verdict),
        "json": render_json(verdict, difference),
        "junit": render_junit(verdict, difference),
        "md": render_markdown(view, verdict),
    }
    for kind, text in texts.items():
        (folder / REPORT_FILES[kind]).write_text(text, encoding="utf-8")
    return folder / REPORT_FILES["html"]
