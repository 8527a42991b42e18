"""A machine as its fingerprint describes it, typed: network cards, clock, idle states, memory nodes, modules.

What the fingerprint does not report, or reports in another type than expected, is None or empty here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from soakwatch_model.core_list import cores_of
from soakwatch_model.tree import Tree

Cores = frozenset[int]

USER_SPACE_DRIVERS: Final = frozenset({"vfio-pci", "igb_uio", "uio_pci_generic"})
"""Drivers that hand a card to a program, so that the kernel moves none of its packets."""
_MODEL: Final = ("vendor", "device", "subsystem_vendor", "subsystem_device")
_COUNTED: Final = re.compile(r"^(?P<value>.+) \((?P<cores>\d+) cores?\)$")


@dataclass(frozen=True, slots=True)
class Link:
    """A PCIe link: lanes and GT/s per lane, now and at most; ``slot_speed`` is the most that the slot supports."""

    width: float | None
    max_width: float | None
    speed: float | None
    max_speed: float | None
    slot_speed: float | None = None

    @property
    def known(self) -> bool:
        """Whether lanes or speed are reported both now and at most."""
        return None not in (self.width, self.max_width) or None not in (self.speed, self.max_speed)

    @property
    def narrow(self) -> bool:
        """Whether it runs with fewer lanes than the card has."""
        return _less(self.width, self.max_width)

    @property
    def slow(self) -> bool:
        """Whether it runs below the card's speed: in a slow slot, or to save power when idle."""
        return _less(self.speed, self.max_speed)

    @property
    def in_slow_slot(self) -> bool:
        """Whether the slot is slower than the card."""
        return _less(self.slot_speed, self.max_speed)

    @property
    def bits_per_s(self) -> float | None:
        """Bits per second each way before protocol overhead: lanes times rate, reduced by the line code (8b/10b up to
        5 GT/s, 128b/130b from 8 GT/s on: PCI Express Base Specification)."""
        if self.width is None or self.speed is None:
            return None
        return self.width * self.speed * 1e9 * (0.8 if self.speed < 8 else 128 / 130)


@dataclass(frozen=True, slots=True)
class Card:
    """A network card, or one port of it. It has ``interrupts`` interrupts, which may go to ``interrupt_cores``; its RSS
    table uses the queues ``rss`` of ``rx_queues``."""

    part: str  # "interface=eth0", "card=0000:3b:00.0"
    driver: str = ""
    model: str = ""
    firmware: str = ""
    node: int | None = None
    link: Link | None = None
    duplex: str = ""
    speed_mbps: float | None = None
    down: bool = False
    rx_queues: int | None = None
    rss: frozenset[int] = frozenset()
    interrupts: int = 0
    interrupt_cores: Cores = frozenset()
    virtual: bool = False  # an interface without hardware
    virtual_function: bool = False

    @property
    def name(self) -> str:
        """Its interface name or PCI address."""
        return self.part.partition("=")[2]

    @property
    def in_user_space(self) -> bool:
        """Whether a program drives it instead of the kernel."""
        return self.driver in USER_SPACE_DRIVERS


@dataclass(frozen=True, slots=True)
class IdleState:
    """A state that an idle core may enter, and the time to leave it; ``off`` are the cores that may not enter it, None
    if none may."""

    name: str
    exit_s: float
    off: Cores | None = frozenset()

    def open_to(self, cores: Cores) -> bool:
        """Whether one of these cores may enter it; without cores, whether any core may."""
        return self.off is not None and (not cores or bool(cores - self.off))


@dataclass(frozen=True, slots=True)
class Module:
    """A line card, supervisor or power supply of a chassis."""

    name: str
    model: str
    firmware: str
    software: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A whole machine; ``governors``, ``preferences`` and ``turbo`` count cores by value (0 if not reported)."""

    cards: tuple[Card, ...] = ()
    governors: Mapping[str, int] = field(default_factory=dict)
    preferences: Mapping[str, int] = field(default_factory=dict)
    turbo: Mapping[str, int] = field(default_factory=dict)
    idle_states: tuple[IdleState, ...] = ()
    nodes: Mapping[int, Cores] = field(default_factory=dict)
    online: Cores = frozenset()
    apart: Cores = frozenset()
    modules: tuple[Module, ...] = ()
    huge_pages: bool = False


def described(tree: Mapping[str, Tree]) -> Machine:
    """The machine of a fingerprint.

    >>> described({"cpu": {"governor": "performance (2 cores), powersave (6 cores)"}}).governors
    {'performance': 2, 'powersave': 6}
    """
    cpu, memory = _branch(tree, "cpu"), _branch(tree, "memory")
    return Machine(
        cards=_cards(tree),
        governors=_counts(cpu.get("governor")),
        preferences=_counts(cpu.get("energy_preference")),
        turbo=_counts(cpu.get("turbo")),
        idle_states=_idle_states(tree),
        nodes=_nodes(tree),
        online=cores_in(cpu.get("online")),
        apart=cores_in(cpu.get("isolated")) | cores_in(cpu.get("nohz_full")),
        modules=tuple(_modules(tree)),
        huge_pages=bool(_number(memory.get("hugepages"))) or _huge_pages(memory.get("huge_pages")),
    )


def cores_in(text: Tree) -> Cores:
    """The cores in a list such as the kernel writes, or in several.

    >>> sorted(cores_in("2-3,6")), cores_in(None)
    ([2, 3, 6], frozenset())
    """
    if isinstance(text, list):
        return frozenset(core for each in text for core in cores_in(each))
    return frozenset(cores_of(str("" if text is None else text)))


def _cards(tree: Mapping[str, Tree]) -> tuple[Card, ...]:
    """The kernel's interfaces, and the cards that programs drive."""
    by_address = dict(_named(tree.get("pci_network")))
    cards = []
    for name, facts in _named(tree.get("nics")):
        on_bus = by_address.get(_text(facts.get("pci_address")), {})
        cards.append(_card(f"interface={name}", {**on_bus, **facts}))
    bound = [(address, facts) for address, facts in by_address.items() if facts.get("driver") in USER_SPACE_DRIVERS]
    return (*cards, *(_card(f"card={address}", facts) for address, facts in bound))


