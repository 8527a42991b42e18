"""How far a feed goes back after a break, on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch.transfer.sinks.replay import Replay


@dataclass
class Hand:
    """A clock that is set by hand, and a feed that acknowledges a poll of one source each second."""

    now_s: float = 100.0
    read: int = 0

    def __call__(self) -> float:
        return self.now_s

    def live(self, replay: Replay, seconds: int, connections: int = 1) -> None:
        """So many seconds in which all goes well."""
        for _ in range(seconds):
            self.now_s += 1.0
            self.read += 1
            replay.taken(connections)
            replay.acknowledged({7: self.read})


def test_without_a_break_it_goes_nowhere_and_remembers_no_more_than_its_window() -> None:
    hand = Hand()
    replay = Replay({}, 30, hand)
    hand.live(replay, 10_000)
    assert replay.back({7: hand.read}) is None
    assert len(replay._known) <= 32


def test_after_a_break_it_goes_back_by_its_window_however_long_the_outage_was() -> None:
    for outage_s in (0.2, 3.0, 36_000.0):
        hand = Hand()
        replay = Replay({}, 30, hand)
        hand.live(replay, 100)
        hand.now_s += outage_s
        replay.taken(2)
        replay.acknowledged({7: 101})
        assert replay.back({7: 101}) == {7: 70}, outage_s
        assert replay.back({7: 70}) is None, "once"


def test_a_break_early_goes_back_to_where_it_began() -> None:
    hand = Hand(read=500)
    replay = Replay({7: 500}, 30, hand)
    hand.live(replay, 5)
    replay.taken(2)
    assert replay.back({7: 505}) == {7: 500}


def test_the_first_connection_is_no_break_and_neither_is_a_slow_answer() -> None:
    hand = Hand()
    replay = Replay({}, 30, hand)
    replay.taken(3)
    assert replay.back({7: 1}) is None
    hand.live(replay, 40, connections=3)
    replay.slow(3)
    hand.live(replay, 5, connections=4)
    assert replay.back({7: hand.read}) is None
    replay.taken(5)
    assert replay.back({7: hand.read}) is not None


def test_a_line_that_breaks_every_time_still_gets_on() -> None:
    hand = Hand()
    replay = Replay({}, 30, hand)
    hand.live(replay, 100)
    furthest = hand.read
    for connection in range(2, 100):  # each lives for one poll
        hand.live(replay, 1, connection)
        furthest = max(furthest, hand.read)
        back = replay.back({7: hand.read})
        if back is not None:
            hand.read = back[7]
    assert 120 < furthest < 200  # about sixty seconds are lost, once


def test_a_connection_that_held_has_the_whole_window_again() -> None:
    hand = Hand()
    replay = Replay({}, 30, hand)
    hand.live(replay, 100)
    gone_back = []
    for connection, held_s in ((2, 5), (3, 5), (4, 5), (5, 40), (6, 5)):
        before = hand.read
        hand.live(replay, 1, connection)
        back = replay.back({7: hand.read})
        assert back is not None
        hand.read = back[7]
        gone_back.append(before - hand.read)
        hand.live(replay, held_s, connection)
    assert gone_back == [30, 5, 5, 4, 30]


def test_no_window_never_goes_back() -> None:
    hand = Hand()
    replay = Replay({}, 0, hand)
    hand.live(replay, 100)
    replay.taken(2)
    assert replay.back({7: 100}) is None
