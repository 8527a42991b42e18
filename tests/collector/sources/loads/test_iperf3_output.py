"""What iperf3 writes, in each of its forms, and what becomes of it: real outputs of 3.12, and events of 3.17."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable

import pytest
from tests.collector.sources.loads.iperf3_kit import Figures, figures

from soakwatch.sources.loads.iperf3.account import Account
from soakwatch.sources.loads.iperf3.json_output import JsonReader
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.loads.iperf3.reports import Began, Ended, IntervalReport, Report, Unread
from soakwatch.sources.loads.iperf3.text_output import TextReader
from soakwatch_model.sample import Answer
from soakwatch_testing import iperf3_double as double

SECOND = 10**9
NOW = 1_800_000_000 * SECOND

UDP_CLIENT = """\
iperf 3.12
Linux vm 6.18 #1 SMP x86_64
Control connection MSS 32768
Time: Sat, 21 Nov 2026 11:08:33 GMT
Connecting to host 127.0.0.1, port 5998
      Cookie: oahf5njnpxg2xeouw3z4anuh2hzqb2f7smmx
      Target Bitrate: 2000000
[  5] local 127.0.0.1 port 44290 connected to 127.0.0.1 port 5998
[  7] local 127.0.0.1 port 49795 connected to 127.0.0.1 port 5998
Starting Test: protocol: UDP, 2 streams, 1000 byte blocks, omitting 0 seconds, 0 second test, tos 0
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec   244 KBytes  2000 Kbits/sec  250  \n\
[  7]   0.00-1.00   sec   244 KBytes  2000 Kbits/sec  250  \n\
[SUM]   0.00-1.00   sec   488 KBytes  4000 Kbits/sec  500  \n\
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-1.41   sec  99.6 KBytes  2007 Kbits/sec  102  \n\
[  7]   1.00-1.41   sec  99.6 KBytes  2007 Kbits/sec  102  \n\
[SUM]   1.00-1.41   sec   199 KBytes  4014 Kbits/sec  204  \n\
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.41   sec   344 KBytes  2001 Kbits/sec  0.000 ms  0/352 (0%)  sender
[  5]   0.00-1.41   sec  0.00 Bytes  0.00 Kbits/sec  0.000 ms  0/0 (0%)  receiver
[  7]   0.00-1.41   sec   344 KBytes  2001 Kbits/sec  0.000 ms  0/352 (0%)  sender
[  7]   0.00-1.41   sec  0.00 Bytes  0.00 Kbits/sec  0.000 ms  0/0 (0%)  receiver
[SUM]   0.00-1.41   sec   688 KBytes  4002 Kbits/sec  0.000 ms  0/704 (0%)  sender
[SUM]   0.00-1.41   sec  0.00 Bytes  0.00 Kbits/sec  0.000 ms  0/0 (0%)  receiver
CPU Utilization: local/sender 2.3% (0.0%u/2.3%s), remote/receiver 0.0% (0.0%u/0.0%s)
iperf3: interrupt - the client has terminated
"""

UDP_SERVER = """\
-----------------------------------------------------------
Server listening on 5998 (test #1)
-----------------------------------------------------------
Time: Sat, 21 Nov 2026 11:08:33 GMT
Accepted connection from 127.0.0.1, port 55186
      Cookie: oahf5njnpxg2xeouw3z4anuh2hzqb2f7smmx
      Target Bitrate: 2000000
[  5] local 127.0.0.1 port 5998 connected to 127.0.0.1 port 44290
Starting Test: protocol: UDP, 1 streams, 1000 byte blocks, omitting 0 seconds, 0 second test, tos 0
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   244 KBytes  2000 Kbits/sec  0.005 ms  10/260 (3.8%)  \n\
[  5]   1.00-2.00   sec   244 KBytes  2000 Kbits/sec  0.001 ms  -2/248 (-0.81%)  \n\
[  5]   1.00-2.00   sec   244 KBytes  2000 Kbits/sec  0.001 ms  -2/248 (-0.81%)  \n\
iperf3: the client has terminated
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5] (sender statistics not available)
[  5]   0.00-2.00   sec   588 KBytes  2408 Kbits/sec  0.007 ms  8/602 (1.3%)  receiver
[  5]   0.00-2.00   sec   3 datagrams received out-of-order
iperf 3.12
Linux vm 6.18 #1 SMP x86_64
-----------------------------------------------------------
Server listening on 5998 (test #2)
-----------------------------------------------------------
"""

TCP_BOTH_WAYS = """\
Connecting to host 127.0.0.1, port 5999
[  5] local 127.0.0.1 port 53028 connected to 127.0.0.1 port 5999
[  7] local 127.0.0.1 port 53040 connected to 127.0.0.1 port 5999
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-1.00   sec   640 KBytes  5242 Kbits/sec    3   1.12 MBytes       \n\
[  7][RX-C]   0.00-1.00   sec   640 KBytes  2621 Kbits/sec                  \n\
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][TX-C]   0.00-1.00   sec   640 KBytes  5243 Kbits/sec    3             sender
[  5][TX-C]   0.00-1.00   sec   640 KBytes  5241 Kbits/sec                  receiver
[  7][RX-C]   0.00-1.00   sec   320 KBytes  2621 Kbits/sec    0             sender
[  7][RX-C]   0.00-1.00   sec   320 KBytes  2621 Kbits/sec                  receiver

