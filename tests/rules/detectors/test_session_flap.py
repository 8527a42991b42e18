"""SessionFlap: what shows that a session went down, what excuses it, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, Ledger, Silence, Unread
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.causes.fold import causes
from soakwatch_rules.detectors.reboot import Reboot
from soakwatch_rules.detectors.session_flap import SessionFlap
from soakwatch_rules.signals import readings, uptimes

S = 10**9
N = 200
WINDOW = Window(0, N * 10 * S)
BGP = "protocol=bgp,peer=10.0.0.2,context=default"


def state(*spans: tuple[int, int], of: str = BGP) -> Series:
    """A session read every ten seconds, down in some stretches of readings."""
    value = np.ones(N)
    for first, stop in spans:
        value[first:stop] = 0
    return readings("network.session.up", value, 10.0, object=of)


def judged(*series: Series, events: tuple[Event, ...] = (), **parameters: float) -> tuple[Finding, ...]:
    """What the rule says of a target that was asked all the time."""
    ledger = Ledger("dut", "dut/snmp", 10.0, N, N, {}, None)
    return SessionFlap(**parameters).judge(Case("dut", "", WINDOW, series, events=events, ledgers=(ledger,)))


def only(findings: tuple[Finding, ...], outcome: Outcome) -> Finding:
    """The one finding with an outcome."""
    (found,) = [f for f in findings if f.outcome is outcome]
    return found


def down(at_s: float, peer: str = "10.0.0.2") -> Event:
    """A line of the device's log."""
    return Event("session.down", "dut", "", round(at_s * S), None, {"peer": peer, "reason": "Hold Timer Expired"})


def failover(at_s: float, within_s: float | None, expect: dict[str, int] | None = None) -> Event:
    """A failover, announced if it has a deadline or an intent."""
    deadline = None if within_s is None else round((at_s + within_s) * S)
    return Event("failover", "dut", "", round(at_s * S), None, {}, expect or {}, deadline)


def test_it_says_peer_when_how_long_and_how_often() -> None:
    """Two times down, the second one to the end; the log dates the first one more finely; others pass together."""
    others = [state(of=f"protocol=ospf,peer=10.0.1.{n},context=default") for n in range(3)]
    findings = judged(state((50, 60), (190, N)), *others, events=(down(493),))
    found = only(findings, Outcome.FAIL)
    assert found.reason == (
        "BGP session with 10.0.0.2 went down twice: 1970-01-01 00:08:13 UTC for 1 min 47 s (down), "
        "1970-01-01 00:31:40 UTC for 1 min 40 s (down); it is still down at the end"
    )
    assert (found.object, found.measured, found.numbers["down_s"]) == (BGP, 2.0, 207.0)
    assert only(findings, Outcome.PASS).reason == "3 sessions (3 ospf): none went down"


def test_a_flap_between_two_polls_shows_by_uptime_and_count() -> None:
    """Both find it up; either witness is enough, both are one flap. A coarse uptime that stands still is none."""
    t = np.arange(N) * 10.0
    uptime = readings("network.session.uptime", np.where(t < 1000, 5000 + t, t - 996), 10.0, object=BGP)
    count = readings("network.session.flaps", np.where(t < 1000, 7.0, 8.0), 10.0, object=BGP)
    for witnesses in ((uptime,), (count,), (uptime, count)):
        found = only(judged(state(), *witnesses), Outcome.FAIL)
        assert found.measured == 1.0
        assert "between two polls" in found.reason
    coarse = readings("network.session.uptime", 86_400 * np.floor(1 + t / 86_400), 10.0, object=BGP)
    assert only(judged(state(), coarse), Outcome.PASS).measured == 0.0


def test_a_session_that_is_no_longer_listed_is_down_unless_the_device_was_silent() -> None:
    """Its readings end while the device answers; a silence of the source proves nothing; a client's tunnel may go."""
    gone = state().between(0, 1000 * S)
    found = only(judged(gone, state(of=BGP.replace(".2,", ".3,"))), Outcome.FAIL)
    assert "no longer listed" in found.reason
    assert "still down at the end" in found.reason
    quiet = Ledger(
        "dut", "dut/snmp", 10.0, N, 99, {}, None, silences=(Silence(Window(995 * S, 2000 * S), {"timeout": 99}),)
    )
    (unsure,) = SessionFlap().judge(Case("dut", "", WINDOW, (gone,), ledgers=(quiet,)))
    assert (unsure.outcome, unsure.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)
    tunnel = state(of="protocol=tunnel,peer=branch,context=default").between(0, 1000 * S)
    assert only(judged(tunnel), Outcome.WARN).reason.startswith("tunnel branch went down once")


