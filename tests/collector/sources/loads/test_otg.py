"""The load ``otg``: metrics of ports and flows over real HTTP, and answers that no model foresees."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.collector.sources.loads.generator_kit import Load, acted, by_series, polled

from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer
from soakwatch_otg.metrics import MAX_ROWS, is_sending, put_flows, put_ports, put_whole, rows_of
from soakwatch_testing.otg_server import FakeFlow, OtgServer, otg_server


def two_flows() -> OtgServer:
    """``up`` loses ten of each thousand frames, ``down`` loses none and measures no latency."""
    up = FakeFlow("up", step=1000, lost=10, tx=2**50, rx=2**50 - 5, sending=True, latency_ns=(1500.0, 2500.0, 9000.0))
    return OtgServer([up, FakeFlow("down", "p2", "p1", step=500, size=128, sending=True)])


def polls(server: OtgServer, count: int = 1, **keys: object) -> list[Answer]:
    """Some polls of the generator."""
    with otg_server(server):
        return polled("otg", {"url": f"http://127.0.0.1:{server.port}", **keys}, count)


@pytest.mark.parametrize("wire", [{}, {"quoted": True}, {"quoted": True, "camel": True}])
def test_one_poll(wire: dict[str, bool]) -> None:
    """Integers as numbers or in quotes, keys as the model or as protobuf's JSON names them: the same exact figures."""
    server = two_flows()
    server.quoted, server.camel = wire.get("quoted", False), wire.get("camel", False)
    (answer,) = polls(server)
    assert answer.faults == ()
    values = by_series(answer)
    assert values["load.flow.tx.packets", "flow=up"] == 2**50 + 1000
    assert values["load.flow.rx.packets", "flow=up"] == 2**50 - 5 + 990
    assert values["load.tx.packets", ""] == 2**50 + 1500
    assert isinstance(values["load.tx.packets", ""], int)
    assert values["load.drop.estimate", ""] == 15
    assert values["load.tx.bytes", ""] == (2**50 + 1000) * 64 + 500 * 128
    assert values["load.tx.packet.rate", ""] == 1500
    assert values["load.tx.bit.rate", ""] == (1000 * 64 + 500 * 128) * 8
    assert values["load.port.tx.packets", "port=p1"] == 2**50 + 1000
    assert values["load.port.rx.packet.rate", "port=p2"] == 990
    assert values["load.port.up", "port=p2"] == 1
    assert values["load.flow.latency", "flow=up,quantile=mean"] == pytest.approx(2.5e-6)
    assert values["load.latency", "quantile=max"] == pytest.approx(9e-6)
    assert ("load.flow.latency", "flow=down,quantile=mean") not in values
    assert values["load.sending", ""] == 1
    assert values["load.flow.loss", "flow=down"] == 0


def test_loss_is_a_share_and_none_before_anything_was_sent() -> None:
    """The generator says percent, the catalogue a share; over flows it is weighed by what they sent."""
    flows = [FakeFlow("a", step=300, lost=30, sending=True), FakeFlow("b", step=100, sending=True), FakeFlow("c")]
    (answer,) = polls(OtgServer(flows))
    values = by_series(answer)
    assert values["load.flow.loss", "flow=a"] == pytest.approx(0.1)
    assert values["load.loss", ""] == pytest.approx(30 / 400)
    assert ("load.flow.loss", "flow=c") not in values
    (answer,) = polls(OtgServer([FakeFlow("c", latency_ns=(0.0, 0.0, 0.0))]))
    values = by_series(answer)
    assert ("load.loss", "") not in values
    assert ("load.latency", "quantile=mean") not in values
    assert values["load.sending", ""] == 0
    assert answer.faults == ()


def test_a_flow_in_rows_by_receiving_port() -> None:
    """It is one flow: its counters add up, and no series is written twice."""
    server = two_flows()
    server.per_port = True
    (answer,) = polls(server)
    assert answer.faults == ()
    values = by_series(answer)
    assert values["load.flow.tx.packets", "flow=up"] == 2**50 + 1000
    assert values["load.tx.packets", ""] == 2**50 + 1500


