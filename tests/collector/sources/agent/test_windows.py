"""When the flight recorder is asked: around what happened, once, bounded, and nothing that happened is forgotten."""

from __future__ import annotations

from itertools import pairwise

import pytest

from soakwatch.core.event_kinds import REACH_NS
from soakwatch.sources.pollers.agent.windows import MAX_REASONS, MAX_WAITING, QUIET_NS, RING_NS, RecorderWindow, Windows
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Sample, object_text

S = 10**9
NOON = 1_795_200_000 * S


def answer_at(second: int, cores: dict[int, float], every: float = 0.1) -> Answer:
    """One poll of a machine with some cores."""
    samples = [Sample("system.cpu.utilization", "", every, NOON + second * S)]
    samples += [
        Sample("system.cpu.core.utilization", object_text(core=core), share, NOON + second * S)
        for core, share in cores.items()
    ]
    return Answer(tuple(samples), (), ())


def drained(windows: Windows, begin: int, end: int) -> list[RecorderWindow]:
    """The windows that fall due when they are asked for each second."""
    windows_due = (windows.due(NOON + second * S) for second in range(begin, end))
    return [window for window in windows_due if window is not None]


def test_two_events_within_reach_share_a_window_and_both_are_named() -> None:
    """The window is that of the first; it is fetched when it is whole, once."""
    windows = Windows()
    windows.want(NOON, "failover")
    windows.want(NOON + 20 * S, "link.down")
    windows.want(NOON + 21 * S, "link.down")
    assert windows.due(NOON + REACH_NS - 1) is None
    (window,) = drained(windows, 0, 1000)
    assert (window.window.begin_ns, window.window.end_ns) == (NOON - REACH_NS, NOON + REACH_NS)
    assert window.reason == "failover; link.down"
    assert [moment.time_ns for moment in window.moments] == [NOON, NOON + 20 * S]


def test_an_event_after_the_end_of_a_window_gets_one_of_its_own_after_the_quiet_time() -> None:
    """It is fetched later, for the ring keeps it; the stretch that the first window holds is not fetched twice."""
    windows = Windows()
    windows.want(NOON, "failover")
    windows.want(NOON + 40 * S, "failback")
    windows.want(NOON + 75 * S, "link.down")
    assert windows.due(NOON + REACH_NS) is not None
    assert windows.due(NOON + REACH_NS + QUIET_NS - 1) is None
    second = windows.due(NOON + REACH_NS + QUIET_NS)
    assert second is not None
    assert (second.window.begin_ns, second.window.end_ns) == (NOON + REACH_NS, NOON + REACH_NS + 60 * S)
    assert second.reason == "failback; link.down"


def test_a_late_event_gets_a_window_at_its_own_time() -> None:
    """A finding of a minute ago; what lies within a window that was fetched already asks for nothing."""
    windows = Windows()
    windows.want(NOON, "fail cpu_spike")
    assert windows.due(NOON + 60 * S) is not None
    windows.want(NOON + 10 * S, "warn drops")
    windows.want(NOON - 45 * S, "link.down")
    (early,) = drained(windows, 61, 1000)
    assert (early.window.begin_ns, early.window.end_ns) == (NOON - 75 * S, NOON - REACH_NS)


def test_a_storm_is_bounded_and_what_it_left_out_is_counted() -> None:
    """Ten events a second for an hour: a window each two minutes, a few names each, and the others are a number."""
    windows = Windows()
    fetched: list[tuple[int, RecorderWindow]] = []
    for second in range(3600):
        for number in range(10):
            windows.want(NOON + second * S, f"log.{(second * 10 + number) % 97}")
        window = windows.due(NOON + second * S)
        if window is not None:
            fetched.append((NOON + second * S, window))
    assert 25 <= len(fetched) <= 31
    assert all(len(window.moments) <= MAX_REASONS for _, window in fetched)
    assert all(asked_ns - window.window.begin_ns < RING_NS for asked_ns, window in fetched), "the ring still has it"
    stretches = sorted((window.window.begin_ns, window.window.end_ns) for _, window in fetched)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(stretches))
    assert sum(len(window.moments) + window.more for _, window in fetched) > 30_000


