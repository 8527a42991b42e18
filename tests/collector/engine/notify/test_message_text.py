"""The words of notifications: the verdict first, what is live said to be live, and hostile names harmless."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.collector.engine.notify.notify_kit import T0, finding, plan, verdict

from soakwatch.engine.notify.message_text import (
    LIVE,
    Where,
    broken_message,
    end_message,
    failure_message,
    more_message,
    start_message,
    withdrawn_message,
)
from soakwatch.engine.notify.policy import News
from soakwatch_model.finding import Outcome
from soakwatch_rules.causes import Cause, CauseKind

WHERE = Where("lab7", Path("/runs/night"), "http://127.0.0.1:8720/runs/night/")
REPORT = Path("/runs/night/report.html")


def test_the_start_says_what_runs_and_for_how_long() -> None:
    """And where its page and its record are."""
    message = start_message(plan(""), T0, T0 + 3600 * 10**9, WHERE)
    assert message.title == "Started night: 1 h on dut"
    assert "from 2023-11-14 22:13:20 to 2023-11-14 23:13:20 UTC: 1 h (soak 1 h)" in message.body
    assert "dut (dut)" in message.body
    assert "Page: http://127.0.0.1:8720/runs/night/ (seen from lab7)" in message.body
    assert "Record: lab7:/runs/night" in message.body


def test_a_live_failure_says_what_it_is_and_that_it_is_no_verdict() -> None:
    """Sentence, time, definition, measured, limit, and how sure it is."""
    first = finding(at_s=754)
    message = failure_message("night", News("failure", (first, finding("hang", "")), (), 2), T0, WHERE, final=False)
    assert message.title == "Failing night: dut memory_growth"
    for part in (
        "process=bgpd grows by 3 MiB/h",
        "12 min 34 s after the start",
        LIVE,
        "grows by more than 1 MiB/h",
        "Measured 3 MiB/h, limit 1 MiB/h",
        "interval 2 MiB/h to 4 MiB/h",
        "7 samples of 10, 70",
        "Note: the load was not steady",
        "1 other finding fails too:",
        "dut hang",
    ):
        assert part in message.body, (part, message.body)
    final = failure_message("night", News("failure", (first,), (), 1), T0, WHERE, final=True)
    assert final.title == "FAIL night: dut memory_growth"
    assert LIVE not in final.body


def test_many_later_failures_are_a_short_message() -> None:
    """Ten are listed, the others counted; and it says that it is the last."""
    many = tuple(finding("hang", f"core={n}") for n in range(500))
    message = more_message("night", News("more", many, ("dut gap",), 500, last=True), WHERE, final=False)
    assert message.title == "night: 500 findings fail so far"
    assert "and 490 more" in message.body
    assert "1 finding withdrawn:\n- dut gap" in message.body
    assert "last message about failures" in message.body
    assert len(message.body) < 5000


def test_a_withdrawn_failure_is_taken_back() -> None:
    """And it says whether anything else still fails."""
    message = withdrawn_message("night", News("withdrawn", (), ("dut hang",), 0), WHERE)
    assert message.title == "Withdrawn night: dut hang"
    assert "Nothing fails at the moment." in message.body
    assert "1 other finding still fails." in withdrawn_message("n", News("withdrawn", (), ("x",), 1), WHERE).body


def test_the_end_is_the_verdict_with_the_first_failure() -> None:
    """The first is the one that every surface tells first, with its moment."""
    hung = finding("hang", "", at_s=600)
    grown, inconclusive = finding(), finding("gap", "", Outcome.INCONCLUSIVE, at_s=1)

    def cause(words: str, index: int, since_ns: int | None) -> Cause:
        return Cause(CauseKind.FINDING, "dut", T0, T0, words, Outcome.FAIL, (index,), since_ns=since_ns)

    causes = (cause("it hung", 0, T0 + 600 * 10**9), cause("memory grows", 1, None))
    failed = replace(verdict(Outcome.FAIL, hung, grown, inconclusive), causes=causes)
    message = end_message(failed, WHERE, "report", REPORT, "# summary")
    assert message.title == "FAIL night: dut failed memory_growth"
    assert message.tone == "failure"
    assert "First failure: dut stopped responding or forwarding at 22:23:20 UTC (10 min in)." in message.body
    assert "- fail: dut memory grows" in message.body
    assert (message.report, message.summary) == (REPORT, "# summary")
    assert end_message(failed, WHERE, "summary", REPORT, "# summary").report is None
    bare = end_message(failed, WHERE, "none", REPORT, "# summary")
    assert (bare.report, bare.summary) == (None, "")


def test_a_pass_and_a_monitor_that_broke() -> None:
    """Each says so in its first words."""
    message = end_message(verdict(Outcome.PASS), Where("lab7", Path("/r")), "none", REPORT, "")
    assert (message.title, message.tone) == ("PASS night: dut: no rule failed", "success")
    assert "Page:" not in message.body
    assert "First failure" not in message.body
    assert end_message(verdict(Outcome.INCONCLUSIVE), WHERE, "none", REPORT, "").tone == "warning"
    broken = broken_message("night", "the disk is full", WHERE)
    assert broken.title.startswith("BROKEN night")
    assert "there is no verdict: the disk is full" in broken.body


def test_hostile_names_call_nobody_and_stay_on_their_line() -> None:
    """Mentions, links, line ends and turns of direction in the names of processes."""
    nasty = "process=@everyone\nFAIL http://evil.example \u202ex <script>" + "y" * 3000
    first = finding("hang", nasty)
    for message in (
        failure_message("night", News("failure", (first,), (), 1), T0, WHERE, final=False),
        more_message("night", News("more", (first,), (nasty,), 1), WHERE, final=False),
        withdrawn_message("night", News("withdrawn", (), (nasty,), 0), WHERE),
        end_message(replace(verdict(Outcome.FAIL, first), reason=nasty), WHERE, "none", REPORT, ""),
    ):
        for text in (message.title, message.body):
            assert "@everyone" not in text
            assert "http://evil" not in text
            assert "\u202e" not in text
            assert "\nFAIL" not in text
        assert "\n" not in message.title
        assert len(message.title) < 200
        assert len(message.body) < 4000
