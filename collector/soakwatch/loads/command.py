"""A command that prints its figures: one JSON object or `key value` lines a tick.

The command is started with the run and ended with it. Each line of its output is one tick: a JSON object
(``{"load.request.rate": 812.5, "load.latency{quantile=p99}": 0.012}``) or pairs ``key value`` separated by commas or
blanks. Keys are names of the catalogue, with labels in braces. A key ``time`` (seconds since 1970) is ignored: the
time of a tick is when its line arrived, on the run's own clock, so that a generator with a wrong clock does no harm.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.poller import Poller, Site, SourceConfig, SourceFailed
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import Answer, Fault, Sample

_HELD_LINES = 10_000  # a command that chatters faster than it is polled cannot fill the memory
_LINE_BYTES = 65_536


class Config(SourceConfig):
    """Keys of the source ``command``."""

    run: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="the command and its arguments, as a list (no shell)", strict=False),
    ]
    stop_signal: Annotated[str, Field(default="INT", pattern="^(INT|TERM)$", description="how the command is ended")]


async def start(config: Config, site: Site, stack: AsyncExitStack) -> Poller:
    """Start the command; it is ended, and after 5 s killed, when the stack closes."""
    try:
        process = await asyncio.create_subprocess_exec(
            *config.run, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL, limit=_LINE_BYTES, start_new_session=True
        )
    except OSError as error:
        raise SourceFailed(f"cannot start {config.run[0]}: {error.strerror}") from error
    lines = _Lines(site)
    reader = asyncio.create_task(lines.read(process))
    stack.push_async_callback(_end, process, reader, signal.Signals[f"SIG{config.stop_signal}"])
    return lines


async def _end(process: Process, reader: asyncio.Task[None], how: signal.Signals) -> None:
    for number in (how, signal.SIGKILL):
        if process.returncode is not None:
            break
        os.killpg(process.pid, number)
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            continue
    reader.cancel()
    await asyncio.wait([reader])


class _Lines:
    """What the command said since the poll before."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._samples: list[Sample] = []
        self._faults: list[Fault] = []
        self._ended: str | None = None

    async def read(self, process: Process) -> None:
        """Read lines until the command ends."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                self._faults.append(Fault("", "", f"a line of over {_LINE_BYTES} bytes was left out"))
                continue
            if not line:
                break
            if len(self._samples) < _HELD_LINES:
                samples, faults = parse_tick(line.decode(errors="replace"), self._site.now_ns())
                self._samples += samples
                self._faults += faults
        self._ended = f"the command ended with exit code {await process.wait()}"

    async def poll(self, _now_ns: int) -> Answer:
        """The ticks that have arrived; a command that has ended is a failed source."""
        samples, self._samples = tuple(self._samples), []
        faults, self._faults = tuple(self._faults), []
        if self._ended is not None and not samples:
            raise SourceFailed(self._ended)
        return Answer(samples, (), faults)


def parse_tick(line: str, now_ns: int) -> tuple[list[Sample], list[Fault]]:
    """The samples of one line, and why a part of it could not be read.

    >>> parse_tick('{"load.request.rate": 10.5, "load.latency{quantile=p99}": 0.25}', 7)[0][1]
    Sample(metric='load.latency', object='quantile=p99', value=0.25, time_ns=7)
    >>> parse_tick("load.requests 12, load.failures 0", 7)[0][0].value
    12.0
    >>> parse_tick("load.requests many", 7)[1][0].text
    "'many' is not a number"
    """
    text = line.strip()
    if not text:
        return [], []
    try:
        pairs = list(json.loads(text).items()) if text.startswith("{") else _pairs(text)
    except (json.JSONDecodeError, ValueError):
        return [], [Fault("", "", f"not a JSON object and not `key value` pairs: {text[:80]!r}")]
    samples, faults = [], []
    for key, raw in pairs:
        name, _, labels = str(key).partition("{")
        if name == "time":
            continue
        if name not in BY_NAME:
            faults.append(Fault(name, "", f"{name!r} is not in the catalogue: see `soakwatch metrics load.*`"))
            continue
        if raw is None:
            continue
        try:
            value = float(raw)
        except (TypeError, ValueError):
            faults.append(Fault(name, labels.rstrip("}"), f"{raw!r} is not a number"))
            continue
        exact = raw if isinstance(raw, int) and not isinstance(raw, bool) else value
        samples.append(Sample(name, labels.rstrip("}"), exact, now_ns))
    return samples, faults


def _pairs(text: str) -> list[tuple[str, str]]:
    words = text.replace(",", " ").replace("}", "} ").split()
    if len(words) % 2:
        raise ValueError("an odd number of words")
    return list(zip(words[::2], words[1::2], strict=True))
