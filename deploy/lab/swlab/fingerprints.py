"""Compares the fingerprints of one router from its agent, over SSH and over SNMP.

>>> told = {"agent": {"host": {"kernel": "6.1"}}, "ssh": {"host": {"kernel": "6.1"}}, "snmp": {"device": {}}}
>>> compared(told, (Fact("kernel", "host kernel", "device software"),))[0][-1]
'agent and SSH tell the same'
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swlab import life
from swlab.places import A
from swlab.running import HERE, new_folder, observe
from swlab.table import columns
from swlab.trouble import LabError, call, wait_for

if TYPE_CHECKING:  # the lab's other commands do not need soakwatch in this process
    from soakwatch_model.tree import Tree

_WAYS: Final = ("agent", "ssh", "snmp")
_SHOWN: Final = {"agent": "agent", "ssh": "SSH", "snmp": "SNMP"}
_NAME: Final = "fingerprint"
_WITHIN_S: Final = 60.0
"""Uptimes that differ by at most this are the same, as the three are read one after the other."""
_WIDE: Final = 44
_PROGRAM: Final = frozenset({"agent", "processes", "notes", "told_by"})
"""Sections about the source itself, and what changes by itself."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the table: its name, and its place in the trees of a host and of a network device."""

    name: str
    host: str
    device: str = ""
    number: bool = False
    moves: bool = False  # whether it may change between two reads

    def of(self, tree: Mapping[str, Tree]) -> str:
        """The fact in a tree, as text; "" if missing."""
        return next(
            (words for path in (self.host, self.device) if path and (words := _at(dict(tree), path.split()))), ""
        )


FACTS: Final = (
    Fact("name", "host hostname", "device name"),
    Fact("kernel", "host kernel", "device software"),
    Fact("kernel's build", "host kernel_build"),
    Fact("operating system", "host os"),
    Fact("description", "", "device description"),
    Fact("sysObjectID", "", "device object_id"),
    Fact("profile", "", "device profile"),
    Fact("uptime in s", "host uptime_s", "device uptime_s", number=True),
    Fact("board, model", "host board", "device model"),
    Fact("serial number", "host serial", "device serial"),
    Fact("virtual", "host virtual"),
    Fact("processor", "cpu model"),
    Fact("cores", "cpu logical_cores"),
    Fact("memory in bytes", "memory total_bytes"),
    Fact("interfaces", "nics"),
    Fact("MTU of north", "nics north mtu"),
    Fact("address of north", "nics north mac"),
    Fact("hardware modules", "", "modules_hw"),
    Fact("network functions on PCI", "pci_network"),
    Fact("FRR", "packages frr"),
    Fact("keepalived", "packages keepalived"),
    Fact("snmpd", "packages snmpd"),
    Fact("IPv4 forwarding", "sysctls net.ipv4.ip_forward"),
    Fact("settings (sysctl)", "sysctls"),
    Fact("command line of the kernel", "kernel_command_line"),
    Fact("names of processes", "processes", moves=True),
)


def fingerprints(runs: Path) -> int:
    """Run the plan on the first router and print the table; returns 1 if two sources contradict. Raises LabError."""
    if life.reachable():
        life.up(forwards=False)
    folder = new_folder(runs, _NAME)
    with _agent():
        observe(HERE / "plans" / f"{_NAME}.yaml", folder, ())
    told = _told(folder)
    rows = compared(told, FACTS)
    header = ("fact", *(_SHOWN[way] for way in _WAYS), "")
    print(columns([header, *(tuple(_cut(cell) for cell in row[:-1]) + row[-1:] for row in rows)]))
    alike, apart = agreement(told["agent"], told["ssh"])
    print(f"\nagent and SSH: {alike} facts are the same" + (f", {len(apart)} are not:" if apart else ""))
    for path, (here, there) in apart.items():
        print(f"  {path}: {here or 'not told'} | {there or 'not told'}")
    for way in _WAYS:
        print(f"\n{_SHOWN[way]} tells: {', '.join(name for name in told[way] if name not in _PROGRAM - {'agent'})}")
        notes = told[way].get("notes")
        for note in notes if isinstance(notes, list) else []:
            print(f"  not told - {note}")
    return int(bool(apart) or any(row[-1].startswith("they differ") for row in rows))


