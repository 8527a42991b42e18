"""The load ``pktgen``: what versions since 2014 say over a real socket, and how their text is read."""

from __future__ import annotations

import random

import pytest
from tests.collector.sources.loads.generator_kit import Load, acted, by_series, polled

from soakwatch_model.sample import Answer
from soakwatch_pktgen.lua_text import read_tables
from soakwatch_testing.pktgen_server import Dialect, FakePort, PktgenServer, pktgen_server, printed


def two_ports(dialect: Dialect = "2022") -> PktgenServer:
    """Port 0 sends 1000 packets a poll, two of which are lost; port 1 is down and rests."""
    sending = FakePort(1000, 2**40, 2**40 - 7, lost=2, sending=True, latency_us=(10.0, 25.0, 80.0))
    return PktgenServer(dialect, ports={0: sending, 1: FakePort(link="<--Down-->")})


def polls(server: PktgenServer, count: int = 1, **keys: object) -> list[Answer]:
    """Some polls of the generator."""
    with pktgen_server(server):
        return polled("pktgen", {"port": server.port, **keys}, count)


def test_one_poll() -> None:
    """Counters stay whole numbers, a generator's figures are the sums of its ports', a down port is reported."""
    (answer,) = polls(two_ports())
    assert answer.faults == ()
    values = by_series(answer)
    sent = 2**40 + 2000  # the greeting was a poll too
    assert values["load.port.tx.packets", "port=0"] == sent
    assert values["load.port.rx.packets", "port=0"] == 2**40 - 7 + 1996
    assert values["load.port.tx.bytes", "port=0"] == 64 * sent
    assert values["load.tx.packets", ""] == sent
    assert isinstance(values["load.tx.packets", ""], int)
    assert values["load.rx.packets", ""] == 2**40 - 7 + 1996
    assert values["load.tx.packet.rate", ""] == 1000
    assert values["load.rx.packet.rate", ""] == 998
    assert values["load.port.rx.packet.rate", "port=1"] == 0
    assert values["load.tx.bit.rate", ""] == 1000 * 64 * 8
    assert (values["load.port.up", "port=0"], values["load.port.up", "port=1"]) == (1, 0)
    assert values["load.sending", ""] == 1
    assert values["load.port.errors", "port=0,direction=missed"] == 0
    assert values["load.queue_full", ""] == 0
    assert values["load.latency", "quantile=min"] == pytest.approx(10e-6)
    assert values["load.latency", "quantile=mean"] == pytest.approx(25e-6)
    assert values["load.latency", "quantile=max"] == pytest.approx(80e-6)
    assert not [metric for metric, _ in values if metric.startswith("load.offered")]


@pytest.mark.parametrize("dialect", ["2014", "2020", "2022", "2026"])
def test_versions(dialect: Dialect) -> None:
    """Totals, links, sending and what could not be sent are read from all; what one does not say is missing."""
    server = two_ports(dialect)
    server.ports[0].more = {"ierrors": 3, "oerrors": 4, "tx_failed": 5, "imissed": 6}
    (answer,) = polls(server)
    assert answer.faults == ()
    values = by_series(answer)
    assert values["load.tx.packets", ""] >= 2**40 + 1000
    assert values["load.port.errors", "port=0,direction=rx"] == 3
    assert values["load.port.errors", "port=0,direction=tx"] == 4
    assert values["load.port.errors", "port=0,direction=missed"] == (0 if dialect == "2014" else 6)
    assert values["load.queue_full", ""] == 5
    assert values["load.sending", ""] == 1
    assert (("load.tx.packet.rate", "") in values) == (dialect != "2026")
    means = {"2014": None, "2020": 25e-6, "2022": 25e-6, "2026": None}
    assert values.get(("load.latency", "quantile=mean")) == pytest.approx(means[dialect])


def test_a_version_that_counts_nothing_over_lua() -> None:
    """It reports that it sends and never a packet: after some polls that is a fault, and no zeros."""
    answers = polls(two_ports("2023"), 4)
    assert by_series(answers[0])["load.tx.packets", ""] == 0
    assert ("load.tx.packets", "") not in by_series(answers[3])
    (fault,) = answers[3].faults
    assert (fault.metric, fault.object) == ("load.tx.packets", "")
    assert "counts nothing" in fault.text


