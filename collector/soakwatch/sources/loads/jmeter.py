"""JMeter: driven by the run, or by its result file (-l FILE: JTL as CSV or XML), while it is written.

Requests, failures and bytes are counted, rates and percentiles are of each tick of ``interval``, users are the
threads of all groups. JMeter buffers some kilobytes before it writes (``-Jjmeter.save.saveservice.autoflush=true``
writes at once): with few requests ``bound`` and ``silence`` must be longer than that takes. Dates need ``tz``.
Example: ``jmeter: {file: /tmp/soak.jtl, interval: 5s}`` beside ``jmeter -n -t soak.jmx -l /tmp/soak.jtl``.

With ``drive: true`` the run starts JMeter without its windows and sets its level by properties that the test plan
reads: ``full: 50 users`` sets ``users`` (number of threads: ``${__P(users)}``), ``full: 500/s`` sets ``rate``
and ``rate_per_minute`` (of a Constant Throughput Timer: ``${__P(rate_per_minute)}``). Its thread groups must loop for
ever. A plan that reads none of them is refused. Each level is a process of its own: nothing is sent until the next
Java has started, some seconds later. Counts go on.
Example: ``jmeter: {drive: true, script: soak.jmx, full: 50 users}``.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.programs.driven import DriveKeys, DrivenKind, arguments, drive
from soakwatch.sources.programs.supervisor import Command
from soakwatch.sources.result_files.jmeter import JmeterReader
from soakwatch.sources.result_files.result_file import TimedKeys, begin_of, follow
from soakwatch.sources.result_files.zone import ZoneName, zone_of

_UNITS = {"users": "users (50 users)", "rate": "a rate (500/s)"}
_OURS = ("-n", "--nongui", "-t", "--testfile", "-l", "--logfile", "-j", "--jmeterlogfile", "-s", "--server", "-r", "-R")
_VERSION = re.compile(r"(?:Version |[\\_] )(\d{1,2}\.\d{1,3}[\w.]{0,30})\s*$", re.MULTILINE)
_PROPERTIES = {"users": ("users",), "rate": ("rate", "rate_per_minute")}
_SAVED = {
    "output_format": "csv",
    "print_field_names": "true",
    "autoflush": "true",
    "timestamp_format": "ms",
    "thread_counts": "true",
    "bytes": "true",
}


class Config(DriveKeys, TimedKeys):
    """Keys of the source ``jmeter``."""

    title: ClassVar[str] = "JMeter"
    driven_keys: ClassVar[tuple[str, ...]] = ("script", "full", "program", "options")
    needed_keys: ClassVar[tuple[str, ...]] = ("script", "full")

    tz: Annotated[
        ZoneName | None, Field(default=None, description="time zone of times without one, such as Europe/Berlin")
    ]
    script: Annotated[Path | None, Field(default=None, description="the test plan (.jmx)", strict=False)]
    program: Annotated[str, Field(default="jmeter", min_length=1, description="the program, or its path")]

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if wrong := self.wrong(_UNITS) or arguments(_OURS, self.options):
            raise ValueError(wrong)
        return self


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following, or finds the program. Raises SourceError."""
    reader = JmeterReader(round(site.interval_s * 1e9), begin_of(site), zone_of(config.tz))
    if config.drive:
        return await drive(kind_of(config), config, site, stack, reader)
    assert config.file is not None
    return await follow(config.file, config, site, stack, reader, program="JMeter")


def kind_of(config: Config) -> DrivenKind:
    """How JMeter is driven."""
    full, script = config.full, config.script
    assert full is not None
    assert script is not None

    def command(level: float, file: Path) -> Command:
        amount = full.at(level)
        values = {"users": amount, "rate": amount, "rate_per_minute": amount * 60}
        words = [config.program, "-n", "-t", str(script), "-l", str(file), "-j", "/dev/null"]
        words += [f"-J{name}={values[name]:g}" for name in _PROPERTIES[full.unit]]
        words += [f"-Jjmeter.save.saveservice.{name}={value}" for name, value in _SAVED.items()]
        return (*words, "-Jsummariser.name=", *config.options)

    def prepare(folder: Path) -> str:  # noqa: ARG001 - JMeter needs nothing there
        return reads_level(script, _PROPERTIES[full.unit])

    return DrivenKind(
        "jmeter",
        "JMeter",
        config.program,
        full,
        ("--version", "-j", "/dev/null"),
        _VERSION,
        command,
        "jmeter.jtl",
        prepare=prepare,
        family=True,
    )


def reads_level(script: Path, names: tuple[str, ...]) -> str:
    """What is missing in a test plan that shall take its level from one of these properties; "" for nothing."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return f"script: {script} does not exist in {Path.cwd()}"
    except OSError as error:
        return f"script: {script}: {(error.strerror or 'it cannot be read').lower()}"
    if "<jmeterTestPlan" not in text:
        return f"script: {script} is not a test plan of JMeter (.jmx)"
    if not any(re.search(rf"__(?:P|property)\(\s*{name}\s*[,)]", text) for name in names):
        wanted = " or ".join(f"${{__P({name})}}" for name in names)
        return f"script: {script} sets no level by the run: write {wanted} where its test plan has the number"
    return ""
