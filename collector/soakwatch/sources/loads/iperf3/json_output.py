"""iperf3's JSON: one event a line (``--json-stream``, since 3.17), or one document at the end of a test (``-J``).

The events hold the same objects as the document's ``start``, ``intervals`` and ``end``.
"""

from __future__ import annotations

import json
import math
from typing import cast

from soakwatch.sources.loads.iperf3.reports import (
    MAX_COUNT,
    MAX_SECONDS,
    MAX_STREAMS,
    Began,
    Ended,
    IntervalReport,
    Report,
    Share,
    Unread,
    readable,
)

MAX_DOCUMENT = 64 << 20  # characters; three days of one stream are about as long

Object = dict[str, object]


class JsonReader:
    """Reads lines of events, and multi-line documents, which are held until their closing brace."""

    def __init__(self, max_document: int = MAX_DOCUMENT) -> None:
        self._held: list[str] = []
        self._length = 0
        self._max_document = max_document
        self._lost = False  # the document is too long: its rest is skipped
        self._sending: bool | None = None
        self._bidir = False
        self._span: tuple[float, float] | None = None  # of the last interval

    @property
    def open(self) -> bool:
        """True within a document."""
        return bool(self._held) or self._lost

    def feed(self, line: str) -> list[Report]:
        """The reports that this line, without its end, completes. Never raises."""
        if self.open or line.rstrip() == "{":
            return self._document_line(line)
        try:
            value = _loads(line)
        except ValueError:
            return [Unread(f"not JSON: {readable(line)!r}")]
        if not isinstance(value, dict):
            return [Unread(f"not a JSON object: {readable(line)!r}")]
        event = cast("Object", value)
        return self._event(event) if "event" in event else self._document(event)

    def done(self) -> list[Report]:
        """The output ended: reports that were incomplete."""
        if not self._held:
            return []
        self._held.clear()
        return [Unread("a JSON document that was never closed")]

    def _document_line(self, line: str) -> list[Report]:
        self._length += len(line) + 1
        if self._length > self._max_document:
            self._held.clear()
            self._lost = True
        else:
            self._held.append(line)
        if line.rstrip() != "}":
            return []
        text, lost = "\n".join(self._held), self._lost
        self._held.clear()
        self._length, self._lost = 0, False
        if lost:
            return [
                Unread(f"a JSON document of more than {self._max_document >> 20} MiB: run iperf3 with --json-stream")
            ]
        try:
            value = _loads(text)
        except ValueError:
            return [Unread("an invalid JSON document")]
        return self._document(cast("Object", value))

    def _event(self, event: Object) -> list[Report]:
        name, data = event.get("event"), event.get("data")
        if name == "start":
            return self._began(_object(data))
        if name == "interval":
            return self._interval(_object(data))
        if name == "end":
            return self._ended(_object(data), None)
        if name == "error":
            return [Ended(error=_error_text(data))]
        return []  # server_output_text and what newer versions may add

    def _document(self, document: Object) -> list[Report]:
        if "start" not in document and "intervals" not in document:
            return [Unread("a JSON object that is not a result of iperf3")]
        reports = self._began(_object(document.get("start")), late=True) if document.get("intervals") else []
        intervals = document.get("intervals")
        for interval in intervals if isinstance(intervals, list) else ():
            reports += self._interval(_object(interval))
        error = document.get("error")
        return reports + self._ended(_object(document.get("end")), None if error is None else _error_text(error))

    def _began(self, start: Object, *, late: bool = False) -> list[Report]:
        test = _object(start.get("test_start"))
        streams = _count(test.get("num_streams"))
        reverse, client = _number(test.get("reverse")), "connecting_to" in start
        self._sending = client is not bool(reverse) if "test_start" in start else None
        self._bidir, self._span = bool(_number(test.get("bidir"))), None
        # -b is per stream
        each = _number(test.get("target_bitrate")) or _number(start.get("target_bitrate"))
        protocol = test.get("protocol")
        return [
            Began(
                udp=protocol == "UDP" if isinstance(protocol, str) else None,
                streams=streams,
                length=_count(test.get("blksize")),
                offered_bits=each * (streams or 1) if each else None,
                server="accepted_connection" in start if "test_start" in start else None,
                version=readable(str(start.get("version") or ""), 40),
                late=late,
            )
        ]

    def _interval(self, data: Object) -> list[Report]:
        shares = [self._share(data.get(key)) for key in ("sum", "sum_bidir_reverse")]
        listed = data.get("streams")
        streams = [self._share(each) for each in (listed if isinstance(listed, list) else ())[: 2 * MAX_STREAMS]]
        whole = tuple(share for share in shares if share is not None)
        spans = [_span(each) for each in (data.get("sum"), *(listed if isinstance(listed, list) else ())[:1])]
        span = next((each for each in spans if each is not None), None)
        parts = tuple(share for share in streams if share is not None)
        self._bidir = self._bidir or "sum_bidir_reverse" in data
        if span is None or not (whole or parts):
            return [Unread("an interval without times or figures")]
        if span == self._span:
            return []  # a server whose client is gone repeats its last interval
        self._span = span
        return [IntervalReport(*span, _with_rtt(whole, parts) or parts[:1], parts)]

    def _ended(self, end: Object, error: str | None) -> list[Report]:
        sent, received = (
            self._share(end.get("sum_sent"), sender=True),
            self._share(end.get("sum_received"), sender=False),
        )
        if sent is None and received is None:
            sent = self._share(end.get("sum"))  # UDP before 3.1
        totals = (
            () if self._bidir else tuple(each for each in (sent, received) if each is not None and _has_traffic(each))
        )
        cpu = _number(_object(end.get("cpu_utilization_percent")).get("host_total"))
        disordered = (
            [
                _count(_object(_object(stream).get("udp")).get("out_of_order"))
                for stream in cast("list[object]", end.get("streams"))[: 2 * MAX_STREAMS]
            ]
            if isinstance(end.get("streams"), list)
            else []
        )
        known = [count for count in disordered if count is not None]
        return [Ended(totals, None if cpu is None else cpu / 100, sum(known) if known else None, error)]

    def _share(self, data: object, *, sender: bool | None = None) -> Share | None:
        if not isinstance(data, dict):
            return None
        fields = cast("Object", data)
        seconds = _number(fields.get("seconds"))
        if seconds is None or not 0 <= seconds <= MAX_SECONDS:
            return None
        if sender is None:
            flag = fields.get("sender")
            sender = flag if isinstance(flag, bool) else self._sending
        if sender is None:
            sender = "jitter_ms" not in fields
        jitter, rtt = _number(fields.get("jitter_ms")), _number(fields.get("rtt"))
        return Share(
            sender,
            seconds,
            _count(fields.get("bytes")),
            _count(fields.get("packets")),
            None if sender else _count(fields.get("lost_packets"), signed=True),
            None,
            None if jitter is None or jitter < 0 or sender else jitter / 1e3,
            _count(fields.get("retransmits")) if sender else None,
            None if rtt is None or rtt <= 0 else rtt / 1e6,
        )


