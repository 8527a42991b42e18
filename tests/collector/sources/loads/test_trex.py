"""The load ``trex`` against a server that speaks TRex's protocol on loopback: figures, releases, restarts, trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from soakwatch.sources.abc import Poller, SourceContext, SourceError, SourceUnreadyError
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer
from soakwatch_testing.ports import free_port
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_parts import Group, Port
from soakwatch_testing.trex_server import TrexServer, trex_server
from soakwatch_trex import Config, start
from soakwatch_trex.reader import Reader

BEGIN_NS = 10**18


class _Clock:
    def __init__(self) -> None:
        self._now_ns = BEGIN_NS

    def now_ns(self) -> int:
        self._now_ns += 10**6
        return self._now_ns


def sending(**keys: object) -> TrexModel:
    """A generator whose ports send 1000 packets a second each."""
    return TrexModel(**{"ports": [Port(state="TX"), Port(state="TX")], **keys})  # type: ignore[arg-type]


def site() -> SourceContext:
    """The context of the source."""
    return SourceContext("tg", "generator", (), None, Path("run"), _Clock().now_ns, 1.0)


async def opened(server: TrexServer, stack: AsyncExitStack, **keys: object) -> Poller:
    """The source, started."""
    own = {"host": "127.0.0.1", "port": server.port, "publisher": server.publisher, "timeout": "5s"}
    return await start(Config.model_validate({**own, **keys}), site(), stack)


def with_source(server: TrexServer, use: Callable[[Poller], Awaitable[None]], **keys: object) -> None:
    """Start the source, use it, close it."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await use(await opened(server, stack, **keys))

    asyncio.run(run())


def polls(server: TrexServer, steps: Sequence[Callable[[TrexModel], None]], **keys: object) -> list[Answer]:
    """A poll after each step, a second of traffic before each."""
    answers: list[Answer] = []

    async def use(poller: Poller) -> None:
        for number, step in enumerate(steps):
            with server.lock:
                server.model.advance(1.0)
                step(server.model)
            answers.append(await poller.poll(BEGIN_NS + number * 10**9))

    with_source(server, use, **keys)
    return answers


def values(answer: Answer) -> dict[tuple[str, str], float]:
    """Values by metric and object; every name and label must be the catalogue's."""
    for sample in answer.samples:
        labels = [part.split("=")[0] for part in sample.object.split(",") if part]
        assert list(BY_NAME[sample.metric].labels)[: len(labels)] == labels or labels == ["quantile"], sample
    return {(sample.metric, sample.object): sample.value for sample in answer.samples}


def nothing(_: TrexModel) -> None:
    """No change."""


def test_totals_rates_and_ports_of_a_stateless_trex() -> None:
    """Counters are ints as they are; the drop is an estimate; the busiest core counts; ports say link and errors."""
    model = sending(loss=0.01, cpu=42.0, queue_full=7)

    def errors(model: TrexModel) -> None:
        model.ports[1].counters["ierrors"] = 2**40
        model.ports[1].up = False

    with trex_server(TrexServer(model)) as server:
        first, second = (values(answer) for answer in polls(server, [nothing, errors]))
    assert first["load.tx.packets", ""] == 2000
    assert second["load.tx.packets", ""] == 4000
    assert isinstance(second["load.tx.packets", ""], int)
    assert second["load.rx.packets", ""] == 3960
    assert second["load.drop.estimate", ""] == 40
    assert second["load.tx.packet.rate", ""] == 2000.0
    assert second["load.tx.bit.rate", ""] == 2000.0 * 512
    assert second["load.rx.packet.rate", ""] == 1980.0
    assert second["load.queue_full", ""] == 7
    assert second["load.cpu.utilization", ""] == pytest.approx(0.42)
    assert second["load.sending", ""] == 1
    assert ("load.offered.packet.rate", "") not in second  # TRex says 0 for what it does not know
    assert ("load.loss", "") not in second  # TRex says 0 below a tenth
    assert second["load.port.tx.packets", "port=1"] == 2000
    assert second["load.port.errors", "port=1,direction=receive"] == 2**40
    assert second["load.port.up", "port=0"] == 1
    assert second["load.port.up", "port=1"] == 0


