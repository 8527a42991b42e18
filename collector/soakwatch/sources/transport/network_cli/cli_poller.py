"""The poller of a command line: which commands are due, what they brought, and what is told only once."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from soakwatch.sources.abc import CPU_METRICS, Facts, SourceContext, SourceError
from soakwatch.sources.platforms.cli_units import Length
from soakwatch.sources.platforms.parsed import SESSION_UP, Notable, Parsed, with_gone
from soakwatch.sources.platforms.platform import Command, Platform
from soakwatch.sources.transport.network_cli.cli_fingerprint import cli_fingerprint, device_of
from soakwatch.sources.transport.network_cli.cli_processes import WatchedProcesses
from soakwatch.sources.transport.network_cli.cli_session import HungError, RefusedError, Session
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Fault, Sample
from soakwatch_model.tree import Tree

SECOND = 1_000_000_000
_LOGIN_S = 5.0
_ABOUT_S = 10.0  # of one command that tells what the device is
_ROOM_S = 2.0  # what such a command has in any case, where polls are closer together than that
_SPARE_S = 0.25  # before the next poll, in which the session of a command that did not end is closed
_FREE = 0.75  # of the interval: a command that would have less begins after the next poll
_REFUSED_RETRY_S = 600.0
_HUNG_RETRY_S = (60.0, 600.0)
_MAX_REPORTED = 20_000
_MAX_SERIES = 10_000
_MAX_OWNERS = 200_000
_CRASHES = frozenset({"device.crash", "core.dump", "process.crash", "kernel.panic", "kernel.oom", "watchdog"})


_DRIFT_S = 5.0
_CRASH = re.compile(
    r"(?i:crash|panic|watchdog|bus error|address error|segv|exception|software[- ]forced|core ?dump|assert|unexpected"
    r"|fault|heartbeat|abnormal|hap reset|out of memory)"
)


@dataclass(slots=True)
class CommandTurn:
    """One command: when it is due again, how long it takes, which of its texts the device knows."""

    command: Command
    due_ns: int = 0
    took_s: float | None = None
    text: str | None = None
    refused: str = ""
    hung: int = 0
    unknown: tuple[str, ...] = ()
    strange: int = 0
    sessions: dict[str, None] = field(default_factory=dict)
    unsampled: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _PollResult:
    """What one look has brought so far."""

    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    answered: int = 0


class CliPoller:
    """Polls a device by its command line (``soakwatch.sources.abc.Poller``). A poll sends the commands that are due,
    the longest due first, as many as its time allows; the others come first at the next poll."""

    def __init__(
        self,
        platform: Platform,
        session: Session,
        commands: Sequence[Command],
        line: DeviceConnection,
        site: SourceContext,
    ):
        self._platform, self._session, self._line, self._site = platform, session, line, site
        self._turns = [CommandTurn(command) for command in commands if site.processes or not _only_processes(command)]
        self._processes = WatchedProcesses(site.processes)
        self._facts: dict[str, str] = {}
        self._seen: UptimeReading | None = None
        self._clock = ""  # the command that tells the uptime
        self._paces: dict[str, float] = {}  # seconds between two readings of a metric
        self._owners: dict[tuple[str, str], str] = {}  # of a series, where several commands tell the same
        self._known: dict[tuple[str, str], None] = {}  # notables, told or from before the run
        self._begun: set[str] = set()  # commands that answered once
        self._old: dict[str, str] = {}  # crash files from before the run, for the notes
        self._reported: dict[tuple[str, str], str] = {}
        self._owed: list[Fault] = []  # of a poll in which a command hung before any was answered
        self._turn = asyncio.Lock()  # one command at a time: those of a poll, or one that tells what the device is
        self._polled = asyncio.Event()  # set as a poll ends
        self._due_s: float | None = None  # when the next poll is

    async def open(self) -> None:
        """Logs in. Raises SourceError."""
        patience_s = self._line.device_timeout_s
        if patience_s >= 3:
            patience_s = max(patience_s, _LOGIN_S)
        await self._session.open(asyncio.get_running_loop().time() + patience_s)

    def close(self) -> None:
        """Gives the session back."""
        self._session.close()

    async def poll(self, now_ns: int) -> Answer:
        """One look. Raises SourceError if nothing could be asked; a command that hangs is a Fault of its metrics."""
        async with self._turn:
            self._due_s = asyncio.get_running_loop().time() + self._site.interval_s
            try:
                return await self._poll_once(now_ns)
            finally:
                self._polled.set()

    async def poll_cpu(self, now_ns: int) -> Answer:
        """See ReadsCpuAlone: the one command that tells the CPU of the whole system, or of its parts."""
        telling = [turn for turn in self._turns if CPU_METRICS & set(turn.command.metrics) and not turn.refused]
        if not telling or not self._session.is_open:
            return NOTHING
        async with self._turn:
            result = _PollResult()
            await self._ask(telling[0], asyncio.get_running_loop().time() + self._line.device_timeout_s, now_ns, result)
            return Answer(tuple(result.samples), tuple(result.events), tuple(self._news(result)))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: in the same session, for many systems grant no second one, each command by itself and
        between two polls."""
        device = {"system": self._platform.title, "name": self._session.host, **device_of(self._facts)}
        if self._seen is not None:
            device["uptime_s"] = round(self._seen.up.seconds)
        return await cli_fingerprint(self._platform, {key: told for key, told in device.items() if told}, self._between)

    async def _between(self, text: str) -> str:
        """The answer to a command that no poll waits for. Raises SourceError, and RefusedError."""
        loop = asyncio.get_running_loop()
        self._polled.clear()
        left_s = 0.0 if self._due_s is None else self._due_s - loop.time()
        if -1 < left_s < min(_ABOUT_S, _FREE * self._site.interval_s):  # longer ago: no more polls come
            with suppress(TimeoutError):
                await asyncio.wait_for(self._polled.wait(), left_s + 1)
        async with self._turn:
            if not self._session.is_open:
                raise SourceError(f"{self._line.name} is not logged in to")
            return await self._session.run(text, self._end_of_room(loop.time()))

    def _end_of_room(self, now_s: float) -> float:
        """The latest time at which a command that is sent now may end: the next poll needs its session. A poll that is
        late by more than its interval is not waited for."""
        longest_s = now_s + _ABOUT_S
        if self._due_s is None or self._due_s < now_s - max(1.0, self._site.interval_s):
            return longest_s
        return min(longest_s, max(self._due_s - _SPARE_S, now_s + _ROOM_S))

    async def _poll_once(self, now_ns: int) -> Answer:
        loop = asyncio.get_running_loop()
        if not self._session.is_open:
            await self.open()
        deadline = loop.time() + self._line.device_timeout_s
        result = _PollResult()
        due = sorted((turn for turn in self._turns if turn.due_ns <= now_ns), key=lambda turn: turn.due_ns)
        for turn in due:
            left = deadline - loop.time()
            if result.answered and (turn.took_s or self._line.device_timeout_s / 4) * 1.5 > left:
                continue  # it comes first at the next look
            if not await self._ask(turn, deadline, now_ns, result):
                break
        await self._explain(deadline, now_ns, result)
        if due and not result.answered and all(turn.refused for turn in self._turns):
            refusal = self._turns[0].refused
            raise SourceError(
                f"{self._line.name} refuses every command ({refusal}): check os, enable and the rights of the account"
            )
        result.faults, self._owed = [*self._owed, *result.faults], []
        return Answer(tuple(result.samples), tuple(result.events), tuple(self._news(result)))

    async def _explain(self, deadline: float, now_ns: int, result: _PollResult) -> None:
        """The reason of a reboot, where another command than that of the uptime tells it."""
        index = next((index for index, event in enumerate(result.events) if event.kind == "reboot"), None)
        if index is None:
            return
        for turn in self._turns:
            turn.due_ns = 0  # everything may be another now
        teller = next((turn for turn in self._turns if turn.command.tells_reason), None)
        if "reboot_reason" in result.events[index].detail or teller is None or not self._session.is_open:
            return
        self._facts.pop("reboot_reason", None)
        await self._ask(teller, deadline, now_ns, result)
        if reason := self._facts.get("reboot_reason"):
            event = result.events[index]
            reported = {**event.detail, "reboot_reason": reason}
            result.events[index] = Event(event.kind, "", event.object, event.begin_ns, event.end_ns, reported)
            result.events += crash_of(reason, event.begin_ns)

    async def _ask(self, turn: CommandTurn, deadline: float, now_ns: int, result: _PollResult) -> bool:
        """Asks one command; False if the session is gone."""
        loop = asyncio.get_running_loop()
        command, begun = turn.command, loop.time()
        time_ns = self._site.now_ns()
        try:
            text = await self._first_known(turn, deadline)
        except SourceError as failure:
            if isinstance(failure, HungError):
                self._put_off(turn, now_ns)
            faults = [Fault(*key, str(failure)) for key in self._brought(turn)]
            if not result.answered:
                self._owed = faults if isinstance(failure, HungError) else []
                raise
            result.faults += faults
            return False
        turn.hung = 0
        for key in self._brought(turn):
            self._reported.pop(key, None)
        turn.took_s = loop.time() - begun
        if text is None:
            turn.due_ns = now_ns + int(max(_REFUSED_RETRY_S, command.every_s) * SECOND)
            words = f"the device refuses {command.texts[0]!r}: {turn.refused}"
            result.faults += [Fault(metric, "", words) for metric in self._promised(command)]
            return True
        result.answered += 1
        turn.due_ns = now_ns + int(self._rest_s(command) * SECOND)
        try:
            parsed = await asyncio.to_thread(command.parse, text) if len(text) > 100_000 else command.parse(text)
        except Exception as defect:  # noqa: BLE001 - a parser's defect must not cost the other commands
            words = f"the answer to {turn.text!r} could not be read: a defect of its parser ({type(defect).__name__})"
            result.faults += [Fault(metric, "", words) for metric in self._promised(command)]
            return True
        turn.unknown, turn.strange, turn.unsampled = parsed.unknown, parsed.strange, parsed.unsampled
        parsed = with_gone(turn.sessions, parsed)
        self._take(command, parsed, text, time_ns, result)
        return True

    async def _first_known(self, turn: CommandTurn, deadline: float) -> str | None:
        for text in (turn.text,) if turn.text else turn.command.texts:
            try:
                answer = await self._session.run(text, deadline, turn.command.stop)
            except RefusedError as refused:
                turn.refused, turn.text = str(refused), None
            else:
                turn.refused, turn.text = "", text
                return answer
        return None

    def _put_off(self, turn: CommandTurn, now_ns: int) -> None:
        """When a command that hung is asked again: once more at the next poll (the device may have gone down), then
        after longer and longer pauses, so that it does not hold up the others."""
        turn.hung += 1
        if turn.hung == 1:
            return
        wait_s = min(_HUNG_RETRY_S[0] * 2 ** min(turn.hung - 2, 10), _HUNG_RETRY_S[1])
        turn.due_ns = now_ns + int(wait_s * SECOND)

    def _take(self, command: Command, parsed: Parsed, text: str, time_ns: int, result: _PollResult) -> None:
        reported = len(result.samples)
        if len(self._owners) > _MAX_OWNERS:
            self._owners.clear()
        for value in parsed.values:
            mine = self._owners.setdefault((value.metric, value.object), command.name) == command.name
            if mine and self._wanted(value.interface):
                reading = max(0.0, time_ns * 1e-9 - value.value) if value.moment else value.value
                result.samples.append(Sample(value.metric, value.object, reading, time_ns))
        result.faults += parsed.faults
        self._facts.update(parsed.facts)
        if parsed.uptime is not None and self._clock in ("", command.name):
            self._clock = command.name
            self._seen, sample, events = life(self._seen, parsed.uptime, time_ns, parsed.facts)
            result.samples.append(sample)
            result.events += events
        samples, events, faults = self._processes.take(command.name, parsed.processes, time_ns, whole=parsed.whole)
        result.samples += samples
        result.events += events
        result.faults += faults
        result.events += self._new(command, parsed.notables, time_ns)
        self._begun.add(command.name)
        for metric in {sample.metric for sample in result.samples[reported:]}:
            self._paces[metric] = max(self._paces.get(metric, 0.0), self._pace_s(command))
        recognised = parsed.values or parsed.faults or parsed.uptime or parsed.notables or parsed.processes
        if command.metrics and not recognised:
            shown = printable(text) or "nothing"
            words = f"nothing known in the answer to {command.texts[0]!r}: {shown}"
            if parsed.strange or not text.strip():
                result.faults += [Fault(metric, "", words) for metric in self._promised(command)]

    def _promised(self, command: Command) -> tuple[str, ...]:
        return tuple(name for name in command.metrics if self._site.processes or not name.startswith("process."))

    def _brought(self, turn: CommandTurn) -> tuple[tuple[str, str], ...]:
        """What is missing when a command is not answered, as metric and object: its own metrics, and the state of the
        sessions that it had listed, by protocol."""
        promised = tuple((metric, "") for metric in self._promised(turn.command))
        protocols = dict.fromkeys(key.partition(",")[0] for key in turn.sessions)
        return (*promised, *((SESSION_UP, protocol) for protocol in protocols))

    def _rest_s(self, command: Command) -> float:
        """How long a command rests at least; a look that comes a little early still counts."""
        return max(0.0, command.every_s - self._site.interval_s / 2)

    def _pace_s(self, command: Command) -> float:
        """How often a command is asked in truth: at the first look that is not before its time."""
        interval_s = self._site.interval_s
        return max(1.0, math.ceil(self._rest_s(command) / interval_s)) * interval_s

    def _wanted(self, interface: str | None) -> bool:
        globs = self._site.interfaces
        return interface is None or globs is None or any(fnmatchcase(interface, glob) for glob in globs)

    def _new(self, command: Command, notables: Sequence[Notable], time_ns: int) -> list[Event]:
        """Events for what was not there at the first look: that belongs to the time before the run."""
        events = []
        first = command.name not in self._begun
        for notable in notables:
            key = (notable.kind, notable.key)
            if key in self._known:
                continue
            if len(self._known) < _MAX_SERIES:
                self._known[key] = None
            if first:
                if notable.kind in _CRASHES:
                    self._old.setdefault(notable.kind, notable.key)
                continue
            events.append(Event(notable.kind, "", notable.object, time_ns, None, dict(notable.detail)))
        return events

    def _news(self, result: _PollResult) -> list[Fault]:
        """Faults that were not told at the look before, with the same words."""
        for sample in result.samples:
            self._reported.pop((sample.metric, sample.object), None)
        news = []
        for fault in result.faults:
            key = (fault.metric, fault.object)
            if self._reported.get(key) != fault.text:
                if len(self._reported) >= _MAX_REPORTED:
                    self._reported.clear()
                self._reported[key] = fault.text
                news.append(fault)
        return news

    def facts(self) -> Facts:
        """What the device is, and what of its answers was not understood."""
        identity = {"driver": self._platform.name, "system": self._platform.title}
        if self._session.host:
            identity["name in the prompt"] = self._session.host
        identity |= {**self._facts, **self._line.identity()}
        metrics = tuple(dict.fromkeys(metric for turn in self._turns for metric in self._promised(turn.command)))
        paces = {metric: pace_s for metric, pace_s in self._paces.items() if pace_s > self._site.interval_s}
        return Facts(identity, metrics, tuple(self._notes()), paces)

    def _notes(self) -> list[str]:
        notes = [*self._line.notes(), *self._session.notes()]
        notes += [f"{kind} from before the run: {key}" for kind, key in self._old.items()]
        for turn in self._turns:
            name = turn.text or turn.command.texts[0]
            if turn.refused:
                notes.append(f"{name!r} is refused: {turn.refused}")
            if turn.hung:
                notes.append(f"{name!r} did not end in time")
            if turn.unsampled:
                first, why = next(iter(turn.unsampled.items()))
                notes.append(
                    f"{len(turn.unsampled)} of the sessions of {name!r} are not sampled, such as {first}: {why}"
                )
            if turn.strange:
                notes.append(f"{turn.strange} lines of {name!r} are unknown, such as {turn.unknown[0]!r}")
        took_s = sum(turn.took_s or 0.0 for turn in self._turns if not turn.command.every_s)
        if took_s > self._site.interval_s:
            notes.append(f"the commands of a poll take {took_s:.2g} s together: longer than the interval")
        return notes


