"""What a profile can read of its kind of device, in one word a field: the table of ``soakwatch profiles --table``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.platforms.platform import Command
from soakwatch.sources.profiles.profile_model import MetricGroup, Profile
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.metric import CATALOGUE
from soakwatch_model.metric_queries import shown_in, usual_in
from soakwatch_model.shown import CPU, MEMORY

NOTHING = "-"
COLUMNS: tuple[str, ...] = (
    "CPU",
    "memory",
    "drops",
    "queues",
    "sessions",
    "peers",
    "temperature",
    "processes",
    "restart reason",
    "crashes",
    "gNMI",
    "CLI",
    "traps",
    "logs",
)
_DROPS = tuple(
    metric.name for metric in CATALOGUE if metric.drops is not None and metric.drops.place in {"queues", "forwarding"}
)
"""Drops that a vendor's own tables hold: those of interfaces are in the standard ones."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics that come from groups of the vendor, and those of the standard MIBs that every profile extends."""

    own: frozenset[str]
    standard: frozenset[str]
    paths: frozenset[str]  # over gNMI

    def word(self, *metrics: str) -> str:
        """Where any of the metrics comes from: ``own``, ``standard``, ``gNMI`` alone, or nothing."""
        for word, known in (("own", self.own), ("standard", self.standard), ("gNMI", self.paths)):
            if known & set(metrics):
                return word
        return NOTHING


def coverage(profile: Profile, generic: Profile, commands: Sequence[Command]) -> Mapping[str, str]:
    """A word for each of ``COLUMNS``. A group that ``generic`` has as well is one of the standard MIBs; ``commands``
    are those of its command line."""
    shared = {group.location for group in generic.groups}
    metrics = Metrics(
        own=_of(group for group in profile.groups if group.location not in shared),
        standard=_of(group for group in profile.groups if group.location in shared),
        paths=frozenset(path.metric for path in profile.gnmi),
    )
    words = (
        metrics.word(*usual_in(CPU)),
        metrics.word(*shown_in(MEMORY)),
        "own" if metrics.own.intersection(_DROPS) else "interfaces",
        _queues(metrics),
        metrics.word("system.sessions"),
        metrics.word("network.session.up"),
        metrics.word("system.temperature"),
        _processes(metrics),
        _reason(profile, tells_reason=any(command.tells_reason for command in commands)),
        _crashes(profile),
        str(len(profile.gnmi) or NOTHING),
        str(len(commands) or NOTHING),
        str(len(profile.traps) or NOTHING),
        str(len(profile.logs) or NOTHING),
    )
    return dict(zip(COLUMNS, words, strict=True))


def _of(groups: Iterable[MetricGroup]) -> frozenset[str]:
    return frozenset(line.metric for group in groups for line in group.lines)


def _queues(metrics: Metrics) -> str:
    told = metrics.own | metrics.paths
    if told & {"queue.depth", "queue.usage"}:
        return "depth"
    return "drops" if "queue.dropped" in told else NOTHING


def _processes(metrics: Metrics) -> str:
    if "process.memory.usage" in metrics.own:
        return "own"
    return "own CPU" if "process.cpu.utilization" in metrics.own else metrics.word("process.memory.usage")


def _reason(profile: Profile, *, tells_reason: bool) -> str:
    facts = {fact.name for fact in profile.facts}
    by = ["SNMP"] if "reboot_reason" in facts else ["modules by SNMP"] if "module_reset_reason" in facts else []
    return " + ".join([*by, *(["CLI"] if tells_reason else [])]) or NOTHING


def _crashes(profile: Profile) -> str:
    told: Mapping[str, Collection[str]] = {
        "log": {log.kind for log in profile.logs},
        "trap": {trap.kind for trap in profile.traps},
    }
    found = (word for word, kinds in told.items() if any(event_kind(kind).crash for kind in {*kinds} - {"reboot"}))
    return " + ".join(found) or NOTHING
