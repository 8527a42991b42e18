"""What each moment of a cause says by itself: a pass beside a failure is none, and what was planned broke nothing."""

from __future__ import annotations

import re
from dataclasses import replace

from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, CauseKind

Night = tuple[ReportSource, Verdict]
BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
RESTART, UPGRADE = BEGIN + 60 * SECOND, BEGIN + 61 * SECOND
CRASH = BEGIN + 62 * SECOND


def finding_of(outcome: Outcome, rule: str, *marks: Mark) -> Finding:
    """A finding of the leaker over two minutes."""
    window = Window(BEGIN, BEGIN + 120 * SECOND)
    return Finding(
        rule, 1, outcome, "leaker", "process.up", "process=bgpd", window, "Stated.", f"{rule} said so", 9, marks=marks
    )


def upgraded(night: Night, *, marked: bool = True) -> Verdict:
    """A crash after a planned upgrade, whose restart was announced."""
    findings = (
        finding_of(Outcome.FAIL, "core_dump", *[Mark(CRASH, None, "core: crash of zebra")] * marked),
        finding_of(Outcome.PASS, "process_restart", Mark(RESTART, None, "restart: new start time")),
    )
    line = (
        Mark(RESTART, None, "process_restart bgpd: restart: new start time", outcome=Outcome.PASS),
        Mark(UPGRADE, None, "upgrade: planned"),
        *[Mark(CRASH, None, "core_dump: core: crash of zebra", outcome=Outcome.FAIL)] * marked,
    )
    cause = Cause(
        CauseKind.EVENT,
        "leaker",
        RESTART,
        CRASH,
        "after upgrade",
        Outcome.FAIL,
        (0, 1),
        timeline=line,
        since_ns=CRASH if marked else None,
    )
    return replace(night[1], findings=findings, causes=(cause,))


def test_the_first_failure_is_the_first_moment_that_failed_itself(night: Night) -> None:
    verdict = upgraded(night)
    assert verdict.first_failure_ns == CRASH
    assert [one.since_ns for one in verdict.problems] == [CRASH], "every surface tells this one"


def test_of_a_failure_without_a_moment_none_is_told(night: Night) -> None:
    verdict = upgraded(night, marked=False)
    assert verdict.first_failure_ns is None
    assert [one.since_ns for one in verdict.problems] == [None]
    quiet = replace(verdict, causes=())
    assert quiet.first_failure_ns is None


def test_the_page_counts_from_what_failed(plain: Night) -> None:
    """An announced restart comes before it, with the sign of a pass."""
    page = render_html(plain[0], upgraded(plain))
    chain = page.split('<section id="chain">', 1)[1].split("</section>", 1)[0]
    rows = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in re.findall(r"<tr.*?</tr>", chain, re.DOTALL)]
    outcomes = [row for row in rows if "leaker" in row]
    assert [row.split()[:2] for row in outcomes[:3]] == [
        ["✓", "pass"],
        ["event", outcomes[1].split()[1]],
        ["✗", "fail"],
    ]
    assert ["−2 s" in outcomes[0], "−1 s" in outcomes[1], "+0 s" in outcomes[2]] == [True] * 3
    first = re.search(r'<tr class="first">.*?</tr>', chain, re.DOTALL)
    assert first is not None
    assert "core_dump" in first[0]
