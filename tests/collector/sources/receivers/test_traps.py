"""The trap receiver against net-snmp's own snmptrap and snmpinform, in bursts and storms, and against nonsense."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.collector.sources.receivers.gathering import Gathered, Sender, gather, site
from tests.collector.sources.snmp.message import object_id

from soakwatch.core.errors import PlanError
from soakwatch.sources.pollers.traps import Config, TrapPoller, start
from soakwatch.sources.receivers.storm import STORM
from soakwatch.sources.transport.snmp import ber
from soakwatch_model.metric import BY_NAME

SECRETS = {"SOAK_C": "nobody-may-see-it", "SOAK_A": "authentic-phrase", "SOAK_P": "private-phrase"}
ENGINE = "0x8000000001020304"
IF_INDEX, IF_STATE, IF_NAME = ".1.3.6.1.2.1.2.2.1.1.3", ".1.3.6.1.2.1.2.2.1.8.3", ".1.3.6.1.2.1.31.1.1.1.1.3"
LINK_DOWN, LINK_UP, COLD_START = ".1.3.6.1.6.3.1.1.5.3", ".1.3.6.1.6.3.1.1.5.4", ".1.3.6.1.6.3.1.1.5.1"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def received(
    folder: Path, work: Callable[[TrapPoller, str], Awaitable[Gathered]], keys: dict[str, object] | None = None
) -> Gathered:
    """What a receiver reports while something is sent to it."""

    async def main() -> Gathered:
        async with AsyncExitStack() as stack:
            config = Config.model_validate({"listen": "127.0.0.1:0", "communities": ["env:SOAK_C"], **(keys or {})})
            poller = await start(config, site(folder), stack)
            gathered = await work(poller, f"127.0.0.1:{poller.port}")
            shown = repr((gathered, poller.facts()))
            assert not any(secret in shown for secret in SECRETS.values())
            return gathered

    return asyncio.run(main())


def test_traps_and_informs_of_v1_and_v2c_become_events(tmp_path: Path, send: Sender) -> None:
    """linkDown names the interface that the series name; an inform is acknowledged; a stranger is only counted."""
    community = ("-c", SECRETS["SOAK_C"])

    async def work(poller: TrapPoller, to: str) -> Gathered:
        v1 = await send(
            "snmptrap",
            "-v1",
            *community,
            to,
            ".1.3.6.1.4.1.9",
            "10.0.0.1",
            2,
            0,
            555,
            IF_INDEX,
            "i",
            3,
            IF_NAME,
            "s",
            "Gi0/3",
        )
        v2 = await send("snmptrap", "-v2c", *community, to, 123, COLD_START)
        inform = await send("snmpinform", "-v2c", "-r0", "-t5", *community, to, 123, LINK_UP, IF_STATE, "i", 1)
        stranger = await send("snmptrap", "-v2c", "-c", "public", to, 123, COLD_START)
        unheard = await send("snmpinform", "-v2c", "-r0", "-t0.3", "-c", "public", to, 123, COLD_START)
        assert [code for code, _ in (v1, v2, inform, stranger, unheard)] == [0, 0, 0, 0, 1]
        return await gather(poller, lambda gathered: gathered.total == 5)

    gathered = received(tmp_path, work)
    assert gathered.kinds == ["link.down", "snmp.cold_start", "link.up"]
    down, cold, up = gathered.events
    assert (down.object, up.object) == ("interface=Gi0/3", "interface=ifIndex 3")
    assert dict(down.detail) == {
        "trap": LINK_DOWN[1:],
        "address": "127.0.0.1",
        "version": "1",
        "uptime": "5.55",
        "ifindex": "3",
        "binds": f"{IF_INDEX[1:]}=3; {IF_NAME[1:]}=Gi0/3",
    }
    assert up.detail["operational"] == "up"
    assert cold.detail["uptime"] == "1.23"
    assert abs(cold.begin_ns - time.time_ns()) < 60 * 10**9
    assert gathered.fate("refused") == 2
    assert gathered.fate("event") == 3


def test_v3_informs_are_acknowledged_and_traps_need_the_engine_id(tmp_path: Path, send: Sender) -> None:
    """authPriv works both ways; a wrong password, an unknown user and an unknown engine are refused and counted."""
    user = {"user": "soak", "auth": "env:SOAK_A", "priv": "env:SOAK_P", "auth_protocol": "SHA-256"}

    def v3(name: str = "soak", auth: str = SECRETS["SOAK_A"]) -> tuple[str, ...]:
        return ("-v3", "-u", name, "-l", "authPriv", "-a", "SHA-256", "-A", auth, "-x", "AES", "-X", SECRETS["SOAK_P"])

    async def work(poller: TrapPoller, to: str) -> Gathered:
        inform = await send("snmpinform", *v3(), "-r1", "-t5", to, 123, LINK_DOWN, IF_NAME, "s", "eth3")
        trap = await send(
            "snmptrap", "-e", ENGINE, *v3(), to, 456, ".1.3.6.1.4.1.99.7", ".1.3.6.1.4.1.99.7.1", "x", "00ff"
        )
        codes = [inform[0], trap[0]]
        wrong = v3(auth="quite another phrase"), v3(name="nobody")
        codes += [(await send("snmpinform", *options, "-r0", "-t1", to, 1, COLD_START))[0] for options in wrong]
        codes.append((await send("snmptrap", "-e", "0x8000000009090909", *v3(), to, 1, COLD_START))[0])
        assert codes == [0, 0, 1, 1, 0]
        return await gather(poller, lambda gathered: gathered.fate("event") == 2 and gathered.fate("refused") >= 3)

    gathered = received(tmp_path, work, {"users": [user, {**user, "engine_id": ENGINE}]})
    assert gathered.kinds == ["link.down", "snmp.trap"]
    assert gathered.events[0].object == "interface=eth3"
    assert gathered.events[1].detail["trap"] == "1.3.6.1.4.1.99.7"
    assert gathered.events[1].detail["binds"] == "1.3.6.1.4.1.99.7.1=00 ff"
    assert gathered.events[1].detail["uptime"] == "4.56"


def test_traps_of_the_vendor_mean_what_its_profile_says(tmp_path: Path, send: Sender) -> None:
    """A profile gives enterprise traps their kind and names what they say; others are kept raw."""

    async def work(poller: TrapPoller, to: str) -> Gathered:
        for trap in (".1.3.6.1.4.1.9.9.43.2.0.1", ".1.3.6.1.4.1.9.9.9999.0.1"):
            await send("snmptrap", "-v2c", "-c", "anything", to, 1, trap, ".1.3.6.1.4.1.9.9.9999.2", "s", "x" * 3000)
        return await gather(poller, lambda gathered: gathered.fate("event") == 2)

    gathered = received(tmp_path, work, {"profile": "cisco-asa", "communities": None})
    assert gathered.kinds == ["config.change", "snmp.trap"]
    assert all(len(event.detail["binds"]) < 400 for event in gathered.events)


def trap(index: int, oid: str = LINK_DOWN) -> bytes:
    """A linkDown of v2c as a device sends it."""
    binds = (
        (".1.3.6.1.2.1.1.3.0", ber.integer(100, 0x43)),
        (".1.3.6.1.6.3.1.1.4.1.0", object_id(oid[1:])),
        (f".1.3.6.1.2.1.31.1.1.1.1.{index}", ber.tlv(ber.OCTETS, f"eth{index}".encode())),
    )
    listed = ber.sequence(*(ber.sequence(object_id(name[1:]), value) for name, value in binds))
    pdu = ber.tlv(0xA7, ber.integer(index) + ber.integer(0) * 2 + listed)
    return ber.sequence(ber.integer(1), ber.tlv(ber.OCTETS, SECRETS["SOAK_C"].encode()), pdu)


async def fire(poller: TrapPoller, datagrams: list[bytes]) -> None:
    """Send as fast as the machine can."""

    def work() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for datagram in datagrams:
                sender.sendto(datagram, ("127.0.0.1", poller.port))

    await asyncio.to_thread(work)


def test_a_burst_of_3000_traps_is_kept(tmp_path: Path) -> None:
    """All links of a switch go down at once: none of the datagrams is lost, and every interface has its event."""

    async def work(poller: TrapPoller, _: str) -> Gathered:
        assert "room" not in " ".join(poller.facts().notes)
        await fire(poller, [trap(index) for index in range(3000)])
        return await gather(poller, lambda gathered: gathered.total >= 3000)

    gathered = received(tmp_path, work)
    assert gathered.fate("dropped") == 0
    assert gathered.total == 3000
    assert len({event.object for event in gathered.events}) >= 1000
    assert gathered.fate("event") + gathered.fate("suppressed") == 3000
    assert all(f"source.{word}" in BY_NAME for word in ("messages", "log.lines"))


def test_a_storm_keeps_the_first_and_counts_the_others(tmp_path: Path) -> None:
    """One flapping interface leaves a few events and one that gives their number; others are not drowned."""

    async def main() -> Gathered:
        async with AsyncExitStack() as stack:
            config = Config.model_validate({"listen": "127.0.0.1:0", "storm": 5})
            poller = await start(config, site(tmp_path), stack)
            await fire(poller, [trap(1)] * 500 + [trap(2)])
            gathered = await gather(poller, lambda gathered: gathered.total == 501)
            gathered.add(await poller.poll(time.time_ns() + 61 * 10**9))
            return gathered

    gathered = asyncio.run(main())
    assert [(event.kind, event.object) for event in gathered.events] == [
        *[("link.down", "interface=eth1")] * 5,
        ("link.down", "interface=eth2"),
        (STORM, "interface=eth1"),
    ]
    assert dict(gathered.events[-1].detail) == {"of": "link.down", "suppressed": "495", "kept": "5"}
    assert gathered.fate("suppressed") == 495


def test_unknown_senders_are_counted_and_ignored(tmp_path: Path) -> None:
    """With ``from``, what comes from elsewhere is no event."""

    async def work(poller: TrapPoller, _: str) -> Gathered:
        await fire(poller, [trap(1)])
        return await gather(poller, lambda gathered: gathered.total == 1)

    assert received(tmp_path, work, {"from": ["192.0.2.0/24"]}).fate("foreign") == 1
    assert received(tmp_path, work, {"from": ["127.0.0.0/8"]}).fate("event") == 1
    with pytest.raises(PlanError, match=r"dut: from: the host 'no\.such\.invalid' is not known: write its address"):
        received(tmp_path, work, {"from": ["no.such.invalid"]})


def test_no_datagram_makes_the_receiver_stop_or_answer(tmp_path: Path) -> None:
    """Random bytes, cut and twisted traps of all versions: each is counted, none is an error, and traps go on."""
    rng = random.Random(4)
    good = trap(1)
    v3 = ber.sequence(
        ber.integer(3),
        ber.sequence(ber.integer(1), ber.integer(65507), ber.tlv(4, b"\4"), ber.integer(3)),
        ber.tlv(
            4,
            ber.sequence(
                ber.tlv(4, b"\x80\0\0\0\1"),
                ber.integer(1),
                ber.integer(1),
                ber.tlv(4, b"soak"),
                ber.tlv(4, b""),
                ber.tlv(4, b""),
            ),
        ),
        ber.sequence(ber.tlv(4, b""), ber.tlv(4, b""), ber.tlv(0xA7, b"")),
    )
    nested = b"\x30\x80" * 5000
    sent = [b"", b"\x30", nested, b"\x30\x84\xff\xff\xff\xff"]
    for _ in range(1500):
        base = bytearray(rng.choice((good, v3)))
        for _ in range(rng.randrange(1, 6)):
            base[rng.randrange(len(base))] = rng.randrange(256)
        sent += [bytes(base[: rng.randrange(len(base) + 1)]), rng.randbytes(rng.randrange(200))]

    async def work(poller: TrapPoller, _: str) -> Gathered:
        gathered = Gathered([], {})
        for begin in range(0, len(sent), 200):
            await fire(poller, sent[begin : begin + 200])
        await fire(poller, [trap(77)])
        return await gather(poller, lambda gathered: "interface=eth77" in {e.object for e in gathered.events}, gathered)

    gathered = received(tmp_path, work, {"users": [{"user": "soak", "auth": "env:SOAK_A"}]})
    assert gathered.fate("garbled") > 1000


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"users": [{"user": "u", "auth": "env:SOAK_S"}]}, "fewer than 8 characters, which SNMPv3 forbids"),
        ({"users": [{"user": "u", "priv": "env:SOAK_P"}]}, "priv without auth"),
        ({"communities": ["env:NOT_THERE"]}, "NOT_THERE is not set"),
        ({"profile": "cisco-asr"}, "unknown profile"),
    ],
)
def test_a_wrong_plan_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, object], sentence: str
) -> None:
    """One sentence without the secret."""
    monkeypatch.setenv("SOAK_S", "short")

    async def work(poller: TrapPoller, _: str) -> Gathered:
        return await gather(poller, lambda _: True)

    with pytest.raises(PlanError, match=sentence) as caught:
        received(tmp_path, work, keys)
    assert "short" not in str(caught.value)


def test_a_port_in_use_and_an_address_that_is_not_local(tmp_path: Path) -> None:
    """Both are reported with the remedy; and the socket is free again after the run."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        async def work(poller: TrapPoller, _: str) -> Gathered:
            return await gather(poller, lambda _: True)

        with pytest.raises(PlanError, match=f"dut: 127.0.0.1:{port} cannot be opened .*: give a free port"):
            received(tmp_path, work, {"listen": f"127.0.0.1:{port}"})
    for _ in range(2):
        received(tmp_path, work, {"listen": f"127.0.0.1:{port}"})
    with pytest.raises(ValidationError, match="write ADDRESS:PORT"):
        Config.model_validate({"listen": "1162"})


def test_a_receiver_that_others_reach_says_what_that_means(tmp_path: Path) -> None:
    """An explicit address is listened at, with a note that traps prove nothing."""

    async def main() -> tuple[str, ...]:
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate({"listen": "0.0.0.0:0"}), site(tmp_path), stack)
            return poller.facts().notes

    assert "do not authenticate their sender" in " ".join(asyncio.run(main()))
