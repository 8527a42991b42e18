"""What a device is, asked once at its command line beside the polls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from soakwatch.sources.abc import SourceError
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.transport.network_cli.cli_session import RefusedError
from soakwatch_model.tree import Tree

_NAMES = {"version": "software", "model": "model", "serial": "serial", "failover": "failover"}
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
    questions = {text: [read] for text, read in platform.parts.items()}
    for command in platform.commands:
        if command.identifies:  # of the polls some may not have come yet
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


def _facts(parse: Callable[[str], Parsed]) -> Callable[[str], dict[str, Tree]]:
    def read(text: str) -> dict[str, Tree]:
        return {"device": device_of(parse(text).facts)}

    return read


def device_of(facts: Mapping[str, str]) -> dict[str, Tree]:
    """Facts of the polls under the names of a fingerprint; why it restarted is an event and no part of it."""
    return {ours: facts[theirs] for theirs, ours in _NAMES.items() if facts.get(theirs)}
