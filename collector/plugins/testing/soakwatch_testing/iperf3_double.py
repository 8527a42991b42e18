"""A double of iperf3 3.17 and later, for machines with an older one: run it with ``python -m`` and iperf3's arguments.

It writes the events of ``--json-stream`` (one object a line without blanks: ``start``, ``interval``, ``end`` and
``error``) with the fields of 3.12's ``-J``, as a client or a server, in real time, at the given rate, length and
streams. A TCP connection replaces iperf3's control connection: the client sends its parameters in one line of JSON,
which is not iperf3's protocol, and no data flows. ``--extra-data MOOD`` makes it misbehave: ``garbage``, ``silence``,
``half``, ``busy``, ``lossy``; ``busy:FILE`` and ``stuck:FILE`` (a client that never gets through) count down the number
in the file.
"""

from __future__ import annotations

import argparse
import json
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

VERSION = "3.18"
_LOST = 7  # datagrams lost per interval in the mood ``lossy``


def script(folder: Path) -> Path:
    """An executable that runs the double, for the key ``program``."""
    file = folder / "iperf3"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {__name__} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def event(name: str, data: object) -> str:
    """One line of output."""
    return json.dumps({"event": name, "data": data}, separators=(",", ":"))


def start(
    *,
    server: bool = False,
    udp: bool = True,
    streams: int = 1,
    length: int = 1000,
    rate: int = 8_000_000,
    reverse: bool = False,
    bidir: bool = False,
) -> dict[str, object]:
    """The object ``start``; ``rate`` is per stream."""
    peer = {"host": "127.0.0.1", "port": 5201}
    return {
        "connected": [
            {
                "socket": 5 + 2 * number,
                "local_host": "127.0.0.1",
                "local_port": 40000 + number,
                "remote_host": "127.0.0.1",
                "remote_port": 5201,
            }
            for number in range(streams)
        ],
        "version": f"iperf {VERSION}",
        "system_info": "Linux stand-in",
        "timestamp": {"time": "Thu, 01 Jan 2026 00:00:00 GMT", "timesecs": 1767225600},
        "accepted_connection" if server else "connecting_to": peer,
        "cookie": "stand-in",
        "target_bitrate": rate,
        "fq_rate": 0,
        "sock_bufsize": 0,
        "sndbuf_actual": 212992,
        "rcvbuf_actual": 212992,
        "test_start": {
            "protocol": "UDP" if udp else "TCP",
            "num_streams": streams,
            "blksize": length,
            "omit": 0,
            "duration": 0,
            "bytes": 0,
            "blocks": 0,
            "reverse": int(reverse),
            "tos": 0,
            "target_bitrate": rate,
            "bidir": int(bidir),
            "fqrate": 0,
            "interval": 1,
        },
    }


def share(
    begin: float,
    end: float,
    *,
    sender: bool,
    packets: int,
    length: int = 1000,
    udp: bool = True,
    lost: int = 0,
    whole: bool = False,
    number: int = 0,
    rtt: int = 250,
) -> dict[str, object]:
    """What one stream (or all: ``whole``) transferred; ``lost`` is the receiver's."""
    moved = (packets - lost) * length
    fields: dict[str, object] = {} if whole else {"socket": 5 + 2 * number}
    fields |= {
        "start": begin,
        "end": end,
        "seconds": end - begin,
        "bytes": moved,
        "bits_per_second": moved * 8 / (end - begin) if end > begin else 0,
    }
    if udp and not sender:
        fields |= {
            "jitter_ms": 0.04,
            "lost_packets": lost,
            "packets": packets,
            "lost_percent": 100 * lost / packets if packets else 0,
        }
    elif udp:
        fields["packets"] = packets
    elif sender:
        fields["retransmits"] = 1
        fields |= {} if whole else {"snd_cwnd": 1178694, "snd_wnd": 328704, "rtt": rtt, "rttvar": 9, "pmtu": 1500}
    return fields | {"omitted": False, "sender": sender}


def interval(
    begin: float,
    end: float,
    *,
    sender: bool,
    packets: int,
    streams: int = 1,
    length: int = 1000,
    udp: bool = True,
    lost: int = 0,
) -> dict[str, object]:
    """An object of ``intervals``; ``packets`` and ``lost`` are per stream."""
    each = [
        share(begin, end, sender=sender, packets=packets, length=length, udp=udp, lost=lost, number=number)
        for number in range(streams)
    ]
    total = share(
        begin, end, sender=sender, packets=packets * streams, length=length, udp=udp, lost=lost * streams, whole=True
    )
    return {"streams": each, "sum": total}


def end(
    seconds: float, *, packets: int, length: int = 1000, udp: bool = True, lost: int = 0, heard: bool = True
) -> dict[str, object]:
    """The object ``end``; ``heard``: the other side reported its figures, else they are zeros."""
    sent = share(0, seconds, sender=True, packets=packets, length=length, udp=udp, whole=True)
    received = share(
        0,
        seconds,
        sender=False,
        packets=packets if heard else 0,
        length=length,
        udp=udp,
        lost=lost if heard else 0,
        whole=True,
    )
    stream = {"udp": {"socket": 5, "out_of_order": 3, "sender": True}} if udp else {"sender": sent}
    return {
        "streams": [stream],
        "sum_sent": sent,
        "sum_received": received,
        "cpu_utilization_percent": {"host_total": 12.5, "host_user": 2.5, "host_system": 10.0, "remote_total": 1.0},
    }


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


