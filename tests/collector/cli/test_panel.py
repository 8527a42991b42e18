"""The picture of a run: within any width and height, the worst first, and nothing in it steers a terminal."""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from soakwatch.cli.display.progress import Lines, Silences, panel
from soakwatch.runs.run_status import SourceStatus, Status
from soakwatch.runs.status_words import load_words
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.sample import PollOutcome
from soakwatch_model.window import Window

OK, FAILED = PollOutcome.OK, PollOutcome.FAILED
FORECAST = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)


def finding(outcome: Outcome, rule: str, reason: str, object_: str = "", forecast: Forecast | None = None) -> Finding:
    """What the live judge said."""
    return Finding(
        rule, 1, outcome, "dut", "system.memory.usage", object_, Window(0, 10**9), "d", reason, 9, forecast=forecast
    )


def source(label: str, got: int, failed: int = 0, silent_s: float | None = None) -> SourceStatus:
    """The account of a source."""
    return SourceStatus(label, Counter({OK: got, FAILED: failed}), silent_s)


STATUS = Status(
    "fw-7.2-overnight",
    "soak",
    26_510.0,
    59_890.0,
    (source("dut/snmp", 26_510), source("dut/ssh", 430, 11, 130.0), source("tg/trex", 26_509, 1)),
    {("load.tx.packet.rate", ""): 2.9694e6, ("load.loss", ""): 0.00013},
    (
        finding(Outcome.FAIL, "process_restart", "1 restart at 02:13:04 UTC"),
        finding(Outcome.WARN, "growth", "rises by 82 MiB/h ± 6 MiB/h", forecast=FORECAST),
    ),
    26_480.0,
    ("02:11:00 failover dut",),
    None,
    phase_position="2 of 4",
    coming="phase stress in 14 h 12 min",
    own="84.2 MiB, never late",
)


