"""The parts of a controller's configuration that a test report repeats: ports and flows.

Protocols, devices and packets are left out: they contain routing and MACsec keys, and are large.
"""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.core.text import one_line
from soakwatch_model.tree import Tree

_MOST = 200  # of ports, and of flows
_LENGTH = 200
_OF_FLOW = ("size", "duration", "rate")


def configured(answer: Tree, *, rates: bool) -> dict[str, Tree]:
    """Ports with locations, flows with size, duration and rate; ``rates`` is False if the run changes the rates.

    >>> flow = {"name": "f", "rate": {"choice": "pps", "pps": 5}, "size": {"choice": "fixed", "fixed": 64}}
    >>> configured({"ports": [{"name": "p1", "location": "eth1"}], "flows": [flow]}, rates=True)
    {'ports': [{'name': 'p1', 'location': 'eth1'}], 'flows': [{'name': 'f', 'size': 'fixed 64', 'rate': 'pps 5'}]}
    """
    ports, flows = _rows(answer, "ports"), _rows(answer, "flows")
    told: dict[str, Tree] = {}
    if ports:
        told["ports"] = [_words(port, ("name", "location")) for port in ports[:_MOST]]
    if flows:
        told["flows"] = [
            _words(flow, ("name",))
            | {key: words for key in _OF_FLOW if (rates or key != "rate") and (words := _choice(flow, key))}
            for flow in flows[:_MOST]
        ]
    for name, rows in (("ports", ports), ("flows", flows)):
        if len(rows) > _MOST:
            told[f"{name} besides"] = len(rows) - _MOST
    return told


def _rows(answer: Tree, key: str) -> list[Mapping[str, Tree]]:
    rows = answer.get(key) if isinstance(answer, Mapping) else None
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _words(row: Mapping[str, Tree], keys: tuple[str, ...]) -> dict[str, Tree]:
    return {key: one_line(value, _LENGTH) for key in keys if isinstance(value := row.get(key), str)}


def _choice(flow: Mapping[str, Tree], key: str) -> str:
    """A choice in the model and its value, on one line."""
    tree = flow.get(key)
    choice = tree.get("choice") if isinstance(tree, Mapping) else None
    if not isinstance(tree, Mapping) or not isinstance(choice, str):
        return ""
    value = tree.get(choice)
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} {each}" for name, each in value.items() if isinstance(each, str | int | float))
    return one_line(f"{choice} {value}" if isinstance(value, str | int | float) and value != "" else choice, _LENGTH)