class _InterruptedError(Exception):
    pass


def _interrupt(number: int, _frame: object) -> None:
    raise _InterruptedError(signal.Signals(number).name)


def _send(options: argparse.Namespace, control: socket.socket, *, server: bool) -> int:
    """Send until a signal arrives or the other side goes away."""
    begin, last, count, mood = time.monotonic(), 0.0, 0, options.mood
    per_second = options.rate / 8 / options.length
    _say(
        [
            event(
                "start",
                start(
                    server=server, udp=options.udp, streams=options.streams, length=options.length, rate=options.rate
                ),
            )
        ]
    )
    why = ""
    try:
        while not why:
            ready, _, _ = select.select([control], [], [], max(0.0, begin + last + options.every - time.monotonic()))
            if ready:
                why = "error - control socket has closed unexpectedly" if not server else "the client has terminated"
                break
            if mood == "silence":
                last += options.every
                continue
            count += _interval_out(options, last, last + options.every, per_second, server=server)
            last += options.every
    except _InterruptedError as signalled:
        count += _interval_out(options, last, max(last + 0.001, time.monotonic() - begin), per_second, server=server)
        why = f"interrupt - the {'server' if server else 'client'} has terminated by signal {signalled}"
    heard = end(max(last, options.every), packets=count, length=options.length, udp=options.udp, heard=False)
    _say([event("error", why), event("end", heard)])
    return 1


def _interval_out(options: argparse.Namespace, begin: float, until: float, per_second: float, *, server: bool) -> int:
    packets: int = round(until * per_second) - round(begin * per_second)
    lost = _LOST if server and options.mood == "lossy" and packets > _LOST else 0
    line = event(
        "interval",
        interval(
            begin,
            until,
            sender=not server,
            packets=packets,
            streams=options.streams,
            length=options.length,
            udp=options.udp,
            lost=lost,
        ),
    )
    if options.mood == "garbage":
        _say(["\x00\x1b[31m{not json", '{"event":', "[1,2", '{"event":"interval","data":[]}', "x" * 5000])
    if options.mood == "half":
        sys.stdout.write(line[: len(line) // 2])
        sys.stdout.flush()
        sys.exit(1)
    _say([line])
    return packets * int(options.streams)


def _once_more(mood: str, name: str) -> bool:
    """Whether the mood applies: ``name`` alone always, ``name:FILE`` until the file's number has counted down to 0."""
    file = Path(mood.removeprefix(f"{name}:"))
    if not mood.startswith(f"{name}:") or not file.exists():
        return mood == name
    left = int(file.read_text(encoding="utf-8"))
    file.write_text(str(max(0, left - 1)), encoding="utf-8")
    return left > 0


def _client(options: argparse.Namespace) -> int:
    if _once_more(options.mood, "stuck"):
        while True:
            signal.pause()
    if _once_more(options.mood, "busy"):
        _say([event("error", "error - the server is busy running a test. try again later"), event("end", {})])
        return 1
    try:
        control = socket.create_connection((options.client, options.port), 5)
    except OSError as error:
        _say([event("error", f"error - unable to connect to server: {error.strerror}"), event("end", {})])
        return 1
    with control:
        wish = {"udp": options.udp, "streams": options.streams, "rate": options.rate, "length": options.length}
        control.sendall(json.dumps(wish).encode() + b"\n")
        return _send(options, control, server=False)


def _server(options: argparse.Namespace) -> int:
    try:
        listener = socket.create_server((options.bind or "127.0.0.1", options.port))
    except OSError:
        print("iperf3: error - unable to start listener for connections: Address already in use", file=sys.stderr)
        return 1
    with listener:
        while True:
            control, _ = listener.accept()
            with control, control.makefile("rb", buffering=0) as lines:
                wish = json.loads(lines.readline(4096) or "{}")
                _send(argparse.Namespace(**{**vars(options), **wish}), control, server=True)


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("-c", dest="client")
    parser.add_argument("-s", dest="server", action="store_true")
    parser.add_argument("-p", dest="port", type=int, default=5201)
    parser.add_argument("-t", dest="time")
    parser.add_argument("-u", dest="udp", action="store_true")
    parser.add_argument("-P", dest="streams", type=int, default=1)
    parser.add_argument("-b", dest="rate", type=int, default=8_000_000)
    parser.add_argument("-l", dest="length", type=int, default=1000)
    parser.add_argument("-i", dest="every", type=float, default=1.0)
    parser.add_argument("-B", dest="bind")
    parser.add_argument("--extra-data", dest="mood", default="")
    options, _ = parser.parse_known_args()
    if options.version:
        print(f"iperf {VERSION} (cJSON 1.7.15)\nLinux stand-in")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return _server(options) if options.server else _client(options)
    except _InterruptedError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
