"""The morning page: one line for a manager, what broke first, headroom, acknowledgements, what changed, and bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from soakwatch.core.event_kinds import ACKNOWLEDGED, STOP
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.meta import setup_of
from soakwatch.record.model import StoredEvent
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch.report.headline import headline
from soakwatch.report.headroom import rooms
from soakwatch.report.html import render_html
from soakwatch.report.load import generators
from soakwatch.report.section import all_sections
from soakwatch.runs.setup_changes import changed
from soakwatch_model.case import Silence
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, CauseKind

Night = tuple[ReportSource, Verdict]
BEGIN = 1_795_200_000 * 10**9
HOUR = 3600 * 10**9


class Beside:
    """A record with more series, events or metas than it has."""

    def __init__(
        self, record: ReportSource, series: tuple[Series, ...] = (), events: tuple[StoredEvent, ...] = (), **metas: str
    ) -> None:
        self._record, self._series, self._events, self._metas = record, series, events, metas

    def __getattr__(self, name: str) -> object:
        return getattr(self._record, name)

    def keys(self, metrics: Collection[str] | None = None) -> tuple[SeriesKey, ...]:
        own = [SeriesKey(s.target, s.metric, s.object) for s in self._series]
        return (*self._record.keys(metrics), *(k for k in own if metrics is None or k.metric in metrics))

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        for series in self._series:
            if (series.target, series.metric, series.object) == (key.target, key.metric, key.object):
                return series.between(begin_ns or 0, end_ns or 2**62)
        return self._record.series(key, begin_ns, end_ns)

    def events(self) -> tuple[StoredEvent, ...]:
        return (*self._record.events(), *self._events)

    def meta(self, key: str) -> str | None:
        return self._metas.get(key, self._record.meta(key))


def level(metric: str, values: list[float], target: str = "leaker", obj: str = "") -> Series:
    """A series of an hour a reading."""
    entry = BY_NAME[metric]
    trait = Trait(entry.unit, entry.kind, entry.growth, entry.low, entry.high, entry.quantum)  # type: ignore[arg-type]
    return Series(target, metric, obj, trait, BEGIN + np.arange(len(values)) * HOUR, np.array(values), 3600.0)


def finding_of(outcome: Outcome, rule: str, metric: str, obj: str = "", **more: object) -> Finding:
    """A finding of the leaker over the whole night."""
    fields: dict[str, object] = {
        "rule": rule,
        "version": 1,
        "outcome": outcome,
        "target": "leaker",
        "metric": metric,
        "object": obj,
        "window": Window(BEGIN, BEGIN + 8 * HOUR),
        "definition": "Stated.",
        "reason": f"{rule} said so",
        "samples": 9,
    }
    return Finding(**{**fields, **more})  # type: ignore[arg-type]


def verdict_of(night: Night, findings: list[Finding]) -> Verdict:
    """The verdict over these findings alone."""
    before = night[1]
    return fold(before.run, before.window, night[0].roles(), findings, before.ledgers, before.phases)


def section(page: str, name: str) -> str:
    """The markup of one section."""
    return page.split(f'<section id="{name}">', 1)[1].split("</section>", 1)[0]


def words(markup: str) -> str:
    """What a person reads of it."""
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


def test_a_manager_reads_one_line(night: Night) -> None:
    """Who, for how long, under which load and why, in words that need no rule's name."""
    load = generators(night[0])
    line = headline(night[1], load)
    assert line.startswith("memory of httpd on leaker keeps growing")  # it did before it died
    assert "Also: httpd on leaker restarted at 20 Nov 23:40:00 UTC." in line
    assert "_" not in line
    good = verdict_of(
        night, [finding_of(Outcome.PASS, "drops", ""), replace(finding_of(Outcome.PASS, "drops", ""), target="twin")]
    )
    assert headline(good, ()) == "leaker, twin passed 8 h: no failures or warnings."
    undecided = verdict_of(
        night, [finding_of(Outcome.INCONCLUSIVE, "growth", "system.memory.usage", why=InconclusiveReason.TOO_SHORT)]
    )
    assert headline(undecided, ()) == "No verdict for leaker, twin after 8 h: the run was too short."


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["loss"], "the samples do not cover all of it"),
        (["coverage"], "too many polls were lost"),
        (["gap", "growth"], "too many polls were lost"),
    ],
)
def test_lost_polls_are_told_only_where_polls_were_lost(night: Night, rules: list[str], words: str) -> None:
    """Samples that are missing though every poll was answered (a generator that printed nothing) are no lost polls;
    where a source was silent, what its silence left open is told with it, once."""
    gaps = [finding_of(Outcome.INCONCLUSIVE, rule, "", why=InconclusiveReason.GAP) for rule in rules]
    assert headline(verdict_of(night, gaps), ()) == f"No verdict for leaker, twin after 8 h: {words}."


