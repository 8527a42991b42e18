"""Load of wrk or wrk2: driven by the run, or read from the text that each run prints at its end, appended to a file.

wrk prints nothing while it runs: each sample covers a whole run of wrk, at the time when its text was seen. Repeat
short runs (``while :; do wrk -d 10s --latency URL; done > /tmp/wrk.txt``), or print figures
from its Lua script and read them with ``command``.
Example: ``wrk: {file: /tmp/wrk.txt, interval: 5s}``.

With ``drive: true`` the run repeats short runs of wrk, of ``each`` (10 s) each, and sets their level: ``full: 64
connections`` is the number of connections, each of which sends its next request when the last is answered; with wrk2
(``program: wrk2``) ``full: 2000/s`` is a rate, sent over ``connections``. Between two runs, and from one level to the
next, nothing is sent while a new wrk starts and connects. At a change of level wrk is interrupted and prints what it
counted by then. Counts go on.
Example: ``wrk: {drive: true, url: "http://198.18.0.1/", full: 64 connections}``.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from soakwatch.core.units import Seconds
from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.programs.driven import DriveKeys, DrivenKind, arguments, drive
from soakwatch.sources.programs.supervisor import Command
from soakwatch.sources.result_files.result_file import FollowKeys, follow
from soakwatch.sources.result_files.wrk import WrkReader

_UNITS = {"users": "connections (64 connections)", "rate": "with wrk2 a rate (2000/s)"}
_OURS = ("-c", "--connections", "-d", "--duration", "-t", "--threads", "-R", "--rate", "-s", "--script", "-v")
_VERSION = re.compile(r"wrk2? +(?:debian/)?(\d[\w.+~-]{0,40}|\S{1,40})(?: \[|$)", re.MULTILINE)


class Config(DriveKeys, FollowKeys):
    """Keys of the source ``wrk``."""

    title: ClassVar[str] = "wrk"
    driven_keys: ClassVar[tuple[str, ...]] = (
        "url",
        "full",
        "each",
        "threads",
        "connections",
        "script",
        "program",
        "options",
    )
    needed_keys: ClassVar[tuple[str, ...]] = ("url", "full")

    url: Annotated[
        str | None, Field(default=None, pattern=r"^https?://\S+$", description="what is asked for, with http(s)://")
    ]
    each: Annotated[Seconds, Field(default=10.0, ge=1, le=3600, description="length of one run of wrk, and sample")]
    threads: Annotated[int, Field(default=1, ge=1, le=1024, description="threads of wrk")]
    connections: Annotated[
        int | None, Field(default=None, ge=1, le=1_000_000, description="connections of a rate; default: 10 a thread")
    ]
    script: Annotated[Path | None, Field(default=None, description="a Lua script for wrk", strict=False)]
    program: Annotated[str, Field(default="wrk", min_length=1, description="the program, or its path")]

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if wrong := self.wrong(_UNITS) or arguments(_OURS, self.options):
            raise ValueError(wrong)
        if self.each != int(self.each):
            raise ValueError(f"wrk counts whole seconds: write each: {round(self.each)}s")
        if self.connections is not None and self.full is not None and self.full.unit == "users":
            raise ValueError("connections is for a rate: full: 64 connections names their number itself")
        return self


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following, or finds the program. Raises SourceError."""
    reader = WrkReader()
    if config.drive:
        return await drive(kind_of(config), config, site, stack, reader)
    assert config.file is not None
    return await follow(config.file, config, site, stack, reader, restarts=False, program="wrk")


def kind_of(config: Config) -> DrivenKind:
    """How wrk or wrk2 is driven."""
    full, url, script = config.full, config.url, config.script
    assert full is not None
    assert url is not None

    def command(level: float, file: Path) -> Command:  # noqa: ARG001 - wrk prints
        amount = full.at(level)
        rate = full.unit == "rate"
        connections = config.connections or 10 * config.threads if rate else int(amount)
        words = [config.program, "-t", str(min(config.threads, connections)), "-c", str(connections)]
        words += ["-R", str(max(1, round(amount)))] if rate else []
        words += ["-d", f"{config.each:.0f}s", "--latency"]
        words += ["-s", str(script)] if script is not None else []
        return (*words, *config.options, url)

    def prepare(folder: Path) -> str:  # noqa: ARG001 - wrk needs nothing there
        missing = script is not None and not script.is_file()
        return f"script: {script} does not exist in {Path.cwd()}" if missing else ""

    def understands(said: str) -> str:
        if full.unit == "rate" and "--rate" not in said:
            return f"{config.program} takes no rate: set program: to the path of wrk2, or write full: 64 connections"
        if full.unit == "users" and "--rate" in said:
            return f"{config.program} is wrk2, which needs a rate: write full: 2000/s, and connections: 64"
        return ""

    return DrivenKind(
        "wrk",
        "wrk",
        config.program,
        full,
        ("-v",),
        _VERSION,
        command,
        "wrk.txt",
        prepare=prepare,
        understands=understands,
        prints=True,
        offered="load.offered.rate",
        threads=config.threads,
    )
