"""Cases, cut from a record: the series, phases, events, poll accounts and facts that one rule judges at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.core.event_kinds import SETUP_CHANGE, is_run_admin
from soakwatch.core.fingerprints import BEGIN_KEY
from soakwatch.core.formatting import source_name
from soakwatch.core.registry import is_load
from soakwatch.judge.attribution import judged_target, labelled
from soakwatch.judge.baseline import baseline_window
from soakwatch.judge.calibration import SOURCE as REFERENCE
from soakwatch.judge.capacity import SOURCE as CAPACITY
from soakwatch.judge.derived_events import derived_events
from soakwatch.judge.imported_baseline import SERIES_META as IMPORTED_SERIES
from soakwatch.judge.imported_baseline import unpacked
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.judge.lifetime import lifetime
from soakwatch.judge.overload_cut import around_searches, sees_overload
from soakwatch.judge.planned import Planned
from soakwatch.judge.plausible import Plausible
from soakwatch.judge.poll_mode import poll_modes
from soakwatch.judge.series_on_demand import SeriesOnDemand
from soakwatch.judge.tenants import tenants_in
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch.record import SeriesKey
from soakwatch.record.meta import UNPOLLED
from soakwatch_model.case import Before, Case, Ledger, TargetFacts, Unread
from soakwatch_model.event import Event
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME, STATE
from soakwatch_model.metric_load import HEARD, WHOLE_LOAD
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.series import Ints, Series
from soakwatch_model.tree import Tree, parse_json
from soakwatch_model.window import Phase, Window
from soakwatch_rules.load.path_ledger import OF_GENERATORS
from soakwatch_rules.poll_mode_cores import CORE
from soakwatch_rules.rule import Input, Rule, metrics_read
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.traits import Crash, Judges, traits_of
from soakwatch_rules.wording.quantities import counted

Concerned = Callable[[Rule, str, Sequence[SeriesKey]], bool]
"""Whether to judge the case of this rule, target and series."""

_MOVES = 1.001  # the highest reading of a size over its lowest: above it the size moves
_FULL = 0.99  # share: nearly all of a size, and nearly all readings
_ADMIN_UP = "system.network.admin_up"


@dataclass(frozen=True, slots=True)
class SubjectMatter:
    """What one case is about: the series of a target in a window."""

    target: str
    keys: tuple[SeriesKey, ...]
    window: Window


class CaseBuilder:
    """Makes the cases of one record. Series are read one at a time, so memory does not grow with the record."""

    def __init__(
        self,
        record: JudgeableRecord,
        earlier: Sequence[JudgeableRecord] = (),
        tenants: Sequence[TenantPlan] = (),
    ) -> None:
        self.plausible = record = Plausible(record)
        self._record, self._earlier, self._tenants = record, tuple(map(Plausible, earlier)), tuple(tenants)
        self.roles = dict(record.roles())
        self.devices = sum(role == DUT for role in self.roles.values())
        self.window = record.window()
        self.planned = Planned.of(record)
        self.phases = record.phases()
        events = tuple(stored.event for stored in record.events() if not is_run_admin(stored.event.kind))
        self.events = (*events, *derived_events(record, events))
        self._families: dict[str, int] = {}
        self._accounts: dict[Window, tuple[Ledger, ...]] = {}
        self._touching: dict[tuple[frozenset[str], Window], tuple[Event, ...]] = {}
        self._events_of: dict[frozenset[str], _EventsOf] = {}
        self._faults = [fault for fault in record.faults() if not fault.elsewhere]
        self._imported_series: Mapping[SeriesKey, Series] | None = None
        self._facts = self._read_facts()
        self._polling: dict[str, Mapping[str, str]] = {}
        self._shut: dict[str, Mapping[str, tuple[Window, ...]]] = {}
        self._machines = _machines(record)
        self._ceilings = self._read_ceilings()
        self._load = self._read_load()
        self._loads: dict[tuple[bool, Window], tuple[Series, ...]] = {}
        self._unheard = self._read_unheard()

    def begun(self, rule: Rule) -> bool:
        """Whether any phase that the rule judges has begun, or the run planned none of them."""
        planned = frozenset() if self.planned is None else self.planned.phases & set(rule.phases)
        return not planned or any(phase.name in planned for phase in self.phases)

    def subject_matters(self, rule: Rule, concerned: Concerned | None = None) -> Iterator[SubjectMatter]:
        """What the cases of one rule are about, in a fixed order; only those that ``concerned`` accepts, if given. No
        series is read."""
        for window in self.stretches(rule):
            if window.end_ns <= window.begin_ns:
                continue
            for target, objects in self.subjects(rule):
                if concerned is None or concerned(rule, target, objects):
                    yield SubjectMatter(target, tuple(objects), window)

    def stretch(self, rule: Rule) -> Window:
        """The last window of a rule: see ``stretches``."""
        return self.stretches(rule)[-1]

    def stretches(self, rule: Rule) -> tuple[Window, ...]:
        """The windows of a rule, each judged by itself: its phases, else the whole run, without the capacity searches
        that it does not judge (so there may be several). One empty window if nothing is left."""
        window = stretch(self.phases, rule.phases) or self.window
        if sees_overload(rule):
            return (window,)
        return around_searches(window, self.phases) or (Window(window.begin_ns, window.begin_ns),)

    def subjects(self, rule: Rule) -> Iterator[tuple[str, list[SeriesKey]]]:
        """The target and the series of each case of a rule."""
        if Input.EARLIER in rule.spec.inputs and not self._earlier:
            return
        keys = sorted(self._record.keys(metrics_read(rule)) if metrics_read(rule) else (), key=_order)
        if rule.spec.objects:
            keys = [key for key in keys if key.object.endswith(rule.spec.objects)]
        for target in sorted(self.roles):
            for objects in _grouped(rule, [key for key in keys if judged_target(rule, key, self.roles) == target]):
                yield target, objects

    def seeing(self, record: JudgeableRecord) -> CaseBuilder:
        """A case builder for another view of the same record, which provides samples and accounts."""
        other = copy(self)
        other.use_view(record)
        return other

    def use_view(self, record: JudgeableRecord) -> None:
        """Switch to another view of the same record."""
        self._record = self.plausible = Plausible(record)
        self._accounts, self._families, self._polling, self._shut, self._loads = {}, {}, {}, {}, {}
        self._load = self._read_load()
        self._unheard = self._read_unheard()

    def case(self, rule: Rule, target: str, keys: Sequence[SeriesKey], window: Window) -> Case:
        """A case of a rule, with its series read."""
        ranks = {metric: rank for rank, metric in enumerate(rule.metrics)}
        ordered = sorted(keys, key=lambda key: (ranks[key.metric], key.object))
        single = rule.scope != "target" and bool(ordered)
        begin_ns, end_ns, inputs, traits = window.begin_ns, window.end_ns, rule.spec.inputs, traits_of(rule.name)
        calm = self._in_baseline(ordered) if Input.BASELINE in inputs else ()
        series: Sequence[Series] = SeriesOnDemand(
            len(ordered),
            lambda i: labelled(self._bounded(self._record.series(ordered[i], begin_ns, end_ns)), target, self.roles),
        )
        if Input.ONE_BY_ONE in inputs:
            self.plausible.sift(ordered)
        else:
            series = tuple(series)
        whole = window
        if single and traits.crash is not Crash.PROCESS:  # crash rules of processes judge whether it was there at all
            window = lifetime(series, whole, self._ledgers_in(target, whole), self._faults)
        reporters = frozenset({target, *(key.target for key in ordered)})
        return Case(
            target=target,
            object=series[0].object if single else "",
            window=window,
            series=series,
            phases=self.phases,
            events=self._events_in(reporters, window)
            + (self._changes(target, window) if Input.MACHINE in inputs else ()),
            ledgers=self._ledgers_in(target, whole),
            load=self._load_in(inputs, window),
            before=Before(
                tuple(labelled(series_read, target, self.roles) for series_read in calm),
                self._in_earlier(rule, ordered[0]) if ordered and Input.EARLIER in inputs else (),
            ),
            facts=self._facts_of(rule, target, window),
            unread=(
                *(
                    Unread(fault.metric, fault.object, fault.first_ns, fault.last_ns, fault.text)
                    for fault in self._faults
                    if fault.target in reporters and fault.metric in rule.metrics
                ),
                *(self._unheard.get(target, ()) if traits.judges is Judges.GENERATOR else ()),
            ),
            role=self.roles.get(target, DUT),
            devices=self.devices,
            family=self._family(rule),
        )

    def _facts_of(self, rule: Rule, target: str, window: Window) -> TargetFacts:
        """What is known of a target besides its series, as far as the rule reads it."""
        inputs = rule.spec.inputs
        tenants = Input.TENANTS in inputs
        return TargetFacts(
            stated=self._facts.get(target, {}),
            polling=self._polls(target) if CORE in rule.metrics or Input.MACHINE in inputs else {},
            fingerprint=self._machines.get(target, {}) if Input.MACHINE in inputs else {},
            shut=self._shut_ports(target) if Input.SHUT_PORTS in inputs else {},
            tenants=tenants_in(self._record, self._tenants, target, self.roles, window) if tenants else (),
        )

    def _family(self, rule: Rule) -> int:
        """How many cases on devices the rule judges in this run, at least 1."""
        if rule.name not in self._families:
            judged = [target for target, _ in self.subjects(rule) if self.roles[target] == DUT]
            self._families[rule.name] = max(1, len(judged))
        return self._families[rule.name]

    def parts(self, target: str, metrics: Sequence[str], window: Window) -> tuple[Series, ...]:
        """All series of these metrics of a target, in a window."""
        keys = [key for key in sorted(self._record.keys(metrics), key=_order) if key.target == target]
        return tuple(self._record.series(key, window.begin_ns, window.end_ns) for key in keys)

    def reads(self, target: str, metric: str) -> bool:
        """Whether the target has any series of this metric."""
        return any(key.target == target for key in self._record.keys((metric,)))

    def _polls(self, target: str) -> Mapping[str, str]:
        if target not in self._polling:
            self._polling[target] = poll_modes(self._record, target)
        return self._polling[target]

    def _shut_ports(self, target: str) -> Mapping[str, tuple[Window, ...]]:
        if target not in self._shut:
            self._shut[target] = shut_ports(self._record, target, self.window)
        return self._shut[target]

    def _in_baseline(self, keys: Sequence[SeriesKey]) -> tuple[Series, ...]:
        """The series in the run's own baseline phase; without one, in the imported baseline."""
        own = baseline_window(self.phases)
        if own is not None:
            return tuple(self._record.series(key, own.begin_ns, own.end_ns) for key in keys)
        if self._imported_series is None:
            text = self._record.meta(IMPORTED_SERIES)
            self._imported_series = {} if text is None else unpacked(text)
        return tuple(self._imported_series[key] for key in keys if key in self._imported_series)

    def _in_earlier(self, rule: Rule, key: SeriesKey) -> tuple[Series, ...]:
        earlier = []
        for other in self._earlier:
            window = stretch(other.phases(), rule.phases) or other.window()
            series = other.series(key, window.begin_ns, window.end_ns)
            earlier += [series] if len(series) else []
        return tuple(earlier)

    def _load_in(self, inputs: frozenset[Input], window: Window) -> tuple[Series, ...]:
        """The load in a window; cached, as most cases share it."""
        key = Input.GENERATOR_PORTS in inputs, window
        if key not in self._loads:
            every = self._load_for(inputs)
            self._loads[key] = tuple(series.between(window.begin_ns, window.end_ns) for series in every)
        return self._loads[key]

    def _load_for(self, inputs: frozenset[Input]) -> tuple[Series, ...]:
        """What the generators reported; for rules that follow its path also what their network ports counted."""
        if Input.GENERATOR_PORTS not in inputs or not self._load:
            return self._load
        generators = {name for name, role in self.roles.items() if role == GENERATOR}
        keys = (key for key in self._record.keys(OF_GENERATORS) if key.target in generators)
        return (*self._load, *(self._record.series(key) for key in keys))

    def _read_load(self) -> tuple[Series, ...]:
        generators = {name for name, role in self.roles.items() if role == GENERATOR}
        keys = self._record.keys(sorted(WHOLE_LOAD))
        return tuple(self._record.series(key) for key in keys if key.target in generators)

    def _read_unheard(self) -> Mapping[str, tuple[Unread, ...]]:
        """For each generator that should report a load and reported none: how many polls its sources answered.

        A source of a load should report one; so should every source of a generator from which no series came at all. A
        generator that is only watched as a machine is left out.
        """
        generators = {name for name, role in self.roles.items() if role == GENERATOR}
        if not generators:
            return {}
        heard = {key.target for key in self._record.keys(HEARD)}
        silent = generators - {key.target for key in self._record.keys(None)}
        sources = [ledger for ledger in self.accounts(self.window) if ledger.target in generators - heard]
        own = [ledger for ledger in sources if is_load(ledger.poller) or ledger.target in silent]
        return {
            target: tuple(
                Unread(
                    "",
                    "",
                    self.window.begin_ns,
                    self.window.end_ns,
                    f"{source_name(ledger)} answered {counted(ledger.got, 'poll')} and reported no figure of the load",
                )
                for ledger in own
                if ledger.target == target
            )
            for target in {ledger.target for ledger in own}
        }

    def _bounded(self, series: Series) -> Series:
        """The series with the limit that the device states for it, if any."""
        stated = self.ceiling(SeriesKey(series.target, series.metric, series.object))
        return series if stated is None else replace(series, trait=replace(series.trait, ceiling=stated))

    def ceiling(self, key: SeriesKey) -> float | None:
        """The limit that the device states for this object, else for the whole device; None if it states none."""
        entry = BY_NAME.get(key.metric)
        if entry is None or entry.ceiling is None:
            return None
        own = self._ceilings.get((key.target, entry.ceiling, key.object))
        return self._ceilings.get((key.target, entry.ceiling, "")) if own is None else own

    def _read_ceilings(self) -> dict[tuple[str, str, str], float]:
        names = {metric.ceiling for metric in BY_NAME.values() if metric.ceiling is not None}
        last = {key: self._record.series(key).finite() for key in self._record.keys(sorted(names))}
        return {
            (key.target, key.metric, key.object): float(series.value[-1])
            for key, series in last.items()
            if len(series) and series.value[-1] > 0 and not self._is_what_is_used(key, series)
        }

    def _is_what_is_used(self, key: SeriesKey, limit: Series) -> bool:
        """Whether a stated size is no limit: it moves together with what is used of it (shared memory in hrStorage)."""
        size = limit.values
        if size.max() <= _MOVES * size.min():
            return False
        for metric in (metric.name for metric in BY_NAME.values() if metric.ceiling == key.metric):
            used = self._record.series(SeriesKey(key.target, metric, key.object)).finite()
            _, at, own = np.intersect1d(limit.time_ns, used.time_ns, return_indices=True)
            if at.size and float(np.mean(used.values[own] >= _FULL * size[at])) >= _FULL:
                return True
        return False

    def _events_in(self, targets: frozenset[str], window: Window) -> tuple[Event, ...]:
        """The events that touch a window; cached, as many cases share one and a crashing device has many."""
        if (targets, window) not in self._touching:
            if targets not in self._events_of:
                self._events_of[targets] = _EventsOf.among(self.events, targets)
            self._touching[targets, window] = self._events_of[targets].touching(window)
        return self._touching[targets, window]

    def _changes(self, target: str, window: Window) -> tuple[Event, ...]:
        """Set-up changes found after the end of the run, at or behind the end of the window."""
        late = (event for event in self.events if event.kind == SETUP_CHANGE and event.begin_ns >= window.end_ns)
        return tuple(event for event in late if event.target == target)

    def _ledgers_in(self, target: str, window: Window) -> tuple[Ledger, ...]:
        return tuple(ledger for ledger in self.accounts(window) if ledger.target == target)

    def accounts(self, window: Window) -> tuple[Ledger, ...]:
        """The account of every polled source in a window; cached, as many cases share one."""
        if window not in self._accounts:
            every = self._record.ledgers(window)
            self._accounts[window] = tuple(ledger for ledger in every if not _never_due(ledger))
        return self._accounts[window]

    def _read_facts(self) -> dict[str, dict[str, float]]:
        facts: dict[str, dict[str, float]] = {}
        stated = [metric.name for metric in BY_NAME.values() if metric.kind == STATE and not metric.labels]
        for key in self._record.keys(stated):
            if not key.object:
                series = self._record.series(key)
                if len(series):
                    facts.setdefault(key.target, {})[key.metric] = float(series.value[-1])
        return facts


