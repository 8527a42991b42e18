"""Unit and kind of each metric of the catalogue, for signals that are made: a test holds them against it."""

from __future__ import annotations

from typing import Final, cast

from soakwatch_model.series import Kind

_METRICS: Final = """
counter 1: exporter.counter
counter By: system.network.io system.disk.io load.tx.bytes load.rx.bytes load.port.tx.bytes load.port.rx.bytes
counter s: system.cpu.time system.cpu.core.time system.disk.io_time process.cpu.time source.device.cpu.time
  monitor.cpu.time
counter {change}: network.session.flaps network.topology.changes
counter J: system.energy
counter {connection}: load.connections.opened load.connections.failed
counter {datagram}: system.udp.receive_errors
counter {error}: system.network.errors load.port.errors
counter {event}: system.softnet.squeezed load.queue_full
counter {failure}: system.memory.pool.failures
counter {interrupt}: system.interrupts
counter {kill}: system.memory.oom_kills
counter {line}: system.kernel.alarms load.lines.unread source.log.lines monitor.sink.written monitor.sink.rejected
counter {look}: source.spool.lost
counter {message}: source.messages
counter {operation}: system.disk.operations
counter {packet}: system.network.packets system.network.packet.dropped system.softnet.processed system.softnet.dropped
  queue.dropped load.tx.packets load.rx.packets load.lost.packets load.disordered.packets load.port.tx.packets
  load.port.rx.packets load.flow.tx.packets load.flow.rx.packets system.network.cast.packets
  system.network.unknown_protocols system.ip.dropped system.forwarding.dropped system.forwarding.denied queue.packets
  reach.sent reach.lost recorder.dropped
counter {poll}: monitor.polls
counter {request}: load.requests load.failures
counter {restart}: system.service.restarts
counter {segment}: system.tcp.receive_errors system.tcp.retransmits load.retransmits
counter {switch}: system.context_switches
gauge A: hardware.optic.bias
gauge By: system.memory.usage system.memory.available system.memory.cached system.memory.slab system.memory.committed
  system.memory.commit_limit system.memory.swap.usage system.filesystem.usage process.memory.usage process.memory.pss
  process.memory.uss process.memory.virtual system.memory.pool.usage system.memory.cache.usage
  system.memory.pool.largest_free queue.usage source.spool.usage recorder.queue.usage monitor.memory.usage
  monitor.record.size monitor.disk.free
gauge Cel: system.temperature
gauge Hz: system.cpu.frequency
gauge V: hardware.voltage
gauge W: system.power
gauge dBm: hardware.optic.rx_power hardware.optic.tx_power
gauge bit/s: load.tx.bit.rate load.rx.bit.rate load.offered.bit.rate
gauge s: system.uptime load.latency load.jitter load.flow.latency load.flow.jitter system.agent.uptime
  system.module.uptime reach.round_trip source.poll.duration source.clock.offset monitor.loop.lag monitor.sink.lag
  monitor.clock.offset network.session.uptime
gauge {connection}: system.conntrack.count load.connections
gauge {connection}/s: load.connection.rate
gauge {descriptor}: process.open_files monitor.open_files
gauge {file}: system.core.files
gauge {packet}: queue.depth load.drop.estimate
gauge {packet}/s: load.tx.packet.rate load.rx.packet.rate load.offered.packet.rate load.port.tx.packet.rate
  load.port.rx.packet.rate
gauge {poll}: monitor.sink.backlog
gauge {prefix}: network.session.prefixes
gauge {process}: system.cpu.load system.processes process.count
gauge {request}/s: load.request.rate load.failure.rate load.offered.rate
gauge {revolution}/min: hardware.fan.speed
gauge {session}: system.sessions
gauge {session}/s: system.sessions.rate
gauge {thread}: process.threads monitor.threads
gauge {user}: load.users
state 1: system.boot.id process.up process.child process.pid process.state load.ceiling.loss load.capacity.level
  load.sending load.port.up system.network.up system.network.admin_up reach.up reach.status
  network.session.up network.session.role
  hardware.fan.up hardware.power_supply.up
state A: hardware.optic.bias.limit.high hardware.optic.bias.limit.low hardware.optic.bias.warning.high
  hardware.optic.bias.warning.low
state By: system.memory.limit system.memory.swap.limit system.filesystem.limit system.memory.pool.limit
  system.memory.cache.limit
state Cel: system.temperature.limit.high system.temperature.limit.low system.temperature.warning.high
  system.temperature.warning.low
state V: hardware.voltage.limit.high hardware.voltage.limit.low hardware.voltage.warning.high
  hardware.voltage.warning.low
state bit/s: load.ceiling.bit.rate system.network.speed
state dBm: hardware.optic.rx_power.limit.high hardware.optic.rx_power.limit.low hardware.optic.rx_power.warning.high
  hardware.optic.rx_power.warning.low hardware.optic.tx_power.limit.high hardware.optic.tx_power.limit.low
  hardware.optic.tx_power.warning.high hardware.optic.tx_power.warning.low
state s: system.boot.time process.start_time system.network.changed system.network.counters_since
state {boot}: system.agent.boots
state {connection}: system.conntrack.limit
state {cpu}: system.cpu.logical.count
state {descriptor}: process.open_files.limit
state {packet}: queue.limit
state {packet}/s: load.ceiling.packet.rate load.capacity.packet.rate
state {revolution}/min: hardware.fan.speed.limit.high hardware.fan.speed.limit.low hardware.fan.speed.warning.high
  hardware.fan.speed.warning.low
state {request}/s: load.ceiling.rate load.capacity.rate
state {session}: system.sessions.limit
"""


def _read() -> dict[str, tuple[str, Kind]]:
    metrics: dict[str, tuple[str, Kind]] = {}
    for block in _METRICS.replace("\n  ", " ").strip().splitlines():
        head, _, names = block.partition(": ")
        kind, _, unit = head.partition(" ")
        metrics |= dict.fromkeys(names.split(), (unit, cast("Kind", kind)))
    return metrics


_READ: Final = _read()


def unit_and_kind(metric: str) -> tuple[str, Kind]:
    """The unit and kind of a metric; what is not listed is a ratio.

    >>> unit_and_kind("source.clock.offset"), unit_and_kind("system.cpu.utilization")
    (('s', 'gauge'), ('1', 'gauge'))
    """
    return _READ.get(metric, ("1", "gauge"))
