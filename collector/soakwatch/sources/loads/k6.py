"""Load of k6: driven by the run, or read from what it writes with --out json=FILE or --out csv=FILE.

Requests, failures, bytes and dropped iterations (``load.queue_full``: the generator had no user free to send) are
counted, rates and percentiles are of each tick of ``interval``, users are as k6 reports them (``vus``). The times are
those of k6. It writes once a second; a tick is reported when a line of a later second was seen.
Example: ``k6: {file: /tmp/k6.json, interval: 2s}`` beside ``k6 run --out json=/tmp/k6.json script.js``.

With ``drive: true`` the run starts k6 and sets its level: ``full: 500/s`` are iterations a second (an open load, by the
executor constant-arrival-rate, with up to ``max_users`` users), ``full: 50 users`` users that repeat the script
(constant-vus). The script keeps its options but those of its load; its thresholds and summary are off, since the run
judges and k6 would keep all figures in memory for them. Neither executor can change while k6 runs, so each level is a
process of its own: k6 is interrupted, and nothing is sent until the next one has started. Counts go on.
Example: ``k6: {drive: true, script: soak.js, full: 500/s}``.
"""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.programs.driven import DriveKeys, DrivenKind, arguments, drive
from soakwatch.sources.programs.full_load import FullLoad
from soakwatch.sources.programs.supervisor import Command
from soakwatch.sources.result_files.k6 import K6Names, K6Reader
from soakwatch.sources.result_files.result_file import TimedKeys, begin_of, follow

_UNITS = {"rate": "a rate (500/s)", "users": "users (50 users)"}
_OURS = ("run", "-u", "--vus", "-d", "--duration", "-i", "--iterations", "-s", "--stage", "-o", "--out", "--linger")
_VERSION = re.compile(r"k6(?:\.exe)? v?(\d[\w.+-]{0,40})")
_NOISE = re.compile(rb"could not (?:initialize|load JS test) '[^']*': |^\s*at .*$", re.MULTILINE)
_FOREVER = "87600h"
_USUAL_USERS = 1000
_LOG = ["--log-format", "raw"]
_WRAPPER, _LOAD = "soakwatch.js", "SOAKWATCH_LOAD"
_OF_LOAD = json.dumps(
    [
        *("vus", "duration", "iterations", "stages", "scenarios", "paused", "thresholds"),
        *("executionSegment", "executionSegmentSequence"),
    ]
)
_WRAPPED = """\
import * as script from {script};
export * from {script};
const run = script[{function}];
if (typeof run !== 'function') throw new Error('the script exports no function ' + {function});
export default function (data) {{ return run(data); }}
const kept = Object.assign({{}}, script.options);
for (const key of {keys}) delete kept[key];
const load = JSON.parse(__ENV.{load} || '{{"executor":"constant-vus","vus":1,"duration":"1s"}}');
export const options = Object.assign(kept, {{scenarios: {{soakwatch: Object.assign(load, {{exec: 'default'}})}}}});
"""


