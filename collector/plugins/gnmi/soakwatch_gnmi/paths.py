"""Parses gNMI paths, and matches them with updates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_ELEMENT = re.compile(r"([^\[\]/]+)((?:\[[^\[\]=]+=[^\]]*\])*)")
_KEY = re.compile(r"\[([^\[\]=]+)=([^\]]*)\]")
_ANY = "*"
_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Element:
    """One step of a path: its name without the module's prefix, and its keys (``*`` = any)."""

    name: str
    keys: Mapping[str, str]


def parse_path(text: str) -> tuple[Element, ...]:
    """The steps of a path such as ``/interfaces/interface[name=*]/state/oper-status``. Raises ValueError.

    >>> [element.name for element in parse_path("/a/b[c=*]/d")]
    ['a', 'b', 'd']
    """
    steps: list[Element] = []
    position = 0
    body = text.strip().strip("/")
    while position < len(body):
        match = _ELEMENT.match(body, position)
        if match is None or not match[1].strip():
            raise ValueError(f"{text!r} is not a path: write /a/b[key=*]/c")
        steps.append(Element(bare(match[1].strip()), dict(_KEY.findall(match[2]))))
        position = match.end()
        if position < len(body):
            if body[position] != "/":
                raise ValueError(f"{text!r} is not a path: write /a/b[key=*]/c")
            position += 1
    if not steps:
        raise ValueError("a path is empty: write /a/b[key=*]/c")
    return tuple(steps)


def bare(name: str) -> str:
    """A name without the prefix of its YANG module.

    >>> bare("openconfig-interfaces:state")
    'state'
    """
    return name.rpartition(":")[2]


Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def matches(wanted: Sequence[Element], sent: Sequence[Element], value: Plain) -> Iterator[tuple[dict[str, str], Plain]]:
    """The keys and value that an update has for each instance of a wanted path.

    A device may send the leaf itself, or a tree above it (JSON, RFC 7951); lists in a tree are told apart by the keys
    in the wanted path. An update about something else gives nothing.
    """
    keys: dict[str, str] = {}
    for want, have in zip(wanted, sent, strict=False):
        if want.name != have.name:
            return
        for key, pattern in want.keys.items():
            given = have.keys.get(key)
            if given is None or pattern not in {_ANY, given}:
                return
            keys[_name(keys, want.name, key)] = given
    if len(sent) > len(wanted):
        return
    yield from _within(wanted[len(sent) :], value, keys, _MAX_DEPTH)


def named_keys(path: Sequence[Element]) -> dict[str, str]:
    """The keys of a path by the names that labels use: a second key of the same name is ``step.key``.

    >>> named_keys(parse_path("/instance[name=red]/protocol[name=7]"))
    {'name': 'red', 'protocol.name': '7'}
    """
    keys: dict[str, str] = {}
    for step in path:
        for key, text in step.keys.items():
            keys[_name(keys, step.name, key)] = text
    return keys


def _name(known: Mapping[str, str], step: str, key: str) -> str:
    return f"{step}.{key}" if key in known else key


def _within(
    steps: Sequence[Element], value: Plain, keys: dict[str, str], depth: int
) -> Iterator[tuple[dict[str, str], Plain]]:
    if not steps:
        if not isinstance(value, dict | list):
            yield keys, value
        return
    if not isinstance(value, dict) or not depth:
        return
    step = steps[0]
    inner = next((child for name, child in value.items() if bare(name) == step.name), None)
    if not step.keys:
        yield from _within(steps[1:], inner, keys, depth - 1)
        return
    for item in inner if isinstance(inner, list) else (inner,):
        own = _keys_of(item, step.keys)
        if own is not None:
            named = {_name(keys, step.name, key): text for key, text in own.items()}
            yield from _within(steps[1:], item, {**keys, **named}, depth - 1)


def _keys_of(item: Plain, wanted: Mapping[str, str]) -> dict[str, str] | None:
    if not isinstance(item, dict):
        return None
    own: dict[str, str] = {}
    for key, pattern in wanted.items():
        given = next((child for name, child in item.items() if bare(name) == key), None)
        if isinstance(given, dict | list | None) or pattern not in {_ANY, str(given)}:
            return None
        own[key] = str(given)
    return own
