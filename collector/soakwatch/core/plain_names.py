"""Plain names of series, such as "memory of bgpd", for sentences that do not quote the metric."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch_model.sample import object_labels

_NAMES: Mapping[str, str] = {
    "process.memory.usage": "memory",
    "process.memory.pss": "memory (PSS)",
    "process.memory.uss": "memory (USS)",
    "process.threads": "number of threads",
    "process.open_files": "number of open files",
    "system.memory.usage": "memory in use",
    "system.memory.utilization": "memory in use",
    "system.memory.available": "available memory",
    "system.memory.committed": "committed memory",
    "system.memory.swap.usage": "swap in use",
    "system.memory.pool.usage": "memory pool",
    "system.memory.pool.utilization": "memory pool",
    "system.memory.pool.largest_free": "largest free block",
    "system.sessions": "number of sessions",
    "system.conntrack.count": "number of tracked connections",
    "system.processes": "number of processes",
    "system.filesystem.usage": "file system",
    "system.uptime": "uptime",
    "system.cpu.utilization": "CPU",
    "system.cpu.core.utilization": "CPU core",
    "process.cpu.utilization": "CPU",
    "system.network.packet.dropped": "dropped packets",
    "system.network.packets": "packets",
    "system.network.io": "traffic",
    "queue.depth": "depth",
    "load.latency": "latency",
    "load.requests": "requests",
    "load.request.rate": "requests",
    "monitor.memory.usage": "memory",
    "monitor.open_files": "number of open files",
    "monitor.threads": "number of threads",
}
_NAMING_LABELS = ("process", "pool", "mountpoint", "device", "interface", "queue")


def plain_name(metric: str, object_: str) -> str:
    """What a series is of: the process, pool or file system by its name, without the instance of an only one.

    >>> plain_name("process.memory.usage", "process=bgpd,instance=0"), plain_name("system.memory.committed", "")
    ('memory of bgpd', 'committed memory')
    >>> plain_name("process.threads", "process=worker,instance=3")
    'number of threads of worker (instance 3)'
    """
    labels = object_labels(object_) if "=" in object_ else {}
    name = next(
        (labels[key] for key in _NAMING_LABELS if key in labels), object_ if not labels else ", ".join(labels.values())
    )
    instance = labels.get("instance", "0")
    of = f" of {name}" if name else ""
    return f"{_NAMES.get(metric, metric)}{of}" + (f" (instance {instance})" if instance != "0" else "")
