"""Who says a sentence: the target and the source before it, once."""

from __future__ import annotations

import re

_PORT = re.compile(r"\d{1,5}")


def without(target: str, sentence: str) -> str:
    """A source's sentence for a place that names the target already.

    >>> without("fw2", "fw2: port 162 is taken"), without("fw2", "fw2:161 is closed")
    ('port 162 is taken', 'fw2:161 is closed')
    """
    rest = sentence.removeprefix(f"{target}: ")
    return rest or sentence


def prefixed(target: str, source: str, sentence: str) -> str:
    """Target, source and sentence, as one; where the sentence itself begins with them they are not said twice.

    >>> prefixed("fw2", "traps", "fw2: port 162 is taken"), prefixed("fw2", "gnmi", "fw2: gnmi needs grpc")
    ('fw2 traps: port 162 is taken', 'fw2 gnmi needs grpc')
    >>> prefixed("fw2", "snmp", "fw2:161: the port is closed")
    'fw2:161 snmp: the port is closed'
    """
    who, rest = target, without(target, sentence)
    place, colon, told = rest.partition(": ")
    if colon and place.startswith(f"{target}:") and _PORT.fullmatch(place[len(target) + 1 :]):
        who, rest = place, told
    if rest.startswith((f"{source}: ", f"{source} ")):
        return f"{who} {rest}"
    return f"{who} {source}: {rest}"
