"""The files that a finished run gets: its verdict and its reports."""

from __future__ import annotations

from pathlib import Path

from soakwatch.core.private_files import shared_mode, write_private
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RECORD_NAME, RecordView

REPORT_FILES = {"html": "report.html", "json": "verdict.json", "junit": "junit.xml", "md": "report.md"}


def write_reports(view: RecordView, verdict: Verdict, folder: Path) -> Path:
    """Write report.html, verdict.json, junit.xml and report.md, as open as the record; the path of the page."""
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
    mode = shared_mode(folder / RECORD_NAME)
    for kind, text in texts.items():
        write_private(folder / REPORT_FILES[kind], text, mode)
    return folder / REPORT_FILES["html"]
