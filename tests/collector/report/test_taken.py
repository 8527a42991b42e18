"""What was taken of a process under suspicion, in the reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.collector.diagnose.made_looks import MIB, lines, look
from tests.collector.report.conftest import MemoryRecord

from soakwatch.core.redaction import Redaction
from soakwatch.diagnose.kept import artifacts_of
from soakwatch.diagnose.look import Absent, Cost, Why
from soakwatch.judge.verdict import Verdict
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown

HOSTILE = "</script><img src=x>"


@pytest.fixture
def taken(night: tuple[MemoryRecord, Verdict]) -> tuple[MemoryRecord, Verdict]:
    """The night with two looks at a process that leaks at a line with a hostile name."""
    record, verdict = night
    for hours, held in ((0, 1), (4, 31)):
        made = look(hours, 10 + held, sites=[lines(held={HOSTILE: held * MIB, "cache": 8 * MIB})])
        made = replace(made, cost=Cost(0.4, 0.01, 0.126), absent=(Absent("pprof", Why.NOT_NAMED),))
        _, files = artifacts_of(made, {"heap.txt": b"heap profile"}, f"{hours}", Redaction())
        record = replace(record, files=[*record.files, *files])
    return record, verdict


def test_a_leak_has_its_line_its_looks_and_their_cost(taken: tuple[MemoryRecord, Verdict]) -> None:
    """On the page and in Markdown; the files are among those of the record."""
    page, text = render_html(*taken), render_markdown(*taken)
    assert "What was taken" in page
    assert "leak: the program itself holds more and more" in page
    assert "126 ms" in page
    assert HOSTILE not in page
    assert "look/dut/x/4-heap.txt" in page
    assert "+30 MiB" in text
    assert "2 looks, the longest stop 126 ms; missing: pprof: the plan has no address of it" in page


def test_without_looks_there_is_no_section(page_of_night: str) -> None:
    """As in every run before."""
    assert "What was taken" not in page_of_night