def test_a_run_has_only_so_many_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then events bring none, however long the run is."""
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.MAX_WINDOWS", 5)
    windows, fetched = Windows(), 0
    for minute in range(0, 600, 10):
        windows.want(NOON + minute * 60 * S, "link.down")
        fetched += windows.due(NOON + (minute + 5) * 60 * S) is not None
    assert fetched == 5


def test_what_the_ring_cannot_hold_is_not_asked_for() -> None:
    """An event of an hour ago, reported now; one of tomorrow; and a window that waited too long for a dead link."""
    windows = Windows()
    windows.consider(answer_at(3600, {}), NOON + 3600 * S)
    windows.want(NOON, "failover")
    windows.want(NOON + 90_000 * S, "upgrade")
    assert drained(windows, 3600, 3700) == []
    windows.want(NOON + 3700 * S, "link.down")
    assert drained(windows, 5000, 5001) == []
    assert windows.take_gone() == ("link.down",)
    assert windows.take_gone() == ()


def test_one_pinned_core_of_eight_is_seen() -> None:
    """The whole machine rises by an eighth; the core by itself leaves its usual level, and stays there."""
    windows = Windows()
    calm = {core: 0.05 + 0.01 * core for core in range(8)}
    for second in range(30):
        windows.consider(answer_at(second, calm), NOON + second * S)
    assert drained(windows, 0, 200) == []
    for second in range(30, 33):
        windows.consider(answer_at(second, {**calm, 5: 1.0}, 0.22), NOON + second * S)
    (window,) = drained(windows, 33, 200)
    assert window.reason == "jump of the CPU: core 5"
    assert window.moments[0].time_ns == NOON + 30 * S, "when it began, not when it was believed"


def test_a_core_that_is_always_busy_or_busy_for_one_poll_is_nothing_new() -> None:
    """A polling core of DPDK; one that flickers between nothing and all; a burst of one poll."""
    windows = Windows()
    for second in range(600):
        flicker = 1.0 if second // 3 % 4 == 0 else 0.0
        burst = 1.0 if second == 300 else 0.02
        windows.consider(answer_at(second, {0: 1.0, 1: flicker, 2: burst}, 0.6), NOON + second * S)
        assert windows.due(NOON + second * S) is None


def test_an_event_of_the_agent_itself_is_named_in_the_words_of_the_run() -> None:
    """The run reports the same event again when it is recorded: one reason, not two."""
    windows = Windows()
    event = Event("core.dump", "", object_text(process="bgpd"), NOON, None, {})
    windows.consider(Answer((), (event, Event("device.identity", "", "", NOON, None, {})), ()), NOON + S)
    windows.want(NOON, "core.dump process=bgpd")
    (window,) = drained(windows, 0, 100)
    assert window.reason == "core.dump process=bgpd"


def test_at_the_end_of_a_run_each_window_is_taken_as_far_as_it_goes() -> None:
    """No quiet time, nothing from behind the end, and nothing twice."""
    windows = Windows()
    windows.want(NOON, "failover")
    windows.want(NOON + 50 * S, "failback")
    end_ns = NOON + 55 * S
    last = [window for _ in range(MAX_WAITING + 1) if (window := windows.last(end_ns)) is not None]
    assert [(w.window.begin_ns, w.window.end_ns) for w in last] == [
        (NOON - REACH_NS, NOON + REACH_NS),
        (NOON + REACH_NS, end_ns),
    ]


def test_a_window_whose_fetching_was_cut_is_fetched_again_once() -> None:
    """At once when the link is back; if that is cut as well, it is given up."""
    windows = Windows()
    windows.want(NOON, "failover")
    first = windows.due(NOON + 31 * S)
    assert first is not None
    windows.give_back(first)
    windows.want(NOON + 5 * S, "link.down")
    again = windows.due(NOON + 33 * S)
    assert again is not None
    assert again.reason == "failover; link.down"
    windows.give_back(again)
    assert drained(windows, 34, 1000) == []


def test_a_jump_of_the_cpu_and_an_event_ask_for_a_window_but_not_for_many() -> None:
    """The usual level must be known first; a second window waits until two minutes after the first."""
    windows = Windows()

    def take(second: int, share: float, *kinds: str) -> None:
        events = tuple(Event(kind, "", "", second * S, None, {}) for kind in kinds)
        windows.consider(Answer((Sample("system.cpu.utilization", "", share, second * S),), events, ()), second * S)

    take(0, 0.9)
    for early in range(1, 30):
        take(early, 0.1)
    assert windows.due(100 * S) is None
    take(100, 0.5)
    assert windows.due(120 * S) is None
    first = windows.due(130 * S)
    assert first is not None
    assert (first.window.begin_ns, first.window.end_ns, first.reason) == (70 * S, 130 * S, "jump of the CPU")
    take(140, 0.1, "process.restart")
    take(230, 0.1, "core.present")
    assert windows.due(249 * S) is None
    second = windows.due(250 * S)
    assert second is not None
    assert (second.window.begin_ns, second.window.end_ns, second.reason) == (130 * S, 170 * S, "process.restart")
    assert windows.due(500 * S) is None


def test_a_failed_poll_of_the_agent_is_no_poll() -> None:
    """The trigger for a window is not confused by an answer without samples."""
    windows = Windows()
    windows.consider(NOTHING, 0)
    assert windows.due(10**12) is None
