"""The files of a run on the disk: its verdict and reports, and what scripts and hooks left in its record."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import shared_mode, write_private
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RECORD_NAME, RecordView, artifact_name

REPORT_FILES = {"html": "report.html", "json": "verdict.json", "junit": "junit.xml", "md": "report.md"}


def write_reports(view: RecordView, verdict: Verdict, folder: Path) -> tuple[str, ...]:
    """Write report.html, verdict.json, junit.xml and report.md with the access rights of the record. If one cannot be
    written the others still are. Returns a sentence for each failure: its path and the reason."""
    # Imported late: a collector that runs for days, and its live judge, need no pages.
    from soakwatch.report.answer import answer_of
    from soakwatch.report.html import html_of
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import markdown_of
    from soakwatch.report.page import open_page
    from soakwatch.runs.setup_changes import changed

    difference = changed(view, None)
    page = open_page(view, verdict)
    texts = {
        "json": render_json(verdict, difference, answer_of(page)),
        "junit": render_junit(verdict, difference),
        "md": markdown_of(page),
        "html": html_of(page),  # last: it draws its plots into the page
    }
    failures, mode = [], shared_mode(folder / RECORD_NAME)
    for kind, text in texts.items():
        path = folder / REPORT_FILES[kind]
        try:
            _write(path, text, mode)
        except OSError as error:
            failures.append(f"{path} cannot be written: {error.strerror or type(error).__name__}")
    return tuple(failures)


def write_files(view: RecordView, folder: Path) -> list[Path]:
    """Write every file of a record below a folder, under its name; a file of the same name is replaced.

    Raises RecordError if the folder cannot be written.
    """
    written = []
    for entry in view.artifact_entries():
        # Whoever made the record may have given any name: nothing is written outside of the folder.
        path = folder / artifact_name(*entry.name.split("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(view.artifact(entry.name).data)
        except OSError as error:
            raise RecordError(f"{path} cannot be written ({error.strerror}): name another folder") from None
        written.append(path)
    return written


def _write(path: Path, text: str, mode: int) -> None:
    """Write a file in one step: no reader finds half of it. Raises OSError."""
    draft = path.with_name(f"{path.name}.part")
    try:
        write_private(draft, text, mode)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