def _machines(record: JudgeableRecord) -> Mapping[str, Mapping[str, Tree]]:
    """The fingerprint of each target at the start of the run; empty if it cannot be read."""
    trees = parse_json(record.meta(BEGIN_KEY))
    if not isinstance(trees, dict):
        return {}
    return {target: tree for target, tree in trees.items() if isinstance(tree, dict)}


def _never_due(ledger: Ledger) -> bool:
    """Whether a source was never polled: a reference, a capacity, readings taken on events."""
    name = ledger.source.removeprefix(f"{ledger.target}/")
    return name in {REFERENCE, CAPACITY} or name.partition(" ")[0] == UNPOLLED


def _order(key: SeriesKey) -> tuple[str, str, str]:
    return key.target, key.metric, key.object


def _grouped(rule: Rule, keys: list[SeriesKey]) -> Iterator[list[SeriesKey]]:
    """The keys of one target, one group per case of the rule."""
    if rule.scope == "target":
        yield keys
    elif rule.scope == "metric":
        yield from ([key] for key in keys)
    else:
        objects = sorted({key.object for key in keys})
        yield from ([key for key in keys if key.object == name] for name in objects)


def stretch(phases: Iterable[Phase], names: Sequence[str]) -> Window | None:
    """From the begin of the first phase with one of these names to the end of the last."""
    windows = [phase.window for phase in phases if phase.name in names]
    if not windows:
        return None
    return Window(min(window.begin_ns for window in windows), max(window.end_ns for window in windows))


