"""Session flaps: a session with a peer that went down or lost its prefixes; a new master, another spanning tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.events.announced import AnnouncementAccount, announcements
from soakwatch_rules.events.incidents import cause_of, counter_witnesses
from soakwatch_rules.events.session_outages import (
    UNLISTED,
    TimeDown,
    prefix_collapse,
    session_name,
    sharpened_by_events,
    state_changes,
    times_down,
    unread_list,
)
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Family, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, digits, duration, first_few, moment

_UP = "network.session.up"
_UPTIME = "network.session.uptime"
_FLAPS = "network.session.flaps"
_PREFIXES = "network.session.prefixes"
_ROLE = "network.session.role"
_TOPOLOGY = "network.topology.changes"
_NEAR_NS = 60 * 10**9  # a log line and a poll may date the same thing this far apart
_MOST = 20  # findings on single sessions; the rest share one finding


@dataclass(frozen=True, slots=True)
class Judged:
    """One session: the times down that nothing excuses, with why, and announcements that are still pending."""

    series: Series
    faulty: tuple[tuple[TimeDown, str], ...]
    planned: int
    open: tuple[str, ...]
    downs: tuple[TimeDown, ...]

    @property
    def name(self) -> str:
        return session_name(self.series.object)


@dataclass(frozen=True, slots=True)
class SessionFlap(Parameters):
    """Fails if a session with a peer (BGP, OSPF, IS-IS, BFD, a member of a bundle, a tunnel) that was up goes down.

    A session goes down if its state says so; if its uptime falls below the time between two readings, or the device's
    count of changes rises, although both readings find it up; if the device no longer lists it while it answers (for a
    tunnel this only warns, since clients come and go); or if a log line or trap reports it. Reports on one peer within
    a minute of each other are one. A session that stays up fails too if its accepted prefixes fall below ``prefixes``
    of their usual number for ``settle``. A new master (VRRP, HSRP) and changes of the spanning tree warn;
    ``role_changes`` of them fail.

    Excused is what begins between start and deadline of an announced event (an intervention with ``expect`` or a
    deadline; ``session.down: N`` for exactly N sessions) and is back by the deadline, or, without one, by the event's
    end. Unannounced events excuse nothing. A session that was never up warns and is not judged; one that appears later
    is judged from then on.

    If the device does not answer the list of sessions but everything else (a command that hangs), the list is missing:
    its sessions are inconclusive unless they were down at other times.

    How often wrong: a state that reads down is down. Known weaknesses: without uptime and count, a session that is down
    for less than the distance of two readings is missed, and several times down between two readings count as one; an
    overloaded agent that drops rows of its table looks like lost sessions; router ids in log lines are not known to be
    addresses of peers.

    Neighbours: ``reboot`` and ``process_restart`` judge the cause, ``event_impact`` the cost for the traffic.

    Parameters: ``allowed``, ``prefixes``, ``settle``, ``role_changes`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> stands = np.where((np.arange(60) > 30) & (np.arange(60) < 35), 0.0, 1.0)
    >>> series = readings("network.session.up", stands, 10.0, object="protocol=bgp,peer=10.0.0.2,context=default")
    >>> finding = SessionFlap().judge(Case("dut", "", Window(0, 600 * 10**9), (series,)))[0]
    >>> finding.outcome.value, finding.measured, finding.reason
    ('fail', 1.0, 'BGP session with 10.0.0.2 went down once: 1970-01-01 00:05:10 UTC for 40 s (down)')

    References: RFC 4271 section 8 (state machine of BGP), RFC 4273 (bgpPeerFsmEstablishedTime), RFC 4750 (OSPF-MIB),
    RFC 5880 (BFD).
    """

    name: ClassVar[str] = "session_flap"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a session with a peer went down, or lost its prefixes"
    metrics: ClassVar[tuple[str, ...]] = (_UP, _UPTIME, _FLAPS, _PREFIXES, _ROLE, _TOPOLOGY)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two readings of the sessions' states, from start to end of the window", live="whole"
    )

    allowed: float = parameter(0.0, "{flap}", "times that each session may go down", "a soak should have none")
    prefixes: float = parameter(
        0.5, "1", "share of the usual prefixes below which they are lost", "half a table", within="[0, 1]"
    )
    settle: float = parameter(60.0, "s", "time in which prefixes may be away", "a table is sent again in less")
    role_changes: float = parameter(
        0.0, "{change}", "changes of one master or of the spanning tree that fail; 0 = they warn", "redundancy may act"
    )

    def definition(self) -> str:
        return (
            f"a session that was up and goes down more than {self.allowed:g} times outside announced events fails, as "
            f"do one whose prefixes fall below {100 * self.prefixes:g} % for {duration(self.settle)} and one that is "
            f"not back at the deadline of its event; changes of master or of the spanning tree warn, and fail from "
            f"{self.role_changes:g} on (0: never)"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each session with a fault, and one for all others."""
        cut = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
        of = {(s.metric, s.object): s for s in cut if len(s)}
        ups = [s for (metric, _), s in sorted(of.items()) if metric == _UP]
        reports = [e for e in case.events if e.kind == "session.down" and not e.expect]
        roles = [s for (metric, _), s in sorted(of.items()) if metric in {_ROLE, _TOPOLOGY}]
        if not ups and not reports and not roles:
            return (absent(self, case, "session with a peer"),)
        apart_s = max((spacing(s) or 0.0 for s in (*ups, *roles)), default=0.0)
        account = AnnouncementAccount(announcements(case.events, case.window), case.window, round(2e9 * apart_s))
        others = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(s.time_ns for s in ups[:1000])]))
        judged, unmatched = [], list(reports)
        peers = {label(up.object, "peer") or "" for up in ups}
        for up in ups:
            peer = label(up.object, "peer") or ""
            own = [e for e in reports if e.detail.get("peer") == peer]
            downs = times_down(up, of.get((_UPTIME, up.object)), of.get((_FLAPS, up.object)), case, others)
            downs = sharpened_by_events(downs, own)
            unmatched = [e for e in unmatched if not _told(e, downs, peers, peer)]
            judged.append(_settled(up, downs, account))
        findings = [self._flapped(case, each) for each in judged if self._too_much(each)]
        findings += self._lost_prefixes(case, of, judged)
        findings += self._reported(case, unmatched, ups, account)
        findings += self._never(case, judged)
        findings += self._roles(case, roles, account)
        findings += [self._about(case, None).fails(t) for t, o in account.broken() if not o]
        unread = [(each, found) for each in judged if (found := unread_list(each.series, case, others)) is not None]
        findings += self._unread(case, unread)
        reported = {f.object for f in findings} | {each.series.object for each, _ in unread}
        bad = [f for f in findings if f.outcome is Outcome.FAIL]
        if len(bad) > _MOST:
            rest = bad[_MOST:]
            texts = [f.reason for f in rest]
            marks = tuple(mark for f in rest for mark in f.marks)[:100]
            together = replace(
                rest[0], object="", reason=f"{len(rest)} more: {first_few(texts)}", marks=marks, measured=None
            )
            findings = [f for f in findings if f not in rest] + [replace(together, limit=None)]
        return (*findings, *self._calm(case, judged, roles, account, reported))

    def _about(self, case: Case, series: Series | None) -> Finding:
        return replace(draft(self, case, series), unit="{flap}")

    def _too_much(self, each: Judged) -> bool:
        """Whether it went down more often than allowed, or was not back at the end or by a deadline."""
        lasting = any(why or down.end_ns is None for down, why in each.faulty)
        return len(each.faulty) > self.allowed or lasting

    def _flapped(self, case: Case, each: Judged) -> Finding:
        number = len(each.faulty)
        often = {1: "once", 2: "twice"}.get(number, f"{number} times")
        texts = [_spoken(down, why, case) for down, why in each.faulty]
        planned = f"; {each.planned} more announced" if each.planned else ""
        last = each.faulty[-1][0]
        ends = "; it is still down at the end" if last.end_ns is None else ""
        client = all(d.how == UNLISTED for d, _ in each.faulty) and label(each.series.object, "protocol") == "tunnel"
        return replace(
            self._about(case, each.series),
            outcome=Outcome.WARN if client else Outcome.FAIL,
            measured=float(number),
            limit=self.allowed,
            reason=f"{each.name} went down {often}: {first_few(texts)}{planned}{ends}",
            marks=tuple(Mark(d.begin_ns, d.end_ns, f"{each.name} down") for d, _ in each.faulty),
            numbers={
                "flaps": float(number),
                "planned": float(each.planned),
                "down_s": sum(_lasts(d, case) for d, _ in each.faulty),
            },
        )

    def _unread(self, case: Case, found: Sequence[tuple[Judged, tuple[Window, str]]]) -> list[Finding]:
        """The sessions whose list could not be read for a while, as one inconclusive finding."""
        if not found:
            return []
        names = session_names([each for each, _ in found])
        each, (stretch, why) = found[0]
        to = "to the end" if stretch.end_ns >= case.window.end_ns else f"to {moment(stretch.end_ns)}"
        finding = replace(
            self._about(case, each.series),
            object="" if len(found) > 1 else each.series.object,
            why=InconclusiveReason.GAP,
            settle="needs the list of sessions from start to end of the run",
            reason=f"{names}: not read from {moment(stretch.begin_ns)} {to} ({why}): neither up nor down is known",
        )
        return [finding]

    def _lost_prefixes(self, case: Case, of: dict[tuple[str, str], Series], judged: list[Judged]) -> Iterator[Finding]:
        known = {each.series.object: each for each in judged}
        for (metric, text), series in sorted(of.items()):
            if metric != _PREFIXES:
                continue
            session, _, family = text.partition(",family=")
            each = known.get(session)
            found = prefix_collapse(series, each.downs if each else (), self.prefixes, self.settle)
            if found is None or AnnouncementAccount(announcements(case.events, case.window), case.window, 0).covers(
                found[0], found[0]
            ):
                continue
            begin_ns, end_ns, usual, low = found
            until = f"until {moment(end_ns)}" if end_ns is not None else "and are still away at the end"
            yield replace(
                self._about(case, series),
                outcome=Outcome.FAIL,
                unit="{prefix}",
                measured=low,
                limit=self.prefixes * usual,
                reason=f"{session_name(session)}: of {digits(usual)} accepted prefixes ({family}) {digits(low)} were "
                f"left from {moment(begin_ns)} on, {until}, though the session stood",
                marks=(Mark(begin_ns, end_ns, f"{session_name(session)} lost its prefixes"),),
            )

    def _reported(
        self, case: Case, left: list[Event], ups: list[Series], account: AnnouncementAccount
    ) -> Iterator[Finding]:
        """One finding for each peer that only the device's log or a trap reports."""
        peers: dict[str, list[Event]] = {}
        for event in sorted(left, key=lambda e: e.begin_ns):
            if case.window.begin_ns <= event.begin_ns < case.window.end_ns:
                peers.setdefault(event.detail.get("peer", ""), []).append(event)
        polled = {label(s.object, "peer"): s for s in ups}
        for peer, events in sorted(peers.items()):
            own = [e for e in events if not account.covers(e.begin_ns, e.begin_ns)]
            if len(own) <= self.allowed:
                continue
            about = f"session with {peer}" if peer else "session"
            times = first_few([f"{moment(e.begin_ns)}{f' ({cause_of(e)})' if cause_of(e) else ''}" for e in own])
            unseen_ = " (each poll found it up)" if peer in polled else ""
            yield replace(
                self._about(case, polled.get(peer)),
                outcome=Outcome.FAIL,
                measured=float(len(own)),
                limit=self.allowed,
                reason=f"the device reports that a {about} went down{unseen_}: {times}",
                marks=tuple(Mark(e.begin_ns, e.end_ns, f"{about} reported down") for e in own),
            )

    def _never(self, case: Case, judged: list[Judged]) -> Iterator[Finding]:
        never = [each for each in judged if not bool(np.any(each.series.values > 0))]
        if never:
            names = first_few([each.name for each in never], 5)
            are = "was" if len(never) == 1 else "were"
            yield self._about(case, never[0].series if len(never) == 1 else None).warns(
                f"{names} {are} down from begin to end: not judged, for nothing shows that it should be up"
            )

    def _roles(self, case: Case, roles: list[Series], account: AnnouncementAccount) -> Iterator[Finding]:
        for series in roles:
            name = session_name(series.object)
            if series.metric == _TOPOLOGY:
                name = f"{(label(series.object, 'protocol') or '').upper()} topology"
                found = [(w.begin_ns, w.end_ns, "change") for w in counter_witnesses(series, "change")]
            else:
                found = [(t.after_ns, t.time_ns, t.text) for t in state_changes(series)]
            own = [each for each in found if not account.covers(each[0], each[1])]
            if not own:
                continue
            times = first_few([f"{moment(end_ns)} ({text})" for _, end_ns, text in own])
            yield replace(
                self._about(case, series),
                outcome=Outcome.FAIL if 0 < self.role_changes <= len(own) else Outcome.WARN,
                unit="{change}",
                measured=float(len(own)),
                limit=self.role_changes or None,
                reason=f"{name}: {counted(len(own), 'change')} outside announced events: {times}",
                marks=tuple(Mark(a, b, f"{name}: {text}") for a, b, text in own[:100]),
            )

    def _calm(
        self, case: Case, judged: list[Judged], roles: list[Series], account: AnnouncementAccount, reported: set[str]
    ) -> tuple[Finding, ...]:
        """The finding on all sessions that have none of their own."""
        rest = [each for each in judged if each.series.object not in reported and bool(np.any(each.series.values > 0))]
        if not rest and (judged or not roles or any(series.object in reported for series in roles)):
            return ()
        about = max((each.series for each in rest), key=len, default=roles[0] if roles else None)
        finding = replace(self._about(case, about), object="" if len(rest) != 1 else rest[0].series.object)
        pending = [t for each in rest for t in each.open] + [t for t, still in account.broken() if still]
        if pending:
            reason, settle = f"{session_names(rest)}: {pending[0]}", "judge again after the deadline"
            return (finding.undecided(reason, InconclusiveReason.PENDING, settle),)
        blind = unseen(
            np.unique(np.concatenate([s.time_ns for s in ([e.series for e in rest] or roles)[:1000]])), case.window
        )
        if blind:
            settle = "needs samples from start to end of the run"
            return (finding.undecided(f"{session_names(rest)}: {blind}", InconclusiveReason.GAP, settle),)
        if not rest:
            return (
                replace(finding, outcome=Outcome.PASS, measured=0.0, limit=0.0, reason="no change of master or tree"),
            )
        planned = sum(each.planned for each in rest)
        late = [each for each in rest if _late(each.series, case)]
        within = sum(len(each.faulty) for each in rest)
        calm = [f"{planned} announced times down, back in time"] if planned else []
        calm += [f"{counted(within, 'time')} down, {self.allowed:g} of each allowed"] if within else []
        words = f"{session_names(rest)}: {'; '.join(calm) or 'none went down'}"
        if late:
            words += f"; {first_few([f'{each.name} came up at {moment(_first_up(each.series))}' for each in late])}"
        marks = tuple(Mark(d.begin_ns, d.end_ns, f"{e.name} down", planned=True) for e in rest for d in e.downs)[:100]
        numbers = {"sessions": float(len(rest)), "planned": float(planned)}
        outcome = Outcome.PASS
        return (
            replace(
                finding, outcome=outcome, measured=0.0, limit=self.allowed, reason=words, marks=marks, numbers=numbers
            ),
        )


def _settled(up: Series, downs: Sequence[TimeDown], account: AnnouncementAccount) -> Judged:
    faulty, planned, pending = [], 0, []
    for down in downs:
        wrong, still = account.settle(down)
        if wrong:
            faulty.append((down, "" if wrong == "unannounced" else wrong))
        elif still:
            pending.append(still)
        else:
            planned += 1
    return Judged(up, tuple(faulty), planned, tuple(pending), tuple(downs))


def session_names(judged: Sequence[Judged]) -> str:
    """How many sessions of which protocol."""
    if len(judged) == 1:
        return judged[0].name
    by = Counter(label(each.series.object, "protocol") or "?" for each in judged)
    return f"{counted(len(judged), 'session')} ({', '.join(f'{n} {p}' for p, n in sorted(by.items()))})"


def _spoken(down: TimeDown, why: str, case: Case) -> str:
    late = f", {why}" if why else ""
    if down.hidden:
        return f"before {moment(down.end_ns or down.begin_ns)} ({down.how}{late})"
    return f"{moment(down.begin_ns)} for {duration(_lasts(down, case))} ({down.how}{late})"


def _lasts(down: TimeDown, case: Case) -> float:
    return ((down.end_ns if down.end_ns is not None else case.window.end_ns) - down.begin_ns) * 1e-9


def _told(event: Event, downs: Sequence[TimeDown], peers: Collection[str], peer: str) -> bool:
    """Whether a report belongs to one of the polled times down of this peer. A report that names no polled peer (a
    router id, or none) may belong to any session."""
    named = event.detail.get("peer", "")
    if named != peer and named in peers:
        return False
    return any(
        d.after_ns - _NEAR_NS <= event.begin_ns <= (d.end_ns if d.end_ns is not None else 2**62) + _NEAR_NS
        for d in downs
    )


def _first_up(up: Series) -> int:
    return int(up.time_ns[np.flatnonzero(up.values > 0)[0]])


def _late(up: Series, case: Case) -> bool:
    return (_first_up(up) - case.window.begin_ns) * 1e-9 > max(3 * (spacing(up) or 0.0), 60.0)


TRAITS: Final = Traits(
    words=RuleWords(
        "a session with a peer went down",
        "sessions went down",
        happened="a session of {target} with a peer went down",
    ),
    rank=75,
    event_kinds=("session.down", "session.up", "session.change", "session.role", "topology.change"),
    expected_as="session.down",
    family=Family.SESSIONS,
    guide=Guide(
        fails_when=(
            "A session with a peer goes down outside an announced event, loses half of its prefixes, or is not back by"
            " its deadline."
        ),
        misses="Flaps between two polls that no trap or log line reports.",
        change_with="session_flap: {allowed: 1, prefixes: 20%}",
        next_step=(
            "Read the logs of both peers at the moment: hold timers that expire mean a busy CPU or loss, a reset names"
            " its sender."
        ),
    ),
)