iperf Done.
"""


def reports_of(text: str) -> list[Report]:
    """All that an output says, and that nothing of it is unread."""
    reader = AnyReader()
    reports = [each for line in text.splitlines() for each in reader.feed(line)] + reader.done()
    assert not [each for each in reports if isinstance(each, Unread)]
    return reports


def answer_of(reports: Iterable[Report], *, own: bool = False) -> Answer:
    """What becomes of it at once."""
    account = Account(0, own=own)
    account.take(list(reports), NOW)
    return account.answer(NOW + SECOND)


def figures_of(text: str) -> Figures:
    """The last readings of an output."""
    return figures(answer_of(reports_of(text)))


def test_text_of_a_udp_client() -> None:
    """Datagrams are exact and give the bytes; what iperf3 heard nothing of (all zeros) is no measurement."""
    began, first, last, ended = reports_of(UDP_CLIENT)
    assert began == Began(True, 2, 1000, 4e6, False, "iperf 3.12")
    assert isinstance(first, IntervalReport)
    assert isinstance(last, IntervalReport)
    assert (first.begin_s, first.end_s, last.end_s) == (0, 1, 1.41)
    assert isinstance(ended, Ended)
    values = figures_of(UDP_CLIENT)
    assert values["load.tx.packets", ""] == 704
    assert values["load.tx.bytes", ""] == 704_000
    assert values["load.flow.tx.packets", "flow=2"] == 352
    assert values["load.tx.bit.rate", ""] == pytest.approx(4e6, rel=0.01)
    assert values["load.cpu.utilization", ""] == pytest.approx(0.023)
    assert values["load.sending", ""] == 0
    assert not [metric for metric, _ in values if metric.startswith(("load.rx.", "load.lost"))]


def test_text_of_a_udp_server_whose_client_went_away() -> None:
    """The interval that it repeats is left out, and the summary makes up for what no interval reported."""
    assert [each.end_s for each in reports_of(UDP_SERVER) if isinstance(each, IntervalReport)] == [1, 2]
    values = figures_of(UDP_SERVER)
    assert values["load.rx.packets", ""] == 602 - 8
    assert values["load.rx.bytes", ""] == 594_000
    assert values["load.drop.estimate", ""] == 8
    assert values["load.lost.packets", ""] == 10, "a loss that was made good late does not turn the counter back"
    assert values["load.disordered.packets", ""] == 3
    assert values["load.loss", ""] == 0
    assert values["load.jitter", ""] == pytest.approx(1e-6)


def test_text_of_tcp_both_ways() -> None:
    """Bytes are counted from the figure with more digits; each direction for itself."""
    values = figures_of(TCP_BOTH_WAYS)
    assert values["load.tx.bytes", ""] == 655_250
    assert values["load.rx.bytes", ""] == 327_625
    assert values["load.retransmits", ""] == 3
    assert not [metric for metric, _ in values if "packets" in metric], "nobody counts the packets of TCP"


def test_time_stamps_and_titles_before_the_lines() -> None:
    """``--timestamps`` and ``--title`` put words before each line."""
    stamped = "".join(f"Sat Nov 21 11:08:33 2026 {line}\n" for line in TCP_BOTH_WAYS.splitlines() if line)
    reader = TextReader()
    reports = [each for line in stamped.splitlines() for each in reader.feed(line)] + reader.done()
    assert figures(answer_of(reports))["load.tx.bytes", ""] == 655_250


def test_events_of_json_stream() -> None:
    """Each event as it comes; the end has what the other side counted, and the CPU."""
    lines = [
        double.event("start", double.start(streams=2, rate=4_000_000)),
        double.event("interval", double.interval(0, 1, sender=True, packets=500, streams=2)),
        double.event("interval", double.interval(1, 2, sender=True, packets=500, streams=2)),
        double.event("server_output_text", "what newer versions add"),
        double.event("end", double.end(2, packets=2000, lost=40)),
    ]
    answer = answer_of(reports_of("\n".join(lines)))
    values = figures(answer)
    assert values["load.tx.packets", ""] == 2000
    assert values["load.rx.packets", ""] == 1960
    assert values["load.lost.packets", ""] == 40
    assert values["load.loss", ""] == pytest.approx(0.02)
    assert values["load.disordered.packets", ""] == 3
    assert values["load.cpu.utilization", ""] == pytest.approx(0.125)
    assert answer.events == ()
    sent = [(sample.time_ns - NOW, sample.value) for sample in answer.samples if sample.metric == "load.tx.packets"]
    assert sent[:3] == [(-2 * SECOND, 0), (-SECOND, 1000), (0, 2000)]


def test_a_server_that_repeats_its_last_interval() -> None:
    """As all versions do when their client goes away; what comes after a document does no harm."""
    last = double.event("interval", double.interval(1, 2, sender=False, packets=100, lost=1))
    lines = [
        double.event("start", double.start(server=True)),
        double.event("interval", double.interval(0, 1, sender=False, packets=100)),
        last,
        last,
        double.event("error", "error - the client has terminated"),
        double.event("end", double.end(2, packets=0, heard=False)),
        "iperf3: error - unable to send control message: Broken pipe",
    ]
    values = figures(answer_of(reports_of("\n".join(lines))))
    assert values["load.rx.packets", ""] == 199
    assert values["load.lost.packets", ""] == 1
    assert Ended(error="the client has terminated") in reports_of("\n".join(lines))


def test_the_round_trip_time_of_tcp() -> None:
    """Microseconds of each stream; the whole is their mean."""
    whole = double.interval(0, 1, sender=True, packets=10, streams=2, udp=False)
    streams = whole["streams"]
    assert isinstance(streams, list)
    streams[1]["rtt"] = 750
    lines = [double.event("start", double.start(udp=False, streams=2)), double.event("interval", whole)]
    values = figures(answer_of(reports_of("\n".join(lines))))
    assert values["load.latency", "quantile=mean"] == pytest.approx(500e-6)
    assert values["load.flow.latency", "flow=2,quantile=mean"] == pytest.approx(750e-6)
    assert values["load.retransmits", ""] == 1


def test_documents_that_come_at_the_end() -> None:
    """``-J``: the intervals are laid out over the time before; two documents of a client are two processes."""
    document = {
        "start": double.start(),
        "intervals": [double.interval(second, second + 1, sender=True, packets=100) for second in range(3)],
        "end": double.end(3, packets=300),
    }
    text = json.dumps(document, indent="\t") + "\n"
    answer = answer_of(reports_of(text + text))
    figures(answer)
    sent = [
        ((sample.time_ns - NOW) / SECOND, sample.value)
        for sample in answer.samples
        if sample.metric == "load.tx.packets"
    ]
    begun = [pytest.approx(-6, abs=0.1), pytest.approx(-3, abs=0.1)]
    assert [second for second, value in sent if value == 0] == begun, "each begins at 0"
    assert [value for _, value in sent] == [0, 100, 200, 300, 0, 100, 200, 300]
    assert ("load.sending", "") not in figures(answer), "whether another test is under way is not known"
    assert [event.kind for event in answer.events] == ["generator.restart"]
    document["start"] = double.start(server=True)
    text = json.dumps(document, indent="\t") + "\n"
    answer = answer_of(reports_of(text + text))
    assert figures(answer)["load.tx.packets", ""] == 600, "a server goes on counting"
    assert answer.events == ()


def test_a_document_that_comes_later() -> None:
    """Polls in between do not push its intervals together."""
    document = {
        "start": double.start(server=True),
        "end": double.end(3, packets=300),
        "intervals": [double.interval(start_s, start_s + 1, sender=False, packets=100) for start_s in range(3)],
    }
    reports = reports_of(json.dumps(document, indent="\t"))
    account = Account(0)
    account.take(reports, NOW)
    account.answer(NOW)
    for second in range(1, 5):
        assert [sample.metric for sample in account.answer(NOW + second * SECOND).samples] == ["load.lines.unread"]
    account.take(reports, NOW + 5 * SECOND)
    rates = [
        (sample.time_ns - NOW) / SECOND
        for sample in account.answer(NOW + 5 * SECOND).samples
        if sample.metric == "load.rx.packets"
    ]
    assert rates == [pytest.approx(start_s, abs=0.001) for start_s in (2, 3, 4, 5)]


def test_a_document_of_a_failure() -> None:
    """iperf3 reports in the document why there is no result."""
    text = json.dumps({"start": {}, "intervals": [], "end": {}, "error": "unable to connect to server"}, indent=1)
    assert reports_of(text) == [Ended(error="unable to connect to server")]


def test_a_flood_is_bounded_and_reported() -> None:
    """More than a poll can hold: the newest are kept, and the loss of the others is reported."""
    interval = JsonReader().feed(double.event("interval", double.interval(0, 1, sender=True, packets=1)))
    account = Account(0)
    for _ in range(40_000):
        account.take(interval, NOW)
    answer = account.answer(NOW + SECOND)
    assert 40_000 < len(answer.samples) < 60_000
    assert figures(answer)["load.tx.packets", ""] == 40_000
    assert re.match(r"\d+ samples arrived at once", answer.faults[0].text)
    assert account.answer(NOW + 2 * SECOND).faults == ()


def test_what_cannot_be_read_is_counted_and_reported_once() -> None:
    """A malformed line is a line that is lost, and the ones around it are read."""
    lines = [
        double.event("start", double.start()),
        '{"event":"interval","data":{"str',
        "[1, 2]{",
        "{}",
        '{"event":"interval","data":[]}',
        "this is no line of iperf3",
        "[  5]   0.00-x.00   sec   640 KBytes  5242 Kbits/sec",
        double.event("interval", double.interval(0, 1, sender=True, packets=500)),
    ]
    reader, account = AnyReader(), Account(0)
    for line in lines:
        account.take(reader.feed(line), NOW)
    answer = account.answer(NOW + SECOND)
    assert figures(answer)["load.lines.unread", ""] == 6
    assert figures(answer)["load.tx.packets", ""] == 500
    (fault,) = answer.faults
    assert fault.metric == "load.lines.unread"
    assert "not JSON" in fault.text
    account.take([Unread("more")], NOW)
    assert account.answer(NOW + 2 * SECOND).faults == ()


def test_numbers_beyond_all_bounds() -> None:
    """What no counter can be is missing; a number that is a float because it is large is a whole one again."""
    whole = double.interval(0, 1, sender=True, packets=1)
    total = whole["sum"]
    assert isinstance(total, dict)
    for value, expected in ((float(2**60), 2**60), (-1, None), (1e300, None), ("9", None), (True, None), (None, None)):
        total["bytes"] = value
        (interval,) = JsonReader().feed(double.event("interval", whole))
        assert isinstance(interval, IntervalReport)
        assert interval.whole[0].bytes == expected
    deep = "[" * 100_000
    assert isinstance(JsonReader().feed('{"event":' + deep)[0], Unread)
    nan = JsonReader().feed('{"event":"interval","data":{"sum":{"start":0,"end":NaN,"seconds":Infinity}}}')
    assert isinstance(nan[0], Unread)


def test_a_document_is_held_within_bounds() -> None:
    """One that never ends, or is beyond bounds, is left out, and the next is read."""
    reader = JsonReader(max_document=1000)
    document = json.dumps({"start": {}, "intervals": [], "end": {}, "error": "why"}, indent=1).splitlines()
    reports = [each for line in ["{", *(["  filler"] * 500), "}", *document] for each in reader.feed(line)]
    assert [type(each) for each in reports] == [Unread, Ended]
    reader.feed("{")
    assert [type(each) for each in reader.done()] == [Unread]


@pytest.mark.parametrize("seed", range(40))
def test_any_garbage_is_survived(seed: int) -> None:
    """Lines cut, mixed, doubled and filled with noise: no exception, no hang, and all that is read can be stored."""
    chance = random.Random(seed)
    pool = [*UDP_CLIENT.splitlines(), *UDP_SERVER.splitlines(), *TCP_BOTH_WAYS.splitlines()]
    pool += [double.event("start", double.start(udp=bool(seed % 2))), double.event("end", double.end(3, packets=9))]
    pool += [
        double.event(
            "interval",
            double.interval(position, position + 1, sender=bool(position % 2), packets=9, streams=3, lost=position),
        )
        for position in range(4)
    ]
    pool += json.dumps({"start": double.start(), "intervals": [], "end": {}}, indent="\t").splitlines()
    account, reader, now = Account(0, own=bool(seed % 3)), AnyReader(), NOW
    for _ in range(1500):
        line = chance.choice(pool)
        change = chance.randrange(6)
        if change == 0:
            line = line[: chance.randrange(len(line) + 1)]
        elif change == 1 and line:
            position = chance.randrange(len(line))
            line = (
                line[:position] + chr(chance.choice([0, 34, 45, 57, 58, 91, 123, 125, 0x1F4A9])) + line[position + 1 :]
            )
        elif change == 2:
            line = "".join(chr(chance.randrange(32, 127)) for _ in range(chance.randrange(200)))
        elif change == 3:
            line = line.replace("0", "9" * chance.randrange(1, 30), 2)
        now += chance.randrange(SECOND)
        account.take(reader.feed(line), now)
    account.take(reader.done(), now)
    values = figures(account.answer(now + SECOND))
    assert values["load.lines.unread", ""] > 0
