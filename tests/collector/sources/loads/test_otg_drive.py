"""The load ``otg`` driven by a run, and read during one: rates in flight, start and stop, what is never touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.collector.sources.loads.generator_kit import Load, acted, by_series, refused_run, values, whole_run

from soakwatch.record import RecordView
from soakwatch.sources.abc import Drivable, SourceError
from soakwatch_otg.rates import offered, scaled
from soakwatch_testing.otg_server import FakeFlow, OtgServer, otg_server
from soakwatch_testing.ports import free_port

Act = Callable[[Load], Awaitable[None]]


def driven() -> OtgServer:
    """Resting flows with rates of every unit that is written differently."""
    return OtgServer(
        [
            FakeFlow("a", rate={"choice": "pps", "pps": "1000"}),
            FakeFlow("b", "p2", "p1", rate={"choice": "gbps", "gbps": 1}),
            FakeFlow("c", rate={"choice": "percentage", "percentage": 50.0}),
        ]
    )


def acts(server: OtgServer, act: Act, **keys: object) -> None:
    """What is done with it."""
    with otg_server(server):
        acted("otg", {"url": f"http://127.0.0.1:{server.port}", **keys}, act)


def test_nothing_is_changed_without_drive() -> None:
    """Only metrics and the version are asked for, and it is none that could be driven."""
    server = OtgServer([FakeFlow("up", sending=True)])

    async def poll(load: Load) -> None:
        assert not isinstance(load.poller, Drivable)
        await load.poll()

    acts(server, poll)
    assert {(method, path) for method, path, _ in server.asked} == {
        ("GET", "/capabilities/version"),
        ("POST", "/monitor/metrics"),
    }


def test_driven_by_the_run() -> None:
    """Rates in flight, start and stop; at the end all is stopped and has its own rate, however the run ends."""
    server = driven()

    async def drive(load: Load) -> None:
        await load.drive(0.1)
        assert [flow.rate for flow in server.flows] == [
            {"choice": "pps", "pps": 100},
            {"choice": "bps", "bps": 100_000_000},
            {"choice": "percentage", "percentage": 5.0},
        ]
        assert all(flow.sending for flow in server.flows)
        await load.drive(0.2)
        assert server.flows[0].rate == {"choice": "pps", "pps": 200}
        starts = [body for _, path, body in server.asked if path == "/control/state"]
        assert starts == [
            {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": "start"}}}
        ]
        with pytest.raises(SourceError, match="'c' cannot send 150 % of its line"):
            await load.drive(3.0)
        await load.drive(0)
        assert not any(flow.sending for flow in server.flows)
        await load.drive(0.5)
        raise RuntimeError("the run breaks")

    with pytest.raises(RuntimeError):
        acts(server, drive, drive=True)
    assert not any(flow.sending for flow in server.flows)
    assert server.flows[0].rate == {"choice": "pps", "pps": 1000}
    assert server.flows[1].rate == {"choice": "bps", "bps": 10**9}


def test_what_is_offered() -> None:
    """While it is driven; a sum only where the flows are rates of one kind."""
    server = OtgServer([FakeFlow("a", rate={"choice": "pps", "pps": 1000}), FakeFlow("b", rate={})])

    async def drive(load: Load) -> None:
        assert ("load.offered.packet.rate", "") not in by_series(await load.poll())
        await load.drive(0.25)
        assert by_series(await load.poll())["load.offered.packet.rate", ""] == 500
        await load.drive(0)
        assert by_series(await load.poll())["load.offered.packet.rate", ""] == 0

    acts(server, drive, drive=True)
    pps: dict[str, Any]
    bits: dict[str, Any]
    pps, bits = {"rate": {"choice": "pps", "pps": 5}}, {"rate": {"mbps": 2}}
    assert offered([bits, bits], 1.0) == ("load.offered.bit.rate", 4e6)
    assert offered([pps, bits], 1.0) is None
    assert offered([{**pps, "duration": {"choice": "fixed_packets"}}], 1.0) is None
    with pytest.raises(SourceError, match="rate that cannot be read"):
        scaled({"name": "x", "rate": {"choice": "pps", "pps": "many"}}, 0.5)


def test_a_restarted_generator_is_set_again() -> None:
    """It comes back at rest: it sends again, and the record has the event."""
    server = driven()

    async def anew(load: Load) -> None:
        await load.drive(0.5)
        server.mood = "reset"
        with pytest.raises(SourceError):
            await load.poll()
        server.mood = "well"
        for flow in server.flows:
            flow.sending, flow.rate = False, {"choice": "pps", "pps": 7}
        (event,) = (await load.poll()).events
        assert event.kind == "generator.restart"
        assert server.flows[0].rate == {"choice": "pps", "pps": 500}
        assert all(flow.sending for flow in server.flows)
        assert (await load.poll()).events == ()

    acts(server, anew, drive=True)


def test_rates_that_cannot_be_changed() -> None:
    """Full load can be driven, less is refused with the remedy, and the facts say so; nothing starts by mistake."""
    server = driven()
    server.rates_fixed = True

    async def drive(load: Load) -> None:
        with pytest.raises(SourceError, match=r"cannot change rates in flight \(status 501\): use phases with"):
            await load.drive(0.5)
        assert not any(flow.sending for flow in server.flows)
        assert load.facts().notes == ("rates cannot be changed in flight: loads of 0 and 100 % only",)
        await load.drive(1.0)
        assert all(flow.sending for flow in server.flows)

    acts(server, drive, drive=True)
    assert not any(flow.sending for flow in server.flows)


def test_flows_that_are_not_there() -> None:
    """Driving them fails with the remedy."""

    async def unknown(load: Load) -> None:
        with pytest.raises(SourceError, match="no flow 'up2': correct flows, or push the test's configuration"):
            await load.drive(1.0)

    acts(OtgServer([FakeFlow("up")]), unknown, drive=True, flows=["up", "up2"])

    async def none(load: Load) -> None:
        with pytest.raises(SourceError, match="has no flows to drive"):
            await load.drive(1.0)
        with pytest.raises(SourceError, match="has no ports and no flows: push the test's configuration first"):
            await load.poll()

    acts(OtgServer(ports={}), none, drive=True)


@pytest.mark.slow
@pytest.mark.punctual
def test_a_whole_run(tmp_path: Path) -> None:
    """The command, a plan, and the figures in the record."""
    server = OtgServer([FakeFlow("up", step=1000, lost=10, tx=2**50, rx=2**50, sending=True)], quoted=True)
    with otg_server(server):
        record = whole_run(tmp_path, f'{{otg: {{url: "http://127.0.0.1:{server.port}", interval: 300ms}}}}')
    with RecordView.open(record) as view:
        sent = values(view, "load.flow.tx.packets", "flow=up")
        assert len(sent) >= 4
        assert all(after > before and (after - before) % 1000 == 0 for before, after in pairwise(sent))
        lost = values(view, "load.drop.estimate")
        assert all(after > before and (after - before) % 10 == 0 for before, after in pairwise(lost))
        identities = [reported.event for reported in view.events() if reported.event.kind == "device.identity"]
        assert any(event.detail.get("API") == "1.62.0" for event in identities)


@pytest.mark.slow
def test_the_phases_drive_it(tmp_path: Path) -> None:
    """At rest, half and full, as the phases say; at the end it rests at its own rate."""
    phases = (
        "{baseline: {for: 2500ms, load: 0%}}, {soak: {for: 2500ms, load: 50%}}, {stress: {for: 2500ms, load: 100%}}"
    )
    with otg_server(OtgServer([FakeFlow("up", rate={"choice": "pps", "pps": "400"})])) as server:
        source = f'{{otg: {{url: "http://127.0.0.1:{server.port}", interval: 300ms, drive: true}}}}'
        record = whole_run(tmp_path, source, phases)
        assert not server.flows[0].sending
    with RecordView.open(record) as view:
        assert set(values(view, "load.offered.packet.rate")) == {0.0, 200.0, 400.0}
        assert set(values(view, "load.level")) == {0.0, 0.5, 1.0}
        assert set(values(view, "load.sending")) == {0.0, 1.0}


def test_a_missing_generator_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    """A required generator that cannot be reached: one sentence, no traceback."""
    port = free_port()
    error = refused_run(tmp_path, f'{{otg: {{url: "http://127.0.0.1:{port}"}}}}')
    assert "refuses the connection: nothing listens on that port" in error
    assert str(port) in error
