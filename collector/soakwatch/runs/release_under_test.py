"""The release under test: the label of that name, else which software the devices said they run. And releases in their
order: 7.9 before 7.10, a release candidate before its release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.labels import LABELS_KEY, RELEASE, labels_in
from soakwatch.record.model import StoredEvent
from soakwatch.record.source import ReportSource
from soakwatch_model.roles import DUT

_VERSION = re.compile(r"[A-Za-z][A-Za-z -]*\d[\w.+-]*|v?\d+(?:\.\d+)+[\w.+()-]*|\d+", re.ASCII)
_BEFORE = frozenset({"dev", "a", "alpha", "b", "beta", "pre", "rc"})
Key = tuple[tuple[int, int, str], ...]
_KEYS = ("version", "software")
_MAX_LENGTH = 80


def release_in(source: ReportSource) -> str:
    """The release of the run of a record, "" where nothing is known of it."""
    labels = labels_in(source.meta(LABELS_KEY))
    return release_of(source.events(), source.roles(), source.meta("fingerprint"), labels)


def release_of(
    events: Iterable[StoredEvent],
    roles: Mapping[str, str],
    fingerprint: str | None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The label ``release`` where the run has it; else the versions that the targets of role ``dut`` reported, each
    once, with ``A → B`` where one changed during the run.

    A device that reports none has the kernel of its fingerprint (JSON by target), as ``kernel 6.1.0``, for it may tell
    little of the service under test. Empty where nothing is known.
    """
    if labels.get(RELEASE):
        return labels[RELEASE]
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
        kernel = [f"kernel {kernels[target]}"] if target in kernels else []
        releases.append(" → ".join(distinct(versions.get(target, ())) or kernel))
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


def version_key(name: str) -> Key:
    """A sorting key for versions.

    >>> sorted(["7.10", "7.9", "7.10-rc1", "7.9.1", "7.9R2"], key=version_key)
    ['7.9', '7.9R2', '7.9.1', '7.10-rc1', '7.10']
    """
    parts: list[tuple[int, int, str]] = []
    for part in re.findall(r"\d+|[A-Za-z]+", name.removeprefix("v")):
        if part.isdecimal():
            parts.append((1, int(part), ""))
        else:
            parts.append((-1 if part.lower() in _BEFORE else 1, -1, part.lower()))
    return (*parts, (0, 0, ""))


def are_versions(names: Iterable[str]) -> bool:
    """Whether all of some names can be put in order as versions: numbers, numbers with points, a word and a number.

    >>> are_versions(["7.2", "v7.10-rc1"]), are_versions(["Linux 6.1.3", "Linux 6.2"]), are_versions(["9f3c", "a77b"])
    (True, True, False)
    >>> are_versions(["tuned", "stock"])
    False
    """
    return all(_VERSION.fullmatch(name) is not None for name in names)