def test_no_verdict_says_who_did_not_answer_and_when(night: Night) -> None:
    """The longest silence with its times; and of what nothing is known to compare with."""
    at_ns = night[1].window.begin_ns + 3600 * 10**9
    marks = (Mark(at_ns, at_ns + 33 * 10**9, "silent", MarkKind.SILENCE),)
    lost = finding_of(
        Outcome.INCONCLUSIVE, "coverage", "", why=InconclusiveReason.GAP, object="leaker/snmp", marks=marks
    )
    line = headline(verdict_of(night, [lost]), ())
    assert "leaker/snmp did not answer for 33 s (20 Nov " in line
    alone = finding_of(Outcome.INCONCLUSIVE, "cpu_spike", "system.cpu.utilization", why=InconclusiveReason.NO_REFERENCE)
    assert headline(verdict_of(night, [alone]), ()).endswith(": there is nothing to compare CPU with.")


def test_the_sections_stand_in_the_order_of_a_morning() -> None:
    """Verdict, what broke first, evidence, headroom, what is inconclusive, coverage, generator, set-up, changes."""
    names = [section.name for section in all_sections()]
    wanted = [
        "verdict",
        "chain",
        "findings",
        "overview",
        "headroom",
        "unjudged",
        "coverage",
        "load",
        "setup",
        "changed",
    ]
    assert [name for name in names if name in wanted] == wanted
    assert names.index("changed") < names.index("series") < names.index("words")


def test_what_broke_first_is_shown_in_order_of_time_with_the_load(page_of_eventful: str) -> None:
    """Moments of all targets in one line of time: lag behind the first failure, load then, links to card and plots."""
    chain = section(page_of_eventful, "chain")
    rows = re.findall(r"<tr.*?</tr>", chain, re.DOTALL)
    text = [words(row) for row in rows]
    first = next(n for n, row in enumerate(rows) if 'class="first"' in row)
    assert "+0 s leaker process_restart" in text[first] or "+0 s" in text[first]
    times = [re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row) for row in text]
    shown_times = [hit[0] for hit in times[: chain.count('class="name"')] if hit]
    moments = [time_text for time_text in shown_times if time_text]
    assert moments[: len(moments) - 4] == sorted(moments[: len(moments) - 4])
    assert any("−" in row for row in text)  # the warning came before the first failure
    assert any("requests/s" in row for row in text)
    zoom = re.search(r'data-zoom="(\d+),(\d+)"', rows[first])
    assert zoom is not None
    assert int(zoom[1]) < int(zoom[2])
    assert int(zoom[1]) >= BEGIN // 10**6
    assert re.search(r'href="#(cause|finding)-\d+"', rows[first])
    assert "Without a moment: judged over a whole stretch" in words(chain)  # the growth has no moment


def test_a_quiet_run_has_no_timeline(plain: Night) -> None:
    """Where nothing failed or warned there is nothing to put in order."""
    assert '<section id="chain">' not in render_html(
        plain[0], verdict_of(plain, [finding_of(Outcome.PASS, "drops", "")])
    )


