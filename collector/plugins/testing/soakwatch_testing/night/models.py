"""The targets of a night: devices and a generator whose readings are functions of the second and of the faults.

They implement the poller interface: a plan names the source ``model``, which the night registers as a plug-in.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import ClassVar

from soakwatch.sources.abc import Poller, SourceConfig, SourceContext, SourceError
from soakwatch_model.sample import Answer, Sample, object_text
from soakwatch_testing.night.faults import GENERATOR, Fault, Kind, Night

RATE = 1000.0
"""Packets per second sent to each device."""
PROCESS = object_text(process="fw", instance=0)
_PORT_IN = object_text(interface="eth0", direction="receive")
_PORT_OUT = object_text(interface="eth1", direction="transmit")
_QUEUE = object_text(queue="rx0")
_GIB, _MIB = 2**30, 2**20
_BORN_S = 1_790_000_000.0  # start time of the processes, long before any night
_LATENCY_S = 0.02


class Device:
    """The counters and readings of a device at a second of the night."""

    def __init__(self, night: Night, name: str, start_ns: int) -> None:
        self.name, self._start_s = name, start_ns * 1e-9
        self._salt = night.seed * 1009 + sum(name.encode()) * 31
        own = [fault for fault in night.faults if fault.target == name]
        self._losses = [fault for fault in own if fault.kind is Kind.LOSS]
        self._restarts = sorted(fault.begin_s for fault in own if fault.kind is Kind.RESTART)
        self._leaks = [fault for fault in own if fault.kind is Kind.LEAK]

    def lost(self, second: float) -> int:
        """Packets dropped so far."""
        return sum(
            math.floor(fault.size * RATE * (min(second, fault.end_s) - fault.begin_s))
            for fault in self._losses
            if second > fault.begin_s
        )

    def samples(self, second: float, now_ns: int) -> tuple[Sample, ...]:
        """Its readings."""
        tick = math.floor(second)
        sent, lost = received(second), self.lost(second)
        born_s = max((at_s for at_s in self._restarts if at_s <= second), default=None)
        memory = 200 * _MIB * (1 + 0.01 * self._noise(tick, 3))
        for leak in self._leaks:
            if second > leak.begin_s:
                memory += 200 * _MIB * leak.size * (second - leak.begin_s) / (leak.end_s - leak.begin_s)
        return (
            Sample("system.cpu.utilization", "", round(0.3 + 0.02 * self._noise(tick, 1), 4), now_ns),
            Sample("system.memory.usage", "", round(2 * _GIB * (1 + 0.004 * self._noise(tick, 2))), now_ns),
            Sample("system.memory.limit", "", 8 * _GIB, now_ns),
            Sample("system.network.packets", _PORT_IN, sent, now_ns),
            Sample("system.network.packets", _PORT_OUT, sent - lost, now_ns),
            Sample("system.network.packet.dropped", _PORT_IN, lost, now_ns),
            Sample("queue.depth", _QUEUE, 20 + round(5 * self._noise(tick, 4)), now_ns),
            Sample("system.uptime", "", 864_000 + tick, now_ns),
            Sample("process.up", PROCESS, 1, now_ns),
            Sample("process.start_time", PROCESS, _BORN_S if born_s is None else self._start_s + born_s, now_ns),
            Sample("process.memory.usage", PROCESS, round(memory), now_ns),
        )

    def _noise(self, tick: int, what: int) -> float:
        """Noise that depends only on device and second: about normal, between -2 and 2."""
        word = (tick * 0x9E3779B97F4A7C15 + (self._salt + what) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        word = ((word ^ (word >> 30)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        word ^= word >> 31
        return ((word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48)) / 65535 - 2


class Generator:
    """The generator's counters: it sends each device the same, and gets back what they did not lose."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices

    def samples(self, second: float, now_ns: int) -> tuple[Sample, ...]:
        """Its readings."""
        sent = len(self._devices) * received(second)
        back = sent - sum(device.lost(second) for device in self._devices)
        return (
            Sample("load.tx.packets", "", sent, now_ns),
            Sample("load.rx.packets", "", back, now_ns),
            Sample("load.tx.packet.rate", "", RATE * len(self._devices), now_ns),
            Sample("load.sending", "", 1, now_ns),
            Sample("load.cpu.utilization", "", 0.2, now_ns),
            Sample("load.latency", object_text(quantile="0.99"), 0.002, now_ns),
        )


def received(second: float) -> int:
    """Packets sent to a device so far."""
    return math.floor(RATE * max(0.0, second))


class World:
    """The world outside of the monitor: targets, and faults of the paths to them. ``now`` is the current second."""

    def __init__(self, night: Night, start_ns: int) -> None:
        self.night = night
        devices = [Device(night, name, start_ns) for name in night.devices]
        self._models: dict[str, Device | Generator] = {device.name: device for device in devices}
        self._models[GENERATOR] = Generator(devices)
        self._troubles = {
            name: [f for f in night.of(Kind.SLOW, Kind.GARBLED, Kind.SILENCE) if f.target == name]
            for name in self._models
        }
        self.now: Callable[[], float] = float  # seconds of the night; 0 before it begins

    async def answer(self, target: str, now_ns: int) -> Answer:
        """The answer to a poll of a target now."""
        second = self.now()
        for trouble in self._troubles[target]:
            if trouble.active(second):
                return await self._troubled(trouble, target, second, now_ns)
        await asyncio.sleep(_LATENCY_S)
        return Answer(self._models[target].samples(second, now_ns), (), ())

    async def _troubled(self, fault: Fault, target: str, second: float, now_ns: int) -> Answer:
        tick = math.floor(second)
        samples = self._models[target].samples(second, now_ns)
        if fault.kind is Kind.SILENCE:
            if tick % 3:
                await asyncio.sleep(2)
            raise SourceError("no answer from 198.51.100.1")
        if fault.kind is Kind.SLOW:
            await asyncio.sleep(fault.size * (0.2 + 0.8 * (tick * 0.618 % 1)))
            return Answer(samples, (), ())
        await asyncio.sleep(_LATENCY_S)
        match tick % 4:
            case 0:
                return Answer(tuple(Sample(s.metric, s.object, math.nan, s.time_ns) for s in samples), (), ())
            case 1:
                return Answer((Sample("no.such.metric", "a=b", 1.0, now_ns), *samples[:2], samples[0]), (), ())
            case 2:
                raise ValueError(f"unexpected byte 0xff at {tick}")
            case _:
                return Answer((), (), ())


WORLD: ContextVar[World] = ContextVar("night")
"""The night in which pollers are started."""


class Config(SourceConfig):
    """The source ``model``: the target of the night with the name of the plan's target."""

    asks_management: ClassVar[bool] = False


class Model:
    """The poller of one target."""

    def __init__(self, world: World, target: str) -> None:
        self._world, self._target = world, target

    async def poll(self, now_ns: int) -> Answer:
        """Query the model."""
        return await self._world.answer(self._target, now_ns)


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Connect to the model."""
    del config, stack
    return Model(WORLD.get(), site.target)
