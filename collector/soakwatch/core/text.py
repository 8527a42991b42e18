"""Sentences for display: text of a device on one line, and the source that a sentence is about."""

from __future__ import annotations

import re

_PORT = re.compile(r"\d{1,5}")


def one_line(text: str, most: int) -> str:
    r"""The printable characters with single blanks, at most ``most`` of them; a longer text ends in "...".

    >>> one_line("no\x1b[2J\r\nmore", 20), one_line("a long story", 9)
    ('no [2J more', 'a long...')
    """
    begin = text[: 4 * most]  # a device may send megabytes; blanks and unprintable characters shrink
    line = " ".join("".join(char if char.isprintable() else " " for char in begin).split())
    return line if len(line) <= most and len(begin) == len(text) else f"{line[: most - 3]}..."


def without_target(target: str, sentence: str) -> str:
    """A sentence without its leading target, for places that name the target already.

    >>> without_target("fw2", "fw2: port 162 is taken"), without_target("fw2", "fw2:161 is closed")
    ('port 162 is taken', 'fw2:161 is closed')
    """
    rest = sentence.removeprefix(f"{target}: ")
    return rest or sentence


def prefixed(target: str, source: str, sentence: str) -> str:
    """Target, source and sentence in one; what the sentence itself begins with is not repeated.

    >>> prefixed("fw2", "traps", "fw2: port 162 is taken"), prefixed("fw2", "gnmi", "fw2: gnmi needs grpc")
    ('fw2 traps: port 162 is taken', 'fw2 gnmi needs grpc')
    >>> prefixed("fw2", "snmp", "fw2:161: the port is closed")
    'fw2:161 snmp: the port is closed'
    """
    who, rest = target, without_target(target, sentence)
    address, colon, message = rest.partition(": ")
    if colon and address.startswith(f"{target}:") and _PORT.fullmatch(address[len(target) + 1 :]):
        who, rest = address, message
    if rest.startswith((f"{source}: ", f"{source} ")):
        return f"{who} {rest}"
    return f"{who} {source}: {rest}"
