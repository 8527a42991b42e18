"""Causes: what belongs together is reported once, nothing is lost, and chance makes no cause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch_model.event import Event
from soakwatch_model.fact import Growth, Onset
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import Cause, CauseKind, causes, lags, rows_by_reason
from soakwatch_rules.causes.growth_owner import owners
from soakwatch_rules.wording.forecast import forecast_words

SECOND = 10**9
HOUR = 3600 * SECOND
DAY = Window(0, 24 * HOUR)
HTTPD = "process=httpd,instance=0"
TOLD = {Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE}


def finding(rule: str, *at_s: float | tuple[float, float], **more: object) -> Finding:
    """A failure of the device with marks at these seconds, or from one to another."""
    spans = [(a, a) if isinstance(a, int | float) else a for a in at_s]
    marks = tuple(Mark(round(a * SECOND), round(b * SECOND), f"{rule} here") for a, b in spans)
    fields: dict[str, object] = {
        "rule": rule,
        "version": 1,
        "outcome": Outcome.FAIL,
        "target": "dut",
        "metric": "",
        "object": "",
        "window": DAY,
        "definition": "d",
        "reason": f"{rule} failed",
        "samples": 9,
        "marks": marks,
    }
    return Finding(**{**fields, **more})  # type: ignore[arg-type]


def growing(metric: str, rate: float, obj: str = "", rule: str = "growth", **more: object) -> Finding:
    """A failure of growth at this rate per hour."""
    return finding(rule, **{"metric": metric, "object": obj, "measured": rate, "unit": "By/h", **more})


def grouped(causes: tuple[Cause, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Kind and findings of each cause."""
    return [(cause.kind.value, cause.findings) for cause in causes]


def test_each_moment_of_a_time_line_has_its_own_outcome() -> None:
    """A cause fails by one of its findings; what passed then, and an event, did not."""
    restart = finding("process_restart", 5000, outcome=Outcome.PASS, object=HTTPD)
    core, silence = finding("core_dump", 5002), finding("gap", (5001, 5009), outcome=Outcome.WARN)
    silence = replace(silence, marks=tuple(replace(m, kind=MarkKind.SILENCE) for m in silence.marks))
    upgrade = Event("upgrade", "dut", "", 4990 * SECOND, 4999 * SECOND)
    (cause,) = causes([restart, core, silence], [upgrade])
    assert [(mark.outcome, mark.kind) for mark in cause.timeline] == [
        (None, MarkKind.MOMENT),
        (Outcome.PASS, MarkKind.MOMENT),
        (Outcome.WARN, MarkKind.SILENCE),
        (Outcome.FAIL, MarkKind.MOMENT),
    ]


def test_a_restart_explains_what_lies_around_it() -> None:
    """Core, restart, drop of memory, gap and spike within two minutes are one incident led by the core, in order."""
    matches = causes(
        [
            finding("cpu_spike", (4990, 5000)),
            finding("process_restart", (5003, 5004), object=HTTPD),
            finding("core_dump", 5002),
            finding("step_change", 5010, outcome=Outcome.WARN, metric="system.memory.usage"),
            finding("gap", (5001, 5015), outcome=Outcome.WARN, object="local"),
            finding("level", 40_000),
        ]
    )
    assert grouped(matches) == [("incident", (2, 1, 0, 3, 4)), ("finding", (5,))]
    assert [lag for lag, _ in lags(matches[0])] == ["+0 s", "+11 s", "+12 s", "+13 s", "+20 s"]
    assert [mark.text.split()[0].rstrip(":") for mark in matches[0].timeline][:3] == ["cpu_spike", "gap", "core_dump"]
    assert matches[0].confidence is not None
    assert matches[0].confidence > 0.999
    assert matches[1].confidence is None


def test_at_one_moment_what_leads_stands_first() -> None:
    """A restart and the loss of its seconds have one moment: the time line told the loss first."""
    loss, restart = finding("loss", (5000, 5003)), finding("process_restart", (5000, 5003), object=HTTPD)
    (cause,) = causes([loss, restart])
    assert [mark.text.split()[0] for mark in cause.timeline] == ["process_restart", "loss:"]


