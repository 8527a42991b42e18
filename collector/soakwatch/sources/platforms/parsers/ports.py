"""``show interfaces`` as ASA, IOS and IOS XR write it: counters, drops and queues of each port."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports

_HEAD = re.compile(
    r"^(?:Interface )?([A-Za-z][\w./:-]{0,60}) (?:\"[^\"]{0,60}\", )?is (.{1,40}?), +line protocol is (\w+)"
)
_INPUT = re.compile(r"^\s*(\d{1,20}) packets input, (\d{1,20}) bytes(?:, (\d{1,20}) (no buffer|total input drops))?")
_OUTPUT = re.compile(r"^\s*(\d{1,20}) packets output, (\d{1,20}) bytes(?:, (\d{1,20}) (underruns|total output drops))?")
_ERRORS = re.compile(r"^\s*(\d{1,20}) (input|output) errors\b")
_QUEUE = re.compile(r"Input queue: (\S{1,30}) \(size/max/drops/flushes\)(?:; +Total output drops: (\S{1,20}))?")
_OUT_QUEUE = re.compile(r"Output queue:? (\S{1,30}) \(size/max(?:/drops)?\)")
_RING = re.compile(r"^\s*(RX|TX)\[(\d{1,3})\]: (\d{1,20}) packets, \d{1,20} bytes, (\d{1,20}) (?:overrun|underruns)")
_DECODE = re.compile(r"^\s*(\d{1,20}) L2 decode drops")
_TIME = re.compile(r"^\w{3} \w{3} +\d{1,2} [\d:.]{8,12} \w{1,5}$")
_TRAFFIC = re.compile(r"^\s*Traffic Statistics for ")
_IN, _OUT = "receive", "transmit"


@reports("system.network.packet.dropped")
def show_interfaces(text: str) -> Parsed:
    """Counters, errors, drops and queue depths of each port. Lines that say other things of a port are passed over;
    those before the first port are counted as unknown."""
    draft = ParsedBuilder()
    port = ""
    ours = True
    for line in draft.lines(text):
        if (match := _HEAD.match(line)) is not None:
            port, ours = match[1], True
            draft.value("system.network.up", float(match[3].lower().startswith("up")), of=port, interface=port)
            draft.value("system.network.admin_up", float("admin" not in match[2]), of=port, interface=port)
        elif not port and not _TIME.match(line):
            draft.odd(line)
        elif _TRAFFIC.match(line):
            ours = False  # an ASA counts the same packets once more there
        elif ours and port:
            _line(draft, port, line)
    return draft.done()


def _line(draft: ParsedBuilder, port: str, line: str) -> None:
    for pattern, direction in ((_INPUT, _IN), (_OUTPUT, _OUT)):
        if (match := pattern.match(line)) is None:
            continue
        draft.value("system.network.packets", match[1], of=port, interface=port, direction=direction)
        draft.value("system.network.io", match[2], of=port, interface=port, direction=direction)
        if match[3] and match[4] != "underruns":
            draft.value("system.network.packet.dropped", match[3], of=port, interface=port, direction=direction)
        return
    if (match := _ERRORS.match(line)) is not None:
        direction = _IN if match[2] == "input" else _OUT
        draft.value("system.network.errors", match[1], of=port, interface=port, direction=direction)
    elif (match := _QUEUE.search(line)) is not None:
        _input_queue(draft, port, match[1])
        if match[2]:
            text = match[2].rstrip(".,;")
            draft.value("system.network.packet.dropped", text, of=port, interface=port, direction=_OUT)
    elif (match := _OUT_QUEUE.search(line)) is not None:
        cells = match[1].rstrip(",").split("/")
        if len(cells) >= 2:
            draft.value("queue.depth", cells[0], of=port, queue=f"{port} output")
            draft.value("queue.limit", cells[1], of=port, queue=f"{port} output")
    elif (match := _RING.match(line)) is not None:
        ring = f"{port} {match[1]}[{match[2]}]"
        draft.value("queue.packets", match[3], of=port, queue=ring)
        draft.value("queue.dropped", match[4], of=port, queue=ring)
    elif (match := _DECODE.match(line)) is not None:
        draft.value("system.network.unknown_protocols", match[1], of=port, interface=port)


def _input_queue(draft: ParsedBuilder, port: str, text: str) -> None:
    cells = text.split("/")
    if len(cells) != 4:
        draft.fault("queue.depth", f"queue={port} input", f"{text!r} is not size/max/drops/flushes")
        return
    queue = f"{port} input"
    draft.value("queue.depth", cells[0], of=port, queue=queue)
    draft.value("queue.limit", cells[1], of=port, queue=queue)
    draft.value("queue.dropped", cells[2], of=port, queue=queue)
