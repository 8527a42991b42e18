"""What a trial counted, from the polls of the loads: counters, rates, restarts, receivers apart from senders."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from soakwatch.engine.capacity.counts import TrialCounts, UncountedError
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

S = 10**9
Readings = Mapping[str, float]


def polled(
    counts: TrialCounts, second: float, readings: Readings, *, source: int = 1, level: float | None = None
) -> None:
    """One poll of a generator, with the level that it follows if it is driven."""
    at = round(second * S)
    samples = [Sample(metric, "", value, at) for metric, value in readings.items()]
    samples += [] if level is None else [Sample("load.level", "", level, at)]
    events: tuple[Event, ...] = ()
    answer = Answer(tuple(samples), events, ())
    counts.observe("generator", Poll(source, at, at, 1, PollOutcome.OK, None, answer), S)


def failed(counts: TrialCounts, second: float) -> None:
    """One poll that was not answered."""
    at = round(second * S)
    counts.observe("generator", Poll(1, at, at, 1, PollOutcome.FAILED, "no answer", Answer((), (), ())), S)


def trial(*polls: tuple[float, Readings], before: Readings, after: Readings) -> TrialCounts:
    """A trial at half load from second 10 to 14, with polls in it and one at rest before and behind it."""
    counts = TrialCounts()
    polled(counts, 9, before, level=0.0)
    counts.restart()
    for second, readings in polls:
        polled(counts, second, readings, level=0.5)
    polled(counts, 17, after, level=0.0)
    return counts


def packets(sent: float, back: float) -> Readings:
    """Counters of packets."""
    return {"load.tx.packets": sent, "load.rx.packets": back}


def test_from_rest_to_rest_nothing_is_under_way() -> None:
    """Counts are those of the counters at rest; the rate is that of the time between polls in the trial."""
    counts = trial(
        (11, packets(1900, 1500)),
        (12, packets(2900, 2400)),
        (13, packets(3900, 3400)),
        before=packets(1000, 900),
        after=packets(4900, 4700),
    )
    counted = counts.counted(0.5, 10 * S, 14 * S)
    assert (counted.offered, counted.lost, counted.rate) == (3900, 100, 1000)


def test_another_process_counts_from_zero() -> None:
    """Its first reading is above the last one of the process before, and all that it counted is of this trial."""
    counts = trial(
        (11, packets(1000, 1000)), (12, packets(2000, 2000)), before=packets(600, 500), after=packets(4000, 3900)
    )
    counted = counts.counted(0.5, 10 * S, 14 * S)
    assert (counted.offered, counted.lost) == (4000, 100)


def test_a_counter_that_falls_within_the_trial_makes_none() -> None:
    """A generator that was restarted in the trial did not send all of it."""
    counts = trial(
        (11, packets(2000, 2000)), (12, packets(500, 500)), before=packets(1000, 1000), after=packets(2000, 2000)
    )
    with pytest.raises(UncountedError, match="fell within the trial"):
        counts.counted(0.5, 10 * S, 14 * S)


def test_more_back_than_sent_is_no_trial_without_loss() -> None:
    """Duplicates hide what was lost."""
    counts = trial((12, packets(2000, 2100)), before=packets(0, 0), after=packets(4000, 4200))
    with pytest.raises(UncountedError, match=r"5\.00% more packets came back than were sent"):
        counts.counted(0.5, 10 * S, 14 * S)


def test_a_sender_and_a_receiver_may_be_two_sources() -> None:
    """Where the driven load tells what it sends alone, what another generator received counts."""
    counts = TrialCounts()
    for second, sent, back, level in (
        (9, 1000, 800, 0.0),
        (11, 2000, 1700, 0.5),
        (12, 3000, 2700, 0.5),
        (17, 5000, 4750, 0.0),
    ):
        if second == 11:
            counts.restart()
        polled(counts, second, {"load.tx.packets": sent}, level=level)
        polled(counts, second, {"load.rx.packets": back}, source=2)
    counted = counts.counted(0.5, 10 * S, 14 * S)
    assert (counted.offered, counted.lost) == (4000, 50)
    assert counts.waits_for(18 * S, 1)
    assert not counts.waits_for(17 * S, 1)


def test_a_receiver_that_knows_its_losses() -> None:
    """As iperf3 knows them where the server sends: offered is what came and what did not."""
    rest, end = {"load.rx.packets": 10, "load.lost.packets": 0}, {"load.rx.packets": 3910, "load.lost.packets": 100}
    counts = trial(
        (11, {"load.rx.packets": 985, "load.lost.packets": 25}),
        (12, {"load.rx.packets": 1960, "load.lost.packets": 50}),
        before=rest,
        after=end,
    )
    counted = counts.counted(0.5, 10 * S, 14 * S)
    assert (counted.offered, counted.lost) == (4000, 100)
    assert counted.rate == pytest.approx(1000)


def test_its_own_share_of_loss_is_taken_last() -> None:
    """A load that reports rates and a share of loss: both are summed up over the time between readings."""
    reading = {"load.tx.packet.rate": 1000.0, "load.loss": 0.02}
    counts = trial((11, reading), (12, reading), (14, reading), before={}, after={})
    counted = counts.counted(0.5, 10 * S, 14 * S)
    assert (counted.offered, counted.lost) == pytest.approx((4000, 80))


@pytest.mark.parametrize(
    ("readings", "why", "final"),
    [
        (packets(1000, 1000), "the load sent nothing", False),
        ({"load.tx.packets": 2000}, "no driven load counts what it loses", True),
        ({"load.tx.packets": 2000, "load.rx.packets": 0}, "no driven load counts what it loses", True),
        ({}, "the load sent nothing", False),
    ],
)
def test_what_is_not_known_is_no_trial_without_loss(readings: Readings, why: str, final: bool) -> None:
    """Nothing sent, or nothing that tells of loss."""
    before = {metric: min(value, 1000.0) for metric, value in readings.items()}
    counts = trial((11, readings), (12, readings), before=before, after=readings)
    with pytest.raises(UncountedError, match=why) as refused:
        counts.counted(0.5, 10 * S, 14 * S)
    assert refused.value.final == final


def test_a_failed_poll_and_another_level_make_no_trial() -> None:
    """Both are told, and the trial is to be repeated."""
    counts = trial(
        (11, packets(2000, 2000)), (12, packets(3000, 3000)), before=packets(1000, 1000), after=packets(4000, 4000)
    )
    with pytest.raises(UncountedError, match="was not seen at 70"):
        counts.counted(0.7, 10 * S, 14 * S)
    failed(counts, 13)
    with pytest.raises(UncountedError, match="a poll of the load failed: no answer"):
        counts.counted(0.5, 10 * S, 14 * S)


def test_ports_are_directions() -> None:
    """Of two ports that send to each other it is known what each lost; of three only what they sent; a port that only
    receives is none."""

    def counted(ports: Mapping[str, tuple[float, float]]) -> list[tuple[str, str, float, float | None]]:
        counts, total = TrialCounts(), sum(sent for sent, _ in ports.values())
        for second, share, level in ((9, 0.0, 0.0), (11, 0.25, 0.5), (12, 0.5, 0.5), (13, 0.75, 0.5), (17, 1.0, 0.0)):
            if second == 11:
                counts.restart()
            at = second * S
            samples = [Sample("load.level", "", level, at), Sample("load.tx.packets", "", total * share, at)]
            samples.append(Sample("load.rx.packets", "", sum(back for _, back in ports.values()) * share, at))
            for port, (sent, back) in ports.items():
                samples.append(Sample("load.port.tx.packets", f"port={port}", sent * share, at))
                samples.append(Sample("load.port.rx.packets", f"port={port}", back * share, at))
            poll = Poll(1, at, at, 1, PollOutcome.OK, None, Answer(tuple(samples), (), ()))
            counts.observe("generator", poll, S)
        return [(way.port, way.to, way.offered, way.lost) for way in counts.counted(0.5, 10 * S, 14 * S).ways]

    assert counted({"0": (4000, 1900), "1": (2000, 4000)}) == [("0", "1", 4000, 0), ("1", "0", 2000, 100)]
    assert counted({"0": (4000, 0), "1": (0, 3900)}) == [("0", "", 4000, None)]
    three = {"0": (4000, 3000), "1": (3000, 4000), "2": (2000, 2000)}
    assert counted(three) == [("0", "", 4000, None), ("1", "", 3000, None), ("2", "", 2000, None)]