@pytest.mark.parametrize("of", ["", "protocol=bgp"])
def test_a_list_that_was_not_answered_is_missing_and_no_session_lost(of: str) -> None:
    """The device answers all but one command: of what that lists nothing is known, all else is judged."""
    gone = state().between(0, 1000 * S)
    other = state((50, 60), of="protocol=ospf,peer=10.0.1.1,context=default")
    calm = state(of="protocol=ospf,peer=10.0.1.2,context=default")
    unread = Unread("network.session.up", of, 1020 * S, 1020 * S, "'show bgp' did not end within 10 s")
    ledger = Ledger("dut", "dut/ssh", 10.0, N, N, {}, None)
    case = Case("dut", "", WINDOW, (gone, other, calm), ledgers=(ledger,), unread=(unread,))
    findings = SessionFlap().judge(case)
    assert only(findings, Outcome.FAIL).object == other.object
    assert only(findings, Outcome.PASS).object == calm.object
    missing = only(findings, Outcome.INCONCLUSIVE)
    assert (missing.object, missing.why) == (BGP, InconclusiveReason.GAP)
    assert missing.reason == (
        "BGP session with 10.0.0.2: not read from 1970-01-01 00:16:30 UTC to the end ('show bgp' did not end within "
        "10 s): neither up nor down is known"
    )
    elsewhere = replace(unread, object="protocol=ospf")
    findings = SessionFlap().judge(replace(case, unread=(elsewhere,)))
    assert len([f for f in findings if f.outcome is Outcome.FAIL]) == 2, "another list that hangs excuses nothing"


def test_what_only_the_log_tells_fails_and_what_was_polled_is_told_once() -> None:
    """A trap between two polls; the identity of a router, which is no peer's address; another peer's own line."""
    found = only(judged(state(), events=(down(500),)), Outcome.FAIL)
    assert found.reason == (
        "the device reports that a session with 10.0.0.2 went down (each poll found it up): "
        "1970-01-01 00:08:20 UTC (Hold Timer Expired)"
    )
    both = judged(state((50, 60)), events=(down(500), down(501, "192.0.2.77")))
    assert only(both, Outcome.FAIL).measured == 1.0
    assert only(judged(events=(down(500),)), Outcome.FAIL).measured == 1.0


@pytest.mark.parametrize(
    ("event", "outcome", "words"),
    [
        (failover(495, 300, {"outage": 1}), Outcome.PASS, "1 announced times down, back in time"),
        (failover(495, 300), Outcome.PASS, "1 announced times down, back in time"),
        (failover(495, None), Outcome.FAIL, "went down once"),
        (failover(495, 30), Outcome.FAIL, "came back 1 min 15 s after the deadline of the planned failover"),
        (failover(1500, 300), Outcome.FAIL, "went down once"),
        (failover(495, 300, {"session.down": 2}), Outcome.FAIL, "announced 2 lost sessions, but 1 went down"),
    ],
)
def test_only_what_was_announced_excuses_and_only_until_its_deadline(
    event: Event, outcome: Outcome, words: str
) -> None:
    """An intent or a deadline makes an announcement; what merely happened excuses nothing."""
    findings = judged(state((50, 60)), events=(event,))
    assert words in only(findings, outcome).reason


def test_while_the_deadline_has_not_passed_nothing_is_decided() -> None:
    """Down at the end of what is known, within an announced event."""
    findings = judged(state((190, N)), events=(failover(1890, 600),))
    assert only(findings, Outcome.INCONCLUSIVE).why is InconclusiveReason.PENDING


