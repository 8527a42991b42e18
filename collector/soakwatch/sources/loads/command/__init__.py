"""A command that prints its figures: one JSON object or one `key value` line per tick.

The command is started and stopped with the run, and ends within 3 s with all of its process group if Soakwatch is
killed, unless it ``outlives`` it. Each line of its output is one tick: a JSON object
(``{"load.request.rate": 812.5, "load.latency{quantile=p99}": 0.012}``) or pairs ``key value`` separated by commas or
blanks. Keys are names of the catalogue, with labels in braces. A key ``time`` (seconds since 1970) is ignored: the
time of a tick is when its line arrived, on the run's own clock, so that a wrong clock of the generator does no harm.

With ``drive: true`` the phases set how much it sends: at each change it is stopped and restarted, with the level
(1 is the full load) in place of ``{level}`` among its words and in the variable ``SOAKWATCH_LEVEL``, and, where
``full`` is given, level times ``full`` in place of ``{rate}`` and in ``SOAKWATCH_RATE``. At level 0, and before the
first phase with a load, it does not run.
Example: ``command: {drive: true, full: 2000, run: [./load, --rate, "{rate}"]}``.
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.core.text import one_line
from soakwatch.sources.abc import Facts, Poller, SourceConfig, SourceContext, SourceError
from soakwatch.sources.generator_tree import generator, told_command
from soakwatch.sources.loads.command.process import LINE_BYTES, Child, begin
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Answer, Fault, Sample, object_labels, object_text
from soakwatch_model.tree import Tree

_MAX_HELD_SAMPLES = 10_000  # bounds memory if the command prints faster than it is polled
_MAX_FAULTS = 20
_UNREAD = "load.lines.unread"


class Config(SourceConfig):
    """Keys of the source ``command``."""

    run: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="the command and its arguments, as a list (no shell)", strict=False),
    ]
    stop_signal: Annotated[
        str, Field(default="INT", pattern="^(INT|TERM)$", description="signal that stops the command")
    ]
    drive: Annotated[bool, Field(default=False, description="phases set its level: {level}, {rate}, SOAKWATCH_LEVEL")]
    full: Annotated[float | None, Field(default=None, gt=0, description="what {rate} is at the full load")]
    outlives: Annotated[
        bool, Field(default=False, description="it goes on when Soakwatch is killed; by default it ends with it")
    ]


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Starts the command; when the stack closes it is stopped, and killed after 5 s."""
    if config.drive:
        driven = DrivenCommand(config, site)
        stack.push_async_callback(driven.stop)
        return driven
    lines = _Lines(site)
    child = await begin(config.run, {}, lines.take, outlives=config.outlives)
    stack.push_async_callback(child.end, _how(config))
    return Command(child, lines, config)


class Command:
    """A command that runs as long as the source is open."""

    def __init__(self, child: Child, lines: _Lines, config: Config) -> None:
        self._child, self._lines, self._config = child, lines, config

    async def poll(self, now_ns: int) -> Answer:
        """The ticks that have arrived. Raises SourceError once the command has ended."""
        return _answer(self._child, self._lines, now_ns)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the command line."""
        return _about(self._config)


class DrivenCommand:
    """A command that is restarted for each level."""

    def __init__(self, config: Config, site: SourceContext) -> None:
        self._config, self._site = config, site
        self._lines = _Lines(site)
        self._level: float | None = None
        self._child: Child | None = None
        self._events: list[Event] = []

    async def poll(self, now_ns: int) -> Answer:
        """The ticks that have arrived; at rest only load.sending 0. Raises SourceError once the command has ended."""
        if self._site.trial:
            return Answer((), (), ())  # a trial before the run starts no load
        events, self._events = tuple(self._events), []
        if self._child is None:
            if self._level:
                raise SourceError("the command is not running: its last start failed")
            answer = self._lines.taken(now_ns)
            resting = Sample("load.sending", "", 0, now_ns)
            return Answer((*answer.samples, resting), (*events, *answer.events), answer.faults)
        answer = _answer(self._child, self._lines, now_ns)
        return Answer(answer.samples, (*events, *answer.events), answer.faults)

    def facts(self) -> Facts:
        """A note that it rests until a level is set."""
        notes = ("it rests until a phase says how much it sends (load: 100%)",) if self._level is None else ()
        return Facts({"command": self._config.run[0]}, (), notes)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the command with its placeholders."""
        return _about(self._config)

    async def drive(self, level: float) -> None:
        """Stops the command and starts it with this level. Raises SourceError."""
        if level == self._level and self._child is not None and self._child.ended is None:
            return
        again = self._child is not None
        await self.stop()
        if level > 0:
            self._child = await begin(
                self._words(level), self._environment(level), self._lines.take, outlives=self._config.outlives
            )
        self._level = level
        if again and level > 0:
            cause = {"cause": f"restarted for the level {level:g}"}
            self._events.append(Event("generator.restart", "", "", self._site.now_ns(), None, cause))

    async def stop(self) -> None:
        """Stops the command if it runs."""
        if self._child is not None:
            await self._child.end(_how(self._config))
            self._child = None  # not earlier: if this is cancelled, the next stop must find it

    def _words(self, level: float) -> list[str]:
        return [self._filled(word, level) for word in self._config.run]

    def _filled(self, word: str, level: float) -> str:
        filled = word.replace("{level}", f"{level:g}")
        return filled if self._config.full is None else filled.replace("{rate}", f"{level * self._config.full:g}")

    def _environment(self, level: float) -> dict[str, str]:
        variables = {"SOAKWATCH_LEVEL": f"{level:g}"}
        if self._config.full is not None:
            variables["SOAKWATCH_RATE"] = f"{level * self._config.full:g}"
        return variables


