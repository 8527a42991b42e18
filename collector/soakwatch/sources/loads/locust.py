"""Load of locust: driven by the run, or read from the history that it writes with --csv NAME while it runs.

Requests and failures are counted, rates are of the totals since the row before, percentiles those of locust (of about
the last ten seconds), users as it reports them. The times are those of locust, to the second.
Example: ``locust: {file: /tmp/soak_stats_history.csv}`` beside ``locust --headless --csv /tmp/soak …``.

With ``drive: true`` the run starts locust without its page and sets its level: ``full: 50 users`` are its users,
started at ``spawn_rate`` (default: all within a second). How often a user asks is the script's
(``constant_throughput`` makes it a rate). Each level is a process of its own: nothing is sent until the next one has
started. Counts go on; those of the last second before the change, of which the history has no row, are of the summary
that locust prints at its end.
Example: ``locust: {drive: true, script: locustfile.py, host: "http://198.18.0.1", full: 50 users}``.
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
from soakwatch.sources.result_files.locust import LocustReader
from soakwatch.sources.result_files.result_file import TimedKeys, begin_of, follow

_UNITS = {"users": "users (50 users); a script with constant_throughput makes them a rate"}
_OURS = (
    *("-f", "--locustfile", "-u", "--users", "-r", "--spawn-rate", "-t", "--run-time", "-H", "--host", "--csv"),
    *("--headless", "--autostart", "--csv-full-history", "--reset-stats", "-l", "--list", "--master", "--worker"),
)
_HISTORY = "_stats_history.csv"
_TOTALS = re.compile(r"^\s*Aggregated\s+(\d{1,15})\s+(\d{1,15})\(")
_VERSION = re.compile(r"locust (\d[\w.+-]{0,40})")


class Config(DriveKeys, TimedKeys):
    """Keys of the source ``locust``."""

    title: ClassVar[str] = "locust"
    driven_keys: ClassVar[tuple[str, ...]] = ("script", "host", "full", "spawn_rate", "program", "options")
    needed_keys: ClassVar[tuple[str, ...]] = ("script", "full")

    script: Annotated[Path | None, Field(default=None, description="the locustfile", strict=False)]
    host: Annotated[
        str | None, Field(default=None, pattern=r"^\S+$", description="base address; default: what the script says")
    ]
    spawn_rate: Annotated[
        float | None, Field(default=None, gt=0, le=1e6, description="users started a second; default: all in one")
    ]
    program: Annotated[str, Field(default="locust", min_length=1, description="the program, or its path")]

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if wrong := self.wrong(_UNITS) or arguments(_OURS, self.options):
            raise ValueError(wrong)
        return self


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following, or finds the program. Raises SourceError."""
    reader = LocustReader(begin_of(site))
    if config.drive:
        return await drive(kind_of(config), config, site, stack, reader)
    assert config.file is not None
    return await follow(config.file, config, site, stack, reader, program="locust")


def kind_of(config: Config) -> DrivenKind:
    """How locust is driven."""
    full, script = config.full, config.script
    assert full is not None
    assert script is not None

    def command(level: float, file: Path) -> Command:
        users = int(full.at(level))
        words = [config.program, "-f", str(script), "--headless", "--users", str(users)]
        words += ["--spawn-rate", f"{config.spawn_rate or users:g}"]
        words += ["--host", config.host] if config.host else []
        words += ["--csv", str(file).removesuffix(_HISTORY), "--only-summary", "--loglevel", "WARNING"]
        return (*words, *config.options)

    def check(folder: Path) -> Command:  # noqa: ARG001 - it writes nothing
        return (config.program, "-f", str(script), "--list")

    def prepare(folder: Path) -> str:  # noqa: ARG001 - locust needs nothing there
        return "" if script.is_file() else f"script: {script} does not exist in {Path.cwd()}"

    return DrivenKind(
        "locust",
        "locust",
        config.program,
        full,
        ("--version",),
        _VERSION,
        command,
        f"soak{_HISTORY}",
        check=check,
        prepare=prepare,
        family=True,
        threads=None if any(word.startswith("--processes") for word in config.options) else 1,
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        totals=_TOTALS,
    )