def test_a_rest_is_reported_and_the_drain_is_not_loss() -> None:
    """When the traffic stops the estimate goes down again as the last packets come; ``load.sending`` says when."""
    model = sending(under_way=50)

    def stop(model: TrexModel) -> None:
        for port in model.ports:
            port.state = "STREAMS"

    def arrived(model: TrexModel) -> None:
        model.under_way = 0

    with trex_server(TrexServer(model)) as server:
        answers = [values(answer) for answer in polls(server, [nothing, stop, arrived])]
    assert [answer["load.sending", ""] for answer in answers] == [1, 0, 0]
    assert [answer["load.drop.estimate", ""] for answer in answers] == [50, 50, 0]
    assert answers[2]["load.tx.packet.rate", ""] == 0


def test_flows_with_latency_jitter_and_loss_by_sequence_numbers() -> None:
    """Quantiles are of the packets since the last poll; a flow that started again is an event and no negative rate."""
    model = sending(groups={7: Group(latency=14.0), 9: Group(pps=10)})

    def slower(model: TrexModel) -> None:
        model.groups[7].latency = 159.0
        model.loss = 0.1

    def anew(model: TrexModel) -> None:
        model.groups[7] = Group(latency=14.0, version=2, sent=3, received=3, histogram={10: 3})

    with trex_server(TrexServer(model)) as server:
        answers = polls(server, [nothing, nothing, slower, nothing, anew])
    first, second, _, fourth, last = (values(answer) for answer in answers)
    assert ("load.latency", "quantile=p50") not in first  # nothing to compare with yet
    assert second["load.latency", "quantile=p50"] == pytest.approx(14e-6)
    assert second["load.flow.latency", "flow=7,quantile=mean"] == pytest.approx(14e-6)
    assert second["load.jitter", ""] == pytest.approx(3e-6)
    assert second["load.flow.loss", "flow=7"] == 0
    assert 100e-6 <= fourth["load.flow.latency", "flow=7,quantile=p50"] <= 200e-6  # no packet of the fast times
    assert fourth["load.latency", "quantile=max"] == pytest.approx(159e-6)
    assert fourth["load.flow.loss", "flow=7"] == pytest.approx(0.1)
    assert fourth["load.flow.tx.packets", "flow=9"] == 40
    assert ("load.flow.loss", "flow=9") not in fourth  # no sequence numbers there
    assert last["load.flow.tx.packets", "flow=7"] == 3
    assert ("load.flow.loss", "flow=7") not in last
    assert [(event.kind, event.detail["flows"]) for event in answers[4].events] == [("generator.cleared", "7")]


def test_packets_that_need_a_second_are_in_no_bucket_and_count_all_the_same() -> None:
    """TRex leaves them out of its histogram: a device that takes 2 s for half of the packets shows in the quantiles."""
    model = sending(groups={7: Group(latency=14.0)})

    def late(model: TrexModel) -> None:
        flow = model.groups[7]
        flow.received += 100  # counted, but in no bucket
        flow.last_max = flow.total_max = 2_000_000

    with trex_server(TrexServer(model)) as server:
        readings = values(polls(server, [nothing, late])[1])
    assert readings["load.latency", "quantile=p50"] < 20e-6
    assert 1 <= readings["load.latency", "quantile=p90"] <= 2
    assert readings["load.latency", "quantile=max"] == pytest.approx(2)


def test_only_so_many_flows_are_sampled() -> None:
    """``flows`` bounds the series; a note says how many are left out."""
    model = sending(groups={group: Group() for group in range(10)})
    facts = []

    async def use(poller: Poller) -> None:
        assert isinstance(poller, Reader)
        readings = values(await poller.poll(BEGIN_NS))
        assert sum(metric == "load.flow.tx.packets" for metric, _ in readings) == 3
        facts.append(poller.facts())

    with trex_server(TrexServer(model)) as server:
        with_source(server, use, flows=3)
        assert "7 flows are not sampled: raise flows" in facts[0].notes
        with_source(server, use, flows=3)
        model.questions.clear()
        polls(server, [nothing], flows=0)
        assert "get_pgid_stats" not in model.questions


