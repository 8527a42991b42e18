"""What Soakwatch reads from files and from the network, each with good examples: what is to be spoilt, and how."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.collector.sources.loads import test_iperf3_output as iperf3
from tests.collector.sources.network_cli.conftest import OUTPUTS
from tests.collector.sources.snmp.doubles import answer
from tests.collector.sources.snmp.message import community_message as asked
from tests.collector.sources.snmp.message import object_id, parse_message, request
from tests.reliability.run_files import bundles, judge_record_of, read_bundle, read_record, record_edits

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.plan import load_plan
from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.command import parse_tick
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.pollers.prometheus.exposition_page import read_page
from soakwatch.sources.profiles import loading as platforms
from soakwatch.sources.profiles.inherit import File, assemble
from soakwatch.sources.profiles.loading import Profiles, read_file, shipped
from soakwatch.sources.receivers.notification import community_message, version_of
from soakwatch.sources.receivers.streams import Frames, NoSyslogError
from soakwatch.sources.receivers.syslog_line import log_line
from soakwatch.sources.result_files.jmeter import JmeterReader
from soakwatch.sources.result_files.k6 import K6Names, K6Reader
from soakwatch.sources.result_files.locust import LocustReader
from soakwatch.sources.result_files.result_file import Moment, Reader
from soakwatch.sources.result_files.wrk import WrkReader
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options
from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.datagram import inspect
from soakwatch.transfer.importing.build_series import read_table
from soakwatch.transfer.importing.timeline import timeline
from soakwatch_agent.framing import FrameError, frame_of
from soakwatch_agent.wire import WireError, decode, encode
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample

REPOSITORY = Path(__file__).parents[2]
SECOND = 10**9
NOW = 1_800_000_000 * SECOND
_LOAD_DATA = REPOSITORY / "tests/collector/sources/loads/data"
_MAX_SEED = 20_000


@dataclass(frozen=True, slots=True)
class Input:
    """One kind of input: ``read`` takes it from bytes (``folder`` is for those that are files), ``refusals`` are the
    exceptions by which it says that the input is not good, and ``weight`` is its share of the attempts."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...]
    weight: int