@dataclass(frozen=True, slots=True, eq=False)
class _EventsOf:
    """The events of some targets in order, with when each begins and ends to matter."""

    events: tuple[Event, ...]
    begin_ns: Ints
    last_ns: Ints

    @classmethod
    def among(cls, events: Iterable[Event], targets: frozenset[str]) -> _EventsOf:
        own = tuple(event for event in events if not event.target or event.target in targets)
        last = [max(event.end_ns or event.begin_ns, event.deadline_ns or event.begin_ns) for event in own]
        begin = np.array([event.begin_ns for event in own], dtype=np.int64)
        return cls(own, begin, np.array(last, dtype=np.int64))

    def touching(self, window: Window) -> tuple[Event, ...]:
        """Those that matter at any time of a window."""
        at = np.flatnonzero((self.begin_ns < window.end_ns) & (self.last_ns >= window.begin_ns))
        return tuple(self.events[index] for index in at.tolist())


def shut_ports(record: JudgeableRecord, target: str, window: Window) -> dict[str, tuple[Window, ...]]:
    """When each interface was administratively down, by name; those that never were are left out.

    An interval starts at the last reading with the port up, since it was shut after that, and ends at the next one with
    the port up; the record's window bounds both.
    """
    shut: dict[str, tuple[Window, ...]] = {}
    for key in record.keys([_ADMIN_UP]):
        name = label(key.object, "interface")
        if key.target != target or not name:
            continue
        if found := _shut_stretches(record.series(key, window.begin_ns, window.end_ns).finite(), window):
            shut[name] = (*shut.get(name, ()), *found)
    return shut


def _shut_stretches(series: Series, window: Window) -> tuple[Window, ...]:
    times = series.time_ns
    return tuple(
        Window(
            int(times[first - 1]) if first else window.begin_ns,
            int(times[close]) if close < len(times) else window.end_ns,
        )
        for first, close in true_runs(series.values < 0.5).tolist()
    )
