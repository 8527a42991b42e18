"""The load ``trex`` in trouble: nobody there, a server that goes, bad manners, refusals, random answers, bad plans."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from pydantic import ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Drivable, Poller, SourceContext, SourceError
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer
from soakwatch_testing.ports import free_port
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_parts import Group, Port
from soakwatch_testing.trex_server import TrexServer, trex_server
from soakwatch_trex import Config, DrivenTrex, start
from soakwatch_trex.frame import BadFrameError, pack, unpack

BEGIN_NS = 10**18
LEAVES: list[object] = [
    None,
    True,
    -1,
    2**70,
    1e400,
    "x",
    "",
    [],
    {},
    0.5,
    "7",
    [[]],
    {"7": {"tp": 3}},
]


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


def values(answer: Answer) -> dict[tuple[str, str], float]:
    """Values by metric and object; every name and label must be the catalogue's."""
    for sample in answer.samples:
        labels = [part.split("=")[0] for part in sample.object.split(",") if part]
        assert list(BY_NAME[sample.metric].labels)[: len(labels)] == labels or labels == ["quantile"], sample
    return {(sample.metric, sample.object): sample.value for sample in answer.samples}


def nothing(_: TrexModel) -> None:
    """No change."""


def one_poll(server: TrexServer) -> Answer:
    """One poll of a server."""
    answers: list[Answer] = []

    async def use(poller: Poller) -> None:
        answers.append(await poller.poll(BEGIN_NS))

    with_source(server, use)
    return answers[0]


def test_a_trex_that_goes_and_comes_back() -> None:
    """While it is away every poll fails with a reason; when it is back the polls go on, and it is another process."""
    model = sending()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            with trex_server(TrexServer(model)) as server:
                poller = await opened(server, stack, timeout="2s")
                await poller.poll(BEGIN_NS)
            for step in range(2):
                with pytest.raises(SourceError, match=f"TRex at 127.0.0.1 port {server.port}"):
                    await poller.poll(BEGIN_NS + step)
            model.restart()
            with trex_server(TrexServer(model), port=server.port):
                answer = await poller.poll(BEGIN_NS + 10)
        assert [event.kind for event in answer.events] == ["generator.restart"]

    asyncio.run(run())


def test_a_missing_server_is_one_sentence() -> None:
    """A closed port, and an unknown name."""

    async def run(**keys: object) -> str:
        async with AsyncExitStack() as stack:
            with pytest.raises(SourceError) as failed:
                await start(Config.model_validate({"port": port, **keys}), site(), stack)
            return str(failed.value)

    port = free_port()
    why = asyncio.run(run(host="127.0.0.1"))
    assert why.startswith(f"cannot reach TRex at 127.0.0.1 port {port}: ")
    assert why.endswith(": does it run in interactive mode (-i)?")
    assert asyncio.run(run(host="tg.invalid")).startswith(f"cannot reach TRex at tg.invalid port {port}: ")


@pytest.mark.parametrize(
    ("manners", "why"),
    [
        ("silent", "did not answer within 1.8 s"),
        ("garbage", "sent not JSON"),
        ("half", "sent not JSON"),
        ("other", "did not answer get_"),
        ("torn", "that does not have the announced"),
        ("bomb", "more than 16 MiB"),
        ("deep", "not JSON"),
    ],
)
def test_bad_manners_fail_the_poll_and_pass(manners: str, why: str) -> None:
    """Silence, trash, half answers, a bomb: one sentence each time, and the next good answer is read."""
    server = TrexServer(sending())

    async def use(poller: Poller) -> None:
        server.manners = manners
        for _ in range(2):
            with pytest.raises(SourceError, match=why):
                await poller.poll(BEGIN_NS)
        server.manners = "good"
        assert values(await poller.poll(BEGIN_NS))["load.sending", ""] == 1

    with trex_server(server):
        with_source(server, use, timeout="2s")


def test_a_cancelled_poll_does_not_spoil_the_next() -> None:
    """A request socket that waits for a reply cannot ask again: it is closed, and the late reply is discarded."""
    server = TrexServer(sending())

    async def use(poller: Poller) -> None:
        for _ in range(3):
            server.manners = "silent"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await poller.poll(BEGIN_NS)
            server.manners = "good"
            assert values(await poller.poll(BEGIN_NS))["load.sending", ""] == 1

    with trex_server(server):
        with_source(server, use)


def test_several_trex_at_once_do_not_mix() -> None:
    """Two generators, read at the same time."""
    models = [sending(queue_full=1), sending(queue_full=2)]

    async def run(servers: list[TrexServer]) -> list[Answer]:
        async with AsyncExitStack() as stack:
            pollers = [await opened(server, stack) for server in servers]
            return list(await asyncio.gather(*(poller.poll(BEGIN_NS) for poller in pollers * 2)))

    with trex_server(TrexServer(models[0])) as first, trex_server(TrexServer(models[1])) as second:
        answers = asyncio.run(run([first, second]))
    assert [values(answer)["load.queue_full", ""] for answer in answers] == [1, 2, 1, 2]


