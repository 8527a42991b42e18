"""level: the user's limit, N of M readings, hysteresis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.level import Level
from soakwatch_rules.rule import metrics_read
from soakwatch_rules.signals import PROCESS, readings
from soakwatch_rules.stats.hysteresis import n_of_last_m
from soakwatch_testing.rule_checks import CHECKS, cases, check_calm, check_complete, check_definition, quiet

S = 10**9
ALL_SET = Level(
    temperature=1e4,
    cpu=1,
    core=1,
    memory=1,
    swap=1,
    disk=1,
    inodes=1,
    connections=1,
    queue=1,
    process_memory=1e12,
    descriptors=1e4,
    threads=1e4,
    processes=1e4,
    sockets=1e6,
    latency=10,
)


def sensor(*values: float, cadence: float = 10.0) -> Series:
    """A temperature."""
    return readings("system.temperature", np.array(values, dtype=np.float64), cadence, object="sensor=cpu")


def judge(series: Series, rule: Level | None = None, *events: Event, seconds: float | None = None) -> Finding:
    """The one finding of a limit of 80 Cel."""
    length = len(series) * 10.0 if seconds is None else seconds
    case = Case("dut", "", Window(0, round(length * S)), (series,), events=events)
    return (rule or Level(temperature=80)).judge(case)[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([70] * 20, Outcome.PASS),
        ([70] * 10 + [95] * 2 + [70] * 10, Outcome.PASS),
        ([70] * 10 + [80] * 3 + [70] * 10, Outcome.FAIL),
        ([70] * 10 + [95, 70, 95, 70, 95] + [70] * 10, Outcome.FAIL),
        ([70] * 10 + [95, 70, 70, 95, 70, 95] + [70] * 10, Outcome.PASS),
        ([79.9] * 30, Outcome.PASS),
    ],
)
def test_three_of_five_readings(values: list[float], expected: Outcome) -> None:
    """Three of the last five at the limit or above are too much; two are not, nor are three of six."""
    assert judge(sensor(*values)).outcome is expected


def test_it_ends_below_the_lower_threshold() -> None:
    """From 80 to 76 it wavers and is one; at 75.9 it ends, and three more readings are needed to begin anew."""
    wavering = sensor(*[70] * 10, *[82, 77, 81, 76, 83] * 4, *[70] * 10)
    assert judge(wavering).numbers["exceeded"] == 1
    two = sensor(*[70] * 10, 82, 82, 82, 75.9, 82, 82, 75.9, 82, 82, 82, *[70] * 10)
    finding = judge(two)
    assert finding.numbers["exceeded"] == 2
    assert finding.measured == 82
    assert finding.marks[0].begin_ns == 100 * S
    assert finding.marks[0].end_ns == 120 * S
    assert [m.begin_ns for m in finding.marks] == [100 * S, 140 * S], "2 of 3 after the end, and the third later"


def test_votes_agree_with_a_plain_loop() -> None:
    """The search by jumps finds what a check of each reading finds."""

    def plain(value: list[float], needed: int, of: int) -> list[tuple[int, int]]:
        matches, since, opened = [], 0, None
        for i, x in enumerate(value):
            if opened is None:
                begin = max(since, i + 1 - of)
                if x >= 5 and sum(y >= 5 for y in value[begin : i + 1]) >= needed:
                    opened = i
            elif x < 4:
                matches.append((opened, i))
                since, opened = i, None
        return [*matches, (opened, len(value))] if opened is not None else matches

    rng = np.random.default_rng(2)
    for _ in range(300):
        value = rng.integers(0, 8, 60).astype(np.float64)
        needed = int(rng.integers(1, 4))
        of = needed + int(rng.integers(0, 4))
        assert [(o, c) for _, o, c in n_of_last_m(value, 5.0, 4.0, needed, of)] == plain(value.tolist(), needed, of)


def test_without_a_limit_it_says_so_and_reads_nothing() -> None:
    """No limit is not applicable, with the way to set one; only metrics with a limit are asked for."""
    finding = judge(sensor(*[70] * 20), Level())
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "no limit is set" in finding.reason
    assert metrics_read(Level()) == ()
    assert metrics_read(Level(temperature=80, latency=1, threads=10)) == ("system.temperature", "process.threads")


def test_a_limit_for_what_was_not_read_is_no_pass() -> None:
    """A limit whose metric is missing is inconclusive and names it."""
    finding = Level(temperature=80).judge(Case("dut", "", Window(0, 100 * S)))[0]
    assert finding.why is InconclusiveReason.UNREAD
    assert "system.temperature" in finding.reason


def test_a_share_is_of_what_the_device_states() -> None:
    """90 % of a stated 1000 bytes are 900 bytes; without a statement nothing can be said."""
    used = readings("system.memory.usage", np.array([850.0] * 20 + [910.0] * 5), 10.0)
    stated = replace(used, trait=replace(used.trait, ceiling=1000.0))
    finding = judge(stated, Level(memory=0.9))
    assert finding.outcome is Outcome.FAIL
    assert finding.limit == 900
    assert judge(used, Level(memory=0.9)).why is InconclusiveReason.NO_REFERENCE


def test_latency_is_judged_for_the_device_by_its_99th_percentile() -> None:
    """The generators' p99 counts, their maximum does not, and the generator itself has no such finding."""
    slow = readings("load.latency", np.array([0.01] * 20 + [0.3] * 5), 1.0, object="quantile=p99")
    worst = readings("load.latency", np.array([9.0] * 25), 1.0, object="quantile=max")
    case = Case("dut", "", Window(0, 25 * S), load=(slow, worst))
    findings = Level(latency=0.25).judge(case)
    assert [f.object for f in findings] == ["quantile=p99"]
    assert findings[0].outcome is Outcome.FAIL
    assert Level(latency=0.25).judge(replace(case, role="generator")) == ()