def test_the_whole_is_of_ports_where_no_flow_counts() -> None:
    """Or where the plan says so; which it is is reported, and does not change within a run."""
    server = OtgServer([FakeFlow("a", sending=True)])

    async def ports(load: Load) -> None:
        server.flows[0].more = dict.fromkeys(("frames_tx", "frames_rx", "bytes_tx", "bytes_rx"))
        values = by_series(await load.poll())
        assert values["load.tx.packets", ""] == 100
        assert ("load.drop.estimate", "") not in values
        assert load.facts().identity["the whole"] == "the sum of its ports"
        server.flows[0].more = {}
        assert ("load.drop.estimate", "") not in by_series(await load.poll())

    with otg_server(server):
        acted("otg", {"url": f"http://127.0.0.1:{server.port}"}, ports)
    (answer,) = polls(two_flows(), total="ports")
    assert ("load.loss", "") not in by_series(answer)

    async def flows(load: Load) -> None:
        assert ("load.loss", "") in by_series(await load.poll())
        assert load.facts().identity["the whole"] == "the sum of its flows"
        server.flow_errors = "the engine of p1 is busy"
        answer = await load.poll()
        values = by_series(answer)
        assert ("load.tx.packets", "") not in values
        assert values["load.port.tx.packets", "port=p1"] > 0
        assert any("the engine of p1 is busy" in fault.text for fault in answer.faults)

    server = two_flows()
    with otg_server(server):
        acted("otg", {"url": f"http://127.0.0.1:{server.port}"}, flows)


def test_some_flows_only() -> None:
    """The controller is asked for those alone."""
    server = two_flows()
    (answer,) = polls(server, flows=["down"])
    values = by_series(answer)
    assert values["load.tx.packets", ""] == 500
    assert ("load.flow.tx.packets", "flow=up") not in values
    assert server.asked[-1][2] == {"choice": "flow", "flow": {"flow_names": ["down"]}}


def test_what_is_no_number_is_a_fault() -> None:
    """Of that flow; the whole is unknown with it, and the rest is read."""
    server = two_flows()
    server.flows[1].more = {"frames_tx": "-4", "frames_rx": 1.5, "loss": "NaN", "link": 7, "latency": [1]}
    (answer,) = polls(server)
    faults = {(fault.metric, fault.object): fault.text for fault in answer.faults}
    assert faults == {
        ("load.flow.tx.packets", "flow=down"): "frames_tx: '-4' is not a count",
        ("load.flow.rx.packets", "flow=down"): "frames_rx: 1.5 is not a count",
        ("load.flow.loss", "flow=down"): "loss: 'NaN' is not a percentage",
    }
    values = by_series(answer)
    assert ("load.tx.packets", "") not in values
    assert values["load.flow.tx.packets", "flow=up"] == 2**50 + 1000


def test_random_answers_raise_nothing() -> None:
    """Mutated answers give samples or faults, or are no metrics at all; never more than the bound."""
    rng = random.Random(17)
    server = two_flows()
    base = json.dumps(server.answer("POST", "/monitor/metrics", {"choice": "flow", "flow": {}})[1])
    odd: list[Any] = [None, [], {}, "", "1e999", "9" * 5000, -1, 1e308, True, [[]], {"a": 1}, "\x00", "12"]
    for _ in range(2000):
        tree = json.loads(base)
        for _ in range(rng.randrange(1, 6)):
            row = rng.choice(tree["flow_metrics"])
            if isinstance(row, dict) and row:
                row[rng.choice(sorted(row))] = rng.choice(odd)
        if rng.random() < 0.2:
            tree["flow_metrics"][rng.randrange(2)] = rng.choice(odd)
        rows = rows_of(tree, "flow_metrics")
        if rows is None:
            continue
        figures = AnswerBuilder(7)
        put_ports(figures, rows)
        put_flows(figures, rows)
        put_whole(figures, rows, flows=True)
        is_sending(rows, rows)
        for sample in figures.answer().samples:
            assert sample.value == sample.value
            assert sample.metric in BY_NAME
    many = rows_of({"flow_metrics": [{"name": f"f{number}", "frames_tx": 1} for number in range(5000)]}, "flow_metrics")
    assert many is not None
    assert (len(many.named), many.cut) == (MAX_ROWS, True)
    figures = AnswerBuilder(7)
    put_whole(figures, many, flows=True)
    assert figures.answer().samples == ()
    none: list[Any] = [None, [], "x", {"flow_metrics": "x"}, {"flow_metrics": [1]}]
    assert [rows_of(answer, "flow_metrics") for answer in none] == [None] * 5
