"""A run asks the flight recorder around what happened, reported by a user, the plan, another source or a judge."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.commands import command_in, wait_until

from soakwatch.core.clock import SteadyClock
from soakwatch.core.event_kinds import FindingKey
from soakwatch.engine.recorder_triggers import RecorderTriggers
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin
from soakwatch.judge.live.client import JudgeProcess
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordView, StoredEvent
from soakwatch.record.findings import finding_to_json
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_testing.agents import Follower, LocalAgent, Relay, config, follow
from soakwatch_testing.ports import free_port

Make = Callable[..., LocalAgent]
S = 10**9
NOON = 1_795_200_000 * S
PLAN = """
duration: 14s
targets:
  dut:
    sources:
      - agent: {socket: DUT, interval: 200ms, probes: [load]}
      - syslog: {listen: "127.0.0.1:PORT", over: [udp], interval: 200ms}
  tg: {role: generator, sources: [{agent: {socket: GENERATOR, interval: 200ms, probes: [load]}}]}
events: [{kind: failover, at: 2s, target: dut}]
"""


def finding(outcome: Outcome, rule: str, target: str = "dut", *marks: Mark) -> Finding:
    """What a live judge reports."""
    return Finding(
        rule=rule,
        version=1,
        outcome=outcome,
        target=target,
        metric="system.cpu.utilization",
        object="",
        window=Window(NOON, NOON + 60 * S),
        samples=60,
        definition="d",
        reason="r",
        marks=marks,
    )


class Recorder:
    """A source that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []
        self.findings: list[FindingKey | None] = []

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Keep the event."""
        self.heard.append((when_ns, why))
        self.findings.append(finding)

    async def final_captures(self, _end_ns: int) -> None:
        """Nothing."""


def triggers_of_two(since_ns: int | None = None) -> tuple[RecorderTriggers, Recorder, Recorder]:
    """The triggers of a run with two targets, and a recorder of each."""
    closer, dut, generator = RecorderTriggers(since_ns), Recorder(), Recorder()
    closer.add("dut", dut)
    closer.add("tg", generator)
    return closer, dut, generator


def stored(kind: str, target: str = "dut", name: str = "", at_ns: int = NOON) -> StoredEvent:
    """An event of the record."""
    return StoredEvent(1, "probe", Event(kind, target, name, at_ns, None))


def test_an_event_is_heard_by_its_target_and_one_without_a_target_by_all() -> None:
    """Book-keeping events trigger nothing."""
    closer, dut, generator = triggers_of_two()
    closer.on_event(stored("link.down", "dut", "interface=eth0"))
    closer.on_event(stored("upgrade", ""))
    for kind in ("device.identity", "recorder.window", "source.spool.lost", "core.present", "gap", "clock.step"):
        closer.on_event(stored(kind))
    assert dut.heard == [(NOON, "link.down interface=eth0"), (NOON, "upgrade")]
    assert generator.heard == [(NOON, "upgrade")]


def test_a_live_finding_is_heard_when_it_begins_to_fail_or_warn() -> None:
    """Once while it lasts, again when a warning becomes a failure; at its newest moment if the ring still has that."""
    closer, dut, generator = triggers_of_two()
    judged = NOON + 600 * S
    marks = Mark(NOON, None, "old"), Mark(judged - 40 * S, None, "spike"), Mark(judged - 90 * S, None, "spike")
    warns = finding(Outcome.WARN, "cpu_spike", "dut", *marks)
    passes, old = finding(Outcome.PASS, "drops"), finding(Outcome.FAIL, "growth", "dut", Mark(NOON, None, "old"))
    closer.on_findings([passes, finding(Outcome.INCONCLUSIVE, "hang")], judged)
    assert dut.heard == []
    for _ in range(3):
        closer.on_findings([passes, warns, old], judged)
    closer.on_findings([finding(Outcome.FAIL, "cpu_spike", "dut", *marks)], judged + 60 * S)
    assert dut.heard == [
        (judged - 40 * S, "warn: cpu_spike system.cpu.utilization"),
        (judged, "fail: growth system.cpu.utilization"),
        (judged - 40 * S, "fail: cpu_spike system.cpu.utilization"),
    ]
    rules = ("cpu_spike", "growth", "cpu_spike")
    assert dut.findings == [(rule, "system.cpu.utilization", "") for rule in rules]
    assert generator.heard == []


def test_a_resumed_run_ignores_what_was_seen_before_it_stopped() -> None:
    """Neither recorded events nor earlier findings trigger a window; new ones do."""
    closer, dut, _ = triggers_of_two(since_ns=NOON)
    closer.on_event(stored("link.down", at_ns=NOON - S))
    closer.on_findings([finding(Outcome.FAIL, "hang")], NOON + 60 * S)
    closer.on_event(stored("link.up", at_ns=NOON + S))
    closer.on_findings([finding(Outcome.FAIL, "hang"), finding(Outcome.FAIL, "drops")], NOON + 120 * S)
    assert [why for _, why in dut.heard] == ["link.up", "fail: drops system.cpu.utilization"]


def test_what_the_network_hid_gets_one_window(
    tmp_path: Path, make_agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut of a second: the first lost poll has a window when the agent is there again, the others have none."""
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.REACH_NS", S)
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.QUIET_NS", S // 2)

    async def main() -> tuple[list[str], Follower]:
        agent = make_agent()
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(Relay(tmp_path / "relay", agent.socket))
            follower = await follow(config(socket=str(relay.here), probes=["load"]), tmp_path, stack)
            await follower.poll(8)
            relay.cut()
            await follower.poll(5)
            relay.mend()
            await follower.poll(12)
        events = [event for _, answer in follower.answers for event in answer.events]
        return [event.detail["reason"] for event in events if event.kind == "recorder.window"], follower

    reasons, follower = asyncio.run(main())
    assert len(follower.failures) == 5
    assert reasons == ["a poll failed"]