def test_what_also_happened_elsewhere_is_not_explained_away() -> None:
    """Of three spikes one lies at the reboot: the finding stays by itself, and the reboot's time line names it."""
    matches = causes([finding("reboot", (5000, 5060)), finding("cpu_spike", 4990, 30_000, 60_000)])
    assert grouped(matches) == [("finding", (1,)), ("incident", (0,))]  # the first spike was before the reboot
    assert [mark.text for mark in matches[1].timeline] == ["cpu_spike: cpu_spike here", "reboot: reboot here"]


def test_the_boot_time_counts_however_long_it_is() -> None:
    """A quarter of an hour between the last reading before a reboot and the first after it is one incident."""
    (cause,) = causes(
        [
            finding("reboot", (5000, 5900)),
            finding("gap", (5001, 5890), outcome=Outcome.WARN),
            finding("process_restart", (5000, 5905), object=HTTPD),
            finding(
                "coverage", (5001, 5890), outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.GAP, settle="mend it"
            ),
        ]
    )
    assert (cause.kind, cause.findings, cause.outcome) == (CauseKind.INCIDENT, (0, 2, 1, 3), Outcome.FAIL)


def test_a_planned_spike_does_not_keep_the_other_from_its_cause() -> None:
    """A spike that a phase asked for is not what a failing finding is about."""
    spike = finding("cpu_spike", 5000, 70_000)
    spike = replace(spike, marks=(spike.marks[0], replace(spike.marks[1], text="100 % (planned)", planned=True)))
    (cause,) = causes([finding("reboot", 5010), spike])
    assert cause.findings == (0, 1)


def test_spikes_at_the_restarts_of_two_processes_belong_to_the_first() -> None:
    """Two processes restart an hour apart and memory falls each time: no single restart explains both falls."""
    matches = causes(
        [
            finding("process_restart", 5000, object=HTTPD),
            finding("process_restart", 9000, object="process=sshd,instance=0"),
            finding("step_change", 5005, 9005, outcome=Outcome.WARN),
        ]
    )
    assert grouped(matches) == [("incident", (0, 2)), ("incident", (1,))]


def test_a_silent_agent_at_a_full_cpu_is_one_incident() -> None:
    """Silence, a pinned CPU and lost packets at the same time are reported as one, with what each of them saw."""
    (cause,) = causes(
        [
            finding("cpu_spike", (3000, 3300), metric="system.cpu.utilization"),
            finding("gap", (3010, 3310), outcome=Outcome.WARN, object="snmp"),
            finding("drops", (3020, 3290), metric="system.network.packet.dropped", object="interface=e0"),
            finding(
                "coverage",
                (3010, 3310),
                outcome=Outcome.INCONCLUSIVE,
                why=InconclusiveReason.GAP,
                settle="mend it",
                object="snmp",
            ),
        ]
    )
    assert cause.kind is CauseKind.INCIDENT
    assert cause.headline.startswith("CPU saturated, packets lost and management silent at once: cpu_spike failed")
    assert cause.findings == (0, 2, 1, 3)


def test_other_targets_have_their_own_causes() -> None:
    """The same second on another device is another happening, unless an event of the whole run explains both."""
    both = [finding("cpu_spike", 5000), finding("cpu_spike", 5001, target="twin")]
    assert len(causes(both)) == 2
    (cause,) = causes(both, [Event("failover", "", "", 4990 * SECOND, None)])
    assert (cause.kind, cause.target) == (CauseKind.EVENT, "")


def test_chance_makes_no_cause() -> None:
    """What happens all the time lies near everything: a pause a minute explains no spike and is explained by none."""
    pauses = finding("periodic_pause", *range(0, 86_000, 60), outcome=Outcome.WARN)
    matches = causes([pauses, finding("cpu_spike", 5000), finding("level", 60_000)])
    assert sorted(len(cause.findings) for cause in matches) == [1, 1, 1]


def test_in_a_short_run_together_means_sooner() -> None:
    """A minute apart is the same happening in a day, and not in a run of five minutes."""
    five = Window(0, 300 * SECOND)
    apart = [finding("process_restart", 100, object=HTTPD), finding("cpu_spike", 160)]
    assert len(causes(apart)) == 1
    assert len(causes([replace(result, window=five) for result in apart])) == 2


