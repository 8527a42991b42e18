"""change: links, cards, services, ports and rates that change for the worse, and what excuses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric_queries import changing
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.change import Change
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.families import named

S = 10**9
DAY = Window(0, 86400 * S)


def judged(name: str, rule: Change | None = None, **more: object) -> Finding:
    """The finding of a scenario."""
    case = named("change", name).signal(1).case
    return (rule or Change()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


def test_a_link_says_when_and_for_how_long() -> None:
    finding = judged("link down 40 min")
    assert finding.reason == "eth3 was down once: 1970-01-01 09:36:00 UTC for 44 min"
    assert (finding.measured, finding.limit, finding.unit) == (1.0, 0.0, "{change}")
    assert [mark.end_ns for mark in finding.marks] == [(34560 + 2640) * S]


def test_a_link_that_is_announced_down_is_excused_until_the_deadline() -> None:
    event = Event("maintenance", "dut", "", 34000 * S, None, deadline_ns=35000 * S)
    assert judged("link down 40 min", events=(event,)).outcome is Outcome.PASS
    late = replace(event, begin_ns=30000 * S, deadline_ns=33000 * S)
    assert judged("link down 40 min", events=(late,)).outcome is Outcome.FAIL


def test_what_the_device_reports_itself_excuses_nothing() -> None:
    event = Event("link.down", "dut", "interface=eth3", 34560 * S, None)
    assert judged("link down 40 min", events=(event,)).outcome is Outcome.FAIL


def test_a_card_restarts_when_its_age_began() -> None:
    finding = judged("card restarts twice")
    assert finding.measured == 2.0
    assert finding.reason.startswith("linecard 2 fell back twice: 1970-01-01 07:12:00 UTC")


def test_a_reboot_takes_the_cards_along() -> None:
    events = tuple(Event("reboot", "dut", "", round(share * 86400) * S, None) for share in (0.3, 0.8))
    finding = judged("card restarts twice", events=events)
    assert finding.outcome is Outcome.PASS
    assert "2 changes excused (reboot of" in finding.reason


def test_a_counter_that_began_anew_counts_no_restart() -> None:
    value = np.where(np.arange(1440) < 700, 5.0, 0.0)
    series = readings("system.service.restarts", value, 60.0, object="service=bgpd")
    assert Change().judge(Case("dut", series.object, DAY, (series,)))[0].outcome is Outcome.PASS


def test_a_speed_that_fell_warns_and_a_link_that_is_down_has_none() -> None:
    value = np.full(1440, 1e10)
    value[500:600] = 0.0
    series = readings("system.network.speed", value, 60.0, object="interface=eth3")
    assert Change().judge(Case("dut", series.object, DAY, (series,)))[0].outcome is Outcome.PASS
    value[900:] = 1e9
    series = replace(series, value=value)
    finding = Change().judge(Case("dut", series.object, DAY, (series,)))[0]
    assert finding.outcome is Outcome.WARN
    assert "bit/s to 1" in finding.reason
    assert "only warns" in finding.reason


def test_a_file_system_that_became_read_only_fails_and_an_image_does_not() -> None:
    """It is said what it was, not that it was down; what was read-only from the start is meant so."""
    value = np.where(np.arange(1440) < 700, 1.0, 0.0)
    found: list[Finding] = []
    for name, readings_of in (("/var", value), ("/", np.ones(1440)), ("/rom", np.zeros(1440))):
        series = readings("system.filesystem.writable", readings_of, 60.0, object=f"mountpoint={name}")
        found += Change().judge(Case("dut", series.object, DAY, (series,)))
    assert [finding.outcome for finding in found] == [Outcome.FAIL, Outcome.PASS, Outcome.PASS]
    assert found[0].reason == "/var was read-only once: 1970-01-01 11:40:00 UTC to the end"
    assert found[1].reason == "/ did not go read-only"
    assert found[2].reason == "/rom was read-only all the time"


def test_a_port_that_is_silent_in_a_stress_is_not_judged() -> None:
    phases = (Phase("soak", Window(0, 51000 * S)), Phase("stress", Window(51000 * S, 63000 * S)))
    assert judged("port deaf 3 h", phases=phases).outcome is Outcome.PASS


def test_a_surge_under_a_load_never_seen_only_warns() -> None:
    offered = np.where((np.arange(1440) >= 700) & (np.arange(1440) < 1020), 1500.0, 1000.0)
    load = (readings("load.offered.rate", offered, 60.0),)
    finding = judged("retransmits x40 for 5 h", load=load)
    assert finding.outcome is Outcome.WARN
    assert "the load was higher than before" in finding.reason


def test_a_surge_says_how_many_times() -> None:
    finding = judged("retransmits x40 for 5 h")
    assert finding.limit is not None
    assert "times the usual" in finding.reason
    assert finding.measured is not None
    assert finding.measured > finding.limit


def test_surges_count_together() -> None:
    """A rate of few counts falls back for a block or two again and again: what counts is how long it surged in all."""
    finding = judged("retransmits x40 in 9 parts of 4.5 h")
    assert finding.outcome is Outcome.FAIL
    assert "surged 9 times, for 3 h in all: " in finding.reason


def test_too_little_never_passes() -> None:
    series = readings("system.tcp.retransmits", np.arange(10.0), 60.0)
    finding = Change().judge(Case("dut", "", Window(0, 600 * S), (series,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    link = readings("system.network.up", np.ones(700), 60.0, object="interface=eth3")
    finding = Change().judge(Case("dut", link.object, DAY, (link,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_the_catalogue_says_what_is_judged() -> None:
    assert Change.metrics == changing()
    assert "load.port.up" in Change.metrics


@pytest.mark.parametrize(
    "bad",
    [{"down": -1.0}, {"flaps": 0.0}, {"restarts": 0.0}, {"silent": 0.0}, {"factor": 1.0}, {"share": 1.0}],
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="change"):
        Change(**bad)


OUTCOMES = """
change                                   | change
link stands                              | P
link never up                            | P
link comes up late                       | P
link down 40 min                         | F
link down to the end                     | F
link down for a poll                     | W
link flaps 6 times                       | F
link down in a failover                  | P
link shut                                | P
card stays                               | P
card restarts twice                      | F
card wraps at 497 days                   | P
card restarts in an upgrade              | P
service stays                            | P
service restarts once                    | W
service restarts 30 times                | F
port carries                             | P
port carries, 32 bits                    | P
port under a wave                        | P
port in bursts                           | PW
port idle                                | P
port deaf 3 h                            | F
port deaf to the end                     | F
port deaf 15 min                         | P
port deaf, load not known                | W
port silent with the load                | P
port shut                                | P
flow deaf                                | F
retransmits                              | P
retransmits wave fivefold                | P
retransmits x40 for 5 h                  | F
retransmits x40 for 1 h                  | W
retransmits x40 in 9 parts of 4.5 h      | F
retransmits x40 in 3 jobs of 40 min      | W
retransmits x4                           | P
retransmits from none                    | F
retransmits x40, load not known          | W
jitter                                   | P
jitter spikes                            | P
jitter x25 to the end                    | F
jitter x25 in a change of configuration  | P
"""