def _only_processes(command: Command) -> bool:
    """Whether a command brings nothing unless processes are watched."""
    return bool(command.metrics) and all(name.startswith("process.") for name in command.metrics)


@dataclass(frozen=True, slots=True)
class UptimeReading:
    """An uptime, and when it was read."""

    time_ns: int
    up: Length


def life(
    before: UptimeReading | None, up: Length, time_ns: int, facts: Mapping[str, str]
) -> tuple[UptimeReading, Sample, list[Event]]:
    """The new state, the uptime's sample, and ``reboot`` (and ``device.crash``) if the device restarted since.

    Uptimes are cut down to their step (IOS shows minutes, an ASA after a day hours), so a restart is reported only
    where no rounding explains it: one within a step of the previous poll is not seen. Its start is computed from the
    uptime.
    """
    now = UptimeReading(time_ns, up)
    sample = Sample("system.uptime", "", up.seconds, time_ns)
    if before is None:
        return now, sample, []
    passed_s = (time_ns - before.time_ns) / SECOND
    fell = up.seconds + up.step <= before.up.seconds
    late = up.seconds + up.step + _DRIFT_S + passed_s / 100 <= before.up.seconds + passed_s
    if not (fell or late):
        return now, sample, []
    begin_ns = max(before.time_ns, time_ns - int((up.seconds + up.step) * SECOND))
    reason = facts.get("reboot_reason", "")
    detail = {"evidence": "the uptime restarted", "uptime_s": f"{up.seconds:g}"}
    if reason:
        detail["reboot_reason"] = reason
    return now, sample, [Event("reboot", "", "", begin_ns, time_ns, detail), *crash_of(reason, begin_ns)]


def crash_of(reason: str, begin_ns: int) -> list[Event]:
    """``device.crash`` if the reason of a reboot is one."""
    return [Event("device.crash", "", "", begin_ns, None, {"reason": reason})] if _CRASH.search(reason) else []
