"""The HTML report."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.collector.report.conftest import MemoryRecord, short, without_series

from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.model import StoredEvent
from soakwatch.report.html import render_html
from soakwatch.report.section import all_sections
from soakwatch.report.sections import findings, series
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Phase, Window

Night = tuple[MemoryRecord, Verdict]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> $$x$$ 🔥 \x00"


class Outline(HTMLParser):
    """Tags with their attributes, the text outside scripts, and the scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._places: list[int] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in {"script", "style"} else ""
        if tag == "script":
            self.scripts.append("")
            self._places += [len(self.scripts) - 1] if dict(attrs).get("class") == "plot-piece" else []

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.words.append(data)

    @property
    def pieces(self) -> list[str]:
        """The documents of the plots."""
        return [self.scripts[number] for number in self._places]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def page(page_of_night: str) -> str:
    """The page of the sample."""
    return page_of_night


def test_the_page_begins_with_the_verdict(page: str, night: Night) -> None:
    """The first words are the outcome, the run, and the reason."""
    text = Outline(page).text
    position = text.index("✗ fail demo-overnight")
    assert text.index(night[1].reason) < text.index("start (UTC)")
    assert position < text.index(night[1].reason)


def test_every_finding_is_on_the_page(page: str, night: Night) -> None:
    """Each reason, and each definition of what fails the run, can be read without opening anything else."""
    text = Outline(page).text
    assert all(finding.sentence in text for finding in night[1].findings)
    assert all(
        finding.definition in text for finding in night[1].findings if finding.outcome is not Outcome.NOT_APPLICABLE
    )


def test_a_card_tells_numbers_load_and_events(page: str) -> None:
    """Measured, limit, interval, samples, the load in the window and the events in it stand in the card."""
    text = Outline(page[page.index('id="finding-1"') :].partition("</article>")[0]).text
    for part in (
        "measured 48.1 MiB",
        "interval 47.9 to 48.3 MiB",
        "23,340 of 23,400 expected",
        "tg : answered 800 requests/s (756 to 849 requests/s)",
        "failed 0.00439 requests/s (0 to 25 requests/s)",
        "latency p99 4.04 ms (4 to 254 ms)",
        "process.restart",
    ):
        assert part in text


def test_the_arithmetic_of_a_rule_has_units() -> None:
    """Nobody reads 30,177,865.1 as 28.8 MiB; what is no amount of its series stays a bare number."""
    window = Window(0, 3600 * 10**9)
    numbers = {
        "mean_first": 30_177_865.1,
        "rise_per_hour": 54_531_503.4,
        "n_first": 220.0,
        "gap_s": 39.0,
        "change": 0.26,
    }
    grown = Finding(
        "memory_growth", 1, Outcome.FAIL, "fw", "process.memory.usage", "", window, "", "", 9, numbers=numbers
    )
    assert dict(findings.arithmetic(grown)) == {
        "change": "0.26",
        "gap_s": "39 s",
        "mean_first": "28.8 MiB",
        "n_first": "220",
        "rise_per_hour": "52 MiB/h",
    }


def test_nothing_is_fetched(page: str) -> None:
    """No attribute and no style names anything outside the file, and its policy forbids loading."""
    outline = Outline(page)
    assert all(not attrs.get("src") for _, attrs in outline.tags)
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in outline.tags)
    assert not any(tag in {"link", "iframe", "object", "embed", "base"} for tag, _ in outline.tags)
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] for t, a in outline.tags if t == "meta" and a.get("http-equiv"))
    assert str(policy).startswith("default-src 'none';")
    assert "http" not in str(policy)


def test_links_within_the_page_lead_somewhere(page: str) -> None:
    """Every anchor that is linked exists, and every plot has its element."""
    tags = Outline(page).tags
    ids = {attrs["id"] for _, attrs in tags if "id" in attrs}
    assert {str(attrs["href"])[1:] for _, attrs in tags if "href" in attrs} <= ids
    held = re.findall(r'class="plot-piece" data-element="([^"]+)"', page)
    assert set(held) <= ids
    assert len(set(held)) == len(held) == page.count('class="plot"')