def _card(part: str, facts: Mapping[str, Tree]) -> Card:
    link, queues = _branch(facts, "pcie"), _number(facts.get("rx_queues"))
    return Card(
        part=part,
        driver=_text(facts.get("driver")),
        model=" ".join(_text(facts.get(key)) for key in _MODEL if facts.get(key)),
        firmware=_text(facts.get("firmware")),
        node=_node(facts.get("numa_node")),
        link=Link(
            _number(link.get("current_link_width")),
            _number(link.get("max_link_width")),
            _number(link.get("current_link_speed")),
            _number(link.get("max_link_speed")),
            _number(link.get("slot_max_link_speed")),
        )
        if link
        else None,
        duplex=_text(facts.get("duplex")).lower(),
        speed_mbps=_number(facts.get("speed_mbps")),
        down=_text(facts.get("state")) in {"down", "lowerlayerdown", "notpresent"},
        rx_queues=None if queues is None else int(queues),
        rss=cores_in(_branch(facts, "rss").get("queues")),
        interrupts=len(_branch(facts, "irqs")),
        interrupt_cores=cores_in(facts.get("irq_cores")),
        virtual=facts.get("virtual") is True,
        virtual_function="vf_of" in facts,
    )


def _idle_states(tree: Mapping[str, Tree]) -> tuple[IdleState, ...]:
    states = []
    for name, facts in _named(_branch(tree, "cstates").get("states")):
        exit_us = _number(facts.get("latency_us"))
        off = _text(facts.get("disabled"))
        if exit_us is not None:
            cores = None if off == "on all cores" else cores_in(off.removeprefix("on "))
            states.append(IdleState(name, exit_us * 1e-6, cores))
    return tuple(states)


def _nodes(tree: Mapping[str, Tree]) -> dict[int, Cores]:
    """The cores of each memory node."""
    nodes: dict[int, Cores] = {}
    for name, facts in _named(tree.get("numa")):
        number, cores = name.removeprefix("node"), cores_in(facts.get("cores"))
        if number.isdecimal() and cores:
            nodes[int(number)] = cores
    return nodes


def _huge_pages(sizes: Tree) -> bool:
    """Whether there are huge pages of any size on any node."""
    nodes = [pages for _, size in _named(sizes) for _, pages in _named(size)]
    return any(_number(pages.get("total")) for pages in nodes)


def _modules(tree: Mapping[str, Tree]) -> Iterable[Module]:
    for name, facts in _named(tree.get("modules_hw")):
        yield Module(name, _text(facts.get("model")), _text(facts.get("firmware")), _text(facts.get("software")))


def _named(section: Tree) -> list[tuple[str, dict[str, Tree]]]:
    """The parts of a section that have facts, by name; a list's parts carry their own names or are numbered."""
    if isinstance(section, dict):
        return [(name, facts) for name, facts in section.items() if isinstance(facts, dict)]
    if not isinstance(section, list):
        return []
    parts = [facts for facts in section if isinstance(facts, dict)]
    return [(_text(facts.get("name")) or str(number), facts) for number, facts in enumerate(parts, 1)]


def _counts(value: Tree) -> dict[str, int]:
    """Cores by value, from ``powersave`` or ``performance (2 cores), powersave (6 cores)``."""
    if value is None or value == "":
        return {}
    if isinstance(value, bool):
        return {"on" if value else "off": 0}
    counts: dict[str, int] = {}
    for part in str(value).split(", "):
        match = _COUNTED.match(part)
        counts[match["value"] if match else part] = int(match["cores"]) if match else 0
    return counts


def _branch(tree: Mapping[str, Tree], name: str) -> dict[str, Tree]:
    branch = tree.get(name)
    return branch if isinstance(branch, dict) else {}


def _text(value: Tree) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _number(value: Tree) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _node(value: Tree) -> int | None:
    """A memory node; None for -1, which single-node machines and cards without a node report."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _less(now: float | None, most: float | None) -> bool:
    return now is not None and most is not None and now < most