class _Lines:
    """What the command printed since the last poll."""

    def __init__(self, site: SourceContext) -> None:
        self._site = site
        self._samples: list[Sample] = []
        self._faults: list[Fault] = []
        self._unread = 0

    def take(self, line: bytes | None) -> None:
        """Takes one line of output; None for one that was too long."""
        if line is None:
            self._unread_line([Fault("", "", f"a line of more than {LINE_BYTES} bytes was dropped")])
        elif len(self._samples) >= _MAX_HELD_SAMPLES:
            self._unread_line(
                [Fault("", "", f"more than {_MAX_HELD_SAMPLES} samples between two polls: the rest was dropped")]
            )
        else:
            samples, faults = parse_tick(line.decode(errors="replace"), self._site.now_ns())
            self._samples += samples
            if faults:
                self._unread_line(faults)

    def _unread_line(self, faults: list[Fault]) -> None:
        self._unread += 1
        self._faults += [fault for fault in faults if fault not in self._faults][: _MAX_FAULTS - len(self._faults)]

    def taken(self, now_ns: int) -> Answer:
        """The samples since the last call, and the count of lines that could not be read completely."""
        samples, self._samples = self._samples, []
        faults, self._faults = tuple(self._faults), []
        if self._site.role == GENERATOR:
            samples.append(Sample(_UNREAD, "", self._unread, now_ns))
        return Answer(tuple(samples), (), faults)

    @property
    def empty(self) -> bool:
        """True if nothing was printed since the last call."""
        return not self._samples and not self._faults


def _answer(child: Child, lines: _Lines, now_ns: int) -> Answer:
    if lines.empty and (ended := child.ended) is not None:
        raise SourceError(ended)
    return lines.taken(now_ns)


def _how(config: Config) -> signal.Signals:
    return signal.Signals[f"SIG{config.stop_signal}"]


def _about(config: Config) -> Mapping[str, Tree]:
    words: dict[str, Tree] = {"command": told_command(config.run)}
    if config.full is not None:
        words["full"] = config.full
    return generator(one_line(config.run[0], 100), "", words)


def parse_tick(line: str, now_ns: int) -> tuple[list[Sample], list[Fault]]:
    """The samples of one line, a JSON object or pairs ``key value``, and a fault for each part that could not be read.

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
    except (ValueError, RecursionError):
        return [], [Fault("", "", f"not a JSON object and not `key value` pairs: {text[:80]!r}")]
    samples: list[Sample] = []
    faults: list[Fault] = []
    for key, raw in pairs:
        name, _, labels = str(key).partition("{")
        if name == "time":
            continue
        if name not in BY_NAME:
            faults.append(Fault("", "", f"{name[:80]!r} is not in the catalogue: see `soakwatch metrics load.*`"))
            continue
        if raw is None:
            continue
        obj, value = _object(name, labels.removesuffix("}")), _number(raw)
        if obj is None:
            known = ", ".join(BY_NAME[name].labels) or "none"
            faults.append(Fault(name, "", f"{str(key)[:80]!r} has labels that {name} does not: expected {known}"))
        elif value is None:
            faults.append(Fault(name, obj, f"{str(raw)[:80]!r} is not a number"))
        else:
            samples.append(Sample(name, obj, value, now_ns))
    return samples, faults


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        value = float(raw)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(value):
        return None
    return raw if isinstance(raw, int) else value


def _object(name: str, text: str) -> str | None:
    """The object with labels in the catalogue's order; None if the metric does not have them."""
    if not text:
        return ""
    labels, known = object_labels(text), BY_NAME[name].labels
    if not labels.keys() <= set(known):
        return None
    return object_text(**{label: labels[label] for label in known if label in labels})


def _pairs(text: str) -> list[tuple[str, str]]:
    words = text.replace(",", " ").replace("}", "} ").split()
    if len(words) % 2:
        raise ValueError("an odd number of words")
    return list(zip(words[::2], words[1::2], strict=True))
