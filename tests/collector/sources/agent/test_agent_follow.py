"""The source ``agent`` against real agents: nothing is lost, times are ours, and what goes wrong is one sentence."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.collector.engine.poll_list import PollList

from soakwatch.core.clock import SteadyClock, aligned
from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.scheduler import Timers
from soakwatch.record import Record, RecordView
from soakwatch.sources.abc import Poller, SourceContext, SourceError, timing
from soakwatch.sources.pollers.agent import Config, start
from soakwatch_agent.framing import MAX_LINE
from soakwatch_model.sample import Poll, PollOutcome
from soakwatch_testing.agents import INTERVAL_NS, LocalAgent, Relay, config, follow

Make = Callable[..., LocalAgent]


def skipped_by(agent: LocalAgent) -> int:
    """How many due times it did not poll at, for the machine was busy: it counts them."""
    return int(str(agent.status()["skipped"]))


def whole(slots: list[int], agent: LocalAgent) -> bool:
    """One poll for each due time, from the first to the last, but for those that the agent says it skipped."""
    holes = slots[-1] - slots[0] + 1 - len(slots)
    return len(set(slots)) == len(slots) and (holes == 0 or holes <= skipped_by(agent))


def test_a_network_that_is_cut_loses_nothing(tmp_path: Path, make_agent: Make) -> None:
    """Two cuts in the middle of conversations, 7 due times each: in the end each due time has its one poll."""

    async def run() -> None:
        agent = make_agent("--no-recorder")
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(Relay(tmp_path / "relay", agent.socket))
            follower = await follow(config(socket=str(relay.here)), tmp_path, stack)
            await follower.poll(5)
            for _ in range(2):
                relay.cut()
                await follower.poll(7)
                relay.mend()
                await follower.poll(3)
        assert len(follower.failures) == 14
        skipped = skipped_by(agent)
        assert len(follower.late) >= 14 - skipped
        slots = follower.slots()
        assert whole(slots, agent)
        assert len(slots) >= 5 + 2 * 10 - skipped
        starts = [poll.start_ns for poll in follower.late]
        assert starts == sorted(starts)

    asyncio.run(run())


def test_an_agent_deep_in_a_home_is_followed(tmp_path: Path) -> None:
    """Its socket's path is longer than the system has room for in an address."""
    agent = LocalAgent(tmp_path / ("deep in a home " * 8).strip() / "a", ("--no-recorder",))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            follower = await follow(config(socket=str(agent.socket)), tmp_path, stack)
            await follower.poll(2)
        assert len(follower.answers) == 2

    try:
        agent.start()
        asyncio.run(run())
    finally:
        agent.kill()


def test_a_trial_leaves_alone_what_a_killed_run_has_not_fetched(tmp_path: Path, make_agent: Make) -> None:
    """``soakwatch check`` beside a run whose monitor died takes nothing from it, and says what to do."""

    async def run() -> tuple[str, int]:
        agent = make_agent("--no-recorder")
        keys = config(socket=str(agent.socket))
        async with AsyncExitStack() as stack:
            first = await follow(keys, tmp_path / "killed", stack)
            await first.poll(3)
            first.poller._opened = False  # it dies without telling the agent that the run has ended
        await asyncio.sleep(1.0)
        clock = SteadyClock()
        site = SourceContext("dut", "dut", (), None, tmp_path / "check", clock.now_ns, INTERVAL_NS * 1e-9, trial=True)
        async with AsyncExitStack() as stack:
            trial = await start(keys, site, stack)
            with pytest.raises(SourceError) as caught:
                await trial.poll(clock.now_ns())
        async with AsyncExitStack() as stack:
            again = await follow(keys, tmp_path / "killed", stack, clock)
            await again.poll(2)
        return str(caught.value), len(again.late)

    error, late = asyncio.run(run())
    assert "polls of the run 'killed', which did not end in order: soakwatch resume it first" in error
    assert late >= 3, "what nobody had fetched was still there"


def test_the_agent_and_the_collector_killed_in_turn_lose_only_what_nobody_polled(
    tmp_path: Path, make_agent: Make
) -> None:
    """A collector that dies without a word and one that goes on for it; then the agent itself by SIGKILL.

    The second collector gets what the first had not acknowledged once more, and the rest; the time in which no agent
    ran is a hole, and nothing else is.
    """

    async def run() -> None:
        agent = make_agent("--no-recorder")
        keys = config(socket=str(agent.socket))
        async with AsyncExitStack() as stack:
            first = await follow(keys, tmp_path, stack)
            await first.poll(5)
            first.poller._opened = False  # it dies without telling the agent that the run has ended
        await asyncio.sleep(1.5)
        async with AsyncExitStack() as stack:
            second = await follow(keys, tmp_path, stack)
            for _ in range(100):  # what is behind comes when the machine has time for it
                await second.poll(1)
                slots = sorted({*first.slots(), *second.slots()})
                if len(slots) >= 14 and whole(slots, agent):
                    break
            assert whole(slots, agent)
            assert len(slots) >= 14
            skipped = skipped_by(agent)
            agent.kill()
            await second.poll(3)
            agent.start()
            await second.poll(10)
        after = second.slots()
        gaps = [b - a for a, b in pairwise(after) if b != a + 1]
        assert 1 <= len(gaps) <= 1 + skipped + skipped_by(agent)  # the agent's death, once
        assert second.poller._progress.missing == 0

    asyncio.run(run())