def drawn(status: Status, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    """The lines of the picture."""
    return [line.plain for line in panel(status, encoding=encoding).lines(width, height)]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_everything_that_matters_is_there_at_every_width(width: int) -> None:
    """Phase, share, time left, what comes, load, sources that fail, findings with their early warning, events."""
    text = "\n".join(drawn(STATUS, width, 40))
    for words in (
        "fw-7.2-overnight",
        "phase soak (2 of 4)",
        "31 %",
        "7 h 22 min elapsed, 16 h 38 min left",
        "phase stress in 14 h 12 min",
        "2.97 M packets/s sent",
        "26,510",
        "no answer for 2 min 10 s",
        "(process_restart)",
        "(growth)",
        "forecast: system.memory.limit",
        "02:11:00 failover dut",
        "84.2 MiB",
        "Ctrl-C",
    ):
        assert words in text, words


def test_no_line_is_wider_and_no_picture_higher_than_it_may_be() -> None:
    """For any size, many sources, many findings, and names of any length and script."""
    chooser = random.Random(3)
    names = ["x" * 300, "صندوق-النار", "防火墙" * 20, "e\u0301" * 40, "🔥" * 30, "plain"]
    for _ in range(200):
        many = tuple(source(chooser.choice(names), chooser.randrange(10**9), chooser.randrange(3)) for _ in range(30))
        findings = tuple(
            finding(Outcome.FAIL, "growth", chooser.choice(names), str(n)) for n in range(chooser.randrange(20))
        )
        status = replace(STATUS, run=chooser.choice(names), sources=many, findings=findings)
        width, height = chooser.randrange(20, 220), chooser.randrange(1, 60)
        lines = panel(status, findings).lines(width, height)
        assert len(lines) <= height
        assert all(line.cell_len <= width for line in lines)


def test_a_low_terminal_shows_what_fails_first() -> None:
    """Of thirty sources the failing ones, and that all others answer; of the findings the worst."""
    status = replace(STATUS, sources=(*(source(f"leaf{n}/snmp", 100) for n in range(30)), *STATUS.sources))
    lines = drawn(status, 80, 20)
    assert len(lines) <= 20
    assert any(line.startswith("dut/ssh") and "no answer for 2 min 10 s" in line for line in lines)
    assert any("more sources, all of them answer" in line for line in lines)
    assert any("(process_restart)" in line for line in lines)


def test_a_terminal_without_blocks_gets_letters() -> None:
    """Every sign that ASCII lacks has a likeness; nothing is lost but the looks."""
    text = "\n".join(drawn(STATUS, 100, 40, "ascii"))
    assert text.isascii()
    assert "82 MiB/h +- 6 MiB/h" in text
    assert "####" in text


def test_names_do_not_steer_the_terminal() -> None:
    """Escape sequences, markup and direction marks of a device are shown, not obeyed."""
    evil = "\x1b[2J\x1b]0;pwned\x07[bold]\u202ex"
    status = replace(
        STATUS,
        run=evil,
        phase=evil,
        sources=(source(evil, 1, 1, 5.0),),
        events=(evil,),
        coming=evil,
        findings=(finding(Outcome.FAIL, "growth", evil, evil),),
        behind=(evil,),
        doing=evil,
        trouble=evil,
    )
    target = io.StringIO()
    console = Console(file=target, width=200)
    console.print(panel(status, (finding(Outcome.WARN, "growth", evil),)))
    Lines(console).show(status)
    assert not {"\x1b", "\x07", "\u202e"} & set(target.getvalue())
    assert "[bold]" in target.getvalue()


def test_a_silent_source_is_recognised_by_its_counts_alone() -> None:
    """From the moment of its last answer on; a slow source that was not due meanwhile is not silent."""
    silences = Silences()

    def silent_for(at_s: float, got: int, failed: int) -> float | None:
        status = replace(STATUS, elapsed_s=at_s, sources=(source("dut/ssh", got, failed),))
        return silences.completed(status).sources[0].silent_s

    assert [silent_for(0, 0, 0), silent_for(10, 1, 0), silent_for(60, 1, 0)] == [None, None, None]
    assert [silent_for(70, 1, 1), silent_for(130, 1, 2)] == [60.0, 120.0]
    assert silent_for(140, 2, 2) is None


def test_plain_lines_are_few() -> None:
    """Start, phases, new findings, a source that falls silent and comes back, each ten minutes of a long run."""
    target = io.StringIO()
    lines = Lines(Console(file=target, width=300))
    quiet = replace(STATUS, findings=(), sources=(source("dut/snmp", 1),), load={}, phase_position="", elapsed_s=0.0)
    for second in range(3600):
        phase = "baseline" if second < 1800 else "soak"
        answers = not 2000 <= second < 2100
        own = source("dut/snmp", second if answers else 2000, 0 if second < 2000 else min(second - 2000, 100) + 1)
        findings = STATUS.findings[1:] if second >= 3000 else ()
        lines.show(
            replace(
                quiet,
                elapsed_s=float(second),
                left_s=86400.0 - second,
                phase=phase,
                findings=findings,
                judged_at_s=float(second),
                sources=(own,),
            )
        )
    printed = target.getvalue().splitlines()
    assert [line.split("]")[0][1:] for line in printed] == [
        "0 s",
        "10 min",
        "20 min",
        "30 min",
        "33 min 21 s",
        "35 min",
        "40 min",
        "50 min",
        "50 min",
    ]
    assert "source dut/snmp does not answer" in printed[4]
    assert "source dut/snmp answers again" in printed[5]
    assert "WARN memory in use on dut (growth)" in printed[7]
    assert "reached in 31 h" in printed[7]


def test_the_load_is_summed_over_generators() -> None:
    """Bits only where nothing else is reported; large rates with a prefix."""
    two = {("load.tx.bit.rate", "a"): 4e9, ("load.tx.bit.rate", "b"): 5e9}
    assert load_words(replace(STATUS, load=two)) == "load 9 Gbit/s sent"
    both = {**two, ("load.request.rate", ""): 99.6}
    assert load_words(replace(STATUS, load=both)) == "load 100 requests/s"
    assert load_words(replace(STATUS, load={})) == ""
