"""What a recipient hears of failures while a run goes on: first, more, withdrawn, and nothing twice."""

from __future__ import annotations

import random

from tests.collector.engine.notify.notify_kit import T0, finding

from soakwatch.engine.notify.policy import MAX_SUMMARIES, PAUSE_NS, SENT, FailurePolicy
from soakwatch.record.findings import identity_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome

MINUTE = 60 * 10**9


def notification(what: str, at_ns: int, of: Finding | None = None) -> Event:
    """What the record holds of a message that was sent."""
    detail = {"what": what, "number": "1"} | ({} if of is None else {"finding": identity_of(of), "about": "bgpd"})
    return Event(SENT, "", "", at_ns, at_ns, detail)


def test_the_first_failure_is_sent_at_once_and_once() -> None:
    """Warnings and passes are no failures; of several the earliest is the first."""
    policy = FailurePolicy()
    assert policy.news([finding(outcome=Outcome.WARN), finding(outcome=Outcome.PASS)], T0) is None
    late, early = finding(at_s=90), finding("hang", "", at_s=30)
    news = policy.news([late, early], T0)
    assert news is not None
    assert (news.kind, news.findings, news.standing) == ("failure", (early, late), 2)
    assert policy.news([late, early], T0 + 2 * PAUSE_NS) is None, "until it is sent nothing else is told"
    policy.sent(T0, well=True)
    assert policy.news([late, early], T0 + 2 * PAUSE_NS) is None


def test_later_failures_are_summed_up_after_a_pause() -> None:
    """One that came and went within the pause is no news."""
    policy, first = FailurePolicy(), finding()
    policy.news([first], T0)
    policy.sent(T0, well=True)
    others = [finding("hang", f"core={n}") for n in range(3)]
    assert policy.news([first, *others], T0 + MINUTE) is None
    assert policy.news([first, finding("gap", "x")], T0 + 2 * MINUTE) is None
    news = policy.news([first, *others], T0 + PAUSE_NS)
    assert news is not None
    assert (news.kind, len(news.findings), news.gone, news.standing) == ("more", 3, (), 4)
    policy.sent(T0 + PAUSE_NS, well=True)
    assert policy.news([first, others[0]], T0 + PAUSE_NS + MINUTE) is None
    news = policy.news([first, others[0]], T0 + 2 * PAUSE_NS)
    assert news is not None
    assert (len(news.findings), len(news.gone)) == (0, 2)


def test_a_first_failure_that_does_not_last_is_withdrawn_once() -> None:
    """At once; when it comes and goes again that is summed up."""
    policy, first = FailurePolicy(), finding()
    policy.news([first], T0)
    policy.sent(T0, well=True)
    news = policy.news([], T0 + MINUTE)
    assert news is not None
    assert (news.kind, news.standing) == ("withdrawn", 0)
    assert "process=bgpd" in news.gone[0]
    policy.sent(T0 + MINUTE, well=True)
    for minute in range(2, 30):
        assert policy.news([first] if minute % 2 else [], T0 + minute * MINUTE) is None
    news = policy.news([first], T0 + MINUTE + PAUSE_NS)
    assert news is not None
    assert (news.kind, news.findings) == ("more", (first,))


def test_what_could_not_be_sent_is_sent_again_later() -> None:
    """After a pause, as the first failure that it still is."""
    policy, first = FailurePolicy(), finding()
    assert policy.news([first], T0) is not None
    policy.sent(T0, well=False)
    assert policy.news([first], T0 + MINUTE) is None
    news = policy.news([first], T0 + PAUSE_NS)
    assert news is not None
    assert news.kind == "failure"


def test_a_storm_of_days_is_a_bounded_number_of_messages() -> None:
    """Seventy-two hours of findings that come and go, evaluated every minute."""
    policy, chance = FailurePolicy(), random.Random(7)
    kinds = []
    for minute in range(72 * 60):
        failing = [finding("hang", f"core={n}") for n in range(20) if chance.random() < 0.5]
        news = policy.news(failing, T0 + minute * MINUTE)
        if news is not None:
            kinds.append((news.kind, news.last))
            policy.sent(T0 + minute * MINUTE, well=True)
    assert kinds[0] == ("failure", False)
    assert len(kinds) <= MAX_SUMMARIES + 2
    assert kinds[-1] == ("more", True)
    assert [last for _, last in kinds].count(True) == 1
    final = policy.news([], T0 + 72 * 60 * MINUTE, final=True)
    assert final is not None, "the last word is told all the same"


def test_an_earlier_life_of_the_monitor_is_remembered() -> None:
    """After a crash the first failure is not reported twice; what came later is, after the pause."""
    first, other = finding(), finding("hang", "")
    resumed = FailurePolicy([notification("start", T0), notification("failure", T0, first)])
    assert resumed.news([first], T0 + MINUTE) is None
    assert resumed.news([first, other], T0 + MINUTE) is None
    news = resumed.news([first, other], T0 + PAUSE_NS)
    assert news is not None
    assert (news.kind, news.findings) == ("more", (other,))
    withdrawn = FailurePolicy([notification("failure", T0, first), notification("withdrawn", T0 + MINUTE)])
    assert withdrawn.news([], T0 + 2 * MINUTE) is None
    gone = FailurePolicy([notification("failure", T0, first)]).news([], T0 + MINUTE)
    assert gone is not None
    assert (gone.kind, gone.gone) == ("withdrawn", ("bgpd",))