def _with_rtt(whole: tuple[Share, ...], streams: tuple[Share, ...]) -> tuple[Share, ...]:
    """Adds the round-trip time to sums, which have none: the mean of their streams'."""
    done = []
    for share in whole:
        times = [each.rtt_s for each in streams if each.sender == share.sender and each.rtt_s is not None]
        mean = sum(times) / len(times) if times else None
        done.append(
            Share(
                share.sender,
                share.seconds,
                share.bytes,
                share.packets,
                share.lost,
                share.disordered,
                share.jitter_s,
                share.retransmits,
                mean,
            )
        )
    return tuple(done)


def _error_text(error: object) -> str:
    return readable(str(error).removeprefix("error - "))


def _has_traffic(share: Share) -> bool:
    """False if all is zero, as iperf3 reports a side that it knows nothing of."""
    return bool(share.bytes or share.packets)


def _span(data: object) -> tuple[float, float] | None:
    fields = _object(data)
    begin, end = _number(fields.get("start")), _number(fields.get("end"))
    return (begin, end) if begin is not None and end is not None and 0 <= begin <= end <= MAX_SECONDS else None


def _object(value: object) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object, *, signed: bool = False) -> int | None:
    """A count, or None; cJSON writes large ones as floats."""
    number = _number(value)
    if number is None or abs(number) >= MAX_COUNT or (number < 0 and not signed):
        return None
    return value if isinstance(value, int) else round(number)


def _loads(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None