def test_a_recorded_event_explains_a_step() -> None:
    """Within two minutes after a failover, or up to its deadline, a step follows from it; later it does not."""
    step = finding("step_change", 5060, outcome=Outcome.WARN)
    event = Event("failover", "dut", "", 5000 * SECOND, 5005 * SECOND)
    (cause,) = causes([step], [event])
    assert (cause.kind, cause.outcome) == (CauseKind.EVENT, Outcome.WARN)
    assert cause.headline == "after failover at 1970-01-01 01:23:20 UTC: step_change failed"
    assert [mark.text for mark in cause.timeline] == ["failover: recorded", "step_change: step_change here"]
    assert causes([step], [replace(event, begin_ns=4000 * SECOND, end_ns=None)])[0].kind is CauseKind.FINDING
    planned = replace(event, begin_ns=4000 * SECOND, end_ns=None, deadline_ns=5050 * SECOND, expect={"reboot": 1})
    assert causes([step], [planned])[0].kind is CauseKind.EVENT
    assert causes([step], [replace(event, target="twin")])[0].kind is CauseKind.FINDING


def test_a_failure_after_an_event_is_still_a_failure() -> None:
    """A cause explains; it pardons nothing: that is for the plan to say."""
    (cause,) = causes(
        [finding("process_restart", 5004, object=HTTPD)], [Event("config", "dut", "", 5000 * SECOND, None)]
    )
    assert (cause.kind, cause.outcome) == (CauseKind.EVENT, Outcome.FAIL)


def test_an_announced_restart_that_passed_bears_witness() -> None:
    """Memory that falls at an allowed restart is reported with it, though the restart itself is no objection."""
    (cause,) = causes(
        [
            finding("process_restart", 5000, object=HTTPD, outcome=Outcome.PASS),
            finding("step_change", 5010, outcome=Outcome.WARN),
        ]
    )
    assert cause.findings == (1, 0)
    assert cause.outcome is Outcome.WARN
    assert causes([finding("process_restart", 5000, outcome=Outcome.PASS)]) == ()


def test_what_probes_saw_is_on_the_time_line() -> None:
    """A segfault in the kernel's log is reported with the restart; the event that the rule itself tells of is not."""
    events = [
        Event("kernel.segfault", "dut", "", 4999 * SECOND, None, {"line": "httpd[4711]: segfault at 0"}),
        Event("process.restart", "dut", HTTPD, 5000 * SECOND, None),
        Event("kernel.segfault", "dut", "", 50_000 * SECOND, None),
    ]
    (cause,) = causes([finding("process_restart", 5000, object=HTTPD)], events)
    texts = [mark.text for mark in cause.timeline]
    assert texts == ["kernel.segfault: httpd[4711]: segfault at 0", "process_restart httpd: process_restart here"]


def test_a_change_of_load_explains_what_follows_the_load() -> None:
    """Saturation and drops that lie in the spike phase are one cause; a crash in it, or drops in the soak, are not."""
    phases = [Phase("soak", Window(0, 20 * HOUR)), Phase("spike", Window(20 * HOUR, 21 * HOUR))]
    matches = causes(
        [
            finding("cpu_saturation", (72_010, 75_000), outcome=Outcome.WARN),
            finding("drops", (73_000, 74_000), outcome=Outcome.WARN),
            finding("drops", 5000, (73_000, 74_000), outcome=Outcome.WARN, object="interface=e1"),
            finding("process_restart", 74_500, object=HTTPD),
        ],
        (),
        phases,
    )
    assert grouped(matches) == [("incident", (3,)), ("finding", (2,)), ("load", (0, 1))]
    assert "phase spike" in matches[2].headline


def test_one_growing_process_is_one_cause() -> None:
    """RSS, PSS and descriptors of a process, by two rules and over its instances, are one; another process is not."""
    matches = causes(
        [
            growing("process.memory.usage", 10e6, HTTPD, rule="memory_growth"),
            growing("process.memory.usage", 10e6, HTTPD),
            growing("process.memory.pss", 9e6, HTTPD),
            growing("process.open_files", 5, "process=httpd,instance=1", unit="{descriptor}/h"),
            growing("process.memory.usage", 10e6, "process=sshd,instance=0"),
        ]
    )
    assert grouped(matches) == [("growth", (1, 2, 3, 0)), ("growth", (4,))]
    assert matches[0].timeline == ()