def test_what_trex_refuses_is_a_fault_and_the_rest_is_read() -> None:
    """Port states that must wait, flows that fail: a fault each, in TRex's own words."""
    model = sending(
        groups={7: Group()},
        refused={
            "get_port_status": (-32001, "Interface is in the middle of configuration"),
            "get_pgid_stats": (-32000, "Asking information for too many packet group IDs"),
        },
    )
    with trex_server(TrexServer(model)) as server:
        model.advance(1.0)
        answer = one_poll(server)
        model.refused = {"get_global_stats": (-32603, "sick")}
        with pytest.raises(SourceError, match="refuses get_global_stats: sick"):
            one_poll(server)
        model.refused = {"get_supported_cmds": (-32603, "sick")}
        with pytest.raises(SourceError, match="refuses the handshake: sick"):
            one_poll(server)
    assert values(answer)["load.tx.packets", ""] == 2000
    assert ("load.sending", "") not in values(answer)  # not known is not nought
    assert {fault.text for fault in answer.faults} == {
        "TRex refuses the state of the port: Interface is in the middle of configuration",
        "TRex refuses the figures of its flows: Asking information for too many packet group IDs",
    }


def broken(value: object, chance: random.Random, depth: int = 0) -> object:
    """Some JSON with parts that are missing or of another kind."""
    if chance.random() < 0.15 or depth > 6:
        return chance.choice(LEAVES)
    if isinstance(value, dict):
        return {key: broken(part, chance, depth + 1) for key, part in value.items() if chance.random() < 0.95}
    return [broken(part, chance, depth + 1) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("mode", "api", "methods"),
    [
        ("STL", (5, 1), "get_port_status get_global_stats get_port_stats get_active_pgids get_pgid_stats"),
        ("ASTF", (2, 3), "get_global_stats get_counter_desc get_counter_values get_latency_stats"),
    ],
)
def test_random_answers_never_break_a_poll(mode: str, api: tuple[int, int], methods: str) -> None:
    """Results of the wrong shape everywhere: a poll ends with samples and faults, or with SourceError."""
    chance = random.Random(20)
    model = sending(mode=mode, api=api, groups={7: Group(latency=14.0), 9: Group()}, probes={0: Group(latency=9.0)})
    server = TrexServer(model)
    read = []

    async def use(poller: Poller) -> None:
        params = {"api_h": model.handle, "port_id": 0, "pgids": [7, 9]}
        good = {method: model.answer(method, params) for method in methods.split()}
        for number in range(120):
            model.advance(1.0)
            server.lies = {method: broken(value, chance) for method, value in good.items()}
            with suppress(SourceError):
                read.append(await poller.poll(BEGIN_NS + number))

    with trex_server(server):
        with_source(server, use)
    assert len(read) > 60
    assert all(sample.metric in BY_NAME for answer in read for sample in answer.samples)


def test_random_handshakes_end_in_a_sentence() -> None:
    """Whatever the handshake brings: the source starts, or SourceError says why in one line."""
    chance = random.Random(21)
    trash: list[object] = [None, 3, "x", [], {}, {"mode": "STF"}, {"api_h": 7}, {"ports": [{"index": -4}]}, [1, 2]]
    methods = ("get_version", "api_sync_v2", "get_supported_cmds", "get_system_info")
    errors: list[str] = []

    async def run(server: TrexServer) -> None:
        for _ in range(60):
            server.lies = {chance.choice(methods): chance.choice(trash)}
            async with AsyncExitStack() as stack:
                try:
                    await opened(server, stack)
                except SourceError as failure:
                    errors.append(str(failure))

    with trex_server(TrexServer(sending())) as server:
        asyncio.run(run(server))
    assert len(errors) > 10
    assert not [sentence for sentence in errors if "\n" in sentence]


def test_random_frames_are_json_or_refused() -> None:
    """Bytes of every kind, compressed ones that are damaged among them, end as a value or as BadFrame."""
    chance = random.Random(22)
    good = pack(b'{"name": "trex-global", "data": {}}' * 20)
    read = 0
    for _ in range(3000):
        if chance.random() < 0.5:
            frame = chance.randbytes(chance.randrange(40))
        else:
            damaged = bytearray(pack(b'{"a": [1, 2]}') if chance.random() < 0.5 else good)
            for _ in range(chance.randrange(3)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            frame = bytes(damaged[: chance.randrange(1, len(damaged) + 1)] if chance.random() < 0.3 else damaged)
        with suppress(BadFrameError):
            unpack(frame)
            read += 1
    assert 100 < read < 2000


@pytest.mark.parametrize(
    "keys",
    [
        {"rate": "fast"},
        {"rate": "5m"},
        {"rate": "0"},
        {"rate": True},
        {"rate": "-1"},
        {"ports": []},
        {"ports": [-1]},
        {"flows": 5000},
        {"user": "a b"},
        {"host": "me@tg"},
        {"drive": "maybe"},
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(keys: dict[str, object]) -> None:
    """Before anything is connected."""
    with pytest.raises(ValidationError):
        Config.model_validate({"host": "tg", "drive": True, **keys})


def test_driving_keys_without_drive_are_refused() -> None:
    """A plan with a level for a load that is not driven."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await start(Config.model_validate({"host": "127.0.0.1", "rate": "80%"}), site(), stack)

    with pytest.raises(PlanError, match="add drive: true"):
        asyncio.run(run())


def test_reading_changes_nothing_and_offers_no_throttle() -> None:
    """Without ``drive: true`` nothing that changes TRex is ever asked, and the run finds nothing to drive."""
    model = sending(groups={7: Group()})

    async def use(poller: Poller) -> None:
        assert not isinstance(poller, Drivable | DrivenTrex)
        await poller.poll(BEGIN_NS)

    with trex_server(TrexServer(model)) as server:
        with_source(server, use)
    assert all(method.startswith(("get_", "api_sync")) for method in model.questions)
