"""iperf3's text: the interval lines that ``-i 1 --forceflush -f k`` makes every version print.

What it gets wrong: bytes have three or four digits, so they are computed from the rate if that has more (``-f k``), or
for UDP from datagrams and their length (known with ``-V``); times have two decimals. A server whose client is gone
repeats the last interval: an interval that does not follow in time is ignored, and the summary makes up for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

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

_STAMP = r"(?:.{0,64}?\s)??"  # --timestamps, or a title
_ROW = re.compile(
    _STAMP + r"\[\s*(?P<id>\d{1,6}|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])?"
    r"\s+(?P<begin>\d{1,9}\.\d+)\s*-\s*(?P<end>\d{1,9}\.\d+)\s+sec"
    r"\s+(?P<moved>\d{1,18}(?:\.\d+)?) (?P<of>[KMGT]?)Bytes"
    r"\s+(?P<rate>\d{1,18}(?:\.\d+)?) (?P<per>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>.{0,120})"
)
_LOSS = re.compile(r"(?P<jitter>\d+\.\d+) ms\s+(?P<lost>-?\d{1,18})/(?P<all>\d{1,18})\b")
_RETRANSMITS = re.compile(r"(?P<retr>\d{1,18})\s+\d+(?:\.\d+)? [KMGT]?Bytes\b")
_COUNT = re.compile(r"\d{1,18}")
_DISORDERED = re.compile(r"\[\s*\d+\].*?\s(\d{1,18}) datagrams received out-of-order")
_TEST = re.compile(r"Starting Test: protocol: (\w+), (\d{1,4}) streams, (\d{1,9}) byte blocks")
_TARGET = re.compile(r"\s+Target Bitrate: (\d{1,18})")
_LOCAL = re.compile(r"\[\s*(\d{1,6})\] local .{1,200}? port \d+ connected to ")
_CPU = re.compile(r"CPU Utilization: local/\w+ (\d+(?:\.\d+)?)%")
_VERSION = re.compile(r"iperf \d+\.\d\S{0,20}")
_ROW_LIKE = re.compile(r"\[\s*(?:\d+|SUM)\].*\bsec\b")
_PLAIN = re.compile(
    r"-{5}|Connecting to host|Reverse mode|Cookie:|TCP MSS|Control connection|Time:|Test Complete|Linux |Starting Test|"
    r"(?:snd|rcv)_tcp_congestion|\[ *\d+\] \(|\[ *\d+\] Sent |Omitting|[Ww]arning|WARNING|Server output|Target Bitrate|"
    r"CPU Utilization|\[\s*(?:\d+|SUM)\].* out-of-order"
)
_ERROR = re.compile(r"iperf3: (?:error|interrupt)? ?-? ?(.*)")
_HUNDREDTH = 0.011
_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(slots=True)
class _Test:
    """The state of the running test."""

    began: Began = field(default_factory=Began)
    target: float | None = None
    ids: set[str] = field(default_factory=set)
    announced: bool = False  # its begin was reported
    end_s: float = 0.0
    span: tuple[float, float] | None = None  # of the collected rows
    rows: dict[tuple[str, bool], Share] = field(default_factory=dict)
    totals: dict[tuple[str, bool], Share] = field(default_factory=dict)
    roles: bool = False  # True if both directions are in the output
    cpu: float | None = None
    disordered: int | None = None
    sends: bool = False  # a client, not reversed
    server: bool | None = None


class TextReader:
    """Reads lines; collects the rows of an interval until all streams have one, or the next interval begins."""

    def __init__(self) -> None:
        self._test = _Test()
        self._version = ""

    def feed(self, line: str) -> list[Report]:
        """The reports that this line, without its end, completes. Never raises."""
        row = _ROW.match(line)
        if row is not None:
            return self._row(row)
        text = line.strip()
        if match := _LOCAL.search(line):
            reports = self._over(None) if self._test.rows or self._test.end_s else []
            if len(self._test.ids) < 2 * MAX_STREAMS:
                self._test.ids.add(match[1])
            return reports
        if text.startswith(("- - -", "[ ID]")) or "[ ID]" in text[:80]:
            return self._flush()
        if text.startswith(("iperf Done", "Server listening", "Accepted connection", "Connecting to host")):
            reports = self._over(None)
            self._test.sends = text.startswith("Connecting")
            self._test.server = True if text.startswith("Accepted") else False if self._test.sends else None
            return reports
        if match := _ERROR.match(text):
            # A server reports a client that went away before it prints the summary.
            return [] if text.endswith("the client has terminated") else self._over(readable(match[1]))
        if match := _TEST.search(line):
            self._test.began = Began(match[1] == "UDP", int(match[2]) or None, int(match[3]) or None)
            return self._begin()
        if self._detail(line, text) or _PLAIN.match(text):
            return []
        kind = "a row" if _ROW_LIKE.match(text) else "a line"
        return [Unread(f"{kind} that is not iperf3 output: {readable(text)!r}")]

    def done(self) -> list[Report]:
        """The output ended: reports that were incomplete."""
        return self._over(None)

    def _detail(self, line: str, text: str) -> bool:
        test = self._test
        if match := _TARGET.match(line):
            test.target = float(match[1]) or None
        elif match := _CPU.search(line):
            test.cpu = float(match[1]) / 100
        elif match := _DISORDERED.search(line):
            test.disordered = (test.disordered or 0) + int(match[1])
        elif match := _VERSION.match(text):
            self._version = match[0]
        elif text.startswith("Reverse mode"):
            test.sends = False
        else:
            return False
        return True

    def _row(self, row: re.Match[str]) -> list[Report]:
        test = self._test
        begin, end = float(row["begin"]), float(row["end"])
        if not begin <= end <= MAX_SECONDS:
            return []
        word = row["rest"].strip().rpartition(" ")[2]
        share = self._share(row, end - begin)
        key = (row["id"], share.sender)
        if word in ("sender", "receiver"):
            reports = self._flush()
            total = replace(share, sender=word == "sender")
            test.roles = test.roles or row["role"] is not None
            if (total.bytes or total.packets) and len(test.totals) <= 2 * MAX_STREAMS:
                test.totals[row["id"], total.sender] = total
            return reports
        reports = self._begin()
        if test.span not in (None, (begin, end)):
            reports += self._flush()
        if end <= test.end_s or begin < test.end_s - _HUNDREDTH:
            return reports  # repeated
        test.span = (begin, end)
        if len(test.rows) <= 2 * MAX_STREAMS:
            test.rows[key] = share
        if self._complete():
            reports += self._flush()
        return reports

    def _complete(self) -> bool:
        test = self._test
        if not test.ids or not {name for name, _ in test.rows} >= test.ids:
            return False
        several = {sender for sender in (True, False) if sum(s == sender for n, s in test.rows if n != "SUM") > 1}
        return all(("SUM", sender) in test.rows for sender in several)

    def _begin(self) -> list[Report]:
        test = self._test
        if test.announced:
            return []
        test.announced = True
        offered = test.target * (test.began.streams or 1) if test.target else None
        return [replace(test.began, offered_bits=offered, server=test.server, version=self._version)]

    def _flush(self) -> list[Report]:
        test = self._test
        if test.span is None:
            return []
        streams = tuple(share for (name, _), share in test.rows.items() if name != "SUM")
        whole = tuple(share for (name, _), share in test.rows.items() if name == "SUM")
        missing = [sender for sender in (True, False) if not any(share.sender == sender for share in whole)]
        whole += tuple(share for share in streams if share.sender in missing)
        interval = IntervalReport(*test.span, whole, streams)
        test.end_s, test.span = test.span[1], None
        test.rows = {}
        return [interval]

    def _over(self, error: str | None) -> list[Report]:
        """Ends the test, if there is one, and resets the state."""
        test, reports = self._test, self._flush()
        self._test = _Test()
        if not test.announced and error is None:
            return reports
        totals: list[Share] = []
        for sender in (True, False) if not test.roles else ():
            rows = {name: share for (name, side), share in test.totals.items() if side == sender}
            if rows and ("SUM" in rows or len(rows) == 1):
                totals.append(rows.get("SUM") or next(iter(rows.values())))
        return [*reports, Ended(tuple(totals), test.cpu, test.disordered, error)]

    def _share(self, row: re.Match[str], seconds: float) -> Share:
        rest = row["rest"].strip()
        loss, retransmits = _LOSS.match(rest), _RETRANSMITS.match(rest)
        count = _COUNT.match(rest) if loss is None and retransmits is None else None
        udp = self._test.began.udp if self._test.began.udp is not None else loss is not None or count is not None
        sends = retransmits is not None or count is not None or (loss is None and self._test.sends)
        sender = row["role"] == "TX" if row["role"] else sends
        packets = int(loss["all"]) if loss else int(count[0]) if count and udp else None
        lost = int(loss["lost"]) if loss else None
        length = self._test.began.length
        arrived = None if packets is None else packets - max(0, lost or 0)
        if arrived is not None and length is not None:
            moved = arrived * length
        else:
            moved = _moved(row, seconds)
        return Share(
            sender,
            seconds,
            moved if 0 <= moved < MAX_COUNT else None,
            packets,
            None if sender else lost,
            None,
            None if sender or loss is None else float(loss["jitter"]) / 1e3,
            int(retransmits["retr"]) if retransmits else int(count[0]) if count and not udp else None,
        )


def _moved(row: re.Match[str], seconds: float) -> int:
    """Bytes, from the figure with more digits."""
    if len(row["rate"].replace(".", "")) > len(row["moved"].replace(".", "")) and seconds > 0:
        bits = float(row["rate"]) * (_BITS if row["unit"] == "bits" else _BYTES)[row["per"]]
        return round(bits * seconds / (8 if row["unit"] == "bits" else 1))
    return round(float(row["moved"]) * _BYTES[row["of"]])
