"""Which software the devices of a run said they run: what people call the release under test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.roles import DUT
from soakwatch.record.model import StoredEvent

_KEYS = ("version", "software")
_MAX_LENGTH = 80


def release_of(events: Iterable[StoredEvent], roles: Mapping[str, str], fingerprint: str | None) -> str:
    """The versions that the targets of role ``dut`` reported, each once; ``A → B`` where one changed during the run.

    A device that reports none has the kernel of its fingerprint (JSON by target). Empty where nothing is known.
    """
    versions: dict[str, list[str]] = {}
    for stored in events:
        event = stored.event
        if event.kind != IDENTITY or roles.get(event.target) != DUT:
            continue
        version = next((event.detail[key] for key in _KEYS if event.detail.get(key)), "")
        if version:
            versions.setdefault(event.target, []).append(" ".join(version.split())[:_MAX_LENGTH])
    kernels = _kernels(fingerprint)
    releases: list[str] = []
    for target in sorted(name for name, role in roles.items() if role == DUT):
        steps = distinct(versions.get(target, ())) or distinct([kernels.get(target, "")])
        releases.append(" → ".join(steps))
    return ", ".join(distinct(releases))


def distinct(words: Iterable[str]) -> list[str]:
    """Each once, without those that another one holds: two sources report the same version in more or fewer words.

    >>> distinct(["6.18.44", "Linux 6.18.44", "7.2(1)"])
    ['Linux 6.18.44', '7.2(1)']
    """
    kept: list[str] = []
    for word in words:
        if not word or any(word in other for other in kept):
            continue
        within = [other for other in kept if other in word]
        if within:
            kept[kept.index(within[0])] = word
            kept = [other for other in kept if other == word or other not in word]
        else:
            kept.append(word)
    return kept


def _kernels(text: str | None) -> dict[str, str]:
    try:
        machines = json.loads(text or "{}").items()
    except (ValueError, AttributeError):
        return {}
    hosts = {name: tree.get("host") for name, tree in machines if isinstance(tree, dict)}
    return {
        name: " ".join(str(host["kernel"]).split())[:_MAX_LENGTH]
        for name, host in hosts.items()
        if isinstance(host, dict) and host.get("kernel")
    }