def test_a_growth_that_two_methods_found_began_when_one_of_them_knows() -> None:
    """Thirds know no onset, shapes do: the cause has it, whichever leads; that of another series is not taken."""
    began = (Onset(7 * HOUR),)
    thirds = growing("process.memory.usage", 10e6, HTTPD, rule="memory_growth")
    shapes = growing("process.memory.usage", 10e6, HTTPD, facts=began, outcome=Outcome.WARN)
    (cause,) = causes([thirds, shapes])
    assert cause.since_ns == 7 * HOUR
    (cause,) = causes([thirds, replace(shapes, metric="process.open_files")])
    assert cause.since_ns is None


def test_the_process_that_owns_the_growth_is_named() -> None:
    """Of 100 MB/h that the host grows httpd holds 92: it is folded under the host, a small one is not."""
    all_of_it = [
        growing("process.memory.usage", 95e6, HTTPD),
        growing("process.memory.pss", 92e6, HTTPD),
        growing("process.memory.pss", 5e6, "process=sshd,instance=0"),
        growing("system.memory.usage", 100e6),
        growing("system.memory.available", -99e6),
    ]
    matches = causes(all_of_it)
    assert [(cause.findings[0], cause.owner, cause.share) for cause in matches] == [(3, "httpd", 0.92), (2, "", None)]
    assert "process httpd accounts for 92 % of it" in matches[0].headline
    assert set(matches[0].findings) == {0, 1, 3, 4}


def test_workers_own_a_growth_together() -> None:
    """Eight workers that each pass own what the host fails for; nobody owns it where all are small."""
    workers = [
        growing("process.memory.pss", 10e6, f"process=worker,instance={n}", outcome=Outcome.PASS) for n in range(8)
    ]
    host = growing("system.memory.usage", 100e6)
    assert owners([*workers, host])["dut"].words == "process worker (8 instances) accounts for 80 % of it"
    assert owners([*workers[:3], host]) == {}
    assert owners([*workers, replace(host, outcome=Outcome.PASS)]) == {}


def test_a_leak_that_ends_in_a_kill_is_one_story() -> None:
    """The process grows, is killed for want of memory and restarts: the kill leads, the growth is with it."""
    (cause,) = causes(
        [
            growing("process.memory.usage", 90e6, HTTPD),
            finding("oom_kill", 5000),
            finding("process_restart", 5003, object=HTTPD),
        ]
    )
    assert (cause.kind, cause.findings) == (CauseKind.INCIDENT, (1, 2, 0))
    apart = causes([growing("process.memory.usage", 90e6, "process=other,instance=0"), finding("oom_kill", 5000)])
    assert len(apart) == 2


def test_what_grew_all_the_time_in_a_process_that_died_broke_first() -> None:
    """A leak from the first reading of the process that died later is told before it; that of another one behind."""
    died = finding("process_restart", 9000, object=HTTPD)
    leak = growing("process.memory.usage", 90e6, HTTPD)
    assert [cause.findings[0] for cause in causes([died, leak])] == [1, 0]
    other = replace(leak, object="process=sshd,instance=0")
    assert [cause.findings[0] for cause in causes([died, other])] == [0, 1]
    behind = replace(leak, marks=(Mark(10_000 * SECOND, DAY.end_ns, "the decisive lifetime"),))
    assert [cause.findings[0] for cause in causes([died, behind])] == [0, 1]


def test_a_step_of_the_series_that_grows_is_with_its_growth() -> None:
    """An unexplained step of a growing series is the same cause; one that a restart explains is the restart's."""
    grows = growing("system.conntrack.count", 100, unit="{connection}/h")
    step = finding("step_change", 5000, metric="system.conntrack.count", outcome=Outcome.WARN)
    assert grouped(causes([grows, step])) == [("growth", (0, 1))]
    with_restart = causes([grows, step, finding("process_restart", 5000, object=HTTPD)])
    assert grouped(with_restart) == [("incident", (2, 1)), ("growth", (0,))]