def test_a_restart_ends_the_count() -> None:
    """Two readings before a restart of the process and one after it are not three of one life."""
    files = readings("process.open_files", np.array([10.0] * 10 + [99.0] * 3 + [10.0] * 10), 10.0, object=PROCESS)
    restart = Event("process.restart", "dut", PROCESS, 115 * S, None)
    assert judge(files, Level(descriptors=90)).outcome is Outcome.FAIL
    assert judge(files, Level(descriptors=90), restart).outcome is Outcome.PASS


def test_too_little_is_no_pass() -> None:
    """Four readings, or fewer than half of those expected, decide nothing; what was seen still fails."""
    assert judge(sensor(70, 70, 70, 70)).why is InconclusiveReason.TOO_FEW
    assert judge(sensor(*[70] * 20), seconds=1000).why is InconclusiveReason.GAP
    assert judge(sensor(*[90] * 20), seconds=1000).outcome is Outcome.FAIL


def test_a_pass_states_what_it_could_have_seen() -> None:
    """Three readings of 10 s each: an exceedance of 30 s always shows."""
    finding = judge(sensor(*[70] * 20))
    assert (finding.smallest_detectable, finding.detectable_unit) == (30.0, "s")


def test_white_noise_hardly_ever_votes() -> None:
    """A limit two deviations above the level: single readings exceed it thousands of times, three of five a few."""
    value = 70 + 5 * np.random.default_rng(1).standard_normal(86400)
    finding = judge(sensor(*value, cadence=1.0), seconds=86400)
    assert int((value >= 80).sum()) > 1500
    assert finding.numbers["exceeded"] < 20


def test_all_limits_together_honour_the_checks() -> None:
    """With every limit set the rule honours what every rule must, but shares without a stated most."""
    for check in CHECKS:
        if check not in {check_calm, check_definition}:
            check(ALL_SET)
    for case in cases(ALL_SET, quiet):
        findings = ALL_SET.judge(case)
        assert len(findings) >= 12
        for finding in findings:
            check_complete(ALL_SET, case, finding)
            assert finding.outcome is Outcome.PASS or finding.why in {
                InconclusiveReason.NO_REFERENCE,
                InconclusiveReason.UNREAD,
            }


