"""The syslog receiver against logger and openssl's TLS, in storms, with strange framing, and against nonsense."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from tests.collector.sources.receivers.gathering import Gathered, Sender, gather, site

from soakwatch.core.errors import PlanError
from soakwatch.sources.pollers.syslog import Config, SyslogPoller, start
from soakwatch.sources.receivers.storm import STORM
from soakwatch.sources.receivers.streams import Frames, NoSyslogError
from soakwatch.sources.receivers.syslog_line import MAX_MESSAGE_BYTES, log_line
from soakwatch_testing.ports import free_port

OOM = "kernel: Out of memory: Killed process 4711 (bgpd) total-vm:1kB"
Work = Callable[[SyslogPoller, dict[str, int]], Awaitable[Gathered]]


def received(folder: Path, work: Work, keys: dict[str, object] | None = None) -> Gathered:
    """What a receiver reports while something is sent to it; ``work`` gets the ports by how they listen."""

    async def main() -> Gathered:
        async with AsyncExitStack() as stack:
            here = f"127.0.0.1:{free_port()}"  # over UDP and TCP, which no 0 promises
            poller = await start(Config.model_validate({"listen": here, **(keys or {})}), site(folder), stack)
            listens = [listen.split() for listen in poller.facts().identity["listens"].split(", ")]
            return await work(poller, {how: int(where.rpartition(":")[2]) for how, where in listens})

    return asyncio.run(main())


def test_logger_is_understood_over_udp_and_tcp_in_both_forms(tmp_path: Path, send: Sender) -> None:
    """Each transport brings the same event: what happened, to whom, and the line as it was written."""
    channels = [
        ("-d", "--rfc5424"),
        ("-d", "--rfc3164"),
        ("-T", "--rfc5424"),
        ("-T", "--rfc3164"),
        ("-T", "--rfc5424", "--octet-count"),
    ]

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        for channel in channels:
            port = ports["udp" if "-d" in channel else "tcp"]
            for line in (OOM.removeprefix("kernel: "), "all is well"):
                code, output = await send(
                    "logger", "-n", "127.0.0.1", "-P", port, *channel, "-t", "kernel", "-p", "kern.err", line
                )
                assert code == 0, output
        return await gather(poller, lambda gathered: gathered.total == 2 * len(channels))

    gathered = received(tmp_path, work)
    assert gathered.kinds == ["kernel.oom"] * len(channels)
    for event in gathered.events:
        assert event.object == "process=bgpd"
        assert (event.detail["process"], event.detail["pid"]) == ("bgpd", "4711")
        assert event.detail["line"].endswith(OOM.removeprefix("kernel: "))
        assert event.detail["host"]
        assert event.detail["severity"] in {"err", "notice"}  # logger does not let a user speak for the kernel
        assert abs(event.begin_ns - time.time_ns()) < 60 * 10**9
    assert gathered.fate("no event") == len(channels)
    assert sum(value for name, value in gathered.counted.items() if ",severity=" in name) == 2 * len(channels)


def udp(port: int, lines: list[bytes]) -> None:
    """Datagrams as fast as the machine can send them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for line in lines:
            sender.sendto(line, ("127.0.0.1", port))


def test_the_lines_of_a_vendor_mean_what_its_profile_says(tmp_path: Path) -> None:
    """Cisco's own forms, with its sequence numbers and without a host, come through."""
    lines = [
        b"<189>77: *Mar  1 18:46:11.123: %LINEPROTO-5-UPDOWN: Line on Interface Gi0/1, changed state to down",
        b"<164>Jan 02 2026 10:00:00 fw1 : %ASA-4-411002: Line protocol on Interface inside, changed state to down",
        b"<161>%ASA-1-104001: (Primary) Switching to ACTIVE - HELLO not heard from mate.",
    ]

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        await asyncio.to_thread(udp, ports["udp"], lines)
        return await gather(poller, lambda gathered: gathered.total == 3)

    ios = received(tmp_path, work, {"profile": "cisco-ios"})
    asa = received(tmp_path, work, {"profile": "cisco-asa"})
    assert ("link.down", "interface=Gi0/1") in [(event.kind, event.object) for event in ios.events]
    assert [(event.kind, event.object) for event in asa.events][-2:] == [
        ("link.down", "interface=inside"),
        ("failover", ""),
    ]
    assert asa.events[-2].detail["host"] == "fw1"
    assert asa.events[-1].detail["severity"] == "alert"
    assert sum(value for name, value in asa.counted.items() if name.endswith(",severity=notice")) == 1


