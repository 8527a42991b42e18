"""SNMP over a path that loses, doubles and reorders datagrams: what is kept, and what is said of what is not."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest
from tests.collector.sources.snmp.doubles import agent, answer, v2c
from tests.collector.sources.snmp.lossy_path import LossyPath, lossy_path
from tests.collector.sources.snmp.snmpd import Snmpd
from tests.collector.sources.snmp.test_snmp_poller import V3, config, site

from soakwatch.judge.live.coverage import Accounts
from soakwatch.record import Record, RecordView
from soakwatch.record.follow import PollColumns
from soakwatch.sources.abc import RequestsLostError, SourceError
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_session import Session
from soakwatch_model.case import Case, Ledger
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_rules.detectors.hang import Hang

IF_TABLE = "1.3.6.1.2.1.2.2.1"


async def polls(port: int, count: int, more: dict[str, object]) -> tuple[list[Answer], list[SourceError]]:
    """Polls on a grid of a second."""
    answers: list[Answer] = []
    failures: list[SourceError] = []
    async with AsyncExitStack() as stack:
        poller = await start(config(port, **more), site(), stack)
        due = time.monotonic()
        for _ in range(count):
            try:
                answers.append(await poller.poll(time.time_ns()))
            except SourceError as failure:
                failures.append(failure)
            due = max(due + 1.0, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
    return answers, failures


def fallen(samples: Sequence[Sample]) -> list[str]:
    """Counters of interfaces that went back, and readings that came twice for one time."""
    last: dict[tuple[str, str], Sample] = {}
    found = []
    for sample in samples:
        before = last.get((sample.metric, sample.object))
        counts = sample.metric.startswith("system.network.") or sample.metric.endswith("uptime")
        if before is not None and (before.time_ns >= sample.time_ns or (counts and sample.value < before.value)):
            found.append(f"{sample.metric} {sample.object}: {before.value} {sample.value}")
        last[sample.metric, sample.object] = sample
    return found


@pytest.mark.parametrize("engine", ["gufo", "pysnmp"])
def test_a_walk_goes_on_after_lost_answers(engine: str) -> None:
    """Of a column of 60 rows each third request is lost: no row is asked for again that was answered before."""
    column, answered = "1.3.6.1.4.1.99.2.1", Counter[str]()
    asked = 0

    def respond(data: bytes) -> list[tuple[float, bytes]]:
        nonlocal asked
        asked += 1
        request = v2c(data)
        assert request is not None
        first = request[1].binds[0][0]
        if asked % 3 == 0:
            return []
        answered[first] += 1
        row = int(first.rpartition(".")[2]) if first != column else 0
        rows = [(f"{column}.{row + n}", ber.integer(row + n)) for n in range(1, 6) if row + n <= 60]
        made = answer(data, rows or [("1.3.6.1.4.1.99.3.0", ber.integer(0))])
        return [(0.0, made), (0.001, made)]

    async def main() -> None:
        async with AsyncExitStack() as stack:
            _, port = await agent(stack, respond)
            options = SessionOptions(engine, share_s=0.6, retries=1, repetitions=5)  # type: ignore[arg-type]
            session = Session(Access("127.0.0.1", port, "2c", community="public"), options)
            stack.push_async_callback(session.close)
            rows = await session.walk([column], time.monotonic() + 60)
            assert sorted(rows.values(), key=int) == list(range(1, 61))
            assert session.trips.losses(time.monotonic()).lost > 0

    asyncio.run(main())
    assert len(answered) >= 13
    assert answered.most_common(1)[0][1] <= 2  # the answer came late once, at the most


@pytest.mark.parametrize("walked", [False, True], ids=["get", "walk"])
def test_what_was_answered_at_its_size_is_not_asked_for_in_parts_after_a_loss(*, walked: bool) -> None:
    """All repeats of one request are lost: smaller requests would be more of them, for ten minutes, and more losses."""
    column = "1.3.6.1.4.1.99.2.1"
    oids = [f"{column}.{row}" for row in range(1, 121)]
    lost = 0

    def respond(data: bytes) -> list[tuple[float, bytes]]:
        nonlocal lost
        if lost:
            lost -= 1
            return []
        request = v2c(data)
        assert request is not None
        asked = [bind[0] for bind in request[1].binds]
        if not walked:
            return [(0.0, answer(data, [(name, ber.integer(1)) for name in asked]))]
        row = 0 if asked[0] == column else int(asked[0].rpartition(".")[2])
        rows = [(name, ber.integer(1)) for name in oids[row : row + request[1].index]]
        return [(0.0, answer(data, rows or [("1.3.6.1.4.1.99.3.0", ber.integer(0))]))]

    async def main() -> list[int]:
        nonlocal lost
        counts = []
        async with AsyncExitStack() as stack:
            double, port = await agent(stack, respond)
            options = SessionOptions("gufo", share_s=0.1, retries=0, repetitions=20)
            session = Session(Access("127.0.0.1", port, "2c", community="public"), options)
            stack.push_async_callback(session.close)
            for lose in (*[0] * 7, 1, 0):  # the size of walks grows for some time
                lost, before = lose, double.asked
                values = await (session.walk([column], soon()) if walked else session.get(oids, soon()))
                assert len(values) == 120
                counts.append(double.asked - before)
        return counts

    *_, first, again, after = asyncio.run(main())
    assert (again, after) == (after + 1, min(first, after)), (first, again, after)


def soon() -> float:
    """A deadline."""
    return time.monotonic() + 20


def test_a_survey_outlives_lost_requests_and_says_so(snmpd: Snmpd) -> None:
    """A third of the round trips is lost: polls say how many requests were lost, none that the device is silent."""
    path = LossyPath(snmpd.port, 0.35, seed=3)

    async def main() -> tuple[list[Answer], list[SourceError]]:
        async with AsyncExitStack() as stack:
            return await polls(await lossy_path(stack, path), 8, {"interval": "3s"})

    answers, failures = asyncio.run(main())
    print(f"{path.asked} requests, {path.lost} lost; {len(answers)} polls kept", *failures, sep="\n")
    assert any(len(each.samples) > 20 for each in answers)
    for failure in failures:
        assert isinstance(failure, RequestsLostError), failure
        assert "request lost: " in str(failure)
    assert fallen([sample for each in answers for sample in each.samples]) == []


@pytest.mark.slow
@pytest.mark.punctual
@pytest.mark.parametrize("more", [{}, V3, {"engine": "pysnmp"}], ids=["v2c", "v3", "pysnmp"])
@pytest.mark.usefixtures("keys")
def test_a_fifth_of_the_requests_lost_costs_hardly_a_poll(snmpd: Snmpd, more: dict[str, object]) -> None:
    """60 polls of a second: nine of ten are kept, by pysnmp, which is slower, three of four, and no value is wrong."""
    path = LossyPath(snmpd.port, 0.2, twice=0.05, overtaken=0.05, seed=7)

    async def main() -> tuple[list[Answer], list[SourceError]]:
        async with AsyncExitStack() as stack:
            return await polls(await lossy_path(stack, path), 60, more)

    answers, failures = asyncio.run(main())
    print(f"{path.asked} requests, {path.lost} lost; {len(answers)} of 60 polls kept", *failures, sep="\n")
    assert fallen([sample for each in answers for sample in each.samples]) == []
    assert {event.kind for each in answers for event in each.events} <= {"source.requests.lost"}
    assert len(answers) >= (45 if "engine" in more else 54)


def ledger(folder: Path, outcome: PollOutcome) -> tuple[Ledger, Window]:
    """The account of 300 polls of a second: answered, then 240 that ended like this, then answered."""
    second, begin_ns = 10**9, 1_700_000_000 * 10**9
    with Record.create(folder) as record:
        source = record.source("dut", "snmp", "dut/snmp", second, required=True)
        for number in range(300):
            due_ns = begin_ns + number * second
            how = outcome if 30 <= number < 270 else PollOutcome.OK
            record.put([Poll(source.id, due_ns, due_ns, 1, how, None if how is PollOutcome.OK else "why", NOTHING)])
    window = Window(begin_ns, begin_ns + 300 * second)
    with RecordView.open(folder) as view:
        (account,) = view.ledgers(window)
        ended = view.poll_outcomes(source.id)
    live = Accounts()
    live.take(source, PollColumns(ended.due_ns, ended.due_ns, ended.outcome, np.where(ended.outcome > 0, 1, 0)))
    assert live.ledger(source, account.source, {1: "why"}, window) == account
    return account, window


def test_polls_that_were_answered_in_part_are_lost_but_no_silence(tmp_path: Path) -> None:
    """They count as lost under their own name, and no rule takes them for a device that hung."""
    lossy, window = ledger(tmp_path / "lossy", PollOutcome.LOSSY)
    failed, _ = ledger(tmp_path / "failed", PollOutcome.FAILED)
    assert (lossy.due, lossy.got, dict(lossy.lost)) == (300, 60, {"requests lost": 240})
    assert lossy.silences == ()
    assert [round(silence.window.seconds) for silence in failed.silences] == [241]
    said = [Hang().judge(Case("dut", "", window, (), ledgers=(each,)))[0].outcome.value for each in (lossy, failed)]
    assert said == ["pass", "warn"]


@pytest.mark.slow
@pytest.mark.punctual
@pytest.mark.parametrize(("loss", "kept"), [(0.2, 0.9), (0.5, 0.3)])
def test_a_run_over_a_lossy_path_says_so_and_nothing_wrong(
    snmpd: Snmpd, tmp_path: Path, loss: float, kept: float
) -> None:
    """A whole run of 90 s: polls are kept, what is lost has its reason, and nothing is said against the device."""
    path = LossyPath(snmpd.port, loss, twice=0.05, overtaken=0.05, seed=11)

    async def main() -> bytes:
        async with AsyncExitStack() as stack:
            port = await lossy_path(stack, path)
            source = f"{{host: 127.0.0.1, port: {port}, profile: linux, interval: 1s}}"
            plan = tmp_path / "plan.yaml"
            plan.write_text(
                f"name: lossy\nduration: 90s\ntargets: {{dut: {{role: dut, sources: [{{snmp: {source}}}]}}}}\n"
            )
            process = await asyncio.create_subprocess_exec(
                *("soakwatch", "run", str(plan), "--no-web", "--runs", str(tmp_path / "runs")),
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            return (await process.communicate())[0]

    said = asyncio.run(main()).decode()
    verdict = json.loads(next(tmp_path.glob("runs/*/verdict.json")).read_text())
    account = next(each for each in verdict["coverage"] if each["source"] == "dut/snmp")
    print(
        f"{path.asked} requests, {path.lost} lost; {account['got']} of {account['due']} polls kept: {account['lost']}"
    )
    # A poll ends by itself before its timeout: what was later had no share of this machine's processors.
    starved = sum(account["lost"].get(how, 0) for how in ("timeout", "overrun", "missed"))
    assert account["got"] >= kept * (account["due"] - starved), said
    assert account["got"] + sum(account["lost"].values()) == account["due"]
    findings = [each for each in verdict["findings"] if each["target"] == "dut"]
    assert [each["reason"] for each in findings if each["outcome"] in {"fail", "warn"} and each["metric"] == ""] == []
    assert {each["outcome"] for each in findings if each["rule"] == "hang"} == {"pass"}
    assert not [each for each in findings if each["rule"] in {"drops", "reboot"} and each["outcome"] == "fail"]
    if loss > 0.4:
        assert any("request lost: about 50 %" in sentence for sentence in account["errors"]), account
