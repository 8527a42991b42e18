"""Network interfaces and virtual functions (SR-IOV): bytes, packets, errors by kind and drops, by direction."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Dict, Tuple

import psutil

from soakwatch_agent import virtual_functions
from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, ProcAt
from soakwatch_agent.procfs import parse_interface_errors, read_text
from soakwatch_model.sample import Answer, object_text

_LOOK_S = 60.0  # virtual functions are created by hand, so rarely


class NetworkProbe:
    """Reads /proc/net/dev by psutil without its wrap correction, which would hide a reboot. Receive drops there include
    packets that the card missed. A virtual function is shown as interface ``eth0 vf 3``: the host has no interface for
    it while a guest or packet driver uses it, but the card's driver counts its traffic."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._texts: Dict[str, Tuple[str, str]] = {}
        self._look, self._virtual = Periodic(_LOOK_S), False
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """All interfaces, or those that match the watched globs."""
        notes, globs = self._notes, self._context.interfaces
        notes.begin(now_ns)
        with ProcAt(self._context):
            counters = psutil.net_io_counters(pernic=True, nowrap=False)
        seen = 0
        for name, io in counters.items():
            if not self._wanted(name):
                continue
            seen += 1
            texts = self._texts_of(name)
            for text, octets, packets, errors, dropped in (
                (texts[0], io.bytes_recv, io.packets_recv, io.errin, io.dropin),
                (texts[1], io.bytes_sent, io.packets_sent, io.errout, io.dropout),
            ):
                notes.sample("system.network.io", text, octets)
                notes.sample("system.network.packets", text, packets)
                notes.sample("system.network.errors", text, errors)
                notes.sample("system.network.packet.dropped", text, dropped)
        if self._slow.due(now_ns):
            self._read_kinds()
        if self._context.real:
            self._read_functions(now_ns)
        if not seen:
            wanted = "" if globs is None else f" that matches {', '.join(globs)}"
            notes.fault("system.network.io", "", f"there is no interface{wanted}")
        else:
            notes.recovered("system.network.io", "")
        return notes.answer()

    def _wanted(self, name: str) -> bool:
        globs = self._context.interfaces
        return globs is None or any(fnmatchcase(name, glob) for glob in globs)

    def _read_kinds(self) -> None:
        rows = parse_interface_errors(read_text(self._context.path("/proc/net/dev")))
        for name, kinds in rows.items():
            if self._wanted(name):
                for (direction, kind), count in kinds.items():
                    text = object_text(interface=name, direction=direction, kind=kind)
                    self._notes.sample("system.network.errors.by_kind", text, count)

    def _texts_of(self, name: str) -> Tuple[str, str]:
        texts = self._texts.get(name)
        if texts is None:
            texts = self._texts[name] = (
                object_text(interface=name, direction="receive"),
                object_text(interface=name, direction="transmit"),
            )
        return texts

    def _read_functions(self, now_ns: int) -> None:
        if self._look.due(now_ns):
            self._virtual = virtual_functions.present()
        if not self._virtual:
            return
        notes = self._notes
        try:
            functions = virtual_functions.read()
        except OSError as error:
            notes.fault("system.network.io", "", f"the virtual functions cannot be read: {self._context.why(error)}")
            return
        for function in functions:
            name = f"{function.interface} vf {function.number}"
            if not self._wanted(name):
                continue
            for text, (io, packets, dropped) in zip(  # noqa: B905
                self._texts_of(name), (function.received, function.sent)
            ):
                notes.sample("system.network.io", text, io)
                notes.sample("system.network.packets", text, packets)
                if dropped is not None:
                    notes.sample("system.network.packet.dropped", text, dropped)

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> NetworkProbe:
    """Opens the probe of a host."""
    return NetworkProbe(context)