def test_inconclusive_findings_of_one_reason_are_one_row() -> None:
    """Fourteen series that are too short by different hours are a row with the most that it takes."""
    unsure = [
        finding(
            "growth",
            metric="process.threads",
            object=f"process=w,instance={n}",
            outcome=Outcome.INCONCLUSIVE,
            why=InconclusiveReason.TOO_SHORT,
            reason=f"{n} blocks",
            settle=f"needs {n + 1} more hours at this noise",
        )
        for n in range(14)
    ]
    other = replace(unsure[0], why=InconclusiveReason.CYCLE, reason="3 cycles", settle="needs 1 more cycle")
    matches = causes([*unsure, other])
    assert [result.headline for result in matches] == [
        "3 cycles",
        "growth: 14 series: too short; needs 14 more hours at this noise (at most)",
    ]
    assert matches[1].findings == tuple(range(14))
    same = [replace(result, settle="needs 2 more hours") for result in unsure]
    assert causes(same)[0].headline == "growth: 14 series: too short; needs 2 more hours"


def test_what_does_not_apply_is_a_row_too() -> None:
    """Three targets without a core folder are one row of the table of what could not be judged."""
    idle = [finding("core_dump", outcome=Outcome.NOT_APPLICABLE, target=t, reason="no folder") for t in ("a", "b", "c")]
    (row,) = rows_by_reason(idle, range(3))
    assert row.words == "core_dump: 3 findings of 3 targets: no folder"
    assert causes(idle) == ()


def test_a_generator_at_fault_is_the_cause_of_what_rests_on_it() -> None:
    """What cannot be decided for want of a sound load is folded under the finding on the generator."""
    blamed = {"outcome": Outcome.INCONCLUSIVE, "why": InconclusiveReason.GENERATOR, "settle": "mend the generator"}
    matches = causes(
        [
            finding("drops", 5000, **blamed),
            finding("recovery", 6000, **blamed),
            finding("generator_health", 100, target="tg", **blamed),
            finding("growth", outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.TOO_SHORT, settle="needs 2 h"),
        ]
    )
    assert grouped(matches)[0] == ("generator", (2, 0, 1))
    assert matches[0].headline == "generator at fault, 2 findings rest on its load: generator_health failed"


def test_the_worst_is_first_and_then_what_broke_first() -> None:
    """Failures in order of time, then those without a moment, then inconclusive ones, then warnings."""
    matches = causes(
        [
            finding("level", 100, outcome=Outcome.WARN),
            growing("system.memory.usage", 1e6),
            finding("cpu_spike", 9000),
            finding("reboot", 5000),
            finding("growth", outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.NOISE, settle="needs 2 h"),
        ]
    )
    assert [cause.findings[0] for cause in matches] == [3, 2, 1, 4, 0]


def test_a_crowd_of_moments_is_counted() -> None:
    """A time line ends after forty moments with the number of the others; equal words at once are one line."""
    many = finding("level", *range(0, 80_000, 1000), outcome=Outcome.WARN)
    (cause,) = causes([many])
    assert (len(cause.timeline), cause.timeline[-1].text) == (40, "and 41 more moments")
    workers = [finding("process_restart", 5000, object=f"process=w,instance={n}") for n in range(9)]
    assert [m.text for m in causes(workers)[0].timeline] == [
        "process_restart w, w #1, w #2 and 6 more: process_restart here"
    ]