class Config(DriveKeys, TimedKeys):
    """Keys of the source ``k6``."""

    title: ClassVar[str] = "k6"
    driven_keys: ClassVar[tuple[str, ...]] = ("script", "function", "full", "max_users", "program", "options")
    needed_keys: ClassVar[tuple[str, ...]] = ("script", "full")

    requests: Annotated[str, Field(default="http_reqs", description="k6 metric that counts requests")]
    failed: Annotated[str, Field(default="http_req_failed", description="k6 metric that is 1 for a failed request")]
    duration: Annotated[str, Field(default="http_req_duration", description="k6 metric of the latency (ms)")]
    script: Annotated[Path | None, Field(default=None, description="the script that k6 runs", strict=False)]
    function: Annotated[
        str, Field(default="default", pattern=r"^[A-Za-z_$][\w$]*$", description="the function of it that is repeated")
    ]
    program: Annotated[str, Field(default="k6", min_length=1, description="the program, or its path")]
    max_users: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=1_000_000,
            description="users that a rate may need; default: one for each 1/s, 1000 at most",
        ),
    ]

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if wrong := self.wrong(_UNITS) or arguments(_OURS, self.options):
            raise ValueError(wrong)
        if self.max_users is not None and self.full is not None and self.full.unit == "users":
            raise ValueError("max_users is for a rate: full: 50 users names their number itself")
        return self


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file for following, or finds the program. Raises SourceError."""
    names = K6Names(config.requests, config.failed, config.duration)
    reader = K6Reader(round(site.interval_s * 1e9), begin_of(site), names)
    if config.drive:
        return await drive(kind_of(config), config, site, stack, reader)
    assert config.file is not None
    return await follow(config.file, config, site, stack, reader, program="k6")


def kind_of(config: Config) -> DrivenKind:
    """How k6 is driven."""
    full, script = config.full, config.script
    assert full is not None
    assert script is not None
    most = config.max_users or max(1, min(round(full.value), _USUAL_USERS))

    def command(level: float, file: Path) -> Command:
        words = [config.program, "run", "--quiet", "--no-color", "--no-thresholds", "--no-usage-report"]
        words += _LOG
        words += ["--address", "", "--out", f"csv={file}"]
        words += ["--env", f"{_LOAD}={json.dumps(scenario(full, level, most), separators=(',', ':'))}"]
        return (*words, *config.options, str(file.parent / _WRAPPER))

    def check(folder: Path) -> Command:
        return (config.program, "inspect", *_LOG, *_variables(config.options), str(folder / _WRAPPER))

    def prepare(folder: Path) -> str:
        if not script.is_file():
            return f"script: {script} does not exist in {Path.cwd()}"
        (folder / _WRAPPER).write_text(wrapper(script.absolute(), config.function))
        return ""

    return DrivenKind(
        "k6",
        "k6",
        config.program,
        full,
        ("version",),
        _VERSION,
        command,
        "k6.csv",
        check=check,
        prepare=prepare,
        noise=_NOISE,
        environment={
            "K6_CSV_TIME_FORMAT": "unix_milli",
            "K6_CSV_SAVE_INTERVAL": "1s",
            "K6_SUMMARY_MODE": "disabled",
        },
    )


def scenario(full: FullLoad, level: float, most: int) -> dict[str, str | int]:
    """The scenario of a level, for k6's options; a rate is whole, in whatever unit of time that takes.

    >>> scenario(FullLoad(5, "rate"), 0.5, 20)["rate"], scenario(FullLoad(5, "rate"), 0.5, 20)["timeUnit"]
    (250, '100s')
    >>> scenario(FullLoad(50, "users"), 0.5, 50)
    {'executor': 'constant-vus', 'duration': '87600h', 'vus': 25}
    """
    amount = full.at(level)
    if full.unit == "users":
        return {"executor": "constant-vus", "duration": _FOREVER, "vus": int(amount)}
    whole = amount == int(amount)
    return {
        "executor": "constant-arrival-rate",
        "duration": _FOREVER,
        "rate": int(amount) if whole else max(1, round(amount * 100)),
        "timeUnit": "1s" if whole else "100s",
        "preAllocatedVUs": most,
        "maxVUs": most,
    }


def wrapper(script: Path, function: str) -> str:
    """A script with the functions and options of ``script``, and the load that the run sets."""
    return _WRAPPED.format(script=json.dumps(str(script)), function=json.dumps(function), load=_LOAD, keys=_OF_LOAD)


def _variables(options: tuple[str, ...]) -> list[str]:
    """Those of the options that set variables of the script."""
    words: list[str] = []
    for before, word in pairwise(("", *options)):
        if before in ("-e", "--env"):
            words += ["--env", word]
        elif word.startswith("--env="):
            words.append(word)
    return words
