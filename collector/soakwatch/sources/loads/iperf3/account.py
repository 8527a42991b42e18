"""Turns iperf3's reports into samples of the catalogue.

Counters are of one process, from 0 on. A server counts on over its tests, and so does a client that the run restarts at
another level; any other client is a new process. Its counters begin with a 0, so that the step back shows, and the
event ``generator.restart`` marks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from soakwatch.sources.loads.iperf3.reports import MAX_COUNT, Began, Ended, IntervalReport, Report, Share, Unread
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Sample, object_text

RESTART = "generator.restart"
_MIN_RATE_S = 0.15  # a test's last interval may be shorter, and times have two decimals: no rate from it
_MAX_HELD_SAMPLES = 50_000  # between two polls; of more, the oldest are dropped
_MAX_HELD_EVENTS = 1_000


class Account:
    """Takes reports and returns samples, at steady times of the run.

    With ``own`` the run starts the process, so it reports restarts (``restarted``) and measures CPU.
    """

    def __init__(self, begin_ns: int, *, own: bool = False) -> None:
        self.running = False  # True during a test
        self.tests = 0
        self.intervals = 0
        self.error: str | None = None  # iperf3's message at the end of the last test
        self.began = Began()
        self._own, self._anew = own, False
        self._live = own  # True if it is known whether it sends
        self._fresh = False  # True until the test's first interval
        self._last_ns = begin_ns
        self._totals: dict[tuple[str, str], int] = {}
        self._before: dict[tuple[str, str], int] = {}  # totals at the begin of the test
        self._raw_lost = self._lost_before = 0
        self._unread = self._left_out = 0
        self._samples: list[Sample] = []
        self._events: list[Event] = []
        self._fault: Fault | None = None
        self._reported_unread = False

    def take(self, reports: Sequence[Report], now_ns: int) -> None:
        """Takes reports that arrived by ``now_ns``: the last interval ends now, earlier ones before it.

        So a document at the end of a test is spread over the test's time, but not to before the run.
        """
        for item, at_ns in zip(reports, times(reports, now_ns), strict=True):
            if isinstance(item, Unread):
                self._unread += 1
                if not self._reported_unread:
                    self._reported_unread = True
                    self._fault = Fault("load.lines.unread", "", f"the output contains {item.text}")
            elif isinstance(item, Began):
                self._begin(item, at_ns)
            elif isinstance(item, Ended):
                self._end(item, at_ns)
            else:
                self._interval(item, at_ns)

    def restarted(self) -> None:
        """The next test is of a new process, unplanned."""
        self._anew = True

    def cut_off(self, now_ns: int) -> None:
        """The process ended, and with it a test that is running."""
        self._live = True
        if self.running:
            self.take([Ended(error="it ended without a message")], now_ns)

    def forget(self) -> None:
        """Drops the samples but keeps the counters: they are from before the run."""
        self._samples.clear()
        self._events.clear()
        self._left_out = 0

    def answer(self, now_ns: int, *more: Sample, fault: Fault | None = None) -> Answer:
        """The samples since the last call, and the current state."""
        left_out = self._left_out + max(0, len(self._samples) - _MAX_HELD_SAMPLES)
        samples, self._samples, self._left_out = self._samples[-_MAX_HELD_SAMPLES:], [], 0
        events, self._events = tuple(self._events[-_MAX_HELD_EVENTS:]), []
        flood = f"{left_out} samples arrived at once and the oldest were dropped: run iperf3 with --json-stream"
        lost = Fault("", "", flood) if left_out else None
        faults = tuple(each for each in (self._fault, fault, lost) if each is not None)
        self._fault = None
        if self._live and self._totals and not self.running and now_ns > self._last_ns:
            # Known to count nothing now: repeat the counters, so that this is no gap.
            self._last_ns = now_ns
            samples += [Sample(metric, obj, total, now_ns) for (metric, obj), total in self._totals.items()]
        if self._live:
            samples.append(Sample("load.sending", "", 1 if self.running else 0, now_ns))
        samples.append(Sample("load.lines.unread", "", self._unread, now_ns))
        return Answer((*samples, *more), events, faults)

    def offered(self, now_ns: int) -> tuple[Sample, ...]:
        """The offered load of the running test, if its output says it."""
        # A server offers nothing: it repeats its client's figure.
        sends = self.running and not self.began.server
        return offered(self.began.offered_bits, self.began, now_ns) if sends else ()

    # --- reports -------------------------------------------------------------------------------------------

    def _begin(self, began: Began, at_ns: int) -> None:
        self.tests += 1
        if self.tests > 1 and (self._anew if self._own else not began.server):
            how = self.error or ("no message" if self.running else "ended")
            self._events.append(Event(RESTART, "", "", at_ns, None, {"test": str(self.tests), "before": how}))
            del self._events[:-_MAX_HELD_EVENTS]
            self._totals.clear()
            self._raw_lost = 0
        self._anew, self._live = False, self._own or not began.late
        self.running, self.began, self.error, self._fresh = True, began, None, True
        self._before, self._lost_before = dict(self._totals), self._raw_lost

    def _interval(self, interval: IntervalReport, at_ns: int) -> None:
        self.running = True
        self.intervals += 1
        begin_ns = max(self._last_ns + 1, at_ns - round((interval.end_s - interval.begin_s) * 1e9))
        at_ns = self._last_ns = max(at_ns, begin_ns + 1)
        figures = _sums(interval.whole)
        for share in figures:
            for metric, step in _counted(share):
                self._count(metric, "", step, begin_ns, at_ns)
            if not share.sender and share.lost is not None:
                self._lose(share.lost, begin_ns, at_ns)
            for metric, obj, value in _gauges(share):
                self._samples.append(Sample(metric, obj, value, at_ns))
        for number, share in _numbered(interval.streams):
            self._flow(number, share, begin_ns, at_ns)
        self._fresh = False
        if len(self._samples) > 2 * _MAX_HELD_SAMPLES:
            self._left_out += len(self._samples) - _MAX_HELD_SAMPLES
            del self._samples[:-_MAX_HELD_SAMPLES]

    def _flow(self, number: int, share: Share, begin_ns: int, at_ns: int) -> None:
        flow = object_text(flow=number)
        count = share.packets if share.sender else share.received
        if count is not None:
            self._count(f"load.flow.{'tx' if share.sender else 'rx'}.packets", flow, count, begin_ns, at_ns)
        if share.lost is not None and share.packets:
            self._samples.append(Sample("load.flow.loss", flow, _share_lost(share.lost, share.packets), at_ns))
        if share.jitter_s is not None:
            self._samples.append(Sample("load.flow.jitter", flow, share.jitter_s, at_ns))
        if share.rtt_s is not None:
            obj = object_text(flow=number, quantile="mean")
            self._samples.append(Sample("load.flow.latency", obj, share.rtt_s, at_ns))

    def _end(self, ended: Ended, at_ns: int) -> None:
        begin_ns = self._last_ns + 1
        at_ns = self._last_ns = max(at_ns, begin_ns + 1)
        for total in ended.totals:
            # The end of a test is often in no interval: the totals supply what the intervals lack.
            far = not total.sender and self._of_test("load.rx.bytes") == 0
            for metric, whole in _counted(total):
                missing = whole - self._of_test(metric)
                if missing > 0:
                    self._count(metric, "", missing, begin_ns, at_ns)
            if not total.sender and total.lost is not None:
                self._lose(total.lost - (self._raw_lost - self._lost_before), begin_ns, at_ns)
                for metric, obj, value in _gauges(total) if far else ():
                    if metric in ("load.loss", "load.jitter"):  # only the other side knew them, and says so now
                        self._samples.append(Sample(metric, obj, value, at_ns))
        if ended.disordered is not None:
            self._count("load.disordered.packets", "", ended.disordered, begin_ns, at_ns)
        if ended.cpu is not None and self.running and not self._own:
            self._samples.append(Sample("load.cpu.utilization", "", min(max(ended.cpu, 0.0), 1.0), at_ns))
        self.error = ended.error or (None if self.running else self.error)
        self.running = False

    def _of_test(self, metric: str) -> int:
        return self._totals.get((metric, ""), 0) - self._before.get((metric, ""), 0)

    def _count(self, metric: str, obj: str, step: int, begin_ns: int, at_ns: int) -> None:
        before = self._totals.get((metric, obj))
        if before is None or self._fresh:  # mark where the growth begins after a rest
            before = before or 0
            self._samples.append(Sample(metric, obj, before, begin_ns))
        if before + step >= MAX_COUNT:
            return  # impossible for a generator: a garbled line
        now = self._totals[metric, obj] = before + step
        self._samples.append(Sample(metric, obj, now, at_ns))

    def _lose(self, step: int, begin_ns: int, at_ns: int) -> None:
        """Counts losses; if late datagrams lower the estimate, the counter waits until it is exceeded."""
        self._raw_lost += step
        known = self._totals.get(("load.lost.packets", ""), 0)
        self._count("load.lost.packets", "", max(0, self._raw_lost - known), begin_ns, at_ns)
        self._samples.append(Sample("load.drop.estimate", "", self._raw_lost, at_ns))


def times(reports: Sequence[Report], now_ns: int) -> list[int]:
    """The time of each report, ns, if the last is of now.

    >>> said = [IntervalReport(0, 1, ()), IntervalReport(1, 2, ()), Began(), IntervalReport(0, 1, ())]
    >>> [round((at - 10**10) / 1e9) for at in times(said, 10**10)]
    [-2, -1, -1, 0]
    """
    placed, time_ns, later = [now_ns] * len(reports), now_ns, None
    for index in range(len(reports) - 1, -1, -1):
        item = reports[index]
        if isinstance(item, IntervalReport):
            if later is not None:
                time_ns -= round(max(0.0, later.end_s - item.end_s) * 1e9)
            later = item
        elif isinstance(item, Began) and later is not None:
            time_ns -= round(max(0.0, later.end_s - 0.0) * 1e9)
            later = None
        placed[index] = time_ns
    return placed


def offered(bits: float | None, began: Began, now_ns: int) -> tuple[Sample, ...]:
    """The offered load of a test: payload bits per second and, for UDP, datagrams per second."""
    if not bits:
        return ()
    samples = [Sample("load.offered.bit.rate", "", bits, now_ns)]
    if began.udp and began.length:
        samples.append(Sample("load.offered.packet.rate", "", bits / 8 / began.length, now_ns))
    return tuple(samples)


def _counted(share: Share) -> Iterator[tuple[str, int]]:
    side = "tx" if share.sender else "rx"
    packets = share.packets if share.sender else share.received
    if share.bytes is not None:
        yield f"load.{side}.bytes", share.bytes
    if packets is not None:
        yield f"load.{side}.packets", packets
    if share.sender and share.retransmits is not None:
        yield "load.retransmits", share.retransmits


def _gauges(share: Share) -> Iterator[tuple[str, str, float]]:
    side = "tx" if share.sender else "rx"
    if share.seconds >= _MIN_RATE_S:
        if share.bytes is not None:
            yield f"load.{side}.bit.rate", "", share.bytes * 8 / share.seconds
        packets = share.packets if share.sender else share.received
        if packets is not None:
            yield f"load.{side}.packet.rate", "", packets / share.seconds
    if not share.sender and share.lost is not None and share.packets:
        yield "load.loss", "", _share_lost(share.lost, share.packets)
    if share.jitter_s is not None:
        yield "load.jitter", "", share.jitter_s
    if share.rtt_s is not None:
        yield "load.latency", object_text(quantile="mean"), share.rtt_s


def _share_lost(lost: int, packets: int) -> float:
    return min(max(lost / packets, 0.0), 1.0)


def _sums(shares: Sequence[Share]) -> list[Share]:
    """One share per direction: the sum, or the only stream."""
    first = {share.sender: share for share in reversed(shares)}
    return list(first.values())


def _numbered(streams: Sequence[Share]) -> Iterator[tuple[int, Share]]:
    """Streams numbered by direction if there are several; socket numbers differ from test to test."""
    for sender in (True, False):
        ours = [share for share in streams if share.sender == sender]
        if len(ours) > 1:
            yield from enumerate(ours, 1)
