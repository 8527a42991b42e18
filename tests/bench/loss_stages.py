"""Whose loss: 40 ways to lose packets in network namespaces, and which stage of the way the verdict names.

    python tests/bench/loss_stages.py                      all of them, two at a time: about 12 minutes
    python tests/bench/loss_stages.py --only receiver --each

Needs root, iproute2 and iptables. Five namespaces in a row, each made and removed here: sender, path in, device, path
out, receiver; 1000 packets a second of UDP for 25 s, by a sender and a receiver that count. The device is watched by
``soakwatch run`` inside its namespace (its interfaces, sockets, backlog), the generator by the command of a plan, with
the interfaces and sockets of its own machines or without (``blind``). Losses are made by tbf and htb queues that are
too small, by random drops of iptables, by a ring (a tap whose reader pauses), and by sockets that are read too seldom.
What is read is the verdict.json of the run. Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import itertools
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

RATE = 1000
SIZE = 200
SECONDS = 25
SPACES = ("snd", "pin", "dut", "pout", "rcv")
PORT, RELAY_PORT = 5201, 5202
BITS = RATE * (SIZE + 28 + 14) * 8  # on the wire


@dataclass(frozen=True, slots=True)
class Way:
    """One way to lose packets: at which stage, how, how much of them; ``blind``: the generator's machines are not
    watched."""

    stage: str
    how: str
    share: float
    blind: bool = False

    @property
    def truth(self) -> str:
        """What can be known of the stage."""
        if not self.blind:
            return self.stage
        return {
            "sender": "before the device",
            "way in": "before the device",
            "way out": "behind the device",
            "receiver": "behind the device",
        }.get(self.stage, self.stage)

    @property
    def name(self) -> str:
        """In one line."""
        seen = ", generator's machines not watched" if self.blind else ""
        return f"{self.stage}: {self.how} {100 * self.share:g} %{seen}"


WAYS = (
    *(Way("sender", how, share) for how in ("tbf", "htb") for share in (0.05, 0.3)),
    Way("sender", "tbf", 0.3, blind=True),
    *(Way("way in", "drop", share) for share in (0.01, 0.05, 0.2, 0.6)),
    *(Way("way in", how, share) for how in ("tbf", "htb") for share in (0.05, 0.3)),
    Way("way in", "drop", 0.05, blind=True),
    *(Way("device", "drop", share) for share in (0.01, 0.05, 0.3)),
    *(Way("device", how, share) for how in ("tbf", "htb") for share in (0.05, 0.3)),
    *(Way("device", "ring", share) for share in (0.2, 0.5)),
    *(Way("device", "socket", share) for share in (0.2, 0.5)),
    Way("device", "drop", 0.05, blind=True),
    Way("device", "htb", 0.3, blind=True),
    *(Way("way out", "drop", share) for share in (0.01, 0.05, 0.2)),
    *(Way("way out", how, 0.05) for how in ("tbf", "htb")),
    Way("way out", "drop", 0.05, blind=True),
    *(Way("receiver", "socket", share) for share in (0.2, 0.5, 0.7)),
    Way("receiver", "socket", 0.5, blind=True),
    Way("none", "nothing is lost", 0.0),
    Way("none", "one LLDP frame two seconds after the start", 0.0),
    Way("none", "an LLDP frame each second", 0.0),
)


# --- the parts that run in a namespace of their own ---------------------------------------------------------------


def _counter(path: str) -> mmap.mmap:
    with Path(path).open("r+b") as file:
        return mmap.mmap(file.fileno(), 8)


def _send(count_file: str, address: str) -> None:
    count, number = _counter(count_file), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        payload, began = bytes(SIZE), time.monotonic()
        while True:
            while number < RATE * (time.monotonic() - began):
                out.sendto(payload, (address, PORT))  # not connected: a refusal by ICMP would end it
                number += 1
            count[:] = struct.pack("<q", number)
            time.sleep(0.005)


def _receive(count_file: str, pause: float) -> None:
    """Reads all there is; then pauses for a share of each 200 ms (a small buffer runs full then)."""
    count, number = _counter(count_file), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as into:
        into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 if pause else 1 << 20)
        into.bind(("0.0.0.0", PORT))
        into.settimeout(0.01)
        while True:
            until = time.monotonic() + 0.2 * (1 - pause)
            while time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    into.recv(2048)
                    number += 1
                    count[:] = struct.pack("<q", number)
            time.sleep(0.2 * pause)


def _relay(address: str, pause: float) -> None:
    """A device that forwards by a program: its socket runs full while the program pauses."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as into,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        into.bind(("0.0.0.0", PORT))
        into.settimeout(0.01)
        while True:
            until = time.monotonic() + 0.2 * (1 - pause)
            while time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    out.sendto(into.recv(2048), (address, PORT))
            time.sleep(0.2 * pause)


