"""What a series is of, in the words of the trade: for sentences that name no metric."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch_agent.sample import object_labels

_THINGS: Mapping[str, str] = {
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
    "monitor.memory.usage": "memory",
    "monitor.open_files": "number of open files",
    "monitor.threads": "number of threads",
}
_KNOWN_FOR = ("process", "pool", "mountpoint", "device", "interface", "queue")


def subject_words(metric: str, thing: str) -> str:
    """What a series is of: the process, pool or file system by its name, without the instance of an only one.

    >>> subject_words("process.memory.usage", "process=bgpd,instance=0"), subject_words("system.memory.committed", "")
    ('memory of bgpd', 'committed memory')
    >>> subject_words("process.threads", "process=worker,instance=3")
    'number of threads of worker (instance 3)'
    """
    labels = object_labels(thing) if "=" in thing else {}
    name = next(
        (labels[key] for key in _KNOWN_FOR if key in labels), thing if not labels else ", ".join(labels.values())
    )
    instance = labels.get("instance", "0")
    of = f" of {name}" if name else ""
    return f"{_THINGS.get(metric, metric)}{of}" + (f" (instance {instance})" if instance != "0" else "")