def test_connections_and_latency_of_astf() -> None:
    """Opened and failed at the clients, sent again at both ends; probes of all ports make one latency."""
    model = sending(
        mode="ASTF",
        api=(2, 3),
        probes={0: Group(latency=4.0), 1: Group(latency=450.0)},
        stack={
            "client": {"m_active_flows": 5, "tcps_connects": 3, "udps_connects": 4, "tcps_drops": 1},
            "server": {"tcps_sndrexmitpack": 2, "m_active_flows": 5},
        },
    )

    def again(model: TrexModel) -> None:
        model.stack["client"]["tcps_sndrexmitpack"] = 3

    def cleared(model: TrexModel) -> None:
        model.stack["client"]["tcps_connects"] = 0

    def begun(model: TrexModel) -> None:
        model.epoch += 1

    with trex_server(TrexServer(model)) as server:
        answers = polls(server, [nothing, again, cleared, begun])
    first, second, third, _ = (values(answer) for answer in answers)
    assert first["load.connections", ""] == 5
    assert first["load.connections.opened", ""] == 7
    assert first["load.connections.failed", ""] == 1
    assert first["load.connection.rate", ""] == 12.5
    assert first["load.retransmits", ""] == 2
    assert second["load.retransmits", ""] == 5
    assert second["load.latency", "quantile=p50"] <= 10e-6
    assert 400e-6 <= second["load.latency", "quantile=p99"] <= 450e-6
    assert second["load.latency", "quantile=mean"] == pytest.approx(227e-6)
    assert third["load.connections.opened", ""] == 4
    assert [[event.kind for event in answer.events] for answer in answers] == [[], [], ["generator.cleared"], []]
    assert answers[2].events[0].detail["counters"] == "load.connections.opened"
    assert model.questions.count("get_counter_desc") == 1


def test_astf_before_any_traffic_has_no_counters_and_no_trouble() -> None:
    """A newer TRex refuses counters that are not there yet: that is neither zero nor a fault."""
    refusal = (-32000, "Statistics are not initialized yet")
    model = TrexModel(mode="ASTF", api=(2, 3), refused={"get_counter_values": refusal, "get_counter_desc": refusal})

    def begun(model: TrexModel) -> None:
        model.refused = {}
        model.stack["client"]["tcps_connects"] = 2

    with trex_server(TrexServer(model)) as server:
        before, after = polls(server, [nothing, begun])
    assert not before.faults
    assert ("load.connections.opened", "") not in values(before)
    assert values(after)["load.connections.opened", ""] == 2


@pytest.mark.parametrize(
    ("old", "mode", "api"),
    [
        (False, "STL", (5, 1)),
        (False, "STL", (4, 3)),
        (False, "STL", (3, 7)),
        (False, "STL", (5, 9)),
        (False, "STL", (7, 2)),
        (False, "ASTF", (2, 3)),
        (False, "ASTF", (1, 0)),
        (True, "STL", (4, 1)),
        (True, "STL", (2, 2)),
    ],
)
def test_the_handshake_suits_every_release(old: bool, mode: str, api: tuple[int, int]) -> None:
    """The server says which version it wants; one from before ``api_sync_v2`` is asked as those were."""
    model = sending(old=old, mode=mode, api=api)
    with trex_server(TrexServer(model)) as server:
        seen = []

        async def use(poller: Poller) -> None:
            assert isinstance(poller, Reader)
            facts = poller.facts()
            seen.append(facts.identity["generator"])
            assert facts.identity["interface"].startswith(f"{api[0]}.")
            assert any("newer" in note for note in facts.notes) == (api[0] == 7)

        with_source(server, use)
    assert seen == [f"TRex v3.04 {mode}"]