def compared(told: Mapping[str, Mapping[str, Tree]], facts: Sequence[Fact]) -> list[tuple[str, ...]]:
    """One row a fact: its name, the value from each source, and which sources agree."""
    rows = []
    for fact in facts:
        said = {way: fact.of(told[way]) for way in _WAYS}
        rows.append((fact.name, *(words or "-" for words in said.values()), _agreed(said, fact)))
    return rows


def agreement(one: Mapping[str, Tree], other: Mapping[str, Tree]) -> tuple[int, dict[str, tuple[str, str]]]:
    """The number of facts that two trees have in common, and by path those that differ."""
    from soakwatch.core.fingerprints import comparable
    from soakwatch_model.tree import flatten

    flat = [flatten(comparable({k: v for k, v in tree.items() if k not in _PROGRAM}), "") for tree in (one, other)]
    paths = list(dict.fromkeys([*flat[0], *flat[1]]))
    apart = {path: (flat[0].get(path, ""), flat[1].get(path, "")) for path in paths}
    apart = {path: both for path, both in apart.items() if both[0] != both[1]}
    return len(paths) - len(apart), apart


def _agreed(said: Mapping[str, str], fact: Fact) -> str:
    tellers = [way for way, words in said.items() if words]
    names = [_SHOWN[way] for way in tellers]
    if not tellers:
        return "nobody tells it"
    if len(tellers) == 1:
        return f"only {names[0]} tells it"
    values = [said[way] for way in tellers]
    same = "all tell the same" if len(tellers) == len(said) else f"{' and '.join(names)} tell the same"
    if fact.number and max(map(float, values)) - min(map(float, values)) <= _WITHIN_S:
        return same
    if len(set(values)) > 1:
        return "changes by itself" if fact.moves else f"they differ: {' and '.join(names)}"
    return same


def _at(tree: Tree, steps: Sequence[str]) -> str:
    """The value at a place in a tree, or the names of its children."""
    for step in steps:
        tree = tree.get(step) if isinstance(tree, dict) else None
    if isinstance(tree, dict):
        names = ", ".join(sorted(tree))
        return f"{len(tree)}: {names}" if len(tree) > 1 else names
    if isinstance(tree, list):
        return ", ".join(str(each.get("name", "")) if isinstance(each, dict) else str(each) for each in tree)
    return "" if tree is None else str(tree)


def _cut(words: str) -> str:
    return words if len(words) <= _WIDE else f"{words[: _WIDE - 1]}…"


def _told(folder: Path) -> dict[str, Mapping[str, Tree]]:
    from soakwatch.core.fingerprints import BEGIN_KEY
    from soakwatch.record import RecordView
    from soakwatch_model.tree import parse_json

    with RecordView.open(folder) as view:
        trees = parse_json(view.meta(BEGIN_KEY))
    found: dict[str, Mapping[str, Tree]] = {}
    for way in _WAYS:
        tree = trees.get(way) if isinstance(trees, dict) else None
        if not isinstance(tree, dict) or not tree.keys() - {"notes", "told_by"}:
            why = _at(tree, ["notes"]) or "it did not answer"
            raise LabError(f"{_SHOWN[way]} told nothing of the router ({why}): see {folder}.log")
        found[way] = tree
    return found


@contextmanager
def _agent() -> Iterator[None]:
    """Run an agent in the first router, at a socket that the monitor sees too."""
    home = A.folder / "agent"
    words = (sys.executable, "-m", "soakwatch_agent", "run", "--no-recorder", "--dir", str(home))
    process = life.start_inside(A, *words)
    try:
        wait_for((home / "socket").exists, "the agent in the router", 60)
        yield
    finally:
        process.kill()  # this kills nsenter; ``end_inside`` kills the agent
        process.wait()
        life.end_inside(A, str(home))
        call("rm", "-rf", str(home))
