"""``jmeter``: JTL files as CSV and as XML (in the forms of JMeter's manual), as they grow."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch_testing.load_bench import BEGIN_NS, SECOND, LoadBench, last, series

HEAD = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
)
BEGIN_MS = BEGIN_NS // 10**6


def row(at_s: float, took_ms: int = 100, success: str = "true", message: str = "OK", users: int = 4) -> str:
    """A line of JMeter for a sample that began then."""
    stamp = BEGIN_MS + round(at_s * 1000)
    return (
        f"{stamp},{took_ms},home,200,{message},Group 1-1,text,{success},,500,120,{users},{users},http://dut/,90,0,3\n"
    )


def element(at_s: float, took_ms: int = 100, success: str = "true", end: str = "/") -> str:
    """The same as XML."""
    stamp = BEGIN_MS + round(at_s * 1000)
    return (
        f'<httpSample t="{took_ms}" it="0" lt="90" ct="3" ts="{stamp}" s="{success}" lb="a &lt;b&gt; &quot;c&quot;" '
        f'rc="200" rm="OK" tn="Group 1-1" dt="text" by="500" sby="120" ng="4" na="4"{end}>\n'
    )


def test_rows_are_counted_at_their_ends(tmp_path: Path) -> None:
    """Answers and failures by the second in which they ended; bytes, threads, and times in seconds."""
    file = tmp_path / "soak.jtl"
    with LoadBench("jmeter", {"file": file}) as bench:
        file.write_text(HEAD + row(0.1) + row(0.95, 100) + row(1.2, 300, "false") + row(1.5, 200) + row(2.5) + row(4))
        answer = bench.poll(5)
    assert series(answer, "load.requests") == [(1, 1), (2, 3), (3, 4)]
    assert series(answer, "load.failures") == [(1, 0), (2, 1), (3, 1)]
    assert series(answer, "load.request.rate") == [(2, 2), (3, 1)]
    assert series(answer, "load.rx.bytes") == [(1, 500), (2, 2000), (3, 2500)]
    assert series(answer, "load.users") == [(1, 4), (2, 4), (3, 4)]
    assert series(answer, "load.latency", "quantile=max")[1][1] == pytest.approx(0.3)
    assert series(answer, "load.latency", "quantile=min")[1][1] == pytest.approx(0.1)
    assert last(answer)["load.sending"] == 1


def test_what_would_count_twice_is_left_out(tmp_path: Path) -> None:
    """Transaction controllers add up what was reported already; a header comes again where JMeter went on in a file."""
    file = tmp_path / "soak.jtl"
    total = '"Number of samples in transaction : 2, number of failing samples : 0"'
    with LoadBench("jmeter", {"file": file}) as bench:
        file.write_text(HEAD + row(0.1) + row(0.2) + row(0.1, 300, message=total) + HEAD + row(3))
        assert last(bench.poll(4))["load.requests"] == 2
        assert last(bench.poll(4))["load.lines.unread"] == 0


def test_texts_with_line_ends_in_them(tmp_path: Path) -> None:
    """A message in quotes over several lines is one row, also where a poll ends within it."""
    file = tmp_path / "soak.jtl"
    text = HEAD + row(0.1, message='"expected ""x"",\nfound\ny"') + row(0.3) + row(3)
    with LoadBench("jmeter", {"file": file}) as bench:
        cut = text.index("found")
        file.write_text(text[:cut])
        bench.poll(1)
        with file.open("a") as out:
            out.write(text[cut:])
        latest = last(bench.poll(4))
    assert latest["load.requests"] == 2
    assert latest["load.lines.unread"] == 0


def test_xml_is_read_too(tmp_path: Path) -> None:
    """Elements with and without children; samples inside of samples are parts of them."""
    file = tmp_path / "soak.jtl"
    inner = "  " + element(0.2) + "  <java.net.URL>http://dut/</java.net.URL>\n"
    with LoadBench("jmeter", {"file": file}) as bench:
        file.write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n'
            + element(0.1)
            + element(0.2, 400, "false", "")
            + inner
            + "</httpSample>\n"
            + element(2.5)
            + "<httpSample t=\n"
        )
        answer = bench.poll(4)
        assert series(answer, "load.requests") == [(1, 1)]
        assert series(answer, "load.failures") == [(1, 1)]
        assert last(answer)["load.lines.unread"] == 1
        assert last(answer)["load.latency{quantile=max}"] == pytest.approx(0.4)


def test_dates_need_a_zone(tmp_path: Path) -> None:
    """A date without a zone is refused in one sentence; with tz it is taken."""
    file = tmp_path / "soak.jtl"
    line = row(0).replace(str(BEGIN_MS), "2026/11/21 12:20:01.500")  # 11:20:01.5 UTC
    for keys, fails in (({}, True), ({"tz": "Europe/Berlin"}, False)):
        file.unlink(missing_ok=True)
        with LoadBench("jmeter", {"file": file, **keys}) as bench:
            bench.poll(0)
            file.write_text(HEAD + line + row(4))
            if fails:
                with pytest.raises(SourceError, match="has no time zone: set it"):
                    bench.poll(5)
            else:
                assert series(bench.poll(5), "load.requests") == [(2, 1)]


def test_a_file_without_a_header_is_refused(tmp_path: Path) -> None:
    """One sentence, and again at the next poll; another sign between cells is found."""
    file = tmp_path / "soak.jtl"
    with LoadBench("jmeter", {"file": file}) as bench:
        file.write_text(row(0.1))
        for second in (1, 2):
            with pytest.raises(SourceError, match="not a JTL with a header: timeStamp is missing in"):
                bench.poll(second)
        file.write_text((HEAD + row(2.1) + row(5)).replace(",", ";"))
        assert last(bench.poll(6))["load.requests"] == 1


def test_broken_rows_are_counted(tmp_path: Path) -> None:
    """Cut rows, words for numbers, times ahead of now: counted, and the rest comes in."""
    file = tmp_path / "soak.jtl"
    bad = (
        row(0.2)[:40] + "\n" + row(0.2).replace(",100,", ",soon,") + row(0.2, success="maybe") + row(900) + row(0.3, -5)
    )
    with LoadBench("jmeter", {"file": file}) as bench:
        file.write_text(HEAD + row(0.1) + bad + row(3))
        answer = bench.poll(4)
    assert last(answer)["load.lines.unread"] == 5
    assert len(answer.faults) == 1
    assert last(answer)["load.requests"] == 1


@pytest.mark.parametrize("begin", [HEAD, '<?xml version="1.0"?>\n<testResults version="1.2">\n'])
def test_random_changes_are_harmless(tmp_path: Path, begin: str) -> None:
    """Seeded noise in good lines: figures or a sentence, no other exception."""
    dice = random.Random(3)
    file = tmp_path / "soak.jtl"
    make = row if begin == HEAD else element
    for _ in range(30):
        data = bytearray((begin + "".join(make(number / 50) for number in range(200))).encode())
        for _ in range(200):
            data[dice.randrange(len(begin), len(data))] = dice.choice(b'",\n\0<>/=- 9\xff')
        file.write_bytes(data)
        with LoadBench("jmeter", {"file": file}, begin_ns=BEGIN_NS - SECOND) as bench:
            try:
                latest = last(bench.poll(8))
            except SourceError:
                continue
            assert latest["load.lines.unread"] > 0