def test_headroom_is_worst_first_with_hours_until_exhaustion(plain: Night) -> None:
    """Beyond a limit, then what runs out soonest, then what the device states, then limits of rules."""
    record = Beside(
        plain[0],
        (
            level("system.memory.usage", [1e9, 2e9, 3e9]),
            level("system.memory.limit", [4e9] * 3),
            level("system.conntrack.count", [10, 20, 10]),
            level("system.conntrack.limit", [100] * 3),
            level("system.filesystem.usage", [5, 5, 5], obj="mountpoint=/"),
            level("queue.usage", [90, 90, 90], obj="queue=0"),
            level("queue.limit", [100] * 3, obj="queue=0"),
            level("system.filesystem.limit", [10] * 3, obj="mountpoint=/"),
        ),
    )
    forecast = Forecast("system.memory.limit (3.73 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)
    findings = [
        finding_of(
            Outcome.FAIL, "growth", "system.memory.usage", measured=9e8, limit=1e8, unit="By/h", forecast=forecast
        ),
        finding_of(Outcome.INCONCLUSIVE, "growth", "system.conntrack.count", why=InconclusiveReason.TOO_SHORT),
        finding_of(Outcome.PASS, "cpu_spike", "system.cpu.utilization", measured=0.6, limit=0.95, unit="1"),
        finding_of(Outcome.PASS, "drops", "queue.dropped", measured=0.0, limit=0.0),
        finding_of(Outcome.PASS, "coverage", "", "leaker/local", measured=1.0, limit=0.95, unit="1"),
    ]
    rows, left = rooms(record, findings)  # type: ignore[arg-type]
    assert left == 0
    by = [(row.about[0], row.of, row.room_text, row.forecast) for row in rows]
    assert by[0] == ("system.memory.usage", "rule growth", "800 % over the limit", by[0][3])
    assert by[1][:3] == ("system.memory.usage", "the device", "25 %")
    assert "reached in 31 h ± 6 h (90 %)" in by[1][3]
    assert ("system.filesystem.usage", "the device", "50 %", "not judged") in by
    assert ("system.conntrack.count", "the device", "80 %", "not judged: too short") in by
    assert by[-1][:2] == ("system.cpu.utilization", "rule cpu_spike")
    assert not any(row[0] == "queue.usage" for row in by)  # bytes have no limit in packets
    assert not any(row[1] in {"rule drops", "rule coverage"} for row in by)
    text = words(section(render_html(record, verdict_of(plain, findings)), "headroom"))  # type: ignore[arg-type]
    assert "1 zero-tolerance counter stayed at zero." in text
    assert "! 800 % over" in text


def test_an_acknowledged_finding_keeps_its_outcome_and_says_so(plain: Night) -> None:
    """The reason and its time stand beside the finding; the verdict is the same, and the event is none of a card."""
    detail = {"rule": "memory_growth", "metric": "process.memory.usage", "reason": "known <b>leak</b>, see FW-12"}
    event = Event(ACKNOWLEDGED, "leaker", "process=httpd,instance=0", BEGIN + HOUR, None, detail)
    record = Beside(plain[0], events=(StoredEvent(9, "web", event),))
    page = render_html(record, plain[1])  # type: ignore[arg-type]
    card = page[page.index('id="finding-1"') :].partition("</article>")[0]
    assert "Acknowledged: known &lt;b&gt;leak&lt;/b&gt;, see FW-12 (2026-11-20 19:40:00 UTC)" in words(card)
    assert "fail memory_growth" in words(card)
    assert ACKNOWLEDGED not in words(card)
    assert page.count("<b>Acknowledged:</b>") == 1
    assert re.search(r"Acknowledged 1 of \d+ findings; the verdict is the same", words(section(page, "verdict")))


def test_a_run_that_was_stopped_says_why(plain: Night) -> None:
    """The reason that someone gave stands with the facts of the run."""
    event = Event(STOP, "", "", BEGIN + 7 * HOUR, None, {"reason": "rack needed"})
    page = render_html(Beside(plain[0], events=(StoredEvent(9, "web", event),)), plain[1])  # type: ignore[arg-type]
    assert "Stopped on request: rack needed (2026-11-21 01:40:00)" in words(section(page, "verdict"))


def test_a_finding_links_to_its_exact_window(page_of_night: str) -> None:
    """The window of a card zooms the plots to it and jumps to the card's own plot."""
    page = page_of_night
    card = page[page.index('id="finding-1"') :].partition("</article>")[0]
    begin, end = BEGIN // 10**6 + 1_800_000, BEGIN // 10**6 + 7 * 3_600_000
    link = re.search(rf'href="#(plot-\d+)" data-zoom="{begin},{end}"', card)
    assert link is not None
    assert f'id="{link[1]}"' in card
    assert re.search(r'<button type="button" data-zoom="\d+,\d+"', page)


def test_what_changed_since_an_earlier_run_is_shown(plain: Night) -> None:
    """A new release, a machine with other settings and another plan; the same set-up is shown as that."""
    record = plain[0]
    before = Beside(record, versions=json.dumps({"soakwatch": "0.1.0", "python": "3.11.6"}), plan="name: demo\n")
    difference = changed(record, before)  # type: ignore[arg-type]
    assert difference is not None
    assert [(c.about, c.before, c.now) for c in difference.changes] == [("versions python", "3.11.6", "3.11.7")]
    assert "-name: demo" in difference.plan
    text = words(section(render_html(record, plain[1], before), "changed"))  # type: ignore[arg-type]
    assert "versions python 3.11.6 3.11.7" in text
    kept = Beside(record, earlier=json.dumps(setup_of(record, "20261114T200000Z-fw-7.1")))
    text = words(section(render_html(kept, plain[1]), "changed"))  # type: ignore[arg-type]
    assert "Compared with 20261114T200000Z-fw-7.1: the same set-up in both records." in text
    assert '<section id="changed">' not in render_html(*plain)


def test_a_long_list_that_differs_at_its_end_has_changed(night: Night) -> None:
    """What is cut, where it is cut, is the picture and not what is held against each other."""
    flags = [f"cpuflag{n}" for n in range(100)]
    now, before = (
        Beside(night[0], fingerprint=json.dumps({"leaker": {"flags": [*flags, last]}})) for last in ("avx", "amx")
    )
    difference = changed(now, before)  # type: ignore[arg-type]
    assert difference is not None
    assert [(c.about, c.before[-3:], c.now[-3:]) for c in difference.changes] == [("leaker flags", "amx", "avx")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": "x"}', "null"])
def test_a_damaged_earlier_set_up_is_left_out(night: Night, text: str) -> None:
    assert changed(Beside(night[0], earlier=text), None) is None  # type: ignore[arg-type]


@pytest.mark.slow
def test_ten_thousand_interfaces_leave_the_page_bounded(plain: Night) -> None:
    """Whether they pass or fail: rows, cards, moments and plots have a bound, and what is left out is counted."""
    record, verdict = plain
    long = "eth<script>alert(1)</script>" + "x" * 500
    mark = (Mark(BEGIN + HOUR, None, "1 lost"),)
    for outcome in (Outcome.PASS, Outcome.FAIL):
        many = tuple(
            finding_of(
                outcome,
                "drops",
                "system.network.errors",
                f"interface={long}{n},direction=receive",
                measured=0.1,
                limit=0.2 if outcome is Outcome.PASS else 0.05,
                unit="1",
                marks=mark,
            )
            for n in range(10_000)
        )
        cause = Cause(
            CauseKind.INCIDENT, "leaker", BEGIN, BEGIN + HOUR, "lost", outcome, tuple(range(10_000)), None, mark
        )
        causes = (cause,) if outcome is Outcome.FAIL else ()
        page = render_html(record, replace(verdict, outcome=outcome, findings=many, causes=causes))
        assert len(page.encode()) < 6_000_000
        assert "more are in verdict.json" in page
        assert "<script>alert" not in page


def test_a_source_that_fell_silent_is_shown_where_it_happened(plain: Night) -> None:
    """A silence that no finding tells of stands in the line of time, with its polls, and leads to the coverage."""
    hush = Silence(Window(BEGIN + HOUR, BEGIN + HOUR + 90 * 10**9), {"timeout": 9})
    before = plain[1]
    ledgers = [replace(before.ledgers[0], silences=(hush,)), *before.ledgers[1:]]
    chain = section(render_html(plain[0], replace(before, ledgers=tuple(ledgers))), "chain")
    row = next(row for row in re.findall(r"<tr.*?</tr>", chain, re.DOTALL) if "silent" in row)
    assert "leaker/local did not answer for 1 min 30 s: 9 timed out" in words(row)
    assert 'href="#coverage"' in row


def test_right_to_left_names_turn_nothing_around_them(plain: Night) -> None:
    """Letters that run leftward are shut off inside sentences; overrides are dropped."""
    record, verdict = plain
    name = "خدمة الويب \u202eevil"
    worse = [replace(f, reason=f"memory of {name} rose by 49 %") for f in verdict.findings]
    page = render_html(record, fold(name, verdict.window, record.roles(), worse, verdict.ledgers, verdict.phases))
    assert "\u202e" not in page
    assert "memory of \u2068خدمة الويب\u2069 evil rose by 49 %" in page
