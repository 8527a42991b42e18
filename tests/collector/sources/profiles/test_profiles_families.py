"""Families of devices: chosen, read, told of themselves, heard, all through the reader that polls a real agent.

``devices_families.yaml`` beside this file has a device of each, made by hand from its MIB; null must not come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from soakwatch.sources.profiles import ProfileReader, Value, load_profiles, match
from soakwatch.sources.profiles.facts import read_facts
from soakwatch.sources.profiles.recording import recording

ENTERPRISES = "1.3.6.1.4.1."
SECOND = 1_000_000_000
PROFILES = load_profiles()
HEADS = PROFILES.heads()


class _Plain(yaml.SafeLoader):
    """YAML in which 41112.1 stays the text that it is in an OID."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:float"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
DEVICES: Mapping[str, Mapping[str, Any]] = yaml.load(
    (Path(__file__).parent / "devices_families.yaml").read_text(), _Plain
)


def _whole(oid: object) -> str:
    return str(oid) if str(oid).startswith("1.3.6.") else f"{ENTERPRISES}{oid}"


def _rows(name: str) -> dict[str, Value]:
    given = DEVICES[name]["rows"].items()
    return {_whole(oid): value if isinstance(value, int) else value.encode() for oid, value in given}


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_gets_its_profile(name: str) -> None:
    """By sysObjectID and sysDescr alone, among all profiles that are shipped."""

    async def absent(_: str) -> str | None:
        return None

    for oid, description in DEVICES[name]["is"]:
        chosen = asyncio.run(match(_whole(oid), description, absent, HEADS))
        assert chosen.name == name, f"{oid} {description!r} is taken for {chosen.name}: {chosen.why}"


@pytest.mark.parametrize("name", [name for name, device in DEVICES.items() if "makes" in device])
def test_its_values_become_samples(name: str) -> None:
    """In the unit of the catalogue, and nothing that the device does not have."""
    reader = ProfileReader(recording(_rows(name)), PROFILES[name])

    async def poll() -> tuple[dict[str, float], list[str]]:
        await reader.discover(0)
        reading = await reader.poll(60 * SECOND)
        values = {f"{sample.metric}{{{sample.object}}}": sample.value for sample in reading.samples}
        return values, [f"{fault.metric}: {fault.text}" for fault in reading.faults]

    values, faults = asyncio.run(poll())
    assert not faults
    wanted = {series: value if value is None else float(value) for series, value in DEVICES[name]["makes"].items()}
    assert {series: values.get(series) for series in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("name", [name for name, device in DEVICES.items() if "facts" in device])
def test_it_tells_of_itself(name: str) -> None:
    """Its version, and why it, or a module of it, started again."""
    facts = asyncio.run(read_facts(recording(_rows(name)), PROFILES[name]))
    assert {fact: facts.get(fact) for fact in DEVICES[name]["facts"]} == DEVICES[name]["facts"]


SAYING = [(name, *line) for name, device in DEVICES.items() for line in device.get("says", ())]


@pytest.mark.parametrize(("name", "line", "kind", "detail"), SAYING, ids=[line[:40] for _, line, _, _ in SAYING])
def test_a_line_of_its_log_means_an_event(name: str, line: str, kind: str | None, detail: Mapping[str, str]) -> None:
    """The first pattern that the line has; null: none may take it."""
    heard = next(((log, hit) for log in PROFILES[name].logs if (hit := log.match.search(line))), None)
    assert (heard[0].kind if heard else None) == kind
    if heard:
        assert {key: heard[1].groupdict()[key] for key in detail} == dict(detail)


TRAPS = [(name, _whole(oid), kind) for name, device in DEVICES.items() for oid, kind in device.get("traps", {}).items()]


@pytest.mark.parametrize(("name", "oid", "kind"), TRAPS)
def test_a_notification_means_an_event(name: str, oid: str, kind: str) -> None:
    assert {trap.oid: trap.kind for trap in PROFILES[name].traps}[oid] == kind