_TOKENS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1b[2J",
        b"\r\n",
        b"\n",
        b"\t",
        b" ",
        b'"',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(
        b"-1",
        b"0",
        b"1e309",
        b"1e-400",
        b"nan",
        b"inf",
        b"9" * 40,
        b"1_000",
        b"0x10",
        b"4294967296",
        b"18446744073709551616",
    ),
    *(b"%", b"%s", b"%n", b"../", b"{{", b"${HOME}", b"env:HOME", b"file:/etc/shadow", b"null", b"true", b"~", b"---"),
    *(b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ", b"? ", b"- ", b": ", b"#", b"|", b">", b'"\\UFFFFFFFF"'),
    *(b"1h", b"72h", b"1s", b"10y", b"\xc2\xa0", "٣".encode(), "é".encode(), "\u202e".encode(), b"\xed\xa0\x80"),
    *(
        b"{" * 500,
        b"[" * 500,
        b"(" * 200,
        b"a" * 3000,
        b"," * 500,
        b"\x30\x80",
        b"\x30\x84\xff\xff\xff\xff",
        b"\x02\x00",
    ),
)


def spoilt(seeds: Sequence[bytes], dice: random.Random) -> bytes:
    """An example with one to six changes: bits, bytes, stretches that go, double, move, come from another example, or
    tokens that are known for trouble."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randint(1, 6)):
        at = dice.randint(0, len(data))
        stop = min(len(data), at + dice.choice((1, 2, 4, 16, 64, 400)))
        what = dice.randrange(8)
        if what == 0 and at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = dice.randrange(256)
        elif what == 2:
            del data[at:stop]
        elif what == 3:
            data[at:at] = data[at:stop]
        elif what == 4:
            part = bytes(data[at:stop])
            del data[at:stop]
            to = dice.randint(0, len(data))
            data[to:to] = part
        elif what == 5:
            other = dice.choice(seeds)
            begin = dice.randint(0, len(other))
            data[at:stop] = other[begin : begin + dice.choice((4, 16, 64, 400))]
        elif what == 6:
            data[at:stop] = dice.choice(_TOKENS)
        else:
            data[at:at] = dice.choice(_TOKENS)
    return bytes(data[: dice.randint(0, len(data))] if dice.random() < 0.1 else data)


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# --- plans, profiles, tables ------------------------------------------------------------------------------------------


def _plans() -> Sequence[bytes]:
    plans = sorted((REPOSITORY / "deploy/examples").glob("*/plan.yaml")) or sorted(
        (REPOSITORY / "deploy/examples").glob("*/*.yaml")
    )
    return [path.read_bytes() for path in plans]


@cache
def _shipped() -> Profiles:
    return Profiles((shipped(),))


def _profiles() -> Sequence[bytes]:
    """Those that a user could have written: without look-around, which only shipped ones may have."""
    files = sorted(shipped().glob("[a-z]*.yaml"), key=lambda path: path.stat().st_size)
    plain = [data for path in files if not re.search(rb"\(\?<?[=!]", data := path.read_bytes())]
    return plain[10:110:10]


def _read_profile(data: bytes, folder: Path) -> object:
    path = _file(data, folder, "fuzzed.yaml")

    def read(name: str) -> File:
        return read_file(path, name) if name == "fuzzed" else _shipped()._read(name)

    return assemble("fuzzed", read)


def _tables() -> Sequence[bytes]:
    rows = range(12)
    return [
        b"time,target,metric,object,value,unit\n"
        + b"".join(b"%d,dut,system.memory.usage,,%d,By\n" % (1_700_000_000 + 10 * n, 10**9 + n) for n in rows),
        b"Zeit;CPU Last;Speicher (MB)\n" + b"".join(b"2026-11-22 10:%02d:00;%d,5;%d\n" % (n, n, 100 + n) for n in rows),
        b"timestamp\tcpu %\trss_kb\n" + b"".join(b"2026-11-22T10:%02d:00Z\t%d\t%d\n" % (n, n, 4096 + n) for n in rows),
        b"#group,false\n#datatype,dateTime:RFC3339,double\n_time,_value\n2026-11-22T10:00:00Z,5\n2026-11-22T10:01:00Z,6\n",
    ]


def _events() -> Sequence[bytes]:
    return [
        b"begin,kind,object,end\n2026-11-22T10:00:00Z,failover,peer,2026-11-22T10:01:00Z\n90m,reboot,,\n",
        b"- {kind: failover, begin: 2026-11-22T10:00:00Z, within: 5m}\n- {kind: reset, at: 90m, expect: {reboot: 1}}\n",
    ]


def _read_events(data: bytes, folder: Path) -> object:
    path = _file(data, folder, "events.yaml" if data.startswith(b"-") else "events.csv")
    return timeline((), str(path), None)


# --- what comes over the network --------------------------------------------------------------------------------------


def _notifications() -> Sequence[bytes]:
    uptime = ber.sequence(object_id("1.3.6.1.2.1.1.3.0"), ber.integer(4711, tag=0x43))
    name = ber.sequence(object_id("1.3.6.1.6.3.1.1.4.1.0"), object_id("1.3.6.1.6.3.1.1.5.3"))
    port = ber.sequence(object_id("1.3.6.1.2.1.2.2.1.1.7"), ber.integer(7))
    binds = ber.sequence(uptime, name, port)
    head = (ber.integer(9), ber.integer(0), ber.integer(0))
    v1 = ber.sequence(
        object_id("1.3.6.1.4.1.9"),
        ber.tlv(0x40, bytes((192, 0, 2, 1))),
        *(ber.integer(2), ber.integer(0), ber.integer(4711, tag=0x43), ber.sequence(port)),
        tag=0xA4,
    )
    return [
        asked(1, "public", ber.sequence(*head, binds, tag=0xA7)),
        asked(1, "public", ber.sequence(*head, binds, tag=0xA6)),
        asked(0, "public", v1),
    ]


def _read_notification(data: bytes, folder: Path) -> object:
    del folder
    return None if version_of(data) == 3 else community_message(data)


def _responses() -> Sequence[bytes]:
    question = asked(1, "public", request(("1.3.6.1.2.1.1.3.0",), 77))
    values = (
        ber.integer(5),
        ber.tlv(0x46, b"\x00\xff" * 4),
        ber.tlv(0x41, b"\x7f"),
        ber.tlv(4, b"eth0"),
        ber.tlv(0x82, b""),
    )
    oids = [f"1.3.6.1.2.1.31.1.1.1.6.{n}" for n in range(5)]
    return [
        answer(question, list(zip(oids, values, strict=True))),
        answer(question, [(oids[0], values[0])], 5, 1),
        question,
    ]


def _read_response(data: bytes, folder: Path) -> object:
    del folder
    with contextlib.suppress(ber.MalformedError):
        inspect(data)
    return parse_message(data)


_SYSLOG = (
    b'<34>1 2026-01-02T03:04:05Z fw sshd 712 ID47 [a@1 b="c]"] refused\n',
    b"<13>Jan  2 03:04:05 leaf1 bgpd[9]: down\n",
    b"<189>77: *Mar  1 18:46:11.123 UTC: %SYS-5-CONFIG_I: Configured\n",
    b"46 <34>1 2026-01-02T03:04:05Z fw sshd 712 - - refused",
)


def _read_syslog(data: bytes, folder: Path) -> object:
    del folder
    log_line(data)
    frames = Frames()
    half = len(data) // 2
    return [log_line(frame) for frame in (*frames.feed(data[:half]), *frames.feed(data[half:]), frames.rest())]


def _agent_lines() -> Sequence[bytes]:
    sample = Sample("system.cpu.utilization", "core=1", 0.25, NOW)
    event = Event("process.crash", "", "process=a", NOW, None, {"signal": "11"})
    answer_ = Answer((sample, sample), (event,), (Fault("queue.depth", "", "not there"),))
    line = encode(Poll(1, NOW, NOW, 10**6, PollOutcome.OK, None, answer_)).encode()
    return [line, b"look 7 1 " + line, b'hello {"version": 1, "host": "a"}', b"done {}", b'error {"text": "no"}']


def _read_agent(data: bytes, folder: Path) -> object:
    del folder
    if data.startswith(b"{"):
        return decode(data.decode("utf-8", "replace"))
    frame = frame_of(data)
    return decode(frame.poll) if frame.poll else frame


_PAGES = (
    b"""\
# HELP node_cpu_seconds_total CPU.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1.5e+06
node_cpu_seconds_total{cpu="0",mode="user"} NaN 1700000000000
""",
    b'# TYPE a histogram\na_bucket{le="1"} 3\na_bucket{le="+Inf"} 4\na_sum 2.5\na_count 4\n# EOF\n',
)


def _read_page(data: bytes, folder: Path) -> object:
    del folder
    kind = "application/openmetrics-text" if b"# EOF" in data else "text/plain"
    return read_page(data.decode("utf-8", "replace"), kind)


# --- load generators --------------------------------------------------------------------------------------------------


def _iperf3() -> Sequence[bytes]:
    json_events = b'{"event":"start","data":{"version":"iperf 3.17","timestamp":{"timesecs":1800000000}}}\n' + b"".join(
        b'{"event":"interval","data":{"sum":{"start":%d,"end":%d,"seconds":1,"bytes":125000,"bits_per_second":1e6}}}\n'
        % (n, n + 1)
        for n in range(4)
    )
    return [iperf3.UDP_CLIENT.encode(), iperf3.UDP_SERVER.encode(), json_events]


def _read_iperf3(data: bytes, folder: Path) -> object:
    del folder
    reader = AnyReader()
    return [*(reader.feed(line) for line in data.decode("utf-8", "replace").splitlines()), reader.done()]


def _result_files() -> Sequence[bytes]:
    texts = []
    for path in sorted(_LOAD_DATA.iterdir()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        texts.append(data[:6000])
    texts.append(
        b"timeStamp,elapsed,label,responseCode,success,bytes,sentBytes,allThreads,Latency\n"
        + b"".join(b"%d,12,home,200,true,512,128,4,11\n" % (NOW // 10**6 + 100 * n) for n in range(20))
    )
    return texts


def _read_results(data: bytes, folder: Path) -> object:
    """By every reader: which one it is for says the plan, which may be wrong."""
    del folder
    lines = data.decode("utf-8", "replace").splitlines()
    moment = Moment(NOW, NOW + 60 * SECOND, arrival=False, old=False)
    readers: tuple[Reader, ...] = (
        K6Reader(SECOND, NOW, K6Names()),
        LocustReader(NOW),
        WrkReader(),
        JmeterReader(SECOND, NOW, None),
    )
    found: list[object] = []
    for reader in readers:
        try:
            found += (reader.take(lines, moment), reader.ended(moment), reader.notes())
        except SourceError as error:
            found.append(str(error))
    return found


_TICKS = (
    b'tx.packets=1000 rx.packets=990 latency{quantile="0.99"}=0.002',
    b'{"tx.packets": 5, "rx.packets": 5, "lost": 0}',
)


def _read_tick(data: bytes, folder: Path) -> object:
    del folder
    return parse_tick(data.decode("utf-8", "replace"), NOW)


# --- command lines ----------------------------------------------------------------------------------------------------

_COMMANDS = {
    f"{name}/{command.name}": command
    for name in platforms.platform_names()
    for command in platforms.platform(name).commands
}


def _outputs() -> Sequence[bytes]:
    """Before each stand two bytes with the number of its command: the parser that reads it."""
    numbers = {name: number for number, name in enumerate(_COMMANDS)}
    files = sorted(OUTPUTS.glob("*/*.txt"))
    return [
        numbers[f"{path.parent.name}/{path.name.partition('.')[0]}"].to_bytes(2, "big") + path.read_bytes()[:_MAX_SEED]
        for path in files
    ]


def _read_output(data: bytes, folder: Path) -> object:
    del folder
    command = list(_COMMANDS.values())[int.from_bytes(data[:2], "big") % len(_COMMANDS)]
    return command.parse(data[2:].decode("utf-8", "replace"))


INPUTS = (
    Input("plan", _plans, lambda data, folder: load_plan(_file(data, folder, "plan.yaml")), (PlanError,), 4),
    Input("profile", _profiles, _read_profile, (PlanError,), 4),
    Input(
        "table",
        _tables,
        lambda data, folder: read_table(str(_file(data, folder, "data.csv")), "dut", Options()),
        (DataError, PlanError),
        4,
    ),
    Input("events", _events, _read_events, (PlanError, DataError), 3),
    Input("trap", _notifications, _read_notification, (ber.MalformedError,), 20),
    Input("SNMP response", _responses, _read_response, (ber.MalformedError,), 20),
    Input("syslog", lambda: _SYSLOG, _read_syslog, (NoSyslogError,), 15),
    Input("agent", _agent_lines, _read_agent, (WireError, FrameError), 10),
    Input("metrics page", lambda: _PAGES, _read_page, (SourceError,), 5),
    Input("iperf3", _iperf3, _read_iperf3, (), 4),
    Input("result file", _result_files, _read_results, (), 2),
    Input("command load", lambda: _TICKS, _read_tick, (), 5),
    Input("command line", _outputs, _read_output, (), 4),
    Input("record", record_edits, read_record, (SoakwatchError,), 1),
    Input("judged record", record_edits, judge_record_of, (SoakwatchError,), 1),
    Input("bundle", bundles, read_bundle, (SoakwatchError,), 2),
)


def shares(attempts: int) -> dict[str, int]:
    """How many of the attempts each kind of input has: at least one."""
    whole = sum(each.weight for each in INPUTS)
    ends = list(itertools.accumulate(each.weight for each in INPUTS))
    edges = [0, *(round(attempts * end / whole) for end in ends)]
    return {each.name: max(1, stop - start) for each, start, stop in zip(INPUTS, edges, edges[1:], strict=False)}