def test_a_reboot_explains_its_sessions() -> None:
    """Both fail, and are one cause that begins with the reboot."""
    uptime = uptimes(10.0, N, reboot_at=100)
    (rebooted,) = Reboot().judge(Case("dut", "", WINDOW, (uptime,)))
    sessions = [state((100, 106), of=f"protocol=bgp,peer=10.0.0.{n},context=default") for n in range(4)]
    findings = (rebooted, *judged(*sessions))
    assert [f.outcome for f in findings] == [Outcome.FAIL] * 5
    (cause,) = causes(findings)
    assert findings[cause.leading].rule == "reboot"


def test_masters_and_the_tree_warn_unless_the_plan_says_fail() -> None:
    """A port that just comes up (listening, learning, forwarding) is no change; one that blocked and forwards is."""
    role = readings(
        "network.session.role",
        np.where(np.arange(N) < 90, 2.0, 1.0),
        10.0,
        object="protocol=vrrp,peer=51,context=north",
    )
    tree = readings(
        "network.topology.changes", np.where(np.arange(N) < 90, 4.0, 6.0), 10.0, object="protocol=stp,context=default"
    )
    port = "protocol=stp,peer=e1,context=default"
    new = readings("network.session.role", np.repeat([0.0, 1.0, 2.0], [50, 3, N - 53]), 10.0, object=port)
    free = readings("network.session.role", np.repeat([1.0, 2.0], [50, N - 50]), 10.0, object=port)
    assert [f.outcome for f in judged(role)] == [Outcome.WARN]
    assert only(judged(role, role_changes=1.0), Outcome.FAIL).reason == (
        "VRRP group 51 (north): 1 change outside announced events: 1970-01-01 00:15:00 UTC (master to backup)"
    )
    assert only(judged(tree), Outcome.WARN).measured == 2.0
    assert [f.outcome for f in judged(new)] == [Outcome.PASS]
    assert "blocking to forwarding" in only(judged(free), Outcome.WARN).reason
    assert [f.outcome for f in judged(role, events=(failover(880, 300),))] == [Outcome.PASS]


def test_many_that_go_down_at_once_do_not_flood_the_report() -> None:
    """Twenty have a finding of their own, the others one together."""
    many = [state((50, 60), of=f"protocol=bgp,peer=10.0.0.{n},context=default") for n in range(60)]
    findings = judged(*many)
    assert len(findings) == 21
    assert findings[-1].reason.startswith("40 more: ")


def test_sessions_that_never_stood_warn_and_a_target_without_any_is_not_judged() -> None:
    """Nothing shows that it should be up; no session at all is not applicable."""
    assert only(judged(state((0, N))), Outcome.WARN).reason == (
        "BGP session with 10.0.0.2 was down from begin to end: not judged, for nothing shows that it should be up"
    )
    (none,) = judged()
    assert none.outcome is Outcome.NOT_APPLICABLE
    short = replace(state(), time_ns=state().time_ns[:1], value=state().value[:1])
    assert only(judged(short, allowed=1.0), Outcome.FAIL).reason.endswith("it is still down at the end")


OUTCOMES = """
sessions                           | session_flap
all stand                          | P
down for 90 s                      | F
down between two polls             | F
down between two polls, state only | Fp
down to the end                    | F
not listed for 2 min               | F
the device was silent              | P
announced failover                 | P
back after the deadline            | F
failover that merely happened      | F
one announced, two go down         | F
one announced, one goes down       | P
one announced, none goes down      | F
one never up                       | W
one comes up late                  | P
prefixes gone                      | F
prefixes sent anew                 | P
another master                     | W
another master, announced          | P
"""


def test_a_list_that_was_read_once_is_not_missed_before_it_can_come_again() -> None:
    """Some lists come each minute from a source that is polled each second: of one reading no cadence is known."""
    one = replace(state(), time_ns=np.array([S]), value=np.array([1.0]), cadence_s=1.0)
    for seconds, outcome in ((45, Outcome.INCONCLUSIVE), (2000, Outcome.FAIL)):
        ledger = Ledger("dut", "dut/ssh", 1.0, seconds, seconds, {}, None)
        (found,) = SessionFlap().judge(Case("dut", "", Window(0, seconds * S), (one,), ledgers=(ledger,)))
        assert found.outcome is outcome, found.reason
