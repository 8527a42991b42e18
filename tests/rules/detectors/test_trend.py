"""trend: levels that creep the wrong way, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric_queries import trending
from soakwatch_model.window import Window
from soakwatch_rules.detectors.trend import Trend
from soakwatch_rules.scenarios.families import named
from soakwatch_rules.scenarios.synthetic import readings

S = 10**9
DAY = Window(0, 86400 * S)
N = 1440


def judged(name: str, rule: Trend | None = None, **more: object) -> Finding:
    """The finding of a scenario."""
    case = named("creep", name).signal(1).case
    return (rule or Trend()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


def of(metric: str, value: np.ndarray[tuple[int], np.dtype[np.float64]], *events: Event) -> Finding:
    """The finding of a day of readings by the minute."""
    series = readings(metric, value, 60.0)
    return Trend().judge(Case("dut", "", DAY, (series,), events=events))[0]


def test_a_creep_says_from_where_to_where_and_how_fast() -> None:
    finding = of("system.cpu.utilization", np.linspace(0.05, 0.53, N))
    assert finding.outcome is Outcome.FAIL
    assert finding.reason == "CPU rose steadily from 5.48 % to 52.5 % in 24 h (2 points/h); 10 points allowed"
    assert finding.measured == pytest.approx(0.48, abs=0.01)
    assert (finding.limit, finding.unit) == (0.1, "1")
    assert len(finding.marks) == 1


def test_the_direction_is_that_of_the_catalogue() -> None:
    assert of("system.cpu.utilization", np.linspace(0.53, 0.05, N)).outcome is Outcome.PASS
    finding = of("system.sessions.rate", np.linspace(500.0, 100.0, N))
    assert finding.outcome is Outcome.WARN
    assert "fell steadily" in finding.reason
    assert finding.limit is not None
    assert finding.limit < 0


def test_a_metric_of_context_only_warns_and_says_so() -> None:
    finding = judged("core creeps by 30 points")
    assert finding.outcome is Outcome.WARN
    assert finding.reason.endswith("it only warns: work moves between cores; the CPU of all together fails")


def test_many_series_need_more_certainty() -> None:
    """With more series in the run the same evidence decides less: it never fails by chance of one in many."""
    wavering = named("creep", "CPU creeps by 14 points").signal(2).case
    alone, among = (Trend().judge(replace(wavering, family=m))[0] for m in (1, 400))
    assert alone.numbers["probability"] <= 1
    assert {alone.outcome, among.outcome} <= {Outcome.FAIL, Outcome.WARN}


def test_a_reboot_parts_lives() -> None:
    value = np.concatenate([np.linspace(0.1, 0.4, 720), np.linspace(0.1, 0.4, 720)])
    event = Event("reboot", "dut", "", 43200 * S, None)
    finding = of("system.cpu.utilization", value, event)
    assert finding.outcome is Outcome.WARN, "12 h, load not known"
    assert "in 12 h" in finding.reason


def test_a_rise_in_a_morning_is_no_failure() -> None:
    assert "may be a part of a daily wave" in judged("CPU creeps in 8 h, load not known").reason
    assert "the room may have become warmer" in judged("board, morning of 10 h").reason


def test_too_little_never_passes() -> None:
    series = readings("system.cpu.utilization", np.full(100, 0.1), 60.0)
    finding = Trend().judge(Case("dut", "", Window(0, 6000 * S), (series,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    few = readings("system.cpu.utilization", np.full(10, 0.1), 8640.0)
    finding = Trend().judge(Case("dut", "", DAY, (few,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    holes = readings("system.cpu.utilization", np.full(600, 0.1), 60.0)
    finding = Trend().judge(Case("dut", "", DAY, (holes,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_the_catalogue_says_what_is_judged() -> None:
    assert Trend.metrics == trending()


@pytest.mark.parametrize(
    "bad", [{"points": 0.0}, {"kelvin": 0.0}, {"share": 0.0}, {"risk": 0.0}, {"risk": 0.5}, {"shortest": 0.0}]
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="trend"):
        Trend(**bad)


OUTCOMES = """
creep                               | trend
CPU flat                            | P
CPU flat, wanders                   | P
CPU under a wave of the load        | P
CPU under a ramp of the load        | PW
CPU of a day, load not known        | P
CPU warm-up of 2 h                  | P
CPU warm-up of 5 h                  | P
CPU step                            | P
CPU with jobs                       | P
CPU half a wave in 12 h             | PW
CPU creeps by 4 points              | P
board warms up                      | P
board, room of a day                | P
board, morning of 10 h              | PW
p99 flat                            | P
p99 under a wave of the load        | P
p99 cold at first                   | P
run queue flat                      | P
CPU creeps by 14 points             | FWp
CPU creeps by 30 points             | Fp
CPU creeps ever faster              | Fw
CPU creeps under a wave of the load | FWp
CPU creeps, load not known          | FWp
CPU creeps in 8 h                   | Fwp
CPU creeps in 8 h, load not known   | Wp
board creeps by 16 K                | FW
board creeps under a room of a day  | FWp
p99 creeps by 75 %                  | FWp
p99 creeps by 150 %                 | Fp
core creeps by 30 points            | Wp
run queue doubles                   | Wp
sessions a second fall              | W
"""
