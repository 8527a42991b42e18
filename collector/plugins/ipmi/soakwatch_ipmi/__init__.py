"""A management controller (BMC) over IPMI: power, supplies, fans, temperatures and voltages, with their limits.

It is asked over the network (RMCP+, UDP port 623) by the program ``ipmitool`` of this machine, which knows the quirks
of decades of controllers; an account of the privilege USER is enough. Watts of the whole machine come from DCMI where
the controller has it, else from the sensors of its supplies. Limits are those of the sensor data repository. A
controller is slow: ask every 10 s or less often. Example:
``ipmi: {host: bmc.lab, user: reader, password: env:BMC_PASSWORD, interval: 10s}``.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef, secret
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import Facts, HostName, SourceConfig, SourceContext, SourceError
from soakwatch.sources.hardware_readings import HardwareAnswers, HardwareReadings, cadences
from soakwatch_ipmi.ipmitool import Ipmitool, NotOfferedError
from soakwatch_ipmi.sensors import Known, power_of_dcmi, take_sensors
from soakwatch_model.sample import Answer, object_text

_HOUR_NS = 3600 * 10**9
_TOTAL: Final = object_text(sensor="total")
_MAX_PASSWORD = 20  # bytes, the limit of IPMI 2.0


class Config(SourceConfig):
    """The keys of the source ``ipmi``."""

    interval: Annotated[Seconds, Field(default=10.0, ge=1, le=86400, description="time between polls")]
    host: Annotated[HostName, Field(description="name or address of the controller")]
    port: Annotated[int, Field(default=623, ge=1, le=65535, description="its UDP port")]
    user: Annotated[str, Field(default="", max_length=16, description="name of the account; default: the nameless one")]
    password: Annotated[SecretRef | None, Field(default=None, description="its password")]
    privilege: Annotated[
        Literal["user", "operator", "administrator"],
        Field(default="user", description="level of the session; some controllers give watts only to administrators"),
    ]
    cipher: Annotated[
        int | None,
        Field(default=None, ge=0, le=17, description="cipher suite; default: the best that the controller offers"),
    ]


class IpmiPoller:
    """One controller. Its sensor repository is read at the first poll, and hourly in the background."""

    def __init__(self, tool: Ipmitool, repository: Path, interval_s: float) -> None:
        self._tool, self._repository, self._interval_s = tool, repository, interval_s
        self._answers = HardwareAnswers()
        self._reading: asyncio.Task[bool] | None = None
        self._read_ns: int | None = None
        self._sensors, self._dcmi = True, True
        self._why_no_dcmi = ""
        self._known: Known = {}

    async def poll(self, now_ns: int) -> Answer:
        """Read every sensor and the DCMI power once. Raises SourceError if the controller does not answer or has no
        reading."""
        await self._know_sensors(now_ns)
        every = HardwareReadings()
        await self._take_power(every)
        if self._sensors:
            rows = await self._tool.run("-c", "-S", str(self._repository), "sdr", "list", "all")
            take_sensors(every, rows, self._known)
        if not any(metric == "system.power" for metric, _ in every.values):
            reason = f"{self._why_no_dcmi}, and it has no sensor in watts with a reading"
            every.missing["system.power", _TOTAL] = every.missing.get(("system.power", _TOTAL), reason)
        answer = self._answers.answer(every, now_ns)
        if not answer.samples:
            raise SourceError(f"{self._tool.where} has no reading of power, supplies, fans, temperatures or voltages")
        return answer

    def facts(self) -> Facts:
        """The source of the watts, and the intervals of readings."""
        if self._read_ns is None:
            return Facts({})
        often = cadences(self._interval_s)
        if self._dcmi:
            return Facts({"watts": "DCMI"}, cadences=often)
        note = f"{self._why_no_dcmi}: watts are those of its sensors"
        return Facts({"watts": "sensors"}, notes=(note,), cadences=often)

    async def close(self) -> None:
        """End a pending read of the repository."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _take_power(self, every: HardwareReadings) -> None:
        if not self._dcmi:
            return
        try:
            said = await self._tool.run("dcmi", "power", "reading")
        except NotOfferedError as refused:
            self._dcmi = False
            self._why_no_dcmi = f"the controller has no power reading of DCMI ({refused})"
            return
        watts = power_of_dcmi(said)
        if watts is None:
            every.missing["system.power", _TOTAL] = "the controller's power measurement (DCMI) is not active"
        else:
            every.take("system.power", _TOTAL, watts)

    async def _know_sensors(self, now_ns: int) -> None:
        """Read the repository before the first answer; later in the background, with the old one in use.

        On a slow controller this takes longer than a poll may: the next poll waits for the same read.
        """
        if self._reading is None and (self._read_ns is None or now_ns - self._read_ns >= _HOUR_NS):
            self._reading = asyncio.create_task(self._read_repository())
        reading = self._reading
        if reading is None or (self._read_ns is not None and not reading.done()):
            return
        try:
            self._sensors = await asyncio.shield(reading)
            self._read_ns, self._dcmi = now_ns, True
        finally:
            if reading.done():
                self._reading = None

    async def _read_repository(self) -> bool:
        """Read the repository; returns whether the controller has one."""
        new = self._repository.with_suffix(".new")
        try:
            await self._tool.run("sdr", "dump", str(new))
        except NotOfferedError:
            return False
        if not new.is_file():
            return False
        new.replace(self._repository)
        return True


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> IpmiPoller:
    """Find the program. Raises PlanError for keys that IPMI cannot use, SourceError without ``ipmitool``."""
    program = shutil.which("ipmitool")
    if program is None:
        raise SourceError("the program ipmitool is not on this machine: install the package ipmitool")
    password = secret(config.password).reveal() if config.password else ""
    if len(password.encode()) > _MAX_PASSWORD:
        raise PlanError(f"{site.target}: ipmi: the password of {config.password} is longer than IPMI's 20 bytes")
    if re.search(r"[\x00-\x1f]", password + config.user):
        raise PlanError(f"{site.target}: ipmi: user or password has a character that IPMI cannot have")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soakwatch-ipmi-")))
    words = ["-H", config.host, "-p", str(config.port), "-U", config.user, "-L", config.privilege.upper()]
    words += [] if config.cipher is None else ["-C", str(config.cipher)]
    tool = Ipmitool(program, tuple(words), password, f"{config.host}:{config.port}")
    poller = IpmiPoller(tool, folder / "sensors.sdr", site.interval_s)
    stack.push_async_callback(poller.close)
    return poller
