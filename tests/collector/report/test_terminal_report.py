"""The report that is read without a browser: all of it within the width, in the letters that the terminal has."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from soakwatch.judge.verdict import Verdict
from soakwatch.record.model import StoredEvent
from soakwatch.record.source import ReportSource
from soakwatch.report.terminal import print_verdict
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding

Night = tuple[ReportSource, Verdict]
TITLES = (
    "Timeline of failures and warnings",
    "Findings",
    "Headroom",
    "What could not be judged",
    "Passed",
    "Generator and load",
    "Set-up",
)


class Encoded(io.StringIO):
    """A file with an encoding of its own, which refuses what that has no letters for."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def write(self, text: str) -> int:
        text.encode(self._encoding)
        return super().write(text)


def printed(
    night: Night, width: int, *, terminal: bool, encoding: str = "utf-8", colour: bool = True, verbose: bool = True
) -> str:
    """What is printed of a night, with its record."""
    target = Encoded(encoding)
    console = Console(file=target, force_terminal=terminal, width=width, legacy_windows=False, no_color=not colour)
    print_verdict(*night, console, named="runs/x", verbose=verbose)
    return target.getvalue()


def plain(text: str) -> list[str]:
    """The lines without the codes of colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def orders(lines: Sequence[str], words: Sequence[str]) -> list[int]:
    """Where each of these lines stands."""
    return [list(lines).index(word) for word in words]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_all_of_it_is_there_in_order_and_within_the_width(eventful: Night, width: int) -> None:
    """Verdict, what broke first with lags and load, findings with series, headroom, what is inconclusive, coverage."""
    lines = plain(printed(eventful, width, terminal=True))
    assert any(line.startswith("✗ FAIL  demo-overnight") for line in lines[-30:])
    places = orders(lines, (*TITLES[:5], "Coverage", *TITLES[5:]))
    assert places == sorted(places)
    assert max(len(line) for line in lines) <= width
    text = " ".join(" ".join(lines).split())
    for words in (
        "forecast: system.memory.limit (3.80 GiB) reached in 31 h ± 6 h (90 %)",
        "+1 min",
        "reboot",
        "growth: 14 series: too short",
        "to resolve: run as root",
        "measured 17.2 MiB/h; limit 1.91 MiB/h",
        "leaker/local",
        "97.9 %",
        "load at that time (means)",
    ):
        assert words in text, words


def test_a_terminal_ends_with_verdict_reason_and_the_next_command(eventful: Night) -> None:
    """In brief, without what passed or does not apply, and the last screen of 24 lines has all of the answer."""
    lines = plain(printed(eventful, 80, terminal=True, verbose=False))
    assert lines[-2:] == ["page:       soakwatch open runs/x", "all checks: soakwatch report runs/x --verbose"]
    screen = lines[-24:]
    (verdict,) = [number for number, line in enumerate(screen) if line.startswith("✗ FAIL  demo-overnight")]
    words = [number for number, line in enumerate(screen) if line.startswith(("Can I trust it?", "What to do next:"))]
    assert verdict < words[0] < words[1]
    assert not {"Passed", "What could not be judged", "Headroom", "Coverage"} & set(lines)
    assert any(line.startswith("Checks not shown: ") for line in lines)
    assert len(plain(printed(eventful, 80, terminal=True))) > len(lines)


def test_a_report_of_one_night_is_brief(night: Night) -> None:
    lines = plain(printed(night, 80, terminal=True, verbose=False))
    assert len(lines) <= 40
    assert max(len(line) for line in lines) <= 80


def test_a_long_command_is_not_cut(night: Night) -> None:
    target, name = io.StringIO(), "/srv/soak/" + "rack-7/" * 12 + "20261121T200000Z-fw"
    print_verdict(*night, Console(file=target, force_terminal=True, width=80, no_color=True), named=name)
    assert f"soakwatch open {name}" in plain(target.getvalue())[-2]


def test_what_broke_first_has_its_lag_and_the_load_then(eventful: Night) -> None:
    """In order of time over all targets; the first failure has no lag."""
    lines = plain(printed(eventful, 160, terminal=True))
    index = lines.index(TITLES[0])
    moments = lines[index + 2 : lines.index("", index + 1)]
    times = [
        match[0] for line in moments if (match := re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d", line))
    ]
    assert len(times) >= 4
    assert times == sorted(times)
    assert any("+0 s" in line and "requests/s" in line for line in moments)


def test_the_series_of_a_finding_is_drawn_with_its_reach(eventful: Night) -> None:
    """A restart is drawn on the memory of its process: it climbs to the mark, and the reach of its values is beside."""
    lines = plain(printed(eventful, 100, terminal=True))
    drawn = re.compile(r"    [▁▂▃▄▅▆▇█ ]{60}  47.6 to 129 MiB  memory of httpd")
    (index,) = [index for index, line in enumerate(lines) if drawn.fullmatch(line)]
    memory, marks = lines[index][4:64], lines[index + 1][4:]
    assert memory[0] == "▁"  # its memory was given back where the mark points
    assert marks.strip() == "▲"
    assert memory[marks.index("▲") - 2] in "▇█"
    assert memory[marks.index("▲") + 1] == "▁"


def test_a_pipe_gets_plain_uncut_lines(eventful: Night) -> None:
    """No control codes, one fact a line, whatever the width; a program may read it."""
    text = printed(eventful, 60, terminal=False)
    assert "\x1b" not in text
    assert "fail: leaker (dut): " in text
    assert any(line.startswith("coverage leaker/local: ") for line in text.splitlines())
    for finding in eventful[1].findings[:3]:
        assert finding.sentence in text


def test_letters_that_the_terminal_lacks_are_replaced(eventful: Night) -> None:
    """Signs and spark lines in ASCII, as in a pipe so on a terminal; nothing is refused."""
    for terminal in (False, True):
        for encoding in ("ascii", "latin-1"):
            text = "\n".join(plain(printed(eventful, 80, terminal=terminal, encoding=encoding)))
            assert "\nx FAIL  demo-overnight" in text
            assert re.search(r"[_.\-+*#@=]{20}", text)
    assert "reached in 31 h ± 6 h" in " ".join(text.split())
    ascii_text = printed(eventful, 80, terminal=False, encoding="ascii")
    assert "31 h +- 6 h" in ascii_text


def test_without_colour_there_is_none(eventful: Night) -> None:
    """NO_COLOR: not one colour code; signs and words tell the outcomes apart."""
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", printed(eventful, 80, terminal=True, colour=False)))
    colours = {str(n) for n in (*range(30, 49), *range(90, 108))}
    assert not {part for code in codes for part in code.split(";")} & colours


def test_an_acknowledgement_is_shown_with_its_finding(night: Night) -> None:
    """The outcome is the same; the reason is reported with its time."""

    class Acknowledged:
        def __getattr__(self, name: str) -> object:
            return getattr(night[0], name)

        def events(self) -> tuple[StoredEvent, ...]:
            finding = night[1].findings[0]
            detail = {"rule": finding.rule, "metric": finding.metric, "reason": "known: \x1b[31mticket 4711"}
            acknowledged = Event(
                "finding.acknowledged", finding.target, finding.object, finding.window.begin_ns, None, detail
            )
            return (*night[0].events(), StoredEvent(99, "told", acknowledged))

    source: ReportSource = Acknowledged()  # type: ignore[assignment]
    text = printed((source, night[1]), 100, terminal=False)
    assert "    acknowledged: known: [31mticket 4711 (2026-" in text
    assert "✗ FAIL" in text


def test_hostile_names_steer_nothing(night: Night) -> None:
    """Codes, markup and direction marks in names and reasons; ten thousand findings stay a few screens."""
    evil = "\x1b]0;x\x07\x1b[2J[bold red]<b>\u202e\n\tname"
    first: Finding = replace(night[1].findings[0], target=evil, object=f"process={evil}", reason=evil * 50)
    many = tuple(replace(first, object=f"process={evil}{n}") for n in range(10_000))
    verdict = replace(night[1], findings=(*night[1].findings, *many), run=evil, reason=evil)
    for terminal in (False, True):
        text = printed((night[0], verdict), 80, terminal=terminal)
        left = re.sub(r"\x1b\[[0-9;]*m", "", text) if terminal else text
        assert not {"\x1b", "\x07", "\u202e", "\t"} & set(left)
        assert "[bold red]<b>" in left
        assert len(left.splitlines()) < 400
