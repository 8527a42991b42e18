"""What a device is, asked once at its command line beside the polls: which command tells what, on which system."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from soakwatch.sources.abc import SourceError
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.transport.network_cli import inventory
from soakwatch.sources.transport.network_cli.session import RefusedError
from soakwatch_model.tree import Tree

Read = Callable[[str], dict[str, Tree]]
_NAMES = {"version": "software", "model": "model", "serial": "serial", "failover": "failover"}
_VERSIONS = frozenset(
    {
        "show_version",
        "display_version",
        "get_system_status",
        "show_system_info",
        "show_system_information",
        "show_version_all",
        "show_chassis_routing_engine",
        "show_sys_version",
        "system_routerboard_print",
    }
)
"""Commands of the polls that tell version, model or serial number."""


@dataclass(frozen=True, slots=True)
class Question:
    """One command, and how its answer is read."""

    text: str
    read: Read


_CISCO = (
    Question("show version", inventory.cisco_version),
    Question("show inventory", inventory.cisco_inventory),
)
QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "cisco_ios": (*_CISCO, Question("show license summary", inventory.license_table)),
    "cisco_xr": _CISCO,
    "cisco_nxos": (*_CISCO, Question("show license usage", inventory.license_table)),
    "cisco_asa": _CISCO,
    "juniper_junos": (
        Question("show chassis hardware", inventory.junos_hardware),
        Question("show system license", inventory.license_table),
    ),
    "arista_eos": (Question("show inventory | json", inventory.eos_inventory),),
    "huawei_vrp": (
        Question("display esn", inventory.vrp_esn),
        Question("display transceiver", inventory.transceivers),
    ),
    "hp_comware": (
        Question("display device manuinfo", inventory.comware_manuinfo),
        Question("display transceiver manuinfo", inventory.transceivers),
    ),
    "fortinet": (Question("get system status", inventory.fortios_status),),
    "paloalto_panos": (Question("show system info", inventory.panos_info),),
}
_SECTIONS = {"modules_hw": "hardware modules", "transceivers": "transceivers", "licences": "licences"}


async def cli_fingerprint(
    platform: Platform,
    device: Mapping[str, Tree],
    ask: Callable[[str], Awaitable[str]],
) -> dict[str, Tree]:
    """The sections. ``device`` is what the polls know already, ``ask`` brings the answer to a command.

    ``ask`` raises RefusedError, and SourceError after which no more is asked. A part that was not read to its end is a
    note. The answer to a command whose facts the polls read as well is read for these too.
    """
    tree: dict[str, Tree] = {"device": dict(device)}
    notes: list[str] = []
    questions = {question.text: [question.read] for question in QUESTIONS.get(platform.name, ())}
    for command in platform.commands:
        if command.name in _VERSIONS:  # of the polls some may not have come yet
            questions.setdefault(command.texts[0], []).append(_facts(command.parse))
    for text, readers in questions.items():
        try:
            answer = await ask(text)
        except RefusedError as refused:
            notes.append(f"the device refuses {text!r}: {refused}")
            continue
        except SourceError as failure:
            notes.append(f"{text!r} and what follows it were not read: {failure}")
            break
        try:
            for read in readers:
                _add(tree, await asyncio.to_thread(read, answer))
        except Exception as defect:  # noqa: BLE001 - as of a poll: a parser's defect must not cost the others
            notes.append(f"the answer to {text!r} could not be read: a defect of its parser ({type(defect).__name__})")
    notes += [f"{words}: the command line does not tell them" for name, words in _SECTIONS.items() if name not in tree]
    return {**tree, "notes": [*notes]} if notes else tree


def _add(tree: dict[str, Tree], sections: Mapping[str, Tree]) -> None:
    """What was told first stays; sections, and keys of a section, that are missing are added."""
    for name, section in sections.items():
        first = tree.setdefault(name, section)
        if isinstance(first, dict) and isinstance(section, dict):
            tree[name] = {**section, **first}


def _facts(parse: Callable[[str], Parsed]) -> Read:
    def read(text: str) -> dict[str, Tree]:
        return {"device": device_of(parse(text).facts)}

    return read


def device_of(facts: Mapping[str, str]) -> dict[str, Tree]:
    """Facts of the polls under the names of a fingerprint; why it restarted is an event and no part of it."""
    return {ours: facts[theirs] for theirs, ours in _NAMES.items() if facts.get(theirs)}
