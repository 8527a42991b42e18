"""The section ``decided``: what ended the run early, by which evidence, and what that leaves open; or nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.collector.report.test_morning import BEGIN, HOUR, Beside, Night, section, words

from soakwatch.judge.decided import decided_event, rows_of
from soakwatch.record import StoredEvent
from soakwatch.report.html import render_html
from soakwatch.report.json import verdict_document
from soakwatch_model.finding import Outcome
from soakwatch_rules.growth.sequential import Course, GrowthEvidence
from soakwatch_rules.stats.anytime import Evidence

LEAK = GrowthEvidence(Course.LEAKS, 300.0, 100.0, Evidence(40.0, -5.0), 18_000.0)
STILL = GrowthEvidence(Course.STILL, 0.0, 100.0, Evidence(-math.inf, math.inf), 18_000.0)
EVIDENCE = {
    ("fw", "process.memory.usage", "process=web,instance=0"): LEAK,
    ("fw", "process.open_files", "process=web,instance=0"): STILL,
}


def test_the_section_has_definition_data_and_doubts(plain: Night) -> None:
    """A row for each series, what was needed, and the sentence that the answer and verdict.json have too."""
    event = decided_event(BEGIN + 5 * HOUR, Outcome.FAIL, "memory of web on fw grows", EVIDENCE)
    record = Beside(plain[0], events=(StoredEvent(9, "monitor", event),))
    verdict = replace(plain[1], decided="memory of web on fw grows", course="ended when decided, 5 h of 24 h")
    text = words(section(render_html(record, verdict), "decided"))  # type: ignore[arg-type]
    for part in (
        "ended when decided, 5 h of 24 h: memory of web on fw grows",
        "wrong with at most 0.5 % for all series",
        "Evidence of 2 series (3,200 needed for growth, 320 for none)",
        "leaks 1.03 MiB/h 352 KiB/h 2e+17 0 5 h",
        "beyond all bounds",
        "What it leaves open",
    ):
        assert part in text
    assert verdict_document(verdict)["decided"] == "memory of web on fw grows"
    assert [row.course for row in rows_of(event)] == [Course.LEAKS, Course.STILL]


def test_a_run_to_its_end_has_no_such_section(plain: Night) -> None:
    """Nor does an event whose evidence is not understood."""
    assert 'id="decided"' not in render_html(*plain[:2])
    assert verdict_document(plain[1])["decided"] is None
    odd = replace(decided_event(0, Outcome.PASS, ""), detail={"evidence": "[[1]]"})
    assert rows_of(odd) == ()
