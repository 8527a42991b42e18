"""The throttle of the load ``trex``: ports are taken without force, follow the level, and are given back at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.engine.load_driver import LoadController
from soakwatch.sources.abc import Drivable, SourceContext, SourceError
from soakwatch_model.sample import Answer
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_parts import Port
from soakwatch_testing.trex_server import TrexServer, trex_server
from soakwatch_trex import Config, DrivenTrex, start

BEGIN_NS = 10**18


def drive(
    server: TrexServer,
    use: Callable[[DrivenTrex], Awaitable[None]],
    *,
    trial: bool = False,
    folder: str = "run",
    **keys: object,
) -> None:
    """Start a driven source, use it, close it."""

    async def run() -> None:
        where = SourceContext("tg", "generator", (), None, Path(folder), lambda: BEGIN_NS, 1.0, trial=trial)
        own = {"host": "127.0.0.1", "port": server.port, "publisher": server.publisher, "drive": True, "timeout": "5s"}
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate({**own, **keys}), where, stack)
            assert isinstance(poller, Drivable)
            assert isinstance(poller, DrivenTrex)
            await use(poller)

    asyncio.run(run())


async def nothing(_: DrivenTrex) -> None:
    """Use it for nothing."""


def value(answer: Answer, metric: str) -> float:
    """The one value of a metric of the whole."""
    (reading,) = [sample.value for sample in answer.samples if (sample.metric, sample.object) == (metric, "")]
    return reading


def test_the_ports_follow_the_level_and_are_given_back() -> None:
    """Started, updated, stopped; the offered rate is what TRex says the streams come to; in the end nothing is held."""
    model = TrexModel()
    seen: list[tuple[float, list[str], list[float]]] = []

    async def use(poller: DrivenTrex) -> None:
        assert [port.owner for port in model.ports] == ["tester", "tester"]
        assert [port.state for port in model.ports] == ["STREAMS", "STREAMS"]  # nothing is sent before a level is set
        for level in (1.0, 0.25, 0.0, 1.5):
            await poller.drive(level)
            answer = await poller.poll(BEGIN_NS)
            states = [port.state for port in model.ports]
            seen.append((value(answer, "load.offered.packet.rate"), states, [port.factor for port in model.ports]))
            assert value(answer, "load.sending") == (level > 0)
            assert value(answer, "load.offered.bit.rate") == 512 * value(answer, "load.offered.packet.rate")

    with trex_server(TrexServer(model)) as server:
        drive(server, use, user="tester", rate=2)
    assert seen == [
        (4000.0, ["TX", "TX"], [2.0, 2.0]),
        (1000.0, ["TX", "TX"], [0.5, 0.5]),
        (0.0, ["STREAMS", "STREAMS"], [0.5, 0.5]),
        (6000.0, ["TX", "TX"], [3.0, 3.0]),
    ]
    assert [(port.state, port.owner) for port in model.ports] == [("STREAMS", ""), ("STREAMS", "")]


@pytest.mark.parametrize(
    ("rate", "factor"), [("500pps", 0.5), ("1.024mbps", 2.0), ("0.336Mbpsl1", 0.5), ("0.001%", 1 / 0.672)]
)
def test_a_full_rate_of_each_kind(rate: str, factor: float) -> None:
    """Packets, bits, bits with the gaps of the line, and a share of the line."""
    model = TrexModel()

    async def use(poller: DrivenTrex) -> None:
        await poller.drive(1.0)
        assert [port.factor for port in model.ports] == pytest.approx([factor, factor])

    with trex_server(TrexServer(model)) as server:
        drive(server, use, rate=rate)


def test_a_port_of_another_is_refused_and_left_alone() -> None:
    """In the trial before the run as well as at its start: one sentence with the owner, and no force."""
    model = TrexModel(ports=[Port(), Port(owner="alice", session=5, handler="x", state="TX")])
    with trex_server(TrexServer(model)) as server:
        why = f"port 1 of TRex at 127.0.0.1 port {server.port} cannot be driven: "
        with pytest.raises(SourceError) as failed:
            drive(server, nothing, trial=True)
        assert str(failed.value) == f"{why}it is owned by 'alice': have it released first"
        assert "acquire" not in model.questions
        with pytest.raises(SourceError) as failed:
            drive(server, nothing)
        assert str(failed.value) == f"{why}port is already taken by 'alice': have it released first"
        assert [(port.owner, port.state) for port in model.ports] == [("", "STREAMS"), ("alice", "TX")]
        drive(server, nothing, ports=[0])


def test_a_resumed_run_takes_its_ports_again_and_another_run_does_not() -> None:
    """A monitor that was killed leaves its ports owned: its session is the run's, whoever carries the run on."""
    model = TrexModel()

    async def killed(_: DrivenTrex) -> None:
        held.extend((port.owner, port.session, port.handler) for port in model.ports)

    held: list[tuple[str, int, str]] = []
    with trex_server(TrexServer(model)) as server:
        drive(server, killed, folder="runs/a")
        for port, (owner, session, handler) in zip(model.ports, held, strict=True):
            port.owner, port.session, port.handler = owner, session, handler
        with pytest.raises(SourceError, match="already owned by another session of 'soakwatch'"):
            drive(server, nothing, folder="runs/b")
        drive(server, nothing, folder="runs/a")
    assert [port.owner for port in model.ports] == ["", ""]


def test_a_check_before_the_run_touches_nothing() -> None:
    """``trial``: neither acquired nor started."""
    model = TrexModel()
    with trex_server(TrexServer(model)) as server:
        drive(server, nothing, trial=True)
    assert all(method.startswith(("get_", "api_sync")) for method in model.questions)


