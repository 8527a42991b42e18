"""UDP and TCP: datagrams, segments and connections lost on receive, by reason; retransmits."""

from __future__ import annotations

from typing import Mapping

from soakwatch_agent.context import HostContext, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_paired, parse_words
from soakwatch_model.metric_queries import brought_by
from soakwatch_model.sample import Answer

_UDP = (("all", "InErrors"), ("buffer", "RcvbufErrors"), ("checksum", "InCsumErrors"), ("memory", "MemErrors"))
_TCP = (("all", "InErrs"), ("checksum", "InCsumErrors"))
_TCP_EXT = (
    ("listen_overflow", "ListenOverflows"),
    ("listen_drop", "ListenDrops"),
    ("backlog_drop", "TCPBacklogDrop"),
    ("request_queue_drop", "TCPReqQFullDrop"),
    ("receive_queue_drop", "TCPRcvQDrop"),
    ("zero_window_drop", "TCPZeroWindowDrop"),
    ("receive_pruned", "RcvPruned"),
    ("out_of_order_pruned", "OfoPruned"),
)


class TransportProbe:
    """Reads /proc/net/snmp, snmp6 and netstat. For UDP, IPv4 and IPv6 are summed and reason ``all`` includes the
    others."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._snmp = self._files.reader("/proc/net/snmp", whole=True)
        self._snmp6 = self._files.reader("/proc/net/snmp6", whole=True)
        self._netstat = self._files.reader("/proc/net/netstat", whole=True)
        self._notes = ProbeAnswer()

    def read(self, now_ns: int) -> Answer:
        """One poll; a counter that this kernel lacks is left out."""
        notes = self._notes
        notes.begin(now_ns)
        try:
            tables = parse_paired(self._snmp())
        except OSError as error:
            for metric in brought_by("transport"):
                notes.fault(metric, "", f"/proc/net/snmp cannot be read: {self._context.why(error)}")
            return notes.answer()
        udp, tcp, udp6 = tables.get("Udp", {}), tables.get("Tcp", {}), self._udp6()
        for reason, key in _UDP:
            if key in udp:
                notes.sample("system.udp.receive_errors", f"reason={reason}", udp[key] + udp6.get(f"Udp6{key}", 0))
        for reason, key in _TCP:
            if key in tcp:
                notes.sample("system.tcp.receive_errors", f"reason={reason}", tcp[key])
        if "RetransSegs" in tcp:
            notes.sample("system.tcp.retransmits", "", tcp["RetransSegs"])
        try:
            extended = parse_paired(self._netstat()).get("TcpExt", {})
        except OSError as error:
            notes.fault(
                "system.tcp.receive_errors", "", f"/proc/net/netstat cannot be read: {self._context.why(error)}"
            )
            return notes.answer()
        for reason, key in _TCP_EXT:
            if key in extended:
                notes.sample("system.tcp.receive_errors", f"reason={reason}", extended[key])
        return notes.answer()

    def _udp6(self) -> Mapping[str, int]:
        try:
            return parse_words(self._snmp6(), "Udp6")
        except OSError:
            return {}  # a kernel without IPv6 loses nothing there

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> TransportProbe:
    """Opens the probe of a host."""
    return TransportProbe(context)