@pytest.mark.parametrize("bad", [{"needed": 6.0}, {"leave": 0.0}, {"temperature": -1.0}, {"cpu": float("inf")}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="level"):
        Level(**bad)


@pytest.mark.parametrize("name", ["cpu", "core", "memory", "swap", "disk", "inodes", "connections", "queue"])
def test_a_percentage_without_its_sign_is_refused(name: str) -> None:
    """80 is 8000 %: such a limit is never reached, so nothing would ever be judged by it."""
    with pytest.raises(ValueError, match=f"level: {name} is a share and cannot be 80: write 80%"):
        Level(**{name: 80})
    assert Level(**{name: 0.8}).definition()
    assert Level(process_memory=80, latency=2).definition()


def test_connections_are_those_of_a_linux_and_of_a_device() -> None:
    """The limit of connections holds for a session table as well, and for each of several."""
    rule = Level(connections=0.9)
    assert {"system.sessions", "system.conntrack.count"} <= set(metrics_read(rule))
    full = readings("system.sessions", np.array([3e6] * 20 + [5.9e6] * 20), 10.0, object="table=sessions")
    full = replace(full, trait=replace(full.trait, ceiling=6e6))
    track = readings("system.conntrack.count", np.full(40, 100.0), 10.0)
    case = Case("dut", "", Window(0, 400 * S), (full, track))
    findings = rule.judge(case)
    assert [(f.metric, f.outcome) for f in findings] == [("system.sessions", Outcome.FAIL)]
    bare = rule.judge(replace(case, series=(track,)))
    assert bare[0].why is InconclusiveReason.NO_REFERENCE, "nothing states the size of the only table"


def test_inodes_are_limited_as_a_share_of_each_file_system_and_sockets_by_their_number() -> None:
    """A file system of which 90 % are used is above 80 %, one that has ten times as many is not."""
    used = readings("system.filesystem.inodes.usage", np.array([100.0] * 20 + [900.0] * 20), 10.0)
    mounts = [
        replace(used, object=f"mountpoint={name}", trait=replace(used.trait, ceiling=most))
        for name, most in (("/var", 1e3), ("/", 1e4))
    ]
    sockets = readings("system.sockets.usage", np.full(40, 500.0), 10.0, object="protocol=tcp")
    case = Case("dut", "", Window(0, 400 * S), (*mounts, sockets))
    findings = Level(inodes=0.8, sockets=400).judge(case)
    assert [(f.object, f.outcome) for f in findings] == [
        ("mountpoint=/var", Outcome.FAIL),
        ("mountpoint=/", Outcome.PASS),
        ("protocol=tcp", Outcome.FAIL),
    ]


PARAMETERS = {"cpu": 0.95}
OUTCOMES = """
cpu                            | level
quiet 30 %                     | P
quiet 30 %, each second        | P
bursts of 2 s                  | PF
60 % bursty                    | PF
wave of a day 40 ± 25 %        | P
busy 85 ± 8 %                  | F
poll mode 100 %                | F
poll mode 99 %                 | F
half polling 97 %              | F
core in poll mode              | I
20 s of each minute at the top | F
climbs to the top              | F
spike 5 s each second          | F
spike 11 s each second         | F
spike 15 s each 5 s            | PF
spike 10 s each 10 s           | P
spike 20 s each 10 s           | PF
spike 120 s each 60 s          | PF
spike 10 min                   | F
spike 2 h                      | F
spike to 90 %                  | P
peg of 3 readings, 10 s        | F
peg of 3 readings, 60 s        | F
plateau 95 ± 2 %               | F
spike that was asked for       | PF
20 min at the top              | F
20 min at the top, drops       | F
"""