@pytest.mark.slow
def test_a_long_absence_comes_in_parts_with_the_present_first(
    tmp_path: Path, make_agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more behind than one answer holds, the newest poll comes at once and the past follows, each poll once."""
    monkeypatch.setattr("soakwatch.sources.pollers.agent._MAX_WAITING", 8)

    async def run() -> None:
        agent = make_agent("--no-recorder")
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(Relay(tmp_path / "relay", agent.socket))
            follower = await follow(config(socket=str(relay.here)), tmp_path, stack)
            await follower.poll(3)
            relay.cut()
            await asyncio.sleep(4)
            relay.mend()
            for _ in range(6):
                await follower.poll()
                begin, answer = follower.answers[-1]
                newest = max(sample.time_ns for sample in answer.samples if sample.metric == "system.cpu.load")
                assert abs(newest - begin) < INTERVAL_NS  # the present, also while the past is being fetched
        assert len(follower.late) >= 16
        assert whole(follower.slots(), agent)

    asyncio.run(run())


@pytest.mark.slow
def test_a_full_spool_is_reported(tmp_path: Path, make_agent: Make) -> None:
    """An absence that is longer than the spool: what is lost is counted, an event gives the numbers."""

    async def run() -> None:
        agent = make_agent("--no-recorder", "--spool-bytes", "65536")
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(Relay(tmp_path / "relay", agent.socket))
            follower = await follow(config(socket=str(relay.here), probes=None), tmp_path, stack)
            await follower.poll(2)
            relay.cut()
            deadline = time.monotonic() + 120
            while int(str(agent.status()["lost"])) < 10:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.5)
            relay.mend()
            await follower.poll(2)
            skipped = int(str(agent.status()["skipped"]))  # on a busy machine a look may take longer than its second
        samples = {s.metric: s.value for _, answer in follower.answers for s in answer.samples}
        events = [event for _, answer in follower.answers for event in answer.events]
        lost = [event for event in events if event.kind == "source.spool.lost"]
        assert samples["source.spool.lost"] > 0
        assert sum(int(event.detail["looks"]) for event in lost) == samples["source.spool.lost"]
        slots = follower.slots()
        holes = slots[-1] - slots[0] + 1 - len(slots)
        assert samples["source.spool.lost"] <= holes <= samples["source.spool.lost"] + skipped

    asyncio.run(run())


@pytest.mark.parametrize("shift_s", [-7200.0, 3600.0])
def test_an_agent_whose_clock_is_wrong_is_put_right(tmp_path: Path, make_agent: Make, shift_s: float) -> None:
    """Its steady clock is hours away from ours; samples carry our time, on our grid, and the offset is reported."""

    async def run() -> None:
        agent = make_agent("--no-recorder")
        agent.kill()
        kept = json.loads((agent.folder / "clock.json").read_text())
        kept["anchor_ns"] += int(shift_s * 1e9)
        (agent.folder / "clock.json").write_text(json.dumps(kept))
        agent.start()
        async with AsyncExitStack() as stack:
            follower = await follow(config(socket=str(agent.socket)), tmp_path, stack)
            await follower.poll(4)
            assert follower.poller._clock.offset.steady_ns == pytest.approx(shift_s * 1e9, abs=50e6)
        assert follower.failures == []
        for begin, answer in follower.answers:
            # as late as a busy machine is, and not by the hours of the shift
            assert all(abs(sample.time_ns - begin) < 60e9 for sample in answer.samples)
        offsets = [s.value for _, a in follower.answers for s in a.samples if s.metric == "source.clock.offset"]
        assert len(offsets) == 1  # once a minute
        assert offsets[0] == pytest.approx(0, abs=0.05)  # its wall clock is this machine's: that one is right

    asyncio.run(run())


def test_the_state_of_the_agent_comes_with_each_poll(tmp_path: Path, make_agent: Make) -> None:
    """What the polls cost the device, and what waits there; facts say which device it is."""

    async def run() -> None:
        agent = make_agent("--no-recorder")
        async with AsyncExitStack() as stack:
            follower = await follow(config(socket=str(agent.socket)), tmp_path, stack)
            await follower.poll(3)
            facts = follower.poller.facts()
            assert facts.identity["agent version"]
            assert facts.identity["agent runs as"] == "service"
        costs = [s.value for _, a in follower.answers for s in a.samples if s.metric == "source.device.cpu.time"]
        assert len(costs) == 3
        assert 0 < costs[0] <= costs[-1] < 60
        assert agent.status()["interval_s"] is None  # the run ended in order: the agent rests

    asyncio.run(run())


def test_the_window_around_an_event_is_fetched_once(
    tmp_path: Path, make_agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A core file appears: the recorder's samples from before and after come into the record, with an event."""
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.REACH_NS", 1_000_000_000)

    async def run() -> None:
        cores = tmp_path / "cores"
        cores.mkdir()
        agent = make_agent()
        async with AsyncExitStack() as stack:
            # without the probe cpu: on a busy machine a jump of the CPU has a window of its own, and that comes first
            keys = config(socket=str(agent.socket), probes=["core", "load"], core_folders=[str(cores)])
            follower = await follow(keys, tmp_path, stack)
            await follower.poll(12)
            (cores / "core.bgpd.77").write_bytes(b"x")
            await follower.poll(22)
        events = [event for _, answer in follower.answers for event in answer.events]
        kinds = [event.kind for event in events]
        assert "core.dump" in kinds
        assert kinds.count("recorder.window") == 1
        window = next(event for event in events if event.kind == "recorder.window")
        samples = [s for _, a in follower.answers for s in a.samples if s.metric.startswith("recorder.")]
        assert len(samples) == int(window.detail["samples"])
        times = sorted({sample.time_ns for sample in samples})
        assert 10 <= len(times) <= 21
        assert times[-1] - times[0] <= 2_000_000_000
        happened = next(event for event in events if event.kind == "core.dump").begin_ns
        assert times[0] < happened < times[-1]

    asyncio.run(run())


def test_the_record_holds_every_due_time_of_a_run_whose_network_was_cut(tmp_path: Path, make_agent: Make) -> None:
    """The real wrapper, grid and record: what was lost while the network was cut is recovered in the account."""
    record = Record.create(tmp_path / "run")
    record.target("dut", "dut")
    number = record.source("dut", "agent", "agent", INTERVAL_NS, required=True)

    async def run() -> None:
        agent = make_agent("--no-recorder")
        clock = SteadyClock()
        begin_ns = aligned(clock.now_ns() + INTERVAL_NS, INTERVAL_NS)
        record.begin_span(begin_ns)
        record.begin_phase("soak", begin_ns)
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(Relay(tmp_path / "relay", agent.socket))

            async def connect(inner: AsyncExitStack) -> Poller:
                return (await follow(config(socket=str(relay.here)), tmp_path, inner, clock)).poller

            polls: list[Poll] = []
            spec = SourceSpec(number.id, "dut/agent", timing(begin_ns, 0.2, 5.0))
            source = PolledSource(spec, connect, clock, PollList(polls))
            await stack.enter_async_context(source)
            timers = await stack.enter_async_context(Timers(clock))
            timers.poll(source)
            await asyncio.sleep(1.5)
            relay.cut()
            await asyncio.sleep(2)
            relay.mend()
            deadline = time.monotonic() + 120
            while source.recovered < 10 or polls[-1].outcome is not PollOutcome.OK:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
        source.close_account(polls[-1].due_ns + 1)
        record.put(polls)

    asyncio.run(run())
    record.close()
    with RecordView.open(tmp_path / "run") as view:
        (ledger,) = view.ledgers(view.window())
        (identity,) = [event for event in view.events() if event.event.kind == "device.identity"]
        assert identity.event.detail["agent runs as"] == "service"
    assert ledger.recovered >= 10
    assert set(ledger.lost) <= {"overrun", "missed", "held back"}  # a busy machine's, and not the network's
    assert ledger.got == ledger.due - sum(ledger.lost.values())


_FALSE = {
    "garbage": (b"Welcome to host\n", "not come from an agent"),
    "silence that ends": (b"", "did not answer"),
    "newer": (b'hello {"v":2,"version":"9.0"}\n', "update soakwatch here"),
    "older": (b'hello {"v":0,"version":"0.0"}\n', "agent install USER@HOST --upgrade"),
    "other frame": (b"done {}\n", "the greeting is missing"),
    "no end": (b"x" * (MAX_LINE + 100_000), "a line is longer than"),
    "no json": (b"hello {\n", "not a JSON object"),
}


@pytest.mark.parametrize("what", _FALSE)
def test_no_agent_or_another_version_is_reported_in_one_sentence(tmp_path: Path, what: str) -> None:
    """Whatever listens at the other end: one sentence, no hang, bounded memory."""
    greeting, sentence = _FALSE[what]

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_unix_server(serve, str(tmp_path / "s"))
        async with server, AsyncExitStack() as stack:
            with pytest.raises(SourceError) as caught:
                await follow(config(socket=str(tmp_path / "s")), tmp_path, stack)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "one of host, url, socket or command"),
        ({"host": "a", "socket": "b"}, "one of host, url, socket or command"),
        ({"url": "https://127.0.0.1:1"}, "url and token belong together"),
        ({"url": "http://127.0.0.1:1", "token": "env:T"}, "pattern"),
        ({"url": "https://127.0.0.1:1", "token": "secret-itself"}, "must not be written in clear text"),
        ({"url": "https://127.0.0.1:1", "token": "env:T", "fingerprint": "abc"}, "a pin is the SHA-256"),
    ],
)
def test_invalid_keys_are_refused(keys: dict[str, object], sentence: str) -> None:
    """Before anything is connected."""
    with pytest.raises(ValidationError, match=sentence):
        Config.model_validate(keys)
