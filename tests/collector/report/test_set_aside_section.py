"""The section "Readings set aside": on the page, in Markdown and on a terminal; left out where nothing was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.accuracy.garbled import well
from tests.bench.accuracy.night import write_run

from soakwatch.cli.main import run


def test_the_report_lists_them_on_the_page_in_markdown_and_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night = well(4)
    night.of("system.network.packet.dropped", "interface=eth1,direction=receive")[50] += 2.0**32
    write_run(night, tmp_path / "record")
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    capsys.readouterr()
    run(["report", str(tmp_path / "record")])
    shown = " ".join(capsys.readouterr().out.split())
    run(["report", str(tmp_path / "record"), "--html", str(page), "--md", str(text)])
    assert '<section id="set_aside"' in page.read_text(encoding="utf-8")
    assert "1 reading set aside: the source showed what cannot be" in text.read_text(encoding="utf-8")
    for written in (text.read_text(encoding="utf-8"), shown):
        assert "jumped by 4,294,967,296 and was back" in written
        assert "Readings set aside" in shown


def test_a_night_without_them_has_no_such_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(well(4), tmp_path / "record")
    capsys.readouterr()
    run(["report", str(tmp_path / "record")])
    assert "Readings set aside" not in capsys.readouterr().out
