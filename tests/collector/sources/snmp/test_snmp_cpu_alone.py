"""A device over SNMP that is left alone but for its CPU: one request, the CPU, and nothing forgotten of the rest."""

from __future__ import annotations

import asyncio
import time

from tests.collector.sources.snmp.snmpd import Snmpd
from tests.collector.sources.snmp.test_snmp_poller import config, polled, until

from soakwatch.sources.abc import CPU_METRICS
from soakwatch.sources.pollers.snmp import SnmpPoller
from soakwatch_model.sample import Answer
from soakwatch_testing.snmp_polled_cpu import polled_device

_CPU = "system.cpu.utilization"


def cpu(answer: Answer) -> float | None:
    """How busy the device is."""
    return next((sample.value for sample in answer.samples if sample.metric == _CPU), None)


def test_its_cpu_takes_one_request_and_shows_what_polls_cost() -> None:
    """Of 4 cores a tenth is busy; a whole poll of several requests of 10 ms makes it more, a look at the CPU hardly."""
    with polled_device(0.01) as device:

        async def use(poller: SnmpPoller) -> None:
            assert (await poller.poll_cpu(time.time_ns())).samples == ()  # nobody knows yet what it has
            await until(poller, lambda answer: cpu(answer) is not None)
            before = device.requests
            await poller.poll(time.time_ns())
            whole, before = device.requests - before, device.requests
            answer = await poller.poll_cpu(time.time_ns())
            assert device.requests - before == 1 < whole
            assert {sample.metric for sample in answer.samples} <= CPU_METRICS
            after, _ = await until(poller, lambda answer: cpu(answer) is not None)
            assert {"system.network.io", "device.uptime"} & {sample.metric for sample in after.samples}

        polled(config(device.address[1]), use)


def test_a_real_agent_is_asked_for_its_cpu_alone(snmpd: Snmpd) -> None:
    """net-snmp renews its CPU every 5 s: then there is one, and no other metric."""

    async def use(poller: SnmpPoller) -> None:
        await until(poller, lambda answer: cpu(answer) is not None)
        deadline = time.monotonic() + 60
        seen: list[Answer] = []
        while time.monotonic() < deadline and not any(cpu(answer) is not None for answer in seen):
            seen.append(await poller.poll_cpu(time.time_ns()))
            await asyncio.sleep(0.5)
        assert any(cpu(answer) is not None for answer in seen)
        assert {sample.metric for answer in seen for sample in answer.samples} <= CPU_METRICS

    polled(config(snmpd.port), use)