def in_use(port: int) -> bool:
    """Whether a UDP socket is bound to this port of the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.punctual
def test_whatever_happens_in_a_run_leads_to_a_window_in_its_record(
    tmp_path: Path, make_agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real agents, syslog and ``soakwatch event``: each has its window, the last one as far as it goes."""
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.REACH_NS", S)
    monkeypatch.setattr("soakwatch.sources.pollers.agent.windows.QUIET_NS", S // 2)
    monkeypatch.setattr("soakwatch.judge.live.client.JUDGE_EVERY_S", 9.0)
    line = {"of": "x", "findings": [finding_to_json(finding(Outcome.FAIL, "hang"))]}

    async def judged(_: JudgeProcess) -> list[str]:
        import json

        return ["new", json.dumps(line)]

    monkeypatch.setattr(JudgeProcess, "look", judged)
    dut, generator, port, run = make_agent(), make_agent(), free_port(), tmp_path / "run"
    text = PLAN.replace("DUT", str(dut.socket)).replace("GENERATOR", str(generator.socket))
    clock = SteadyClock()

    def user(kind: str) -> None:
        command_in(run.parent)("event", run, kind).check_returncode()

    async def main() -> int:
        plan = plan_from_text(text.replace("PORT", str(port)), "plan.yaml")
        course, record = begin(plan, run, clock, ["test"], stop_on_fail=False)
        with record:
            soak = Soak(course, record, clock)
            watching = asyncio.create_task(soak.watch())

            async def until(second: float) -> None:
                await asyncio.sleep(max(0.0, second - soak.status().elapsed_s))

            await until(4.5)
            await asyncio.to_thread(wait_until, lambda: in_use(port), "the syslog receiver binding its port")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"<3>kernel: Out of memory: Killed process 47 (bgpd) total-vm:1kB", ("127.0.0.1", port))
            await until(6.0)
            await asyncio.to_thread(user, "rollout")
            await until(10.8)
            await asyncio.to_thread(user, "teardown")
            return await watching

    end_ns = asyncio.run(main())
    with RecordView.open(run) as view:
        events = [stored_event.event for stored_event in view.events()]
        windows = {
            target: [e for e in events if e.kind == "recorder.window" and e.target == target]
            for target in ("dut", "tg")
        }
        reasons = {target: "; ".join(e.detail["reason"] for e in own) for target, own in windows.items()}
        (drawn,) = [
            key for key in view.keys(["recorder.cpu.utilization"]) if (key.target, key.object) == ("dut", "core=all")
        ]
        times = view.series(drawn).time_ns
        ledgers = [ledger for ledger in view.ledgers(view.window()) if ledger.target in windows]
    for reason in ("failover", "kernel.oom process=bgpd", "rollout", "fail: hang", "teardown"):
        assert reason in reasons["dut"]
    assert "rollout" in reasons["tg"]
    assert "teardown" in reasons["tg"]
    assert "failover" not in reasons["tg"]
    happened = {event.kind: event.begin_ns for event in events}
    for kind in ("failover", "kernel.oom", "rollout", "teardown"):
        near = times[(times > happened[kind] - S // 2) & (times < happened[kind] + S // 2)]
        assert len(near) >= 5, f"ten samples a second around {kind}"
        assert near.min() < happened[kind]
    assert times.max() < end_ns
    assert len(set(times.tolist())) == len(times)
    assert all(ledger.got + sum(ledger.lost.values()) == ledger.due for ledger in ledgers), "a window is no poll"
