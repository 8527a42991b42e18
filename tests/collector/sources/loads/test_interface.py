"""The load ``interface``: the real loopback here and over SSH, ports that go and start again, and a whole run."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.collector.sources.loads.iperf3_kit import figures, loaded, readings, run_plan, until
from tests.needs import needs

from soakwatch.sources.abc import Facts, Identifies, SourceError
from soakwatch.sources.loads.interface import Config, Counters, Ports, parse
from soakwatch_model.sample import Answer
from soakwatch_testing.sshd import SSHD, Sshd, run_sshd

SECOND = 10**9
DEV = """\
Inter-|   Receive                                   |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 33450886508 13198515    0    0    0     0          0         0 33450886508 13198515    0    0    0   0   0   0
  eth0:18446744073709551615       7    3    2    0     0          0         0     1800      18    1   2  3   0   0   0
  eth1: 1 2 three
"""


def send(packets: int, length: int = 400) -> None:
    """Datagrams over the loopback with a receiver."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tg,
    ):
        sink.bind(("127.0.0.1", 0))
        for _ in range(packets):
            tg.sendto(b"x" * length, sink.getsockname())
            sink.recv(length)


class Replay:
    """A host with given readings."""

    name = "the host"

    def __init__(self, *readings: Mapping[str, Counters] | str) -> None:
        self._readings = list(readings)

    async def read(self) -> Mapping[str, Counters]:
        """The next, the last for ever."""
        reading = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(reading, str):
            raise SourceError(reading)
        return reading

    def facts(self) -> Facts:
        """Nothing."""
        return Facts({})


def counted(packets: int, dropped: int = 0, *, up: bool | None = None) -> Counters:
    """An interface that has sent so much."""
    return Counters(packets * 10, packets, 0, packets * 100, packets, 0, dropped, up)


def polls(*seen: Mapping[str, Counters] | str, **keys: object) -> list[Answer]:
    """One poll after the other, a second apart."""
    ports = Ports(Config.model_validate({"ports": ["e*"], **keys}), Replay(*seen))

    async def go() -> list[Answer]:
        return [await ports.poll((number + 1) * SECOND) for number in range(len(seen))]

    return asyncio.run(go())


def test_the_kernels_table() -> None:
    """64-bit counters are whole, drops and FIFO errors of sending are one figure, a line that is none is left out."""
    counters = parse(DEV, {"eth0": "up", "lo": "unknown"})
    assert set(counters) == {"lo", "eth0"}
    assert counters["eth0"] == Counters(18446744073709551615, 7, 3, 1800, 18, 1, 5, True)
    assert counters["lo"].up is None, "a loopback has no link: its state is unknown"


@pytest.mark.parametrize("seed", range(30))
def test_any_table_is_survived(seed: int) -> None:
    """Noise gives no interface, and no exception."""
    chance = random.Random(seed)
    text = list(DEV * 3)
    for _ in range(300):
        text[chance.randrange(len(text))] = chr(chance.choice([*range(32, 127), 0, 10, 58, 0x661, 0xB2]))
    for counters in parse("".join(text), {}).values():
        assert counters.tx_packets >= 0


def test_sums_and_ports() -> None:
    """Each port is raw, the whole is their sum; an interface that is not meant is not there."""
    (answer,) = polls({"eth0": counted(5, 2, up=True), "eth1": counted(7, up=False), "lo": counted(1000)})
    values = figures(answer)
    assert values["load.tx.packets", ""] == 12
    assert values["load.rx.bytes", ""] == 120
    assert values["load.queue_full", ""] == 2
    assert values["load.port.tx.bytes", "port=eth1"] == 700
    assert values["load.port.up", "port=eth0"] == 1
    assert values["load.port.up", "port=eth1"] == 0
    assert values["load.port.errors", "port=eth0,direction=receive"] == 0
    assert ("load.sending", "") not in values
    assert not [name for _, name in values if "lo" in name]


def test_a_port_that_starts_again_is_no_fall_of_the_sum() -> None:
    """The port's own series shows it, with an event; the sum counts on."""
    answers = polls({"eth0": counted(100), "eth1": counted(50)}, {"eth0": counted(10), "eth1": counted(60)})
    second = figures(answers[1])
    assert second["load.tx.packets", ""] == 170
    assert second["load.port.tx.packets", "port=eth0"] == 10
    (event,) = answers[1].events
    assert (event.kind, event.object) == ("generator.restart", "port=eth0")
    assert "tx packets from 100 to 10" in event.detail["fell"]


def test_a_sum_that_no_counter_can_be() -> None:
    """Beyond 64 bits there is no reading, and none is invented."""
    (answer,) = polls({"eth0": counted(2**63), "eth1": counted(2**63)})
    values = figures(answer)
    assert ("load.tx.packets", "") not in values
    assert values["load.port.tx.packets", "port=eth0"] == 2**63


