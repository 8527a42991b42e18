"""A host with Soakwatch's agent (soakwatch agent install), over SSH or HTTPS; a cut network loses no poll.

The agent polls by itself, on the run's own grid, and keeps its polls in a bounded spool until they are fetched and
recorded: a management network that is cut loses nothing. Its clock is measured against this one each minute. Its flight
recorder's ten samples a second are fetched around an event of the target (whoever reports it), a live finding that
starts to fail or warn, a jump of the CPU or of one core, and a lost poll.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.event_kinds import FindingKey
from soakwatch.core.secrets import SecretRef
from soakwatch.core.suggest import hint
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import BackfilledPoll, Facts, HostName, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.pollers.agent.agent_clocks import Exchange, MeasuredClock, PollGrid, in_our_time
from soakwatch.sources.pollers.agent.agent_stream import Conversation, LinkLostError, Reply
from soakwatch.sources.pollers.agent.fetch_progress import FetchProgress, run_name, settings_body
from soakwatch.sources.pollers.agent.https_transport import HttpsTransport
from soakwatch.sources.pollers.agent.transports import LocalTransport, SshTransport, Transport
from soakwatch.sources.pollers.agent.windows import RecorderWindow, Windows
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch.sources.transport.tls import Pin
from soakwatch_agent.framing import Frame, FrameError, Object, number, whole
from soakwatch_agent.host import probe_names
from soakwatch_agent.wire import WireError, decode
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample, object_text
from soakwatch_model.tree import Tree

_EXCHANGES = 5
_MAX_WAITING = 500
_SOURCE = object_text(source="agent")
_FAREWELL_S = 2.0
_FINGERPRINT_EVERY_S, _FINGERPRINT_S = 0.3, 5.0
_DECODED_AT_ONCE = 20  # polls; then the other sources have their turn


class Config(SourceConfig, Access):
    """Keys of the source ``agent``."""

    host: Annotated[HostName, Field(default="", description="host with the agent, asked over SSH")]
    timeout: Annotated[
        Seconds | None,
        Field(default=10.0, gt=0, description="a poll is abandoned after this; the agent keeps its own poll meanwhile"),
    ]
    folder: Annotated[
        str,
        Field(
            default=".soakwatch-agent",
            min_length=1,
            description="the agent's folder on the host, relative to the account's home",
        ),
    ]
    mode: Annotated[
        Literal["service", "child"],
        Field(default="service", description="service: it runs on its own; child: it ends with the SSH session"),
    ]
    url: Annotated[
        str | None,
        Field(
            default=None, pattern=r"^https://[^\s/@]+/?$", description="https://HOST:PORT of an agent, instead of host"
        ),
    ]
    token: Annotated[SecretRef | None, Field(default=None, description="token of the agent behind url")]
    fingerprint: Annotated[
        Pin | None,
        Field(default=None, description="SHA-256 of the only certificate that is accepted behind url, as hex digits"),
    ]
    socket: Annotated[
        str | None, Field(default=None, description="socket of an agent on this machine, instead of host")
    ]
    command: Annotated[
        list[str],
        Field(
            default_factory=list,
            max_length=64,
            description="command that connects its standard input and output to an agent",
        ),
    ]
    probes: Annotated[
        list[str] | None,
        Field(
            default=None,
            description="only these probes (soakwatch-agent --list names them), or with a minus all but them "
            "(`-ledger`); default: all",
        ),
    ]
    core_folders: Annotated[
        list[str], Field(default_factory=list, description="folders with core files, in addition to the usual ones")
    ]
    recorder: Annotated[
        bool,
        Field(
            default=True,
            description="fetch the flight recorder's samples around events, live findings and jumps of the CPU",
        ),
    ]

    def require_known(self) -> None:
        """Raises PlanError for an unknown probe that is to be left out; which ones it has, the agent knows."""
        for name in self.probes or ():
            if name.startswith("-") and name[1:] not in probe_names():
                raise PlanError(f"there is no probe {name[1:]!r}{hint(name[1:], probe_names())}")

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        keys = [key for key in ("host", "url", "socket", "command") if getattr(self, key)]
        if len(keys) != 1:
            raise ValueError(
                "give exactly one of host, url, socket or command" + (f", not {', '.join(keys)}" if keys else "")
            )
        if (self.url is None) != (self.token is None):
            raise ValueError("url and token belong together: token: env:NAME or file:PATH")
        return self


class AgentPoller:
    """One agent, followed. ``poll`` returns its newest poll, ``recovered`` those that could not be fetched in time."""

    def __init__(self, transport: Transport, config: Config, site: SourceContext) -> None:
        self._transport, self._config, self._site = transport, config, site
        self._run = run_name(site)
        self._grid = PollGrid(round(site.interval_s * 1e9))
        timeout_s = timing(0, site.interval_s, config.timeout).timeout_s
        self._wait_s = min(0.6 * timeout_s, max(site.interval_s, 1.0), 10.0)
        self._conversation: Conversation | None = None
        self._opened = False
        self._hello: Object = {}
        self._clock = MeasuredClock()
        self._progress = FetchProgress()
        self._waiting: deque[tuple[int, Poll]] = deque()  # fetched, and not yet handed over
        self._windows = Windows()
        self._talking = asyncio.Lock()  # one question at a time

    async def connect(self) -> None:
        """Connects to the agent and measures its clock. Raises SourceError."""
        conversation = await self._transport.connect()
        self._conversation, self._opened = conversation, False
        self._hello = dict(conversation.hello)
        try:
            await self._measure(conversation)
        except BaseException:
            await self._disconnect()
            raise

    async def poll(self, now_ns: int) -> Answer:
        """The agent's newest poll, with the state of agent and spool. Raises SourceError."""
        due_ns = self._grid.due_ns(now_ns)
        async with self._talking:
            return await self._poll_in_turn(now_ns, due_ns)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints. The agent reads in the background; between two polls it is asked if it is done."""
        globs = self._site.interfaces
        question: Object = {"interfaces": None if globs is None else [*globs]}
        while True:
            async with self._talking:
                if (tree := await self._ask_fingerprint(question)) is not None:
                    return tree
            await asyncio.sleep(_FINGERPRINT_EVERY_S)

    async def _ask_fingerprint(self, question: Object) -> Mapping[str, Tree] | None:
        conversation = self._conversation
        if conversation is None:
            raise SourceError("the connection to the agent was lost")
        if self._hello.get("fingerprint") is not True:
            raise SourceError(
                f"the agent there (version {self._hello.get('version', 'unknown')}) is older than fingerprints: update "
                "it with soakwatch agent install USER@HOST --upgrade"
            )
        try:
            async with asyncio.timeout(_FINGERPRINT_S):  # polls wait for the end of this question
                body = (await conversation.ask("fingerprint", question)).body
        except BaseException:  # out of step
            self._transport.drop()
            await self._disconnect()
            raise
        tree = body.get("tree")
        return cast("Mapping[str, Tree]", tree) if isinstance(tree, dict) else None

    async def _poll_in_turn(self, now_ns: int, due_ns: int) -> Answer:
        try:
            return await self._poll_with_reconnect(now_ns, due_ns)
        except (FrameError, WireError) as error:
            await self._disconnect()
            raise SourceError(f"the agent's answer cannot be read: {error}") from None
        except _NoPollError as failure:
            raise SourceError(str(failure)) from None  # all else is well, so the talk goes on
        except SourceError:
            await self._disconnect()
            raise
        except BaseException:  # given up in the middle: the conversation is out of step, the way perhaps dead
            self._transport.drop()
            await self._disconnect()
            raise

    def recovered(self) -> Iterable[BackfilledPoll]:
        """The polls that were fetched late: about 500 a call at most (see Backfills)."""
        polls = sorted(self._waiting, key=lambda each: each[1].start_ns)
        self._waiting.clear()
        return [BackfilledPoll(recorded.start_ns, recorded.duration_ns, recorded.answer) for _, recorded in polls]

    def facts(self) -> Facts:
        """What is known of the host and its agent."""
        shown = ("version", "agent", "host", "system", "python", "arch")
        shown_facts = {f"agent {key}" if key == "version" else key: str(self._hello.get(key, "")) for key in shown}
        shown_facts["agent runs as"] = str(self._hello.get("way", ""))
        return Facts({**shown_facts, **self._transport.identity()}, notes=tuple(self._transport.notes()))

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """See CapturesDetail."""
        self._windows.want(when_ns, why, finding)

    async def final_captures(self, end_ns: int) -> Sequence[Answer]:
        """See CapturesDetail."""
        events: list[Event] = []
        while self._conversation is not None and self._records and (window := self._windows.last(end_ns)) is not None:
            try:
                events += (await self._fetch_window(self._conversation, window))[0]
            except SourceError:
                await self._disconnect()
        answers = [Answer((), tuple(events), ())] if events else []
        while samples := self._windows.some():
            answers.append(Answer(samples, (), ()))
        return answers

    async def close(self) -> None:
        """The run ends in order: the agent may stop polling."""
        conversation = self._conversation
        if conversation is not None and self._opened:
            with suppress(SourceError, FrameError, TimeoutError, OSError):
                async with asyncio.timeout(_FAREWELL_S):
                    await conversation.ask("rest", {"run": self._run})
        await self._disconnect()

    async def _poll_with_reconnect(self, now_ns: int, due_ns: int) -> Answer:
        try:
            try:
                return await self._poll_once(now_ns, due_ns)
            except LinkLostError:
                await self._disconnect()
                return await self._poll_once(now_ns, due_ns)  # it may have been lost long ago: on a new connection
        except BaseException:
            self._windows.poll_failed(now_ns)
            raise

    # --- one poll ------------------------------------------------------------------------------------------

    async def _poll_once(self, now_ns: int, due_ns: int) -> Answer:
        if self._conversation is None:
            await self.connect()
        conversation = self._conversation
        assert conversation is not None
        extra: list[Sample] = []
        if self._clock.due(time.monotonic()):
            await self._measure(conversation)
        if not self._opened:
            await self._open(conversation)
        offset = self._clock.offset
        if self._clock.news:
            extra.append(Sample("source.clock.offset", _SOURCE, offset.wall_ns * 1e-9, now_ns))
        room = max(_MAX_WAITING - len(self._waiting), 1)
        question: Object = {
            "run": self._run,
            "ack": self._progress.settle(time.monotonic(), [number for number, _ in self._waiting]),
            "after": self._progress.after,
            "most": room,
            "fresh_ns": due_ns + offset.steady_ns - offset.error_ns - self._grid.interval_ns // 10,
            "wait_s": self._wait_s,
        }
        reply = await conversation.ask("looks", question)
        recorded = await self._take_polls(reply)
        state, events = self._state(reply.body, now_ns)
        if recorded is None or recorded.due_ns < due_ns:
            raise _NoPollError(self._why_none(reply.body))
        if recorded.outcome is not PollOutcome.OK:
            raise _NoPollError(recorded.error or "the agent's own poll failed")
        self._windows.consider(recorded.answer, now_ns)
        faults: list[Fault] = []
        if self._records:
            if (window := self._windows.due(now_ns)) is not None:
                fetched, faults = await self._fetch_window(conversation, window)
                events += fetched
            faults += [
                _fault(f"the flight recorder no longer had the samples for {why!r}")
                for why in self._windows.take_gone()
            ]
        self._waiting.pop()  # handed over now, not later
        self._clock.news = False
        self._windows.poll_answered()
        samples = (*recorded.answer.samples, *state, *extra, *self._windows.some())
        return Answer(samples, (*recorded.answer.events, *events), (*recorded.answer.faults, *faults))

    async def _measure(self, conversation: Conversation) -> None:
        exchanges = []
        epoch = 0
        for _ in range(_EXCHANGES):
            sent = self._site.now_ns()
            reply = await conversation.ask("ping")
            came = self._site.now_ns()
            epoch = whole(reply.body, "epoch")
            exchanges.append(Exchange(sent, came, whole(reply.body, "clock_ns"), whole(reply.body, "wall_ns")))
        self._hello = dict(conversation.hello)
        self._clock.measured(epoch, exchanges, time.monotonic())

    async def _open(self, conversation: Conversation) -> None:
        assert self._grid.origin_ns is not None
        interval_ns = self._grid.interval_ns
        phase = (self._grid.origin_ns + self._clock.offset.steady_ns) % interval_ns
        body = settings_body(self._site, self._config.probes, self._config.core_folders, interval_ns, phase)
        if self._site.trial:
            await self._leave_alone(conversation)
        reply = await conversation.ask("open", {"run": self._run, **body})
        agent_id = str(self._hello.get("agent"))
        self._progress.start(whole(reply.body, "acked"), whole(reply.body, "last"), agent_id)
        self._opened = True

    async def _leave_alone(self, conversation: Conversation) -> None:
        """A trial must not take polls that another run has not fetched yet. Raises SourceError if there are any."""
        held = (await conversation.ask("status")).body
        waiting = whole(held, "last") - whole(held, "acked")
        if held.get("run") not in ("", self._run) and waiting > 0 and held.get("interval_s") is not None:
            run = str(held.get("run")).partition("/")[0]
            raise SourceError(
                f"the agent keeps {waiting} polls of the run {run!r}, which did not end in order: soakwatch resume it "
                "first; a new run starts with an empty spool"
            )

    async def _take_polls(self, reply: Reply) -> Poll | None:
        """Queues the polls of an answer for the record; the last one is returned as well."""
        early, last = reply.body.get("ahead"), None
        for index, frame in enumerate(reply.polls):
            recorded = self._poll_of(frame)
            if self._progress.take(frame.seq, ahead=frame.seq == early):
                last = recorded
                if recorded.outcome is PollOutcome.OK:
                    self._waiting.append((frame.seq, recorded))
            if index % _DECODED_AT_ONCE == _DECODED_AT_ONCE - 1:
                await asyncio.sleep(0)
        return last

    def _poll_of(self, frame: Frame) -> Poll:
        offset_ns = self._clock.offset_in(frame.epoch).steady_ns
        assert self._grid.origin_ns is not None
        return in_our_time(decode(frame.poll), offset_ns, self._grid.interval_ns, self._grid.origin_ns)

    def _state(self, body: Object, now_ns: int) -> tuple[list[Sample], list[Event]]:
        lost = self._progress.missing  # the agent's own count holds what we fetched and had not acknowledged yet
        samples = [
            Sample("source.device.cpu.time", _SOURCE, number(body, "cpu_s"), now_ns),
            Sample("source.spool.usage", _SOURCE, whole(body, "bytes"), now_ns),
            Sample("source.spool.lost", _SOURCE, lost, now_ns),
        ]
        events = []
        if (news := self._progress.take_news()) > 0:
            ranges = body.get("ranges")
            shown = ", ".join(str(pair) for pair in ranges[-8:]) if isinstance(ranges, list) else ""
            detail = {"looks": str(news), "numbers": shown, "remedy": "a larger --spool-bytes"}
            events.append(Event("source.spool.lost", "", _SOURCE, now_ns, now_ns, detail))
        return samples, events

    @property
    def _records(self) -> bool:
        return self._config.recorder and self._hello.get("recorder") is True

    async def _fetch_window(
        self, conversation: Conversation, wanted: RecorderWindow
    ) -> tuple[list[Event], list[Fault]]:
        offset_ns, window = self._clock.offset.steady_ns, wanted.window
        try:
            reply = await conversation.ask(
                "window", {"from_ns": window.begin_ns + offset_ns, "to_ns": window.end_ns + offset_ns}
            )
            event = self._windows.keep(reply.body, offset_ns, wanted)
        except (LinkLostError, asyncio.CancelledError):
            self._windows.give_back(wanted)
            raise
        except SourceError as failure:
            return [], [_fault(str(failure))]
        if event is None:
            return [], [_fault(f"the flight recorder has no samples around {wanted.reason!r}")]
        return [event], []

    def _why_none(self, body: Object) -> str:
        trouble = body.get("trouble")
        shown_facts = f" ({trouble})" if isinstance(trouble, str) else ""
        return f"the agent answered, but made no poll within {self._wait_s:g} s of its due time{shown_facts}"

    async def _disconnect(self) -> None:
        conversation, self._conversation, self._opened = self._conversation, None, False
        if conversation is not None:
            with suppress(SourceError, OSError):
                await asyncio.shield(conversation.close())


def _fault(text: str) -> Fault:
    return Fault("recorder.cpu.utilization", "", text)


class _NoPollError(SourceError):
    """The conversation works; the agent's poll failed."""


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> AgentPoller:
    """Connects. Raises SourceError, and PlanError for a folder that cannot be used or an unknown probe."""
    config.require_known()
    if config.url is not None:
        assert config.token is not None
        transport: Transport = HttpsTransport(config.url, config.token, config.fingerprint)
    elif config.host:
        line = await stack.enter_async_context(SshConnection(config, site.folder))
        folder = config.folder.removeprefix("~/")
        if folder.startswith(("~", "-")) or not folder.isprintable():
            raise PlanError(f"{site.target}: folder {config.folder!r} is not a folder of the account: write a path")
        transport = SshTransport(line, folder, child=config.mode == "child")
    else:
        transport = LocalTransport(config.socket, tuple(config.command))
    poller = AgentPoller(transport, config, site)
    await poller.connect()
    stack.push_async_callback(poller.close)
    return poller
