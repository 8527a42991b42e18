"""Checks of network cards: PCIe links, duplex, firmware, memory nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from soakwatch_rules.machine.check_result import CheckResult, Problem, combined
from soakwatch_rules.machine.description import Card, Cores, Machine, Module
from soakwatch_rules.wording.quantities import first_few, quantity

_SHARED: Final = frozenset({"mlx4_core", "mlx5_core"})
"""Drivers with which a program takes packets although the kernel keeps the card."""
_MOST = 4


def check_links(machine: Machine) -> CheckResult:
    """Cards whose PCIe link has fewer lanes than the card, or whose slot is slower than the card.

    Many idle cards lower the speed, but never the lanes, so a speed below that of both card and slot is not judged.
    """
    return combined(_link(card) for card in machine.cards)


def _link(card: Card) -> CheckResult:
    link = card.link
    if card.virtual_function:  # it shares the link of its physical card
        return CheckResult()
    if link is None or not link.known:
        words = f"PCIe link of {card.name} (not reported)"
        return CheckResult(not_judged=(words,)) if card.in_user_space or link is not None else CheckResult()
    if card.down:
        return CheckResult(not_judged=(f"PCIe link of {card.name} (the interface is down)",))
    shown = _lanes(link.width, link.speed)
    if not link.narrow and link.slow and not link.in_slow_slot:
        rest = f"{shown} of {_lanes(None, link.max_speed)} when read, which may be rest"
        return CheckResult(not_judged=(f"PCIe link of {card.name} ({rest})",))
    if not link.narrow and not link.slow:
        return CheckResult(in_order=(f"PCIe link of {card.name} {shown}",))
    most = _lanes(link.max_width, link.max_speed)
    carries = "" if link.bits_per_s is None else f", which carries {quantity(link.bits_per_s, 'bit/s')} each way"
    port = "" if not card.speed_mbps else f" (its port: {quantity(card.speed_mbps * 1e6, 'bit/s')})"
    slot = f", its slot {_lanes(None, link.slot_speed)}" if link.in_slow_slot else ""
    text = (
        f"the PCIe link of {card.name} runs at {shown}{carries}{port}; the card could do {most}{slot}: put it into a "
        "slot that has these lanes and this speed, seat it anew, or look for the slot's setting in the BIOS"
    )
    if link.narrow:
        return CheckResult((Problem(card.part, text, link.width, link.max_width, "{lane}"),))
    return CheckResult((Problem(card.part, text, link.speed, link.max_speed, "{GT}/s"),))


def _lanes(width: float | None, speed: float | None) -> str:
    lanes = "" if width is None else f"x{width:g}"
    rate = "" if speed is None else f"{speed:g} GT/s"
    return " at ".join(part for part in (lanes, rate) if part)


def check_duplex(machine: Machine) -> CheckResult:
    return combined(_duplex(card) for card in machine.cards if card.duplex and not (card.down or card.virtual))


def _duplex(card: Card) -> CheckResult:
    if card.duplex != "half":
        return CheckResult(in_order=(f"{card.name} {card.duplex} duplex",))
    rate = "" if not card.speed_mbps else f" at {quantity(card.speed_mbps * 1e6, 'bit/s')}"
    text = (
        f"{card.name} runs half duplex{rate}: it cannot send while it receives, and frames collide; let both ends "
        "negotiate, or set both of them to full duplex"
    )
    return CheckResult((Problem(card.part, text),))


def check_versions(machine: Machine) -> CheckResult:
    """Cards of one model, and modules of one model, with different firmware, software or drivers."""
    kernel = [card for card in machine.cards if not card.in_user_space]
    results = [
        _one_version("firmware", model, {card.name: card.firmware for card in machine.cards if card.model == model})
        for model in _models(machine.cards)
    ]
    results += [
        _one_version("drivers", model, {card.name: card.driver for card in kernel if card.model == model})
        for model in _models(kernel)
    ]
    for model in _models(machine.modules):
        like = [module for module in machine.modules if module.model == model]
        results += [
            _one_version("firmware", model, {module.name: module.firmware for module in like}),
            _one_version("software", model, {module.name: module.software for module in like}),
        ]
    return combined(results)


def _models(parts: Iterable[Card | Module]) -> list[str]:
    """The models that several of the parts have."""
    models = [part.model for part in parts if part.model]
    return sorted({model for model in models if models.count(model) > 1})


def _one_version(what: str, model: str, by_name: Mapping[str, str]) -> CheckResult:
    known = {name: version for name, version in by_name.items() if version}
    if len(known) < 2:
        return CheckResult(not_judged=(f"{what} of {model} (not reported)",)) if what == "firmware" else CheckResult()
    found = sorted(set(known.values()))
    if len(found) == 1:
        return CheckResult(in_order=(f"{what} of {model} alike",))
    shares = ", ".join(
        f"{version} on {first_few([name for name, own in known.items() if own == version], _MOST)}" for version in found
    )
    text = (
        f"parts of the model {model} have different {what}: {shares}: they may behave differently under the same load; "
        f"bring them to one version"
    )
    return CheckResult((Problem(f"model={model},of={what}", text, float(len(found)), 1.0, "{version}"),))


def check_numa_nodes(machine: Machine, polled: Cores) -> CheckResult:
    """Cards whose packets are handled by cores of another memory node; ``polled`` are the cores that poll."""
    if len(machine.nodes) < 2:
        return CheckResult()
    given = any(card.in_user_space for card in machine.cards)
    results = []
    for card in machine.cards:
        if card.node is not None and not card.down:
            program = card.in_user_space or (card.driver in _SHARED and bool(polled) and not given)
            results.append(_node(machine, card, polled if program else card.interrupt_cores, program=program))
    return combined(results)


def _node(machine: Machine, card: Card, cores: Cores, *, program: bool) -> CheckResult:
    near = {node for node, own in machine.nodes.items() if own & cores}
    if not near:
        return CheckResult(not_judged=(f"memory node of {card.name} (which cores serve it is not reported)",))
    if card.node in near:
        return CheckResult(in_order=(f"{card.name} and its cores on node {card.node}",))
    there = first_few([str(node) for node in sorted(near)])
    who, remedy = (
        ("the cores that poll", "give the program cores")
        if program
        else ("the cores of its interrupts", "set their affinity to cores")
    )
    text = (
        f"{card.name} is on memory node {card.node}, {who} on node {there}: each packet crosses the link between the "
        f"sockets; {remedy} of node {card.node}, or put the card into a slot of node {there}"
    )
    return CheckResult((Problem(card.part, text),))