def test_every_judged_series_is_plotted_over_the_load(page: str) -> None:
    """Four findings with series, the two other judged series that change, and three of the load, on one time axis."""
    pieces = [json.loads(text) for text in re.findall(r'class="plot-piece" data-element="[^"]+">(.*?)</script>', page)]
    overview = page[page.index('<section id="overview"') :].split("</section>")[0].count('class="plot"')
    assert overview == 9
    assert len(pieces) == 9 + overview
    axes = [piece["time"] for piece in pieces]
    assert all(axis == axes[0] for axis in axes)
    assert axes[0]["name"] == "time"
    loaded = [piece for piece in pieces if piece.get("load_words") == "load, requests/s"]
    assert len(loaded) == 8 + overview - 1  # the load is not drawn behind itself
    assert "Plotted with their findings above: leaker process.memory.usage" in Outline(page).text
    assert "Passed and constant Series that never changed twin process.start_time" in Outline(page).text


def test_equal_input_gives_equal_bytes_in_another_process_too() -> None:
    """A second rendering in this process, and one in a process with other hash seeds, are the same byte for byte."""
    here = [hashlib.sha256(render_html(*short()).encode()).hexdigest() for _ in range(2)]
    program = (
        "import hashlib\n"
        "from soakwatch.report.html import render_html\n"
        f"from {short.__module__} import short\n"
        "print(hashlib.sha256(render_html(*short()).encode()).hexdigest())\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONHASHSEED": "12345"},
    )
    assert [done.stdout.strip()] * 2 == here


def test_hostile_names_are_shown_as_text(make_night: Callable[[int], Night]) -> None:
    """Names that try to end a script or begin a tag are neither in the page's tags nor in its scripts."""
    record, verdict = make_night(0)
    findings = [replace(f, reason=HOSTILE, definition=HOSTILE, doubts=(HOSTILE,)) for f in verdict.findings]
    phases = (Phase(HOSTILE, verdict.window),)
    shown_verdict = fold(HOSTILE, verdict.window, record.roles(), findings, verdict.ledgers, phases)
    event = Event(HOSTILE, "leaker", HOSTILE, verdict.window.begin_ns, None, {HOSTILE: HOSTILE})

    class Dressed:
        """The record with hostile events, plan and fingerprint."""

        def __getattr__(self, name: str) -> object:
            return getattr(record, name)

        def events(self) -> tuple[StoredEvent, ...]:
            return (StoredEvent(1, HOSTILE, event),)

        def meta(self, key: str) -> str | None:
            return HOSTILE if key in {"plan", "versions", "command"} else json.dumps({HOSTILE: {HOSTILE: HOSTILE}})

    page = render_html(Dressed(), shown_verdict)  # type: ignore[arg-type]
    outline = Outline(page)
    assert not any(tag == "img" for tag, _ in outline.tags)
    assert len(outline.scripts) == 4 + len(outline.pieces)
    assert "alert(1)" in outline.text
    assert "\x00" not in page
    assert len(outline.pieces) > 6
    for piece in outline.pieces:
        json.loads(piece)


@pytest.mark.parametrize(("more", "steadier"), [(24, 11), pytest.param(194, 181, marks=pytest.mark.slow)])
def test_many_series_share_plots_and_stay_small(make_night: Callable[[int], Night], more: int, steadier: int) -> None:
    """Of 200 judged series the calm crowd shares plots and is counted, what failed stands alone, under 15 MB in all."""
    page = render_html(*make_night(more))
    assert len(page.encode()) < 15_000_000
    text = Outline(page).text
    assert "14 further series share plots" in text
    assert f"{steadier} steadier ones are not" in text
    assert text.index("✗ fail memory_growth process.memory.usage") < text.index("Further series, by metric")