def test_what_cannot_be_driven_says_why() -> None:
    """No streams, no such port, a link that is down, over line rate."""
    model = TrexModel(ports=[Port(state="IDLE"), Port(state="IDLE")])

    async def full(poller: DrivenTrex) -> None:
        await poller.drive(1.0)

    with trex_server(TrexServer(model)) as server:
        where = f"of TRex at 127.0.0.1 port {server.port}"
        with pytest.raises(SourceError, match=f"port 0 {where} has no streams: load a profile there first"):
            drive(server, full)
        with pytest.raises(SourceError, match="has no port 7: it has 0, 1"):
            drive(server, full, ports=[7])
        model.ports[1].state = "STREAMS"
        drive(server, full)  # the port without streams is none of those that have some
        with pytest.raises(SourceError, match=f"port 0 {where} has no streams"):
            drive(server, full, ports=[0, 1])
        with pytest.raises(SourceError, match=f"port 1 {where}: Expected L1 B/W"):
            drive(server, full, rate="200%")
        model.ports[1].up = False
        with pytest.raises(SourceError, match=f"port 1 {where}: Link state is DOWN."):
            drive(server, full)
        assert [(port.state, port.owner) for port in model.ports] == [("IDLE", ""), ("STREAMS", "")]


def test_only_a_stateless_trex_can_be_driven() -> None:
    """ASTF has profiles instead of ports."""
    why = "only a stateless TRex can be driven, this one runs ASTF"
    with trex_server(TrexServer(TrexModel(mode="ASTF", api=(2, 3)))) as server, pytest.raises(PlanError, match=why):
        drive(server, nothing)


def test_a_paused_port_is_resumed_at_its_level() -> None:
    """It was paused at the console before."""
    model = TrexModel(ports=[Port(state="PAUSE"), Port(state="TX")])

    async def use(poller: DrivenTrex) -> None:
        await poller.drive(0.5)
        assert [(port.state, port.factor) for port in model.ports] == [("TX", 0.5), ("TX", 0.5)]

    with trex_server(TrexServer(model)) as server:
        drive(server, use)
    assert [port.state for port in model.ports] == ["STREAMS", "STREAMS"]


def test_the_throttle_of_a_run_drives_it() -> None:
    """Set between two polls at every change of phase; a port that refuses is set again with the next poll."""
    model = TrexModel()

    async def use(poller: DrivenTrex) -> None:
        throttle = LoadController()
        load = throttle.attached(poller)
        await throttle.set_level(0.5, 5.0)
        assert [port.factor for port in model.ports] == [0.5, 0.5]
        assert value(await load.poll(BEGIN_NS), "load.level") == 0.5
        model.refused = {"update_traffic": (-32000, "not now")}
        await throttle.set_level(1.0, 5.0)
        with pytest.raises(SourceError, match=r"did not accept the level of 100%: port 0 .*: not now"):
            await load.poll(BEGIN_NS + 1)
        model.refused = {}
        assert value(await load.poll(BEGIN_NS + 2), "load.level") == 1.0
        assert [port.factor for port in model.ports] == [1.0, 1.0]

    with trex_server(TrexServer(model)) as server:
        drive(server, use)


def test_a_restarted_trex_gets_its_level_again() -> None:
    """With its streams it sends again; without them a fault says at every poll that nothing drives it."""
    model = TrexModel()

    async def use(poller: DrivenTrex) -> None:
        await poller.drive(0.5)
        model.restart(streams=True)
        answer = await poller.poll(BEGIN_NS)
        assert [event.kind for event in answer.events] == ["generator.restart"]
        assert [(port.state, port.factor) for port in model.ports] == [("TX", 0.5), ("TX", 0.5)]
        model.restart()
        for number in range(2):
            answer = await poller.poll(BEGIN_NS + 1 + number)
            assert [fault.text.partition(": port 0")[0] for fault in answer.faults] == [
                "TRex was restarted and is not driven"
            ]

    with trex_server(TrexServer(model)) as server:
        drive(server, use)


def test_a_level_for_a_trex_that_restarted_unnoticed() -> None:
    """It is set between two polls: what it refuses shows that it is another process, and that one is set."""
    model = TrexModel()

    async def use(poller: DrivenTrex) -> None:
        await poller.drive(0.5)
        model.restart(streams=True)
        await poller.drive(1.0)
        assert [(port.state, port.factor) for port in model.ports] == [("TX", 1.0), ("TX", 1.0)]
        answer = await poller.poll(BEGIN_NS)
        assert [event.kind for event in answer.events] == ["generator.restart"]

    with trex_server(TrexServer(model)) as server:
        drive(server, use)


def test_a_level_that_fails_halfway_is_stopped_in_the_end() -> None:
    """Port 0 sends already when port 1 refuses: it does not go on sending after the run."""
    model = TrexModel(ports=[Port(), Port(up=False)])

    async def use(poller: DrivenTrex) -> None:
        with pytest.raises(SourceError, match="Link state is DOWN"):
            await poller.drive(1.0)
        assert model.ports[0].state == "TX"

    with trex_server(TrexServer(model)) as server:
        drive(server, use)
    assert [(port.state, port.owner) for port in model.ports] == [("STREAMS", ""), ("STREAMS", "")]


def test_the_end_does_not_hang_on_a_silent_trex() -> None:
    """It cannot be stopped then; the run ends all the same."""
    server = TrexServer(TrexModel())

    async def use(poller: DrivenTrex) -> None:
        await poller.drive(1.0)
        server.manners = "silent"

    with trex_server(server):
        drive(server, use, timeout="2s")
    assert server.model.questions[-3:] == ["stop_traffic", "stop_traffic", "release"] or (
        server.model.questions[-2:] == ["release", "release"]
    )
