"""A management controller (BMC) over Redfish: power, supplies, fans, temperatures and voltages, with their limits.

It is asked over HTTPS with ``user`` and ``password``, or with a session's token (``headers: {X-Auth-Token:
env:TOKEN}``); an account that may read is enough. A controller is slow: ask every 10 s or less often. Example:
``redfish: {url: "https://bmc.lab", user: reader, password: env:BMC_PASSWORD, interval: 30s}``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Facts, LoginRefusedError, SourceContext, SourceError, timing
from soakwatch.sources.hardware_readings import HardwareAnswers, HardwareReadings, cadences
from soakwatch.sources.transport.http import WebAccess, WebConfig, web_access
from soakwatch_model.sample import Answer
from soakwatch_redfish.readings import (
    Resource,
    linked,
    members,
    take_fan,
    take_power,
    take_sensor,
    take_supply,
    take_thermal,
)

_ROOT = "/redfish/v1"
_HOUR_NS = 3600 * 10**9
_MAX_MEMBERS = 300  # of a collection whose members must be requested one by one


class Config(WebConfig):
    """The keys of the source ``redfish``."""

    chassis: Annotated[list[str], Field(default_factory=list, description="globs of chassis to ask; default: all")]


class RedfishPoller:
    """One service; its chassis are looked up at the first poll and hourly."""

    def __init__(self, access: WebAccess, wanted: list[str], where: str, interval_s: float) -> None:
        self._interval_s, self._version = interval_s, "unknown"
        self._access, self._wanted, self._where = access, wanted, where
        self._chassis: dict[str, Resource] = {}
        self._expands = False
        self._found_ns: int | None = None
        self._answers = HardwareAnswers()

    async def poll(self, now_ns: int) -> Answer:
        """Read every chassis once. Raises SourceError if the service cannot be read or has no reading."""
        if self._found_ns is None or now_ns - self._found_ns >= _HOUR_NS:
            await self._find()
            self._found_ns = now_ns
        every = HardwareReadings()
        for name, chassis in self._chassis.items():
            every.chassis = name if len(self._chassis) > 1 else ""
            await self._look(every, chassis)
        answer = self._answers.answer(every, now_ns)
        if not answer.samples and not answer.faults:
            raise SourceError(f"{self._where} has no reading of power, supplies, fans, temperatures or voltages")
        return answer

    def facts(self) -> Facts:
        """The version of the service, and the intervals of readings."""
        return Facts({"redfish": self._version}, cadences=cadences(self._interval_s))

    async def _find(self) -> None:
        root = await self._get(_ROOT)
        self._version = str(root.get("RedfishVersion") or "unknown")[:40]
        features = root.get("ProtocolFeaturesSupported")
        expand = features.get("ExpandQuery") if isinstance(features, Mapping) else None
        self._expands = isinstance(expand, Mapping) and expand.get("NoLinks") is True
        address = linked(root, "Chassis")
        if address is None:
            raise SourceError(f"{self._where} names no chassis in {_ROOT}: is it a Redfish service?")
        found: dict[str, Resource] = {}
        async for chassis in self._members(address):
            name = str(chassis.get("Id") or chassis.get("Name") or len(found) + 1)
            if not self._wanted or any(fnmatchcase(name, glob) for glob in self._wanted):
                found[name] = chassis
        if not found:
            asked = f" that matches {', '.join(self._wanted)}" if self._wanted else ""
            raise SourceError(f"{self._where} has no chassis{asked}")
        self._chassis = found

    async def _look(self, into: HardwareReadings, chassis: Resource) -> None:
        power, thermal = linked(chassis, "Power"), linked(chassis, "Thermal")
        if power is not None:
            take_power(into, await self._get(power))
        if thermal is not None:
            take_thermal(into, await self._get(thermal))
        subsystem = linked(chassis, "PowerSubsystem")
        if power is None and subsystem is not None:
            supplies = linked(await self._get(subsystem), "PowerSupplies")
            index = 0
            async for supply in self._members(supplies):
                index += 1
                take_supply(into, supply, f"supply {index}")
        subsystem = linked(chassis, "ThermalSubsystem")
        if thermal is None and subsystem is not None:
            index = 0
            async for fan in self._members(linked(await self._get(subsystem), "Fans")):
                index += 1
                take_fan(into, fan, f"fan {index}")
        if power is None or thermal is None:
            async for sensor in self._members(linked(chassis, "Sensors")):
                take_sensor(into, sensor, power=power is None)

    async def _members(self, address: str | None) -> AsyncIterator[Resource]:
        """The members of a collection in full, in one request if the service supports that, else one by one."""
        if address is None:
            return
        collection = await self._get(f"{address}?$expand=.($levels=1)" if self._expands else address)
        for member in members(collection)[:_MAX_MEMBERS]:
            link = linked(member)
            yield member if link is None or len(member) > 1 else await self._get(link)

    async def _get(self, address: str) -> Resource:
        if not address.startswith("/redfish/"):
            raise SourceError(f"{self._where} leads to {address[:60]!r}, which is no resource of it")
        page = await self._access.request("GET", address, headers={"accept": "application/json"})
        if page.status in {401, 403}:
            raise LoginRefusedError(
                f"{self._where} refuses the login ({page.status}): set user and password, or headers with X-Auth-Token"
            )
        if page.status != 200:
            raise SourceError(f"{self._where} answers {address} with status {page.status}")
        try:
            tree: object = json.loads(page.body)
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            raise SourceError(f"{self._where} answers {address} with something that is no JSON object")
        return tree


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> RedfishPoller:
    """Open the client. Raises PlanError for wrong keys, SourceError for a server without the pinned certificate."""
    parts = urlsplit(config.url)
    if parts.path.strip("/") or parts.query:
        raise PlanError(f"{site.target}: redfish: url ends with the host, such as https://{parts.hostname}")
    access = await web_access(config, site.target, timing(0, site.interval_s, config.timeout).timeout_s, stack)
    return RedfishPoller(access, config.chassis, parts.netloc.rpartition("@")[2], site.interval_s)