def test_a_few_series_stand_alone(make_night: Callable[[int], Night], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything fails by itself: so many have a plot or a card of their own, and the rest is in rows."""
    monkeypatch.setattr(series, "_MAX_SINGLES", 3)
    monkeypatch.setattr(findings, "_MAX_PLOTS", 3)
    monkeypatch.setattr(findings, "_MAX_CAUSES", 6)
    record, verdict = make_night(6)
    bad = [replace(finding, outcome=Outcome.FAIL, rule="own") for finding in verdict.findings]
    page = render_html(record, fold("bad", verdict.window, record.roles(), bad, verdict.ledgers, verdict.phases))
    text = Outline(page).text
    assert "Not plotted here: the first 3 findings have plots." in text
    assert "4 further findings" in text
    assert "6 further series share plots" in text
    assert all(f'id="finding-{n + 1}"' in page for n in range(len(bad)))


@pytest.mark.slow
def test_at_most_forty_series_stand_alone(make_night: Callable[[int], Night]) -> None:
    """Where everything fails by itself, forty series and forty findings have their own plot; the rest is in rows."""
    record, verdict = make_night(100)
    bad = [replace(finding, outcome=Outcome.FAIL, rule="own") for finding in verdict.findings]
    shown_verdict = fold("bad", verdict.window, record.roles(), bad, verdict.ledgers, verdict.phases)
    page = render_html(record, shown_verdict)
    text = Outline(page).text
    assert "26 further series share plots" in text
    assert "Not plotted here: the first 40 findings have plots." in text
    assert "44 further findings" in text
    assert all(f'id="finding-{n + 1}"' in page for n in range(len(bad)))


def test_what_grows_together_is_reported_once(make_night: Callable[[int], Night]) -> None:
    """A hundred workers of one name that all grow are one cause: a card, the others in a table."""
    record, verdict = without_series(*make_night(100))
    bad = [replace(f, outcome=Outcome.FAIL) if f.rule == "memory_growth" else f for f in verdict.findings]
    shown_verdict = fold("bad", verdict.window, record.roles(), bad, verdict.ledgers, verdict.phases)
    text = Outline(render_html(record, shown_verdict)).text
    assert "growth, 100 related findings" in text
    assert "99 more findings of this cause" in text


def test_a_run_without_anything_has_a_page(make_night: Callable[[int], Night]) -> None:
    """No series, no findings, no plan: the page says what is missing and carries no plots."""
    empty = type(make_night(0)[0])()
    page = render_html(empty, fold("empty", Window(0, 0), {"dut": "dut"}, [], [], []))
    text = Outline(page).text
    for part in ("inconclusive empty", "Nothing was polled.", "No series was judged.", "The record has no plan."):
        assert part in text
    assert "plot-piece" not in page
    assert "uPlot" not in page  # nor what would paint them
    assert len(page) < 100_000


def test_a_target_that_nothing_judged_is_not_shown_as_a_pass(page: str) -> None:
    """The generator, of which no rule said anything, is "not applicable" in the table and among the calm."""
    text = Outline(page).text
    assert "tg generator – not applicable nothing was judged here" in text
    assert "– not applicable tg nothing was judged here" in text


def test_a_monitor_that_was_resumed_says_so(make_night: Callable[[int], Night]) -> None:
    """The lives of the monitor are listed where there is more than one."""
    record, verdict = without_series(*make_night(0))
    begin = verdict.window.begin_ns

    class Resumed:
        """The record of a run that was resumed once."""

        def __getattr__(self, name: str) -> object:
            return getattr(record, name)

        def spans(self) -> tuple[Window, ...]:
            return (Window(begin, begin + 10**12), Window(begin + 2 * 10**12, begin + 3 * 10**12))

    assert "The monitor itself ran 2 times" in Outline(render_html(Resumed(), verdict)).text  # type: ignore[arg-type]


def test_the_set_up_shows_what_the_rule_says_of_it(page: str, plain: Night) -> None:
    """Both widths of a PCIe link stand in the table; that it is slow is said where the rule says so, and only there."""
    assert "x8 at 16.0 GT/s, could do x16 at 16.0 GT/s" in Outline(page).text
    assert "Check this" not in page
    record, verdict = plain
    slow = replace(verdict.findings[0], rule="setup", outcome=Outcome.WARN, target="leaker", reason="eth0 is slow")
    judged = Outline(render_html(record, replace(verdict, findings=(slow,), causes=()))).text
    assert "Check this ! leaker: eth0 is slow" in judged


def test_what_could_not_be_judged_has_its_place(page: str) -> None:
    """Inconclusive and not applicable findings, silent targets and unreadable metrics are listed with reasons."""
    text = Outline(page).text
    part = text[text.rindex("What could not be judged") :].partition("Coverage")[0]
    for word in (
        "the kernel log may not be read",
        "run as root",
        "no core folder is watched",
        "No rule applied to: tg",
    ):
        assert word in part
    assert "PSS of httpd may not be read: be root" in text


def test_every_section_module_has_its_place() -> None:
    """Sections are found in their folder and have different places on the page."""
    sections = all_sections()
    orders = [section.order for section in sections]
    assert orders == sorted(set(orders))
    assert {"verdict", "findings", "series", "coverage", "unjudged", "events", "plan", "setup", "words"} <= {
        section.name for section in sections
    }