RULES = [
    "reboot",
    "process_restart",
    "oom_kill",
    "cpu_spike",
    "gap",
    "hang",
    "growth",
    "memory_growth",
    "step_change",
    "coverage",
    "own_rule",
]
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
TIMES = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 24 * 3600).map(lambda s: s * SECOND)
MARKS = st.builds(Mark, TIMES, st.none() | TIMES, st.text(max_size=5))
FINDINGS = st.builds(
    finding,
    st.sampled_from(RULES),
    outcome=st.sampled_from(list(Outcome)),
    why=st.none() | st.sampled_from(list(InconclusiveReason)),
    target=st.sampled_from(["dut", "twin"]),
    metric=st.sampled_from(["", "process.memory.usage", "system.memory.usage", "queue.depth"]),
    object=st.sampled_from(["", HTTPD, "process=", "process=w,instance=1", "=,\\"]),
    marks=st.lists(MARKS, max_size=4).map(tuple),
    measured=st.none() | NUMBERS,
    unit=st.sampled_from(["", "By/h"]),
    facts=st.lists(st.builds(Growth, NUMBERS), max_size=1).map(tuple),
    settle=st.text(alphabet="needs 0123456789.h,-e", max_size=30),
    window=st.builds(Window, TIMES, TIMES),
)
EVENTS = st.builds(
    Event,
    st.sampled_from(["failover", "reboot", "kernel.oom", "gap"]),
    st.sampled_from(["", "dut"]),
    st.just(""),
    TIMES,
    st.none() | TIMES,
    st.just({}),
    st.sampled_from([{}, {"reboot": 1}]),
    st.none() | TIMES,
)
PHASES = st.builds(Phase, st.sampled_from(["soak", "spike"]), st.builds(Window, TIMES, TIMES))


@settings(derandomize=True, deadline=None, max_examples=120)
@given(st.lists(FINDINGS, max_size=12), st.lists(EVENTS, max_size=3), st.lists(PHASES, max_size=2))
def test_nothing_is_lost_and_nothing_is_reported_twice(
    findings: list[Finding], events: list[Event], phases: list[Phase]
) -> None:
    """Whatever comes: each finding against the run is in one cause, whose outcome is its worst; passes are no cause."""
    before = list(findings)
    matches = causes(findings, events, phases)
    placed = [position for index in matches for position in index.findings]
    assert len(placed) == len(set(placed))
    assert {p for p, f in enumerate(findings) if f.outcome in TOLD} <= set(placed)
    assert all(findings[p].outcome is not Outcome.NOT_APPLICABLE for p in placed)
    order = list(Outcome)
    for index in matches:
        assert index.outcome is min((findings[p].outcome for p in index.findings), key=order.index)
        assert index.outcome in TOLD
        assert index.headline
        assert index.confidence is None or 0 <= index.confidence <= 1
        assert list(index.timeline) == sorted(index.timeline, key=lambda mark: mark.begin_ns)
    assert findings == before
    assert matches == causes(tuple(findings), tuple(events), tuple(phases))


@pytest.mark.parametrize("later_s", [0, 1_700_000_000, -50_000])
def test_a_shift_in_time_changes_no_cause(later_s: int) -> None:
    """Together is together, whatever the date."""
    shift = later_s * SECOND

    def moved(result: Finding) -> Finding:
        marks = tuple(Mark(m.begin_ns + shift, (m.end_ns or m.begin_ns) + shift, m.text) for m in result.marks)
        return replace(result, window=Window(result.window.begin_ns + shift, result.window.end_ns + shift), marks=marks)

    findings = [finding("reboot", (5000, 5060)), finding("gap", (5001, 5050)), finding("level", 7000, 9000)]
    now, then = causes(findings), causes([moved(result) for result in findings])
    assert grouped(now) == grouped(then)
    assert [result.confidence for result in now] == [result.confidence for result in then]


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        (Forecast("the disk", 10 * 86400, 8 * 86400, 12 * 86400), "the disk reached in 10 d ± 2 d (90 %)"),
        (Forecast("it", 600, 540, 660, 0.8), "it reached in 10 min ± 1 min (80 %)"),
        (Forecast("it", 7200, 3600, float("inf")), "it reached in 1 h at the earliest (90 %)"),
        (Forecast("it", -5, -9, 0), "it reached by the end of the window (90 %)"),
        (Forecast("it", float("nan"), 0, 1), ""),
        (Forecast("it", 1e308, 1e307, 1.5e308), "it reached in 1.2e+303 d, between 1.2e+302 and 1.7e+303 d (90 %)"),
    ],
)
def test_a_forecast_in_words(forecast: Forecast, words: str) -> None:
    """One unit, plus and minus where the interval is even, and no words where there is no number."""
    assert forecast_words(forecast) == words
