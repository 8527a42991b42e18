"""A run on a terminal: what is new is reported once, and what does not last is withdrawn in the open."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from soakwatch.cli.display.progress import Alarms, Lines, panel
from soakwatch.runs.run_status import Status
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.window import Window

QUIET = Status("run", "soak", 60.0, 3540.0, (), {}, (), 60.0, (), None)
FORECAST = Forecast("the memory", 31 * 3600, 25 * 3600, 37 * 3600)
LEAK = Finding(
    "growth",
    1,
    Outcome.WARN,
    "dut",
    "system.memory.usage",
    "",
    Window(0, 10**9),
    "d",
    "3 MiB/h so far",
    9,
    forecast=FORECAST,
)


def test_an_alarm_is_reported_once_and_withdrawn_once() -> None:
    """Warned at one evaluation, still there at the next, gone at the third: a line at the first and at the last."""
    target = io.StringIO()
    lines = Lines(Console(file=target, width=200))
    judgements = [((LEAK,), 60.0), ((LEAK,), 120.0), ((), 180.0), ((), 240.0)]
    for findings, judged_at_s in judgements:
        lines.show(replace(QUIET, findings=findings, judged_at_s=judged_at_s))
    printed = [line for line in target.getvalue().splitlines() if "growth" in line]
    sentence = "WARN memory in use on dut (growth): 3 MiB/h so far; forecast: the memory reached in 31 h ± 6 h (90 %)"
    assert printed == [f"[1 min] {sentence}", f"[1 min] WITHDRAWN {sentence}"]


def test_nothing_is_withdrawn_without_a_new_evaluation() -> None:
    """A moment without findings of the same judging (the judge restarts) withdraws nothing; a worse one is reported."""
    alarms = Alarms()
    assert alarms.update(replace(QUIET, findings=(LEAK,))) == ([LEAK], [])
    assert alarms.update(QUIET) == ([], [])
    worse = replace(LEAK, outcome=Outcome.FAIL)
    assert alarms.update(replace(QUIET, findings=(worse,), judged_at_s=120.0)) == ([worse], [])
    assert alarms.update(replace(QUIET, judged_at_s=180.0)) == ([], [worse])
    assert list(alarms.withdrawn.values()) == [worse]
    alarms.update(replace(QUIET, findings=(LEAK,), judged_at_s=240.0))
    assert not alarms.withdrawn


def test_the_panel_shows_what_was_withdrawn() -> None:
    """The newest three withdrawn alarms stand under the findings, the others are counted."""
    target = io.StringIO()
    gone = tuple(replace(LEAK, object=f"process=w,instance={n}", forecast=None) for n in range(5))
    Console(file=target, width=120).print(panel(QUIET, gone))
    text = target.getvalue()
    assert text.count("withdrawn: WARN ") == 3
    assert "(instance 4)" in text
    assert "and 2 withdrawn before" in text


def test_the_load_is_shown_whatever_it_is_made_of() -> None:
    """Packets that were sent and came back, and what was lost; what nobody reports is not reported as 0."""
    target = io.StringIO()
    load = {("load.tx.packet.rate", ""): 2969.4, ("load.rx.packet.rate", ""): 2006.0, ("load.loss", ""): 0.3217}
    Lines(Console(file=target, width=200)).show(replace(QUIET, load=load))
    assert "load 2,969 packets/s sent, 2,006 packets/s received, 32.17% lost" in target.getvalue()
    assert "requests" not in target.getvalue()


def test_what_costs_to_find_out_is_asked_for_a_line_only() -> None:
    """Between two lines a plain display needs no figures, which are read from the record; a panel always does."""
    lines = Lines(Console(file=io.StringIO(), width=200))
    assert lines.in_full(QUIET)
    lines.show(QUIET)
    assert not lines.in_full(replace(QUIET, elapsed_s=QUIET.elapsed_s + 1))
    assert lines.in_full(replace(QUIET, phase="another"))
    assert lines.in_full(replace(QUIET, elapsed_s=QUIET.elapsed_s + 3600))


def test_lines_of_a_long_run_are_looked_at_every_five_seconds() -> None:
    """A short run each second; a line of its time is not late; a panel is drawn each second."""
    lines = Lines(Console(file=io.StringIO(), width=200))
    short, long = replace(QUIET, left_s=0.0), replace(QUIET, left_s=72 * 3600.0)
    lines.show(short)  # the next line is due at 120 s
    assert lines.rest_s(short) == 1.0
    assert lines.rest_s(long) == 5.0
    assert lines.rest_s(replace(long, elapsed_s=117.0)) == 3.0
    assert lines.rest_s(replace(long, elapsed_s=119.9)) == 1.0
