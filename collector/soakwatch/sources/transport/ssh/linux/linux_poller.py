"""A Linux device over one kept shell: what its files and programs say, read by the agent's own probes."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from soakwatch.sources.abc import Facts, SourceContext, SourceError, SourceUnreadyError
from soakwatch.sources.transport.ssh.ask import Wants
from soakwatch.sources.transport.ssh.asks import NamedAsk, all_asks
from soakwatch.sources.transport.ssh.linux.cost import Cost, Observer, clock_s, shell_seconds
from soakwatch.sources.transport.ssh.linux.linux_fingerprint import linux_fingerprint
from soakwatch.sources.transport.ssh.linux.linux_processes import MAX_EXAMINED
from soakwatch.sources.transport.ssh.linux.linux_survey import (
    EVERY_LOOK,
    LEDGER,
    LEDGER_PARTS,
    SLOW,
    Survey,
    survey_of,
    survey_script,
)
from soakwatch.sources.transport.ssh.linux.replica import Replica
from soakwatch.sources.transport.ssh.linux.script import (
    LookRequest,
    details_script,
    faces_script,
    mounts_script,
    poll_script,
)
from soakwatch.sources.transport.ssh.shell import Reply, Shell, part
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable
from soakwatch_agent.context import Periodic, ProbeAnswer, Watch
from soakwatch_agent.host import probe_names, source
from soakwatch_agent.memory_ledger.take import LEDGER_S, MIRRORED_PARTS_S
from soakwatch_model.sample import NOTHING, Answer, object_text
from soakwatch_model.tree import Tree

_SURVEY_S = 600.0
_SURVEY_TIMEOUT_S = 12.0  # a program that hangs costs the survey a second
_T = TypeVar("_T")
_SELF = object_text(source="ssh")


@dataclass
class _Schedule:
    """What is due in a poll: the slow files, programs and checks.

    Periods are those of the probes that read the files (see soakwatch_agent.probes): they must not lag behind.
    """

    slow: Periodic = field(default_factory=lambda: Periodic(10))
    cores: Periodic = field(default_factory=lambda: Periodic(2))
    limits: Periodic = field(default_factory=lambda: Periodic(60))
    faces: Periodic = field(default_factory=lambda: Periodic(60))
    clock: Periodic = field(default_factory=lambda: Periodic(60))
    ledger: Periodic = field(default_factory=lambda: Periodic(LEDGER_S))
    ledger_parts: Periodic = field(default_factory=lambda: Periodic(MIRRORED_PARTS_S))
    asks: dict[str, Periodic] = field(default_factory=dict)

    def due_asks(self, asked: Sequence[NamedAsk], present: frozenset[str], now_ns: int) -> tuple[NamedAsk, ...]:
        """The programs that are asked now."""
        return tuple(
            each
            for each in asked
            if each.name in present and self.asks.setdefault(each.name, Periodic(each.ask.every_s)).due(now_ns)
        )


@dataclass(slots=True)
class _Surveyed:
    """What a survey found, in which shell, and when the next one is due."""

    survey: Survey | None = None
    generation: int = -1
    turn: Periodic = field(default_factory=lambda: Periodic(_SURVEY_S))


@dataclass(frozen=True, slots=True)
class LinuxOptions:
    """What the plan wants of a Linux device."""

    watches: tuple[Watch, ...]
    interfaces: tuple[str, ...] | None
    core_folders: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    probes: tuple[str, ...] | None = None
    observer_s: float | None = None


class LinuxPoller:
    """Each poll runs one script on the device, and a second one where a process is new or filesystems are due."""

    def __init__(self, line: SshConnection, shell: Shell, wish: LinuxOptions, site: SourceContext) -> None:
        self._line, self._shell, self._wish, self._site = line, shell, wish, site
        self._asked: tuple[NamedAsk, ...] = all_asks(Wants(wish.interfaces, wish.services, self._no_kernel_log))
        self._ask_notes = {each.name: ProbeAnswer() for each in self._asked}
        self._replica = Replica(wish.watches, wish.interfaces, wish.core_folders, wish.probes)
        self._notes = ProbeAnswer()
        self._schedule = _Schedule()
        self._surveyed = _Surveyed()
        self._cost = Cost()
        self._observer = Observer(wish.observer_s)
        self._working: asyncio.Future[None] | None = None
        self._deadline = 0.0

    async def poll(self, now_ns: int) -> Answer:
        """One look. Raises SourceError if the line or the device's shell fails."""
        if self._working is not None and not self._working.done():
            raise SourceError(
                f"the previous poll of {self._line.name} is still being processed: this machine is overloaded"
            )
        self._deadline = time.monotonic() + self._line.device_timeout_s
        self._notes.begin(now_ns)
        if self._observer.resting(now_ns):
            return NOTHING
        before = copy.deepcopy(self._schedule)
        try:
            survey = await self._survey(now_ns)
            return await self._poll_device(survey, now_ns)
        except BaseException:
            self._schedule = before  # what was due was not read: it is due again, in step with the probes
            raise

    async def open(self) -> None:
        """Surveys the device. Raises SourceError, and NoShell where there is no POSIX shell."""
        await self._survey(self._site.now_ns())

    def facts(self) -> Facts:
        """What the device is, and what its probes and programs promise."""
        survey = self._surveyed.survey
        identity = dict(survey.facts) if survey is not None else {}
        names = [name for name in probe_names() if self._wish.probes is None or name in self._wish.probes]
        watched = bool(self._site.processes)
        promised = [
            metric for name in names for metric in source(name).metrics if watched or not metric.startswith("process.")
        ]
        present = frozenset[str]() if survey is None else survey.asks
        promised += [metric for each in self._asked if each.name in present for metric in each.ask.metrics]
        if present:
            identity["programs"] = ", ".join(sorted(present))
        notes = [*self._line.notes(), *self._observer.notes()]
        if survey is not None and not survey.timeout:
            notes.append("the device has no program 'timeout': its programs (tc, ip, ...) are not run")
        if survey is not None and not survey.root:
            notes.append("the account is not root: what it may not read is reported as a fault of its metric")
        return Facts({**identity, **self._line.identity()}, tuple(dict.fromkeys(promised)), tuple(notes))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints. The agent's own code reads it, in a channel of its own beside the polls."""
        if self._observer.measuring:
            raise SourceUnreadyError("the cost of its polls is still being measured")
        return await linux_fingerprint(self._line, self._wish.interfaces)

    def close(self) -> None:
        """Ends the shell and removes the mirror."""
        self._shell.close()
        if self._working is None or self._working.done():
            self._replica.close()
        else:
            self._working.add_done_callback(lambda _: self._replica.close())

    def _no_kernel_log(self) -> bool:
        survey = self._surveyed.survey
        return survey is not None and survey.kmsg != "yes"

    # --- the exchange --------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        """Works on the mirror in a thread. It goes on if the poll is given up; the next poll sees that."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        working = asyncio.ensure_future(asyncio.to_thread(work))
        working.add_done_callback(lambda _: ended.cancel())
        self._working = ended
        return await asyncio.shield(working)

    async def _run(self, script: str) -> Reply:
        left = self._deadline - time.monotonic()
        return await self._shell.run(script, max(left, 0.05))

    async def _survey(self, now_ns: int) -> Survey:
        """What the device has, looked for anew in a new shell and when it is due."""
        known = self._surveyed
        again = not self._shell.open or self._shell.opened != known.generation
        if known.survey is not None and not again and not known.turn.due(now_ns):
            return known.survey
        if again:
            await self._line.connection()
        self._deadline = time.monotonic() + max(self._line.device_timeout_s, _SURVEY_TIMEOUT_S)
        reply = await self._run(survey_script(self._asked))
        self._deadline = time.monotonic() + self._line.device_timeout_s
        known.generation = self._shell.opened
        if again:
            known.turn = Periodic(_SURVEY_S)
            known.turn.due(now_ns)
        survey = known.survey = survey_of(reply.parts)
        if survey.facts.get("version", "").partition(" ")[0] != "Linux":
            kind = survey.facts.get("version") or "a system without a name"
            raise SourceError(
                f"{self._line.name} runs {kind}, but this source reads only Linux and network CLIs: use SNMP"
            )
        return survey

    async def _poll_device(self, survey: Survey, now_ns: int) -> Answer:
        replica, turns, notes = self._replica, self._schedule, self._notes
        slow, cores, limits = turns.slow.due(now_ns), turns.cores.due(now_ns), turns.limits.due(now_ns)
        due = turns.due_asks(self._asked, survey.asks, now_ns)
        kernel_log: Literal["no", "skip", "read"] = "no"
        if survey.kmsg == "yes":
            kernel_log = "read" if replica.log.begun else "skip"
        watched = tuple(sorted(replica.processes.interesting))
        ledger = replica.has_ledger and turns.ledger.due(now_ns)
        wanted = EVERY_LOOK + (SLOW if slow else ()) + (LEDGER if ledger else ())
        wanted += LEDGER_PARTS if ledger and turns.ledger_parts.due(now_ns) else ()
        need = LookRequest(
            tuple(path for path in wanted if path in survey.files)
            + (survey.sensors if slow else ())
            + (survey.server_file,),
            watched,
            replica.maps_due(watched, now_ns),
            watched if limits else (),
            ledger,
            replica.mappings_due(watched) if ledger else (),
            tuple(watch.what for watch in self._wish.watches if watch.how == "pidfile"),
            replica.cores.wanted(watched) if cores and survey.stat else (),
            kernel_log,
            tuple((each.name, each.ask.command()) for each in due),
            survey.timeout,
        )
        reply = await self._run(poll_script(need))
        fresh = await self._in_thread(lambda: replica.take(survey, need, reply))
        mapped = await self._follow(survey, slow=slow, fresh=fresh, everyone=turns.faces.due(now_ns), ledger=ledger)
        if turns.clock.due(now_ns):
            await self._read_clock()
        self._tell_cost(reply, replica.server_seconds(survey))
        self._read_asks(due, reply, now_ns)
        answer = await self._in_thread(lambda: replica.look(survey, need, mapped, now_ns))
        self._observer.seen(now_ns, replica.cpu(), notes)
        several = [answer, notes.answer(), *(self._ask_notes[each.name].answer() for each in due)]
        return Answer(
            tuple(sample for each in several for sample in each.samples),
            tuple(event for each in several for event in each.events),
            tuple(fault for each in several for fault in each.faults),
        )

    async def _follow(
        self, survey: Survey, *, slow: bool, fresh: Sequence[int], everyone: bool, ledger: bool
    ) -> tuple[int, ...]:
        """The second and third exchange, where they are needed; returns the pids whose maps were read in them."""
        replica, parts = self._replica, list[str]()
        first = replica.first
        faces = list(fresh) if first else list(fresh)[:MAX_EXAMINED]
        if replica.processes.matching and everyone and not first:
            faces = sorted(replica.processes.pids)
        if faces:
            parts.append(faces_script(faces, everyone=len(faces) > MAX_EXAMINED, guard=survey.timeout))
        if slow and survey.stat:
            mounts = await self._in_thread(replica.mounts)
            if mounts:
                parts.append(mounts_script(mounts, guard=survey.timeout))
        newly = replica.processes.named()
        if parts:
            more = await self._run("\n".join(parts))
            newly |= await self._in_thread(lambda: replica.take_more(survey, faces, more))
        if not newly:
            return ()
        details = await self._run(details_script(sorted(newly), guard=survey.timeout, ledger=ledger))
        await self._in_thread(lambda: replica.take_details(survey, sorted(newly), details))
        return tuple(sorted(newly))

    # --- readings ------------------------------------------------------------------------------------------

    async def _read_clock(self) -> None:
        before_ns = self._site.now_ns()
        reply = await self._run(part("clock", "date +%s.%N"))
        middle_s = (before_ns + self._site.now_ns()) / 2e9
        reported = clock_s(reply.parts.get("clock", b"").decode("ascii", "replace"))
        if reported is None:
            self._notes.fault("source.clock.offset", _SELF, "the device does not report its time (date +%s)")
        else:
            self._notes.sample("source.clock.offset", _SELF, reported[0] - middle_s)

    def _tell_cost(self, reply: Reply, server_s: float | None) -> None:
        shell_s = shell_seconds(reply.parts.get("times", b"").decode("ascii", "replace"))
        total = self._cost.take(self._surveyed.generation, shell_s, server_s)
        if total is None:
            self._notes.fault("source.device.cpu.time", _SELF, "the device's shell does not report its CPU time")
        else:
            self._notes.sample("source.device.cpu.time", _SELF, total)

    def _read_asks(self, due: Sequence[NamedAsk], reply: Reply, now_ns: int) -> None:
        for each in due:
            notes = self._ask_notes[each.name]
            notes.begin(now_ns)
            body, _, status = reply.parts.get(f"ask {each.name}", b"").rstrip(b"\n").rpartition(b"\n")
            text = body.decode("utf-8", "replace")
            trouble = _trouble(status, text)
            if trouble is None:
                try:
                    each.ask.read(text, notes)
                except ValueError as error:
                    trouble = printable(str(error)) if type(error) is ValueError else "its output is not understood"
                except (KeyError, TypeError, IndexError, AttributeError):
                    trouble = "its output is not understood"
            for metric in each.ask.metrics:
                if trouble is None:
                    notes.recovered(metric, "")
                else:
                    notes.fault(metric, "", f"{each.name} returned nothing: {trouble}")


def _trouble(status: bytes, text: str) -> str | None:
    if status in (b"124", b"137", b"143"):
        return "it did not answer within 1 s"
    if status != b"0" and not text.strip():
        return "it failed: this account may not use it, or it is not running"
    return None
