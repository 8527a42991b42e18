"""Queueing disciplines: depth, drops, packets and limit of each queue of ``tc -s -j qdisc``."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.sources.transport.ssh.ask import Ask, parsed, rows, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text
from soakwatch_model.tree import Tree


class Tc(Ask):
    """Each discipline is the queue ``INTERFACE KIND HANDLE`` (``eth0 fq_codel 8001:``); one that never held a packet
    since it was made is told as well, 0 is its reading. ``limit`` is in packets for disciplines that count packets
    (fq, fq_codel, pfifo, netem ...); where it is in bytes (bfifo, tbf) it is left out."""

    metrics = ("queue.depth", "queue.usage", "queue.limit", "queue.dropped", "queue.packets")
    every_s = 1.0
    present = "tc -s -j qdisc show dev lo"

    def command(self) -> str:
        """One call for all interfaces."""
        return "tc -s -j qdisc show"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes each queue."""
        for row in rows(parsed(text)):
            device, kind = row.get("dev"), row.get("kind")
            if not isinstance(device, str) or not isinstance(kind, str) or not self._wants.interface(device):
                continue
            if kind in ("noqueue", "ingress", "clsact", "mq"):  # they hold nothing; mq's queues follow one by one
                continue
            object_label = object_text(queue=queue_name(row, device, kind))
            for metric, key in (
                ("queue.depth", "qlen"),
                ("queue.usage", "backlog"),
                ("queue.dropped", "drops"),
                ("queue.packets", "packets"),
            ):
                value = whole(row.get(key))
                if value is not None:
                    notes.sample(metric, object_label, value)
            options = row.get("options")
            limit = whole(options.get("limit")) if isinstance(options, dict) else None
            if limit is not None and kind not in ("bfifo", "tbf"):
                notes.sample("queue.limit", object_label, limit)


def queue_name(row: Mapping[str, Tree], device: str, kind: str) -> str:
    """``eth0 fq_codel 8001:``; a discipline that the kernel made itself (handle 0:) goes by its parent, if any."""
    handle = row.get("handle")
    parent = row.get("parent")
    where = handle if isinstance(handle, str) and handle != "0:" else parent
    if not isinstance(where, str):
        where = "root" if row.get("root") else ""
    return clean(f"{device} {kind} {where}".strip())