def _tap(name: str) -> int:
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH", name.encode(), 0x0002 | 0x1000))  # TUNSETIFF, IFF_TAP | IFF_NO_PI
    return tap


def _wire(one: str, two: str, pause: float) -> None:
    """The wire between a tap of each of two namespaces; while it pauses the ring of the first one runs full."""
    libc, taps = ctypes.CDLL(None, use_errno=True), []
    for space in (one, two):
        with Path(f"/run/netns/{space}").open("rb") as file:
            if libc.setns(file.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), f"setns {space}")
        taps.append(_tap("out" if space == one else "in"))
    print("ready", flush=True)
    while True:
        until = time.monotonic() + 0.2 * (1 - pause)
        while time.monotonic() < until:
            for source, target in ((taps[0], taps[1]), (taps[1], taps[0])):
                with contextlib.suppress(BlockingIOError, OSError):
                    while time.monotonic() < until:
                        os.write(target, os.read(source, 4096))
            time.sleep(0.001)
        time.sleep(0.2 * pause)


def _greet(interface: str, runs: str, often: bool) -> None:
    """LLDP frames, which no program takes: the kernel counts each as dropped on receive. Two seconds after the run's
    record is there, so that the counter has been read before."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((interface, 0))
        while not any(Path(runs).glob("*/record.sqlite")):
            time.sleep(0.05)
        time.sleep(2)
        while True:
            out.send(bytes.fromhex("0180c200000e") + bytes.fromhex("020000000001") + b"\x88\xcc" + bytes(46))
            time.sleep(1 if often else 3600)


def _figures(sent_file: str, received_file: str, sender: int, receiver: int) -> None:
    """One line a second: what the generator counted, and what its machines did (unless their pids are 0)."""
    sent, received = _counter(sent_file), _counter(received_file)
    while True:
        line: dict[str, float] = {
            "load.tx.packets": struct.unpack("<q", sent[:])[0],
            "load.rx.packets": struct.unpack("<q", received[:])[0],
        }
        for pid in (sender, receiver) if sender else ():
            line |= _machine(pid, "s" if pid == sender else "r")
        print(json.dumps(line), flush=True)
        time.sleep(1.0 - time.time() % 1.0)


def _machine(pid: int, side: str) -> dict[str, float]:
    rows: dict[str, float] = {}
    for text in Path(f"/proc/{pid}/net/dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, counts = text.partition(":")
        value = [int(x) for x in counts.split()]
        for metric, receive, transmit in (
            ("system.network.packets", value[1], value[9]),
            ("system.network.packet.dropped", value[3], value[11]),
        ):
            labels = f"interface={side}-{name.strip()},direction="
            if name.strip() != "lo":
                rows |= {f"{metric}{{{labels}receive}}": receive, f"{metric}{{{labels}transmit}}": transmit}
    udp = [
        line.split()
        for line in Path(f"/proc/{pid}/net/snmp").read_text(encoding="ascii").splitlines()
        if line.startswith("Udp:")
    ]
    full = dict(zip(udp[0], udp[1], strict=True))["RcvbufErrors"]
    return rows | {f"system.udp.receive_errors{{reason={side}-buffer}}": int(full)}


# --- one case -----------------------------------------------------------------------------------------------------


def _call(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


class Spaces:
    """Five namespaces in a row, with what runs in them; all of it is removed at the end."""

    def __init__(self, number: int, way: Way) -> None:
        self._name = {space: f"swl{os.getpid() % 10000}-{number}-{space}" for space in SPACES}
        self._way, self._programs = way, list[subprocess.Popen[str]]()

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.kill()
            program.wait()
        for name in self._name.values():
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)

    def within(self, space: str) -> tuple[str, ...]:
        """The words that run a command in a space."""
        return ("ip", "netns", "exec", self._name[space])

    def start(self, space: str, part: str, *words: object) -> subprocess.Popen[str]:
        """Start a part of this file in a space."""
        program = (*self.within(space), sys.executable, __file__, "--part", part, *map(str, words))
        self._programs.append(subprocess.Popen(program, stdout=subprocess.PIPE, text=True))
        return self._programs[-1]

    def _make(self) -> None:
        for name in self._name.values():
            _call("ip", "netns", "add", name)
            _call("ip", "-n", name, "link", "set", "lo", "up")
        tap = self._way.how == "ring"
        for position, (one, two) in enumerate(itertools.pairwise(SPACES), start=1):
            here, there = self._name[one], self._name[two]
            if tap and one == "dut":
                wire = self.start("dut", "wire", here, there, 0.2 + 0.8 * self._way.share)
                assert wire.stdout is not None
                wire.stdout.readline()
                _call("ip", "-n", here, "link", "set", "out", "txqueuelen", "10")
            else:
                _call("ip", "link", "add", "out", "netns", here, "type", "veth", "peer", "name", "in", "netns", there)
            for space, device, last in ((here, "out", 1), (there, "in", 2)):
                _call("ip", "-n", space, "addr", "add", f"10.91.{position}.{last}/24", "dev", device)
                _call("ip", "-n", space, "link", "set", device, "up")
        for position, space in enumerate(SPACES):
            far = ("10.91.0.0/16",) if space == "snd" else ("10.91.4.0/24",)
            if position + 2 < len(SPACES):
                _call("ip", "-n", self._name[space], "route", "add", *far, "via", f"10.91.{position + 1}.2")
            if position > 0:
                back = f"10.91.{position}.1"
                _call("ip", "-n", self._name[space], "route", "add", "10.91.0.0/16", "via", back)
            if 0 < position < len(SPACES) - 1:
                _call(*self.within(space), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self._spoil()

    def _spoil(self) -> None:
        way = self._way
        space = {"sender": "snd", "way in": "pin", "device": "dut", "way out": "pout"}.get(way.stage, "")
        rate = f"{round(BITS * (1 - way.share))}bit"
        on = ("tc", "-n", self._name.get(space, ""), "qdisc", "add", "dev", "out")
        if way.how == "drop":
            chance = ("-m", "statistic", "--mode", "random", "--probability", str(way.share))
            _call(*self.within(space), "iptables", "-A", "FORWARD", "-p", "udp", *chance, "-j", "DROP")
        elif way.how == "tbf":
            _call(*on, "root", "tbf", "rate", rate, "burst", "3000", "limit", "6000")
        elif way.how == "htb":
            _call(*on, "root", "handle", "1:", "htb", "default", "1")
            limit = ("htb", "rate", rate, "burst", "3000")
            _call("tc", "-n", self._name[space], "class", "add", "dev", "out", "parent", "1:", "classid", "1:1", *limit)
            _call(*on, "parent", "1:1", "pfifo", "limit", "20")

    def judged(self, folder: Path, soakwatch: str) -> dict[str, object]:
        """Run the load and the monitor; the verdict document."""
        way = self._way
        files = [folder / name for name in ("sent", "received")]
        for file in files:
            file.write_bytes(bytes(8))
        pause = 0.15 + way.share * 0.85 if way.how == "socket" else 0.0
        receiver = self.start("rcv", "receive", files[1], pause if way.stage == "receiver" else 0.0)
        target = "10.91.4.2"
        if way.stage == "device" and way.how == "socket":
            self.start("dut", "relay", target, pause)
            target = "10.91.2.2"
        if "LLDP" in way.how:
            self.start("pin", "greet", "out", folder / "runs", int("each" in way.how))
        sender = self.start("snd", "send", files[0], target)
        pids = (0, 0) if way.blind else (sender.pid, receiver.pid)
        words = [sys.executable, __file__, "--part", "figures", *map(str, (*files, *pids))]
        plan = folder / "plan.yaml"
        plan.write_text(
            json.dumps(
                {
                    "name": "whose-loss",
                    "phases": [{"soak": f"{SECONDS}s"}],
                    "targets": {
                        "dut": {"role": "dut", "sources": [{"local": {"interval": "1s"}}]},
                        "tg": {"role": "generator", "sources": [{"command": {"run": words}}]},
                    },
                    "rules": {"loss": {}, "drops": {}, "generator_health": {}},
                }
            ),
            encoding="utf-8",
        )
        run = (*self.within("dut"), soakwatch, "run", str(plan), "--runs", str(folder / "runs"), "--no-web")
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
        found = sorted(folder.glob("runs/*/verdict.json"))
        if not found:
            raise RuntimeError(f"{way.name}: no verdict: {done.stdout[-400:]} {done.stderr[-400:]}")
        document: dict[str, object] = json.loads(found[0].read_text(encoding="utf-8"))
        return document


def stage_of(document: dict[str, object]) -> tuple[str, str]:
    """Where the verdict says that it was lost, and the sentence."""
    findings = document["findings"]
    assert isinstance(findings, list)
    (loss,) = [f for f in findings if f["rule"] == "loss" and f["target"] == "dut" and f["metric"] == "load.rx.packets"]
    dropped = [f for f in findings if f["rule"] == "drops" and f["outcome"] == "fail"]
    if loss["outcome"] in {"pass", "not applicable"}:
        return ("device" if dropped else "none"), (dropped or [loss])[0]["reason"]
    stages = [fact["stage"] for fact in loss["facts"] if fact.get("stage")]
    return (stages[0] if stages else "?"), loss["reason"]


def tried(number: int, way: Way, soakwatch: str) -> tuple[Way, str, str]:
    """One case: the stage that the verdict names, and its sentence."""
    try:
        with tempfile.TemporaryDirectory(prefix="soakwatch-way-") as folder, Spaces(number, way) as spaces:
            return way, *stage_of(spaces.judged(Path(folder), soakwatch))
    except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as error:
        return way, "broken", f"{type(error).__name__}: {error}"


def _parts(words: Sequence[str]) -> None:
    part, *rest = words
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    match part:
        case "send":
            _send(rest[0], rest[1])
        case "receive":
            _receive(rest[0], float(rest[1]))
        case "relay":
            _relay(rest[0], float(rest[1]))
        case "wire":
            _wire(rest[0], rest[1], float(rest[2]))
        case "greet":
            _greet(rest[0], rest[1], often=bool(int(rest[2])))
        case "figures":
            _figures(rest[0], rest[1], int(rest[2]), int(rest[3]))


def _lines(results: Sequence[tuple[Way, str, str]], *, each: bool) -> Iterator[str]:
    yield "| stage | ways | right |"
    yield "|---|--:|--:|"
    for stage in dict.fromkeys(way.stage for way in WAYS):
        own = [(way, said) for way, said, _ in results if way.stage == stage]
        if own:
            yield f"| {stage} | {len(own)} | {sum(said == way.truth for way, said in own)} |"
    right = sum(said == way.truth for way, said, _ in results)
    yield f"| all | {len(results)} | {right} |"
    for way, said, sentence in results:
        if each or said != way.truth:
            yield f"{'right' if said == way.truth else 'WRONG'} {way.name}: {said}: {sentence}"


def main() -> None:
    """Make, lose, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="ways whose line holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="the sentence of every way")
    options = parser.parse_args()
    if options.part:
        _parts(options.part)
        return
    soakwatch = str(Path(sys.executable).with_name("soakwatch"))
    chosen = [(number, way) for number, way in enumerate(WAYS) if options.only in way.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda entry: tried(entry[0], entry[1], soakwatch), chosen))
    print("\n".join(_lines(results, each=options.each)))


if __name__ == "__main__":
    main()