@pytest.mark.parametrize("asks_flows", [True, False])
def test_an_older_trex_publishes_its_figures(asks_flows: bool) -> None:
    """No ``get_global_stats``: the totals come by subscription, the flows too or by question; trash is counted."""
    model = sending(old=True, asks_flows=asks_flows, api=(4, 1), loss=0.01, groups={7: Group(latency=14.0)})
    server = TrexServer(model, extra=[b"\xff\xfe", b'{"type": 1}', b"[]"], speed=0.1)
    seen: dict[tuple[str, str], float] = {}
    faults: list[str] = []

    async def use(poller: Poller) -> None:
        async with asyncio.timeout(200):
            while ("load.latency", "quantile=p50") not in seen or ("load.lines.unread", "") not in seen:
                try:
                    answer = await poller.poll(BEGIN_NS)
                except SourceUnreadyError:
                    continue
                seen.update(values(answer))
                faults.extend(fault.text for fault in answer.faults)
                await asyncio.sleep(0.02)

    with trex_server(server, period_s=0.02):
        # The first messages may go by before the subscription is there: trash is sent until some was read.
        async def used(poller: Poller) -> None:
            async with asyncio.timeout(200):
                while not seen.get(("load.lines.unread", "")):
                    with server.lock:
                        server.extra = [b"\xff\xfe"]
                    seen.clear()
                    await use(poller)

        with_source(server, used)
    assert seen["load.tx.packet.rate", ""] == 2000
    assert seen["load.port.tx.packet.rate", "port=1"] == 1000
    assert seen["load.drop.estimate", ""] > 0
    assert seen["load.sending", ""] == 1
    assert seen["load.flow.latency", "flow=7,quantile=max"] == pytest.approx(14e-6)
    assert seen["load.flow.loss", "flow=7"] == pytest.approx(0.01, abs=0.1)
    assert any("not JSON" in text for text in faults)
    assert "publish_now" not in model.questions  # it would reach the consoles of others


def test_an_older_trex_that_publishes_nothing_is_reported() -> None:
    """The questions are answered and the publisher's port is shut: the sentence names it."""
    shut = free_port()
    seen: list[str] = []

    async def use(poller: Poller) -> None:
        with pytest.raises(SourceUnreadyError):
            await poller.poll(BEGIN_NS)
        async with asyncio.timeout(200):
            while True:
                try:
                    await poller.poll(BEGIN_NS)
                except SourceUnreadyError:
                    continue
                except SourceError as failure:
                    seen.append(str(failure))
                    return

    with trex_server(TrexServer(sending(old=True, api=(4, 1)))) as server:
        with_source(server, use, publisher=shut, timeout="1s")
    assert seen == [f"TRex publishes nothing at 127.0.0.1 port {shut}: is that port open too?"]


def test_a_restarted_trex_is_an_event_and_its_counters_start_again() -> None:
    """Another process has another handle: the poll shakes hands again, by itself, and reports it."""
    model = sending(groups={7: Group(latency=14.0)})

    def restarted(model: TrexModel) -> None:
        model.restart()
        model.version = "v3.05"

    with trex_server(TrexServer(model)) as server:
        answers = polls(server, [nothing, restarted, nothing])
    assert [[event.kind for event in answer.events] for answer in answers] == [[], ["generator.restart"], []]
    assert dict(answers[1].events[0].detail) == {
        "source": f"TRex at 127.0.0.1 port {server.port}",
        "version": "v3.05",
        "was": "v3.04",
    }
    assert values(answers[1])["load.tx.packets", ""] == 0
    assert values(answers[1])["load.sending", ""] == 0
    assert ("load.flow.tx.packets", "flow=7") not in values(answers[1])


def test_a_trex_that_runs_out_of_buffers_is_an_event_once() -> None:
    """Allocation errors are the generator's own trouble."""

    def starving(model: TrexModel) -> None:
        model.alloc_errors += 5

    with trex_server(TrexServer(sending())) as server:
        answers = polls(server, [nothing, starving, starving])
    assert [[event.kind for event in answer.events] for answer in answers] == [[], ["generator.out_of_buffers"], []]
