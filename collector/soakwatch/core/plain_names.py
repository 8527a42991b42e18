"""Plain names of series, such as "memory of bgpd", for sentences that do not name the metric."""

from __future__ import annotations

from soakwatch_model.metric_queries import words_of
from soakwatch_model.sample import object_labels

_NUMBERED = "core"  # a bare number needs the word for what it counts
_NAMING_LABELS = ("process", "pool", "mountpoint", "device", "interface", "queue")


def thing_name(metric: str, object_: str) -> str:
    """What a finding is about: the process, port or file system; if it names none, what is measured.

    >>> thing_name("process.up", "process=authd,instance=0"), thing_name("system.cpu.utilization", "")
    ('authd', 'CPU')
    >>> thing_name("system.filesystem.usage", "mountpoint=/var/log"), thing_name("", "")
    ('/var/log', '')
    """
    labels = object_labels(object_) if "=" in object_ else {}
    if tuple(labels) == (_NUMBERED,):
        return plain_name(metric, object_)
    name = next((labels[key] for key in _NAMING_LABELS if key in labels), "")
    if not name:
        name = object_ if not labels else " ".join(labels.values())
    instance = labels.get("instance", "0") if "process" in labels else "0"
    return (name or (words_of(metric) if metric else "")) + (f" (instance {instance})" if instance != "0" else "")


def plain_name(metric: str, object_: str) -> str:
    """What a series measures and of what; the instance is named unless it is 0.

    >>> plain_name("process.memory.usage", "process=bgpd,instance=0"), plain_name("system.memory.committed", "")
    ('memory of bgpd', 'committed memory')
    >>> plain_name("process.threads", "process=worker,instance=3")
    'number of threads of worker (instance 3)'
    >>> plain_name("system.cpu.core.utilization", "core=0"), thing_name("system.cpu.core.utilization", "core=0")
    ('CPU core 0', 'CPU core 0')
    >>> plain_name("load.latency", "quantile=p99")
    'p99 latency'
    """
    labels = object_labels(object_) if "=" in object_ else {}
    if tuple(labels) == (_NUMBERED,):
        return f"{words_of(metric)} {labels[_NUMBERED]}"
    if labels.keys() == {"quantile"}:
        return f"{labels['quantile']} {words_of(metric)}"
    name = next(
        (labels[key] for key in _NAMING_LABELS if key in labels), object_ if not labels else ", ".join(labels.values())
    )
    instance = labels.get("instance", "0")
    of = f" of {name}" if name else ""
    return f"{words_of(metric)}{of}" + (f" (instance {instance})" if instance != "0" else "")