def test_a_storm_of_lines_is_kept_short_and_counted(tmp_path: Path) -> None:
    """20,000 lines of one crash: a few events, the rest counted, and one event that says how many."""

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        _, writer = await asyncio.open_connection("127.0.0.1", ports["tcp"])
        for _ in range(20):
            writer.write(f"<3>{OOM}\n".encode() * 1000)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        gathered = await gather(poller, lambda gathered: gathered.total == 20_000)
        gathered.add(await poller.poll(time.time_ns() + 61 * 10**9))
        return gathered

    gathered = received(tmp_path, work, {"storm": 10})
    assert gathered.kinds == ["kernel.oom"] * 10 + [STORM]
    assert gathered.events[-1].detail["suppressed"] == "19990"
    assert gathered.fate("dropped") == 0


def test_many_different_things_in_a_storm_stay_bounded(tmp_path: Path) -> None:
    """A sender that invents a new process in each line gets a bounded number of events, and the rest is counted."""

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        _, writer = await asyncio.open_connection("127.0.0.1", ports["tcp"])
        for number in range(6000):
            writer.write(f"<3>kernel: Out of memory: Killed process 1 (p{number}) x\n".encode())
        await writer.drain()
        writer.close()
        return await gather(poller, lambda gathered: gathered.total == 6000)

    gathered = received(tmp_path, work)
    assert len(gathered.events) <= 4096
    assert gathered.fate("suppressed") == 6000 - len(gathered.events)


