"""The files of a run in its reports: folded texts, links, a line; and written out, wherever their names point."""

from __future__ import annotations

import io
from copy import copy
from pathlib import Path
from typing import Protocol

from rich.console import Console

from soakwatch.cli.main import run
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Artifact, Record
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.sections.artifacts import files_text
from soakwatch.report.terminal import print_verdict

BEGIN = 1_700_000_000 * 10**9


class WithFiles(ReportSource, Protocol):
    """A record in memory."""

    files: list[Artifact]


def test_the_page_folds_texts_and_links_the_rest(plain: tuple[WithFiles, Verdict]) -> None:
    """A text is in the page, escaped and folded; a small file is a link; a large one is named; none: no section."""
    record, verdict = plain
    assert 'id="artifacts"' not in render_html(record, verdict)
    files = [
        Artifact("scripts/failover.txt", "text/plain", b"<b>hello</b>\x1b[2J\n", BEGIN + 1, "script", "failover dut"),
        Artifact("capture/dut/core.7", "application/octet-stream", b"\x7fELF\0", BEGIN + 2, "capture", "core.7 (fail)"),
        Artifact("capture/dut/big", "application/octet-stream", bytes(300 << 10), BEGIN + 3, "capture", "big"),
    ]
    full = copy(record)
    full.files = files
    page = render_html(full, verdict)
    section = page[page.index('<section id="artifacts">') :].partition("</section>")[0]
    assert "&lt;b&gt;hello&lt;/b&gt;" in section
    assert "\x1b" not in section
    assert 'download="core.7" href="data:application/octet-stream;base64,f0VMRgA="' in section
    assert "capture/dut/big" in section
    assert "300 KiB" in section
    assert section.count("href") == 1
    entries = full.artifact_entries()
    assert files_text(entries).startswith("3 files in the record (300 KiB): scripts/failover.txt")
    target = io.StringIO()
    print_verdict(full, verdict, Console(file=target, width=200))
    assert "3 files in the record" in target.getvalue()
    assert "3 files in the record" in render_markdown(full, verdict)


def test_files_are_written_below_the_folder_that_is_named(tmp_path: Path) -> None:
    """``report --artifacts`` writes each file under its name; a name that leads out of the folder leads into it."""
    with Record.create(tmp_path / "run") as record:
        record.keep_artifact(Artifact("capture/dut/01-show.txt", "text/plain", b"up 3 days", BEGIN, "capture", "x"))
        record.keep_artifact(Artifact("../../evil", "text/plain", b"!", BEGIN, "capture", "x"))
        record.keep_artifact(Artifact("/etc/evil", "text/plain", b"!", BEGIN, "capture", "x"))
        record.finish()
    assert run(["report", str(tmp_path / "run"), "--artifacts", str(tmp_path / "out" / "deep")]) == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name in written if not name.startswith("run/")} == {
        "out/deep/capture/dut/01-show.txt",
        "out/deep/x/x/evil",
        "out/deep/x/etc/evil",
    }
    assert (tmp_path / "out/deep/capture/dut/01-show.txt").read_bytes() == b"up 3 days"
    (tmp_path / "file").write_text("")
    assert run(["report", str(tmp_path / "run"), "--artifacts", str(tmp_path / "file" / "x")]) == 2