def test_what_a_port_gets_wrong_is_a_fault_of_its_own() -> None:
    """A counter of unset memory is not a counter, and the whole is unknown with it; the rest is read."""
    server = two_ports()
    server.ports[1].more = {"ierrors": -4889662419251002112}
    server.ports[1].tx = -1
    server.ports[1].link = ""
    (answer,) = polls(server)
    faults = {(fault.metric, fault.object): fault.text for fault in answer.faults}
    assert faults["load.port.tx.packets", "port=1"] == "opackets: -1 is not a count"
    assert ("load.port.errors", "port=1,direction=rx") in faults
    assert ("load.port.up", "port=1") in faults
    values = by_series(answer)
    assert ("load.tx.packets", "") not in values
    assert values["load.rx.packets", ""] > 0
    assert values["load.port.tx.packets", "port=0"] > 0


def test_cleared_counters_are_stored_as_they_are() -> None:
    """``clr`` on the generator's console: the counter steps back, and nothing is added for it."""

    async def clear(load: Load) -> None:
        before = by_series(await load.poll())["load.tx.packets", ""]
        server.answer("pktgen.clr();")
        after = by_series(await load.poll())["load.tx.packets", ""]
        assert (before, after) == (2**40 + 2000, 1000)

    with pktgen_server(two_ports()) as server:
        acted("pktgen", {"port": server.port}, clear)


def test_facts() -> None:
    """What the record keeps of it."""

    async def tell(load: Load) -> None:
        await load.poll()
        facts = load.facts()
        assert facts.identity["version"] == "26.07.1"
        assert facts.identity["DPDK"] == "DPDK 22.07.0"
        assert facts.notes == ("this Pktgen reports no rates: they are computed from its counters",)

    with pktgen_server(two_ports("2026")) as server:
        acted("pktgen", {"port": server.port}, tell)


def test_tables_of_other_styles() -> None:
    """Braces on lines of their own, no commas, bare keys, bare addresses, escapes, reals of old Lua."""
    text = (
        'Lua 5.4\ntotals =\n{\n  [0] =\n  {\n    ["curr"] =\n    {\n      ["ibytes"] = 1.7922880013e+11\n    }\n'
        "    mac = 3C:FD:FE:AD:76:C8; up = true, none = nil\n  }\n}\n"
        'other = { ["a\\"b"] = "x\\\ny\\65", [1]=-0.5,}\nbroken = { [0] = { ["x" = 1 }\nlast = {}\n'
    )
    read = read_tables(text)
    assert read.tables == {
        "totals": {0: {"curr": {"ibytes": 1.7922880013e11}, "mac": "3C:FD:FE:AD:76:C8", "up": True, "none": None}},
        "other": {'a"b': "x\nyA", 1: -0.5},
        "last": {},
    }
    assert read.unread == {"broken": "a key that does not end"}


def test_random_text_is_read_or_refused() -> None:
    """Mutated and random answers: no exception, and nothing grows without bound."""
    rng = random.Random(5)
    base = printed("totals", {0: {"opackets": 5, "x": {"y": 'a"b'}}, "n": 1}) * 3
    signs = '{}[]="\\,;\n\t\0éx19.-e'
    for _ in range(3000):
        text = list(base)
        for _ in range(rng.randrange(1, 12)):
            start = rng.randrange(len(text))
            text[start : start + rng.randrange(3)] = rng.choices(signs, k=rng.randrange(4))
        read = read_tables("".join(text))
        assert len(read.tables) + len(read.unread) <= 6
    assert read_tables("a = " + "{ [1] = " * 100_000).unread == {"a": "it is nested more than 16 deep"}
    assert "50000 entries" in read_tables("a = {" + "[1]=1," * 60_000 + "}").unread["a"]
    for sign in ("a", "=", "\n", "{", "[", '"', "\\", "a = {\n"):
        read_tables(sign * (2**20 // len(sign)))
