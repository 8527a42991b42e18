"""A device over SNMP v1, v2c or v3, polled by its profile.

The profile is found by sysObjectID and sysDescr unless the plan names it. Clocks are read first in each poll, so that
a device that restarted is surveyed again before any of its values is used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import (
    CPU_METRICS,
    Facts,
    RequestsLostError,
    SourceContext,
    SourceError,
    SourceUnreadyError,
    timing,
)
from soakwatch.sources.profiles.device_survey import PollReading, Survey
from soakwatch.sources.profiles.facts import read_facts
from soakwatch.sources.profiles.loading import FALLBACK, Profiles, load_profiles
from soakwatch.sources.profiles.matching import Match, match
from soakwatch.sources.profiles.profile_model import Profile
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch.sources.profiles.value import Asker, Value, text
from soakwatch.sources.receivers.names import InterfaceNames, share_names
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.config import Config, access_of
from soakwatch.sources.transport.snmp.snmp_access import check
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_fingerprint import snmp_fingerprint
from soakwatch.sources.transport.snmp.snmp_restarts import Life, clock_oids, clock_readings, engine_event
from soakwatch.sources.transport.snmp.snmp_session import Session, SessionAsker
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.metric_queries import shown_in
from soakwatch_model.sample import NOTHING, Answer, Sample, object_text
from soakwatch_model.shown import MEMORY
from soakwatch_model.tree import Tree

SYS_DESCR, SYS_OBJECT_ID, SYS_NAME = "1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.5.0"
_DESCRIBED = 160  # characters of sysDescr that are shown
_BUDGET = 0.92  # share of the timeout that a poll uses: the wrapper's own limit shall not be what ends it
_ASKING = 0.75  # share of that for requests without an answer; the rest is for the diagnosis
_MAX_SHARE_S = 5.0
_SURVEY_S = 120.0  # a survey of a large and slow device goes on in the background for so long
_AFRESH_NS = 540 * 10**9  # a survey in the background, before the reader makes one within a poll
_SURVEY_INTERVAL_NS = 60 * 10**9  # a device that is too slow for its polls is not surveyed more often than this
_KEPT_EVENTS = 100
_WORTH_TELLING = 0.1  # share of the requests that is lost
_TOLD_AGAIN_NS = 60 * 10**9
_FILLED_S = 6.0  # net-snmp fills its caches within 5 s
_GROWN_S = 70.0  # and averages over a minute (hrProcessorLoad) when it has seen one: until then their table is empty
_MEMORY = frozenset(shown_in(MEMORY))


class Look(Enum):
    """A survey that is due beside the polls."""

    AFRESH = "once in a while"
    SETTLED = "the agent has begun and had the time to fill its tables"


@dataclass(frozen=True, slots=True)
class Surveys:
    """When the device was surveyed, and when it is surveyed again."""

    fresh: bool = False  # a survey that fits the device's present life is there
    made_ns: int = 0
    grown_ns: int | None = None  # one more survey then: the agent has just begun, some tables are empty
    young: bool = False  # net-snmp answers 0 for counters that it has not looked at yet

    def born(self, now_ns: int, agent_s: float | None, *, seen: bool) -> Surveys:
        """The device or its agent began anew; ``seen``: between two polls, else it was there at the first one."""
        age_s = 0.0 if seen else _GROWN_S if agent_s is None else agent_s
        grown_ns = now_ns + round((_GROWN_S - age_s) * 1e9) if age_s < _GROWN_S else None
        return replace(self, fresh=self.fresh and not seen, grown_ns=grown_ns)

    def aged(self, agent_s: float | None) -> Surveys:
        """The agent has that uptime. Once it is old enough the device is surveyed afresh beside the polls: counters
        that all stood at 0 looked like none."""
        young = agent_s is not None and agent_s < _FILLED_S
        return replace(self, young=young, made_ns=0 if self.young and not young else self.made_ns)

    def due(self, now_ns: int) -> tuple[Surveys, Look | None]:
        """What to survey beside the polls now."""
        if self.grown_ns is not None and now_ns >= self.grown_ns:
            return replace(self, grown_ns=now_ns + round(_GROWN_S * 1e9)), Look.SETTLED  # again, if this one fails
        return self, Look.AFRESH if now_ns - self.made_ns > _AFRESH_NS else None

    def made(self, now_ns: int, look: Look | None) -> Surveys:
        """A survey began then, and has ended."""
        return replace(self, fresh=True, made_ns=now_ns, grown_ns=None if look is Look.SETTLED else self.grown_ns)

    def too_slow(self, now_ns: int) -> Surveys:
        """The reader may have been looking for rows that came or went: that takes its own time, beside the polls."""
        return replace(self, fresh=now_ns - self.made_ns < _SURVEY_INTERVAL_NS)


@dataclass(frozen=True, slots=True)
class Found:
    """What the first contact found out; ``facts`` are what the device says of itself, read with each survey."""

    match: Match
    system: Mapping[str, str] = field(default_factory=dict)
    profile: Profile | None = None
    warning: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    survey_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Surveyed:
    """What a profile and a survey of it say to those that judge; worked out once for both, not at each poll."""

    profile: Profile | None
    survey: Survey | None
    promised: tuple[str, ...]
    cadences: Mapping[str, float]
    renewals: Mapping[str, float]


def _surveyed(profile: Profile | None, survey: Survey | None, site: SourceContext) -> _Surveyed:
    return _Surveyed(
        profile,
        survey,
        promised(profile, survey) if profile else (),
        survey.cadences(0.0 if site.trial else site.interval_s) if survey else {},
        survey.renewals(site.interval_s) if survey else {},
    )


class SnmpPoller:
    """One device: what to ask it, and when. What takes longer than a poll (a survey) goes on in the background."""

    def __init__(
        self, config: Config, site: SourceContext, session: Session, profiles: Profiles, timeout_s: float
    ) -> None:
        self._config, self._site, self._session, self._profiles = config, site, session, profiles
        self._budget_s = timeout_s * _BUDGET
        self._asker = SessionAsker(session)
        self._life = Life()
        self._surveys = Surveys()
        self._found = Found(Match(config.profile, "the plan names it"))
        self._reader: ProfileReader | None = None
        self._background: asyncio.Task[None] | None = None
        self._pending: list[Event] = []
        self._surveyed: _Surveyed | None = None
        self._told_ns: int | None = None  # when it was said last that requests are lost

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError with the cause, as far as it is known."""
        began = time.monotonic()
        deadline = began + self._budget_s
        try:
            return await self._poll_once(now_ns, deadline)
        except SnmpPollError as failure:
            self._answered_in_part(failure, began)
            raise await self._session.explain(failure, deadline) from None
        except SourceUnreadyError as failure:
            self._answered_in_part(failure, began)
            raise

    def _answered_in_part(self, failure: SnmpPollError | SourceUnreadyError, began: float) -> None:
        """Raises RequestsLostError if the device answered since then, and requests were lost beside."""
        if isinstance(failure, SnmpPollError) and failure.kind not in {FailureKind.NO_ANSWER, FailureKind.TOO_SLOW}:
            return
        mine = self._session.trips.losses(time.monotonic(), began)
        if mine.sent > mine.lost > 0 and self._session.lossy:
            raise RequestsLostError(str(self._session.lost())) from None

    async def poll_cpu(self, now_ns: int) -> Answer:
        """See ReadsCpuAlone: no clock is read and nothing is surveyed, so a restart is seen by the next whole poll."""
        if self._reader is None or not self._surveys.fresh or self.surveying:
            return NOTHING
        deadline = time.monotonic() + self._budget_s
        try:
            reading = await self._reader.poll_only(CPU_METRICS, now_ns, deadline)
        except SnmpPollError as failure:
            raise await self._session.explain(failure, deadline) from None
        return Answer(reading.samples, (), reading.faults)

    async def cause(self) -> SourceError | None:
        """See Explains: an agent that is merely slow is told from one that is down."""
        return await self._session.cause()

    async def close(self) -> None:
        """Ends what goes on in the background."""
        await self._stop_background()
        await self._session.close()

    @property
    def survey(self) -> Survey | None:
        """What the device has, unless it restarted since: then its indexes mean nothing."""
        return self._reader.survey if self._reader is not None and self._surveys.fresh else None

    @property
    def surveying(self) -> bool:
        """True while a survey goes on in the background."""
        return self._background is not None and not self._background.done()

    def facts(self) -> Facts:
        """Who the device is, and what its profile promises."""
        found, last = self._found, self._life.last
        identity = {"host": self._session.access.where, "protocol": f"SNMP v{self._config.version}"}
        identity |= {key: value for key, value in found.system.items() if value}
        if found.profile is not None:
            identity |= {"profile": found.profile.name, "profile chosen by": found.match.why}
        if engine_id := (self._session.link.engine_id or (last.engine_id if last else b"")):
            identity["engine id"] = engine_id.hex()
        survey = self._reader.survey if self._reader else None
        if self._surveyed is None or self._surveyed.profile is not found.profile or self._surveyed.survey is not survey:
            self._surveyed = _surveyed(found.profile, survey, self._site)
        made = self._surveyed
        return Facts(
            {**found.facts, **identity}, made.promised, tuple(self._notes(survey)), made.cadences, made.renewals
        )

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: its requests take turns with those of the polls."""
        found = self._found
        name = found.profile.name if found.profile is not None else ""
        up_s = self._life.host_s if self._life.host_s is not None else self._life.agent_s
        return await snmp_fingerprint(self._session, found.system, found.facts, name, up_s)

    def _notes(self, survey: Survey | None) -> list[str]:
        notes = []
        last = self._life.last
        if last is not None and last.host is None and last.agent is not None:
            notes.append(
                "the device reports only its agent's uptime (sysUpTime): "
                "a restart of the agent alone counts as a reboot"
            )
        for table in survey.tables if survey else ():
            every_s = table.group.refresh_s
            if every_s is not None and every_s > self._site.interval_s:
                notes.append(
                    f"the device renews {table.group.name} every {every_s:g} s, but is polled every "
                    f"{self._site.interval_s:g} s"
                )
        if refusals := self._session.refusals:
            oid, why = next(iter(refusals.items()))
            notes.append(f"objects that the agent refuses to return: {len(refusals)}, such as {oid}: {why}")
        if self._found.survey_s > self._budget_s:
            notes.append(f"the first survey took {self._found.survey_s:.0f} s: polls before its end have no samples")
        if self._found.warning:
            notes.append(self._found.warning)
        return notes

    async def _poll_once(self, now_ns: int, deadline: float) -> Answer:
        if self._reader is None:
            await self._wait(self._first_contact, deadline, "the device is being surveyed for the first time")
        await self._clocks(now_ns, deadline)
        samples = self._life.samples()
        if not self._surveys.fresh:
            try:
                await self._wait(self._survey, deadline, "the device is being surveyed again")
            except SourceUnreadyError:
                return Answer(samples, self._events(), ())
        elif self._background is None:
            self._surveys, look = self._surveys.due(now_ns)
            if look is not None:
                self._background = asyncio.create_task(self._survey(look))
        assert self._reader is not None
        before, self._surveys = self._surveys, self._surveys.aged(self._life.agent_s)
        if before.young and not self._surveys.young:
            self._reader.forget_changes()  # from 0 on, increases would be those since the boot of the machine
        young = self._surveys.young
        reading = await self._read(self._reader, now_ns, deadline)
        self._settle()
        self._report_losses(now_ns)
        survey = self._reader.survey
        if not samples and survey is not None and not survey.tables and not survey.processes:
            raise SnmpPollError(
                FailureKind.NOTHING, self._session.access.where
            )  # an answer without a value proves nothing
        mine = {(sample.metric, sample.object) for sample in samples}
        metrics = {sample.metric for sample in samples}
        theirs = reading.samples
        if young or not metrics.isdisjoint([sample.metric for sample in theirs]):
            theirs = tuple(
                sample
                for sample in theirs
                if (sample.metric, sample.object) not in mine and not (young and _unfilled(sample))
            )
        return Answer((*samples, *theirs), (*self._events(), *reading.events), reading.faults)

    async def _read(self, reader: ProfileReader, now_ns: int, deadline: float) -> PollReading:
        """What the profile asks for. Raises SnmpPollError."""
        slow = SnmpPollError(FailureKind.TOO_SLOW, self._session.access.where)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await reader.poll(now_ns, deadline)
        except TimeoutError:
            failure = slow
        except SnmpPollError as error:
            failure = error
        if (
            failure.kind is FailureKind.TOO_SLOW and not self._session.lossy
        ):  # else repeats of lost requests took the time
            self._surveys = self._surveys.too_slow(now_ns)
        raise failure

    def _report_losses(self, now_ns: int) -> None:
        """An event, once a minute at most, while requests are lost that cost no poll."""
        losses = self._session.trips.losses(time.monotonic())
        worth = self._session.lossy and losses.share >= _WORTH_TELLING
        if worth and (self._told_ns is None or now_ns - self._told_ns >= _TOLD_AGAIN_NS):
            self._told_ns = now_ns
            detail = {"share": f"{losses.share:.2f}", "lost": str(losses.lost), "requests": str(losses.sent)}
            self._keep(Event("source.requests.lost", "", object_text(source="snmp"), now_ns, now_ns, detail))

    async def _clocks(self, now_ns: int, deadline: float) -> None:
        """Reads the clocks. If device or agent restarted, indexes and counters mean nothing any more."""
        profile, before = self._found.profile, self._life.last
        assert profile is not None
        values = await self._session.get(self._life.oids or clock_oids(profile.clocks), deadline)
        change, events = self._life.take(clock_readings(profile.clocks, now_ns, values), tuple(values))
        self._keep(*events)
        changes = self._session.link.engine_changes
        for old, new in changes:
            if not (change and change.engine_changed):
                self._keep(engine_event(old, new, before.time_ns if before else now_ns, now_ns))
        changes.clear()
        restarted = change is not None and change.restarted
        if before is None or restarted:
            self._surveys = self._surveys.born(now_ns, self._life.agent_s, seen=restarted)
        if restarted and self._reader is not None:
            self._reader.restarted()
            await self._stop_background()  # what it has seen so far is of the life before

    def _keep(self, *events: Event) -> None:
        self._pending += events
        del self._pending[:-_KEPT_EVENTS]

    def _events(self) -> tuple[Event, ...]:
        """The events since the last answer; a reboot has its reason, if the device gives one."""
        fresh = self._surveys.fresh
        if not fresh and any(event.kind == "reboot" for event in self._pending):
            return ()  # the reason is read by the survey that is under way
        reason = self._found.facts.get("reboot_reason") if fresh else None
        events = tuple(
            replace(event, detail={**event.detail, "reboot_reason": reason})
            if reason and event.kind == "reboot"
            else event
            for event in self._pending
        )
        self._pending.clear()
        return events

    # --- work in the background --------------------------------------------------------------------------

    async def _wait(self, work: Callable[[], Coroutine[Any, Any, None]], deadline: float, what: str) -> None:
        """Waits for a survey, which goes on if the poll is over before."""
        if self._background is None:
            self._background = asyncio.create_task(work())
        await asyncio.wait((self._background,), timeout=max(0.0, deadline - time.monotonic()))
        if not self._background.done():
            raise SourceUnreadyError(f"{self._session.access.where}: {what}, which takes longer than a poll")
        self._settle(strict=True)

    async def _stop_background(self) -> None:
        if self._background is not None:
            self._background.cancel()
            await asyncio.gather(self._background, return_exceptions=True)
            self._background = None

    def _settle(self, *, strict: bool = False) -> None:
        """Takes note of a survey that has ended. ``strict`` raises what ended it."""
        if self._background is None or not self._background.done():
            return
        done, self._background = self._background, None
        error = done.exception()
        if error is not None and strict:
            raise error

    async def _first_contact(self) -> None:
        """The first contact: what the device is, its profile, its survey."""
        began = time.monotonic()
        profile = await self._choose(self._asker.until(began + _SURVEY_S))
        excluded = _excluded(self._site.target, self._config, profile)
        asked = tuple(group for group in profile.groups if group.name not in excluded)
        profile = replace(profile, groups=asked)  # what the plan leaves out is not promised
        self._found = replace(self._found, profile=profile)
        reader = ProfileReader(self._asker, profile, self._site.interfaces, self._site.processes)
        async with self._session.abreast():  # no poll waits yet for its turn
            await self._discover(reader, profile, began + _SURVEY_S)
        self._found = replace(self._found, survey_s=time.monotonic() - began)
        self._reader = reader

    async def _survey(self, look: Look | None = None) -> None:
        """Surveys the same device again."""
        assert self._reader is not None
        assert self._found.profile is not None
        await self._discover(self._reader, self._found.profile, time.monotonic() + _SURVEY_S, look)

    async def _discover(
        self, reader: ProfileReader, profile: Profile, deadline: float, look: Look | None = None
    ) -> None:
        """What the device has, and what it says about itself."""
        now_ns = self._site.now_ns()
        facts = await read_facts(self._asker.until(deadline), profile)
        self._found = replace(self._found, facts=facts)
        await reader.discover(now_ns, deadline, settled=look is Look.SETTLED)
        self._surveys = self._surveys.made(now_ns, look)

    async def _choose(self, asker: Asker) -> Profile:
        values = await asker.get((SYS_DESCR, SYS_OBJECT_ID, SYS_NAME))
        description, object_id = _words(values.get(SYS_DESCR)), _words(values.get(SYS_OBJECT_ID))
        name = _words(values.get(SYS_NAME))
        system = {"system": description[:_DESCRIBED], "object id": object_id, "name": name}
        self._found = replace(self._found, system=system)
        if self._config.profile == "auto":
            self._found = replace(self._found, match=await self._match_of(asker, object_id, description))
        elif self._site.trial:
            self._found = replace(self._found, warning=await self._check_profile(asker, object_id, description))
        return await asyncio.to_thread(self._profiles.__getitem__, self._found.match.name)

    async def _match_of(self, asker: Asker, object_id: str, description: str) -> Match:
        heads = await asyncio.to_thread(self._profiles.heads)

        async def present(oid: str) -> str | None:
            value = (await asker.get((oid,))).get(oid)
            return None if value is None else text(value)

        return await match(object_id, description, present, heads)

    async def _check_profile(self, asker: Asker, object_id: str, description: str) -> str:
        """A warning if another profile fits better than the one in the plan, else empty."""
        named = self._config.profile
        try:
            chosen = await self._match_of(asker, object_id, description)
        except PlanError:  # another profile is wrong, which does not concern this device
            return ""
        if chosen.name in {named, FALLBACK}:
            return ""
        return f"the plan names the profile {named}, but auto would choose {chosen.name}: {chosen.why}"


def _unfilled(sample: Sample) -> bool:
    return sample.value == 0 and sample.metric in BY_NAME and BY_NAME[sample.metric].kind == COUNTER


def promised(profile: Profile, survey: Survey | None) -> tuple[str, ...]:
    """The metrics that a device of a profile should have: what the profile says, and a CPU and a memory of some form
    if it knows any, named by the first form where the device has none."""
    metrics = list(profile.promised)
    for family in (CPU_METRICS, _MEMORY):
        known = [metric for metric in profile.metrics if metric in family]
        if known and survey is not None and not family & set(survey.metrics):
            metrics.append(known[0])
    return tuple(dict.fromkeys(metrics))


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> SnmpPoller:
    """Prepares the poller; the first poll connects to the device.

    Raises PlanError for keys, secrets and profiles that cannot be used.
    """
    access = access_of(config)
    check(site.target, access)
    if not await asyncio.to_thread(has_gufo):
        raise PlanError(
            f"{site.target}: SNMP polls need gufo-snmp, which has packages for Linux only: poll from a Linux machine,"
            " where `pip install 'gufo-snmp>=0.13,<0.14'` installs it; records are judged and reported without it"
        )
    if config.context and config.engine != "pysnmp":
        raise PlanError(f"{site.target}: a context needs the other library: add engine: pysnmp")
    await asyncio.to_thread(config.require_known)
    profiles = load_profiles(config.profiles_folder)
    timeout_s = timing(0, config.interval, config.timeout).timeout_s
    share_s = min(_MAX_SHARE_S, timeout_s * _BUDGET * _ASKING / (config.retries + 1))
    manner = SessionOptions(config.engine, share_s, config.retries, config.max_repetitions)
    poller = SnmpPoller(config, site, Session(access, manner), profiles, timeout_s)
    stack.push_async_callback(poller.close)
    share_names(site.target, InterfaceNames(lambda: poller.survey), stack)
    return poller


def has_gufo() -> bool:
    """Whether the SNMP library is installed. It is loaded here, where the event loop does not wait for it."""
    try:
        import soakwatch.sources.transport.snmp.gufo_connection  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def _excluded(target: str, config: Config, profile: Profile) -> frozenset[str]:
    """The groups that the plan excludes. Raises PlanError for a name that the profile does not have."""
    known = [group.name for group in profile.groups]
    for name in (*(config.groups or ()), *config.without):
        if name not in known:
            raise PlanError(f"{target}: the profile {profile.name} has no group {name!r}{hint(name, known)}")
    only = set(known) if config.groups is None else set(config.groups)
    return frozenset(set(known) - only | set(config.without))


def _words(value: Value | None) -> str:
    return "" if value is None else text(value)
