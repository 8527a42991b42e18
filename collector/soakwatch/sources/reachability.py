"""The samples of a reachability source: whether the peer answered, how fast, and how many requests were lost."""

from __future__ import annotations

from statistics import median

from soakwatch_model.sample import Sample, object_text


class Reach:
    """The account of one peer under one protocol since the source began."""

    def __init__(self, peer: str, protocol: str) -> None:
        self.object = object_text(peer=peer, protocol=protocol)
        self._sent = self._lost = 0

    def samples(self, now_ns: int, sent: int, round_trips_s: list[float]) -> tuple[Sample, ...]:
        """The samples of one poll: ``sent`` requests, of which those with a time were answered.

        The round trip is the median of the poll's; without an answer there is none, never 0.
        """
        self._sent += sent
        self._lost += sent - len(round_trips_s)
        samples = [
            Sample("reach.up", self.object, 1 if round_trips_s else 0, now_ns),
            Sample("reach.sent", self.object, self._sent, now_ns),
            Sample("reach.lost", self.object, self._lost, now_ns),
        ]
        if round_trips_s:
            samples.append(Sample("reach.round_trip", self.object, median(round_trips_s), now_ns))
        return tuple(samples)