def test_a_port_that_goes_and_comes_again() -> None:
    """What it had sent stays sent; that it is missing is reported; all of them gone is a failed poll."""
    both = {"eth0": counted(100), "eth1": counted(50)}
    first, gone, back = polls(both, {"eth1": counted(60)}, {"eth0": counted(1), "eth1": counted(60)})
    assert figures(first)["load.tx.packets", ""] == 150
    assert figures(gone)["load.tx.packets", ""] == 160
    assert ("load.port.tx.packets", "port=eth0") not in figures(gone)
    assert [fault.text for fault in gone.faults] == ["eth0 disappeared from the host"]
    assert figures(back)["load.tx.packets", ""] == 161
    assert back.faults == ()
    with pytest.raises(SourceError, match=r"the host no longer has an interface e\*"):
        polls(both, {"lo": counted(1)})


def test_whether_it_sends() -> None:
    """By packets per second, where the plan says from how many on."""
    seen = [{"eth0": counted(packets)} for packets in (0, 5, 1005, 1006)]
    sending = [figures(answer).get(("load.sending", "")) for answer in polls(*seen, sends_above=100)]
    assert sending == [None, 0, 1, 0]


def test_no_such_interface(tmp_path: Path) -> None:
    """Refused at the start, with what to say instead."""

    async def go() -> None:
        async with loaded("interface", tmp_path, ports=["nosuch*", "eth77"]):
            pass

    with pytest.raises(SourceError, match=r"this machine has no interface nosuch\* or eth77: .* in ports"):
        asyncio.run(go())


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc here")
def test_the_loopback_of_this_machine(tmp_path: Path) -> None:
    """What is sent is counted."""

    async def go() -> None:
        async with loaded("interface", tmp_path, ports=["lo"], sends_above=1e9) as poller:
            before = figures(await poller.poll(time.time_ns()))
            send(200)
            after = figures(await poller.poll(time.time_ns()))
            assert after["load.tx.packets", ""] - before["load.tx.packets", ""] >= 200
            assert after["load.rx.bytes", ""] - before["load.rx.bytes", ""] >= 200 * 400
            assert after["load.port.tx.packets", "port=lo"] == after["load.tx.packets", ""]
            assert after["load.sending", ""] == 0
            assert isinstance(poller, Identifies)
            assert poller.facts().identity["ports"] == "lo"

    asyncio.run(go())


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A generator's host."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd") as server:
        yield server


def test_another_machine_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    """The same figures; a host that goes away is a failed poll, and one that is back is read again."""

    async def go() -> None:
        async with (
            loaded("interface", tmp_path, ports=["l?"], ssh=sshd.keys, timeout="15s") as far,
            loaded("interface", tmp_path, ports=["lo"]) as here,
        ):
            before = figures(await here.poll(time.time_ns()))
            seen = figures(await far.poll(time.time_ns()))
            after = figures(await here.poll(time.time_ns()))
            for key in (("load.tx.packets", ""), ("load.port.rx.bytes", "port=lo")):
                assert before[key] <= seen[key] <= after[key]
            assert isinstance(far, Identifies)
            assert f"127.0.0.1:{sshd.port}" in far.facts().identity["host"]
            assert "host key" in far.facts().identity
            sshd.kill_sessions()
            sshd.stop()
            for _ in range(2):
                with pytest.raises(SourceError):
                    await far.poll(time.time_ns())
            sshd.start()
            again = await until(far, lambda values: ("load.tx.packets", "") in values)
            assert again["load.tx.packets", ""] >= seen["load.tx.packets", ""]

    asyncio.run(go())


@pytest.mark.slow
@pytest.mark.punctual
def test_a_whole_run(tmp_path: Path) -> None:
    """The figures of the generator's interface are in the record, and when it sent."""
    code = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"
        "time.sleep(2)\n"
        "for _ in range(150):\n"
        "    [s.sendto(b'x' * 400, s.getsockname()) for _ in range(40)]\n"
        "    [s.recv(400) for _ in range(40)]\n    time.sleep(0.02)\n"
    )
    sender = subprocess.Popen([sys.executable, "-c", code])
    try:
        run = run_plan(tmp_path, {"tg": [{"interface": {"ports": ["lo"], "sends_above": 500}}]}, "5s")
    finally:
        sender.kill()
        sender.wait()
    sent = readings(run, "tg", "load.tx.packets")
    assert sent[-1] - sent[0] >= 1000
    assert sent == readings(run, "tg", "load.port.tx.packets", "port=lo")
    assert max(readings(run, "tg", "load.sending")) == 1