async def certificate(send: Sender, folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    key, chain = folder / "key.pem", folder / "certificate.pem"
    code, output = await send(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=soak",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-days",
        "2",
        "-keyout",
        key,
        "-out",
        chain,
    )
    assert code == 0, output
    return chain, key


def test_tls_is_served_and_a_client_without_a_certificate_is_turned_away(tmp_path: Path, send: Sender) -> None:
    """Counted octets over TLS (RFC 5425); with client_ca only who has a certificate of it is heard."""
    chain, key = asyncio.run(certificate(send, tmp_path))
    keys = {"over": [], "tls_listen": "127.0.0.1:0", "certificate": str(chain), "key": str(key)}
    line = f"<3>1 2026-01-02T03:04:05Z leaf1 kernel - - - {OOM.removeprefix('kernel: ')}".encode()

    async def send_line(ports: dict[str, int], *, named: bool) -> None:
        context = ssl.create_default_context(cafile=str(chain))
        if named:
            context.load_cert_chain(chain, key)
        _, writer = await asyncio.open_connection("127.0.0.1", ports["tls"], ssl=context)
        try:
            writer.write(str(len(line)).encode() + b" " + line)
            await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def anybody(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        await send_line(ports, named=False)
        return await gather(poller, lambda gathered: gathered.total == 1)

    async def known(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        with suppress(OSError):  # it may learn only from the end of the connection that it was turned away
            await send_line(ports, named=False)
        await send_line(ports, named=True)
        return await gather(poller, lambda gathered: gathered.total == 1)

    for work, more in ((anybody, {}), (known, {"client_ca": str(chain)})):
        gathered = received(tmp_path, work, {**keys, **more})
        assert gathered.kinds == ["kernel.oom"]
        assert gathered.events[0].detail["host"] == "leaf1"


def test_more_connections_than_allowed_push_out_the_silent_one(tmp_path: Path) -> None:
    """A device that leaves dead connections behind at each reboot is still heard."""

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        dead = []
        for number in range(4):
            dead.append((await asyncio.open_connection("127.0.0.1", ports["tcp"]))[1])
            dead[-1].write(f"<5>hello {number}\n".encode())
            await gather(poller, lambda gathered, wanted=number + 1: gathered.total >= wanted)  # type: ignore[misc]
        _, writer = await asyncio.open_connection("127.0.0.1", ports["tcp"])
        writer.write(f"<3>{OOM}\n".encode())
        gathered = await gather(poller, lambda gathered: "kernel.oom" in gathered.kinds)
        for open_writer in (*dead, writer):
            open_writer.close()
        return gathered

    assert received(tmp_path, work, {"connections": 2}).fate("connection closed") == 3


def test_nonsense_over_udp_and_tcp_is_counted_and_nothing_stops(tmp_path: Path) -> None:
    """Random bytes and twisted lines, endless lines, lengths that lie: the next good line is heard."""
    rng = random.Random(5)
    good = f'<3>1 2026-01-02T03:04:05Z h kernel - - [a b="]"] {OOM}'.encode()
    twisted = [b"", b"\0", b"<999>x", b"<", b"<3>", b"<3>1 ", b"<3>1 - - - - - [", b"\xef\xbb\xbf<3>x", b"[" * 60_000]
    for _ in range(1500):
        base = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            base[rng.randrange(len(base))] = rng.randrange(256)
        twisted += [bytes(base[: rng.randrange(len(base) + 1)]), rng.randbytes(rng.randrange(300))]

    async def work(poller: SyslogPoller, ports: dict[str, int]) -> Gathered:
        for begin in range(0, len(twisted), 300):
            await asyncio.to_thread(udp, ports["udp"], twisted[begin : begin + 300])
        for junk in (b"x" * 300_000, b"99999999 <3>x", b"5 <3>x", rng.randbytes(100_000)):
            _, writer = await asyncio.open_connection("127.0.0.1", ports["tcp"])
            writer.write(junk)
            with suppress(OSError):
                await writer.drain()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await asyncio.to_thread(udp, ports["udp"], [b"<3>kernel: Out of memory: Killed process 1 (last) x"])
        return await gather(poller, lambda gathered: any(e.object == "process=last" for e in gathered.events))

    gathered = received(tmp_path, work)
    assert gathered.fate("garbled") >= 3
    assert gathered.fate("dropped") == 0
    assert all(len(event.detail["line"]) <= 500 and event.detail["line"].isprintable() for event in gathered.events)


def test_every_cut_of_a_stream_gives_the_same_messages() -> None:
    """Framing does not depend on how TCP cuts the stream; long messages are cut, and memory is bounded."""
    long = b"<3>" + b"y" * 20_000
    stream = b"".join([b"<3>one\n", b"7 <3>two\n", b"<3>three\0\n", b"%d " % len(long), long, long, b"\n", b"<3>end\n"])
    whole = Frames().feed(stream)
    assert whole == [
        b"<3>one",
        b"<3>two\n",
        b"<3>three\0",
        long[:MAX_MESSAGE_BYTES],
        long[:MAX_MESSAGE_BYTES],
        b"<3>end",
    ]
    rng = random.Random(6)
    for _ in range(100):
        frames, messages, start = Frames(), list[bytes](), 0
        while start < len(stream):
            size = rng.choice((1, 2, 3, 7, 100, 5000))
            messages += frames.feed(stream[start : start + size])
            start += size
        assert messages == whole
        assert frames.rest() == b""
    frames = Frames()
    for _ in range(1000):
        frames.feed(b"z" * 10_000)
    assert frames.rest() == b""
    with pytest.raises(NoSyslogError):
        Frames().feed(b"99999999 <")
    assert Frames().feed(b"12 is no length\n") == [b"12 is no length"]


@pytest.mark.parametrize(
    ("data", "severity", "host", "text"),
    [
        (b"<165>1 2026-08-24T05:14:15.000003-07:00 r1 su - ID47 - \xef\xbb\xbffailed", 5, "r1", "su: failed"),
        (b"<165>1 - - - - - -", 5, "", ""),
        (b'<165>1 - h a p m [x@1 a="\\"]"][y b="1"] said', 5, "h", "a[p]: said"),
        (b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", 2, "mymachine", "su: 'su root' failed"),
        (b"<34>2026-10-11T22:14:15Z mymachine su[1]: failed\n", 2, "mymachine", "su[1]: failed"),
        (b"<166>%ASA-6-302013: Built", 6, "", "%ASA-6-302013: Built"),
        (b"<166>Jan 02 2026 10:00:00 fw1 : %ASA-6-302013: Built", 6, "fw1", "%ASA-6-302013: Built"),
        (b"<999>Oct 11 22:14:15 h t: x", None, "", "<999>Oct 11 22:14:15 h t: x"),
        (b"no priority", None, "", "no priority"),
        (b"<13>only text", 5, "", "only text"),
        (b"<13>Oct 11 22:14:15 kernel: tag right after the time", 5, "", "kernel: tag right after the time"),
    ],
)
def test_lines_are_read_in_whatever_form_they_come(data: bytes, severity: int | None, host: str, text: str) -> None:
    """RFC 5424, RFC 3164 and their relatives."""
    line = log_line(data)
    assert line is not None
    assert (line.severity, line.host, line.text) == (severity, host, text)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"listen": "0.0.0.0:0"}, "TCP without TLS on 0.0.0.0:0 is open to every machine.*allow_plain: true"),
        ({"over": []}, "syslog has nothing to listen on"),
        ({"tls_listen": "127.0.0.1:0"}, "tls_listen needs certificate and key"),
        ({"tls_listen": "127.0.0.1:0", "certificate": "/none", "key": "/none"}, "No such file.*check certificate"),
    ],
)
def test_a_wrong_plan_of_syslog_says_what_to_do(tmp_path: Path, keys: dict[str, object], sentence: str) -> None:
    """One sentence with the remedy."""

    async def work(poller: SyslogPoller, _: dict[str, int]) -> Gathered:
        return await gather(poller, lambda _: True)

    with pytest.raises(PlanError, match=sentence):
        received(tmp_path, work, keys)
