"""Soakwatch for notebooks and scripts: judge arrays, judge a table, read a record, report events to a run.

>>> from soakwatch.api import judge_series
>>> seconds = [10.0 * n for n in range(720)]
>>> leak = [5e8 + 100_000.0 * n for n in range(720)]
>>> (finding,) = judge_series(seconds, leak, "memory_growth", unit="By")
>>> finding.outcome.value, finding.samples
('fail', 720)
>>> (finding,) = judge_series(seconds, [5e8] * 720, "memory_growth", unit="By", parameters={"tolerance": "1%"})
>>> finding.outcome.value
'pass'

Bad data gives either an inconclusive finding (too few readings, NaN) or a ValueError that names the remedy (lengths
that differ, times that fall).

A script that acts on the device reports that to the run, on this machine or through its URL::

    with mark("last", "failover", target="dut", expect={"reboot": 1}, within="5m"):
        reload_the_active_unit()
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.registry import rule_class, rules
from soakwatch.core.suggest import hint
from soakwatch.integrations.attach import attach
from soakwatch.judge.baseline import baseline_window
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.uncatalogued_metrics import additional_metrics, traits, widened
from soakwatch.judge.verdict import Verdict
from soakwatch.plan.rule_plan import parameter_value
from soakwatch.record import RecordView
from soakwatch.runs.attached import EventBlock, InterimVerdict, SoakRun
from soakwatch.runs.catalog import find_run
from soakwatch.sources.tables.columns import IMPORTED, NO_UNIT
from soakwatch.sources.tables.times import TimeOptions, time_reading
from soakwatch.sources.tables.units import Unit, into
from soakwatch.sources.tables.units import unit as unit_of
from soakwatch.transfer.importing.command_line import options_of
from soakwatch.transfer.importing.files import import_files, stem_of
from soakwatch.transfer.importing.plausibility import possible
from soakwatch.transfer.importing.rule_coverage import growth_of, notes_on_rules
from soakwatch_model.case import Before, Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric import BY_NAME, fault_of, slack_of
from soakwatch_model.roles import DUT
from soakwatch_model.series import Growth, Series, Trait, trait_of
from soakwatch_model.window import Phase, Window
from soakwatch_rules.parameter import parameters as parameters_of
from soakwatch_rules.rule import Input, Rule

__all__ = [
    "Event",
    "Finding",
    "InterimVerdict",
    "Outcome",
    "Phase",
    "RecordView",
    "SoakRun",
    "Verdict",
    "Window",
    "attach",
    "judge_csv",
    "judge_series",
    "mark",
    "open_record",
]

Parameters = Mapping[str, float | str]
_LATEST_NS = 2**63 - 2


@runtime_checkable
class _Indexed(Protocol):
    """The parts of a pandas Series that are used here."""

    index: Iterable[object]
    values: Iterable[object]


def judge_series(
    time: Iterable[object] | None,
    value: Iterable[object],
    rule: str | Rule = "growth",
    *,
    metric: str | None = None,
    unit: str | None = None,
    growth: Growth | None = "up",
    parameters: Parameters | None = None,
    events: Iterable[Event] = (),
    phases: Sequence[Phase] = (),
    target: str = "series",
    object: str = "",  # noqa: A002 - the word of a series
    cadence_s: float | None = None,
) -> tuple[Finding, ...]:
    """Judge one series by one rule.

    ``time`` holds numpy ``datetime64``, ``datetime`` (without a zone: UTC), ISO 8601 texts, epoch seconds (milli-,
    micro- or nanoseconds, by their size), or seconds from the start; None takes the index of a pandas Series.
    ``metric`` is a name of the catalogue, which then gives unit, kind and direction (``unit`` says in which unit the
    values are); without it the series is a gauge in ``unit`` whose lasting ``growth`` is bad. ``parameters`` are the
    rule's, as numbers or as a plan writes them (``"5%"``, ``"10m"``). ``cadence_s`` is the planned interval of readings
    in seconds.

    Raises ValueError for arrays of different lengths, for times that are invalid, fall or repeat, for values
    that are not numbers; and for rules, metrics, units and parameters that do not exist. Inputs are never modified.

    >>> judge_series([0, 10], [1.0], "memory_growth")
    Traceback (most recent call last):
    ...
    ValueError: 2 times for 1 values: give one time for each value
    """
    try:
        judge_rule = _rule(rule, parameters or {})
        factor, trait, name = _trait(judge_rule, metric, unit, growth)
    except SoakwatchError as error:
        raise ValueError(str(error)) from None
    if time is None:
        if not isinstance(value, _Indexed):
            raise ValueError("time is None, and the values have no index: give the times")
        time = value.index
    values = _possible(name, _values(value, factor))
    time_ns = _times(time)
    if time_ns.shape != values.shape:
        raise ValueError(f"{time_ns.size} times for {values.size} values: give one time for each value")
    steps = np.diff(time_ns)
    if bool((steps <= 0).any()):
        index = int(np.flatnonzero(steps <= 0)[0]) + 1
        if steps[index - 1] < 0:
            raise ValueError(f"times fall at position {index}: sort them, and the values with them")
        raise ValueError(f"two samples have the same time, at positions {index - 1} and {index}: keep one of them")
    series = Series(target, name, object, trait, time_ns, values, cadence_s)
    window = Window(int(time_ns[0]), int(time_ns[-1]) + 1) if time_ns.size else Window(0, 1)
    calm = baseline_window(phases) if Input.BASELINE in judge_rule.spec.inputs else None
    baseline = () if calm is None else (series.between(calm.begin_ns, calm.end_ns),)
    wanted = [phase.window for phase in phases if phase.name in judge_rule.phases]
    if wanted:
        window = Window(
            min(phase_window.begin_ns for phase_window in wanted), max(phase_window.end_ns for phase_window in wanted)
        )
        series = series.between(window.begin_ns, window.end_ns)
    case = Case(target, object, window, (series,), tuple(phases), tuple(events), before=Before(baseline))
    return judge_rule.judge(case)


def judge_csv(
    path: str | Path,
    rule: str | Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
    growth: Literal["up", "down"] | Mapping[str, str] | None = None,
    by: Sequence[str] = (),
    skip: Sequence[str] = (),
    time: str | None = None,
    time_format: str | None = None,
    tz: str | None = None,
    start: str | None = None,
    target: str | None = None,
    role: str | Mapping[str, str] = DUT,
    phases: Sequence[str] = (),
    events: str | Path | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    parameters: Mapping[str, Parameters] | None = None,
    on_note: Callable[[str], object] | None = None,
) -> Verdict:
    """The verdict of a table, as ``soakwatch judge FILE --rule …`` gives it.

    ``columns`` maps columns to metrics (``{"rss": "process.memory.usage,process=nginx:KB"}``). The other arguments are
    the command's options: ``role`` may be given by target (``{"gen": "generator"}``), ``phases`` such as
    ``["soak=30m..22h"]``, ``events`` a file. ``parameters`` are those of rules by name. ``on_note`` is called with
    every sentence about what was guessed or left out; without it they are warnings. Raises ValueError for an unusable
    table.
    """
    names = (rule,) if isinstance(rule, str) else tuple(rule)
    directions = (growth,) if isinstance(growth, str) else tuple(f"{c}={g}" for c, g in (growth or {}).items())
    given = {
        "meanings": tuple(f"{column}={what}" for column, what in (columns or {}).items()),
        "units": tuple(f"{column}={what}" for column, what in (units or {}).items()),
        "kinds": tuple(f"{column}={what}" for column, what in (kinds or {}).items()),
        "growths": directions,
        "by": tuple(by),
        "skip": tuple(skip),
        "time": time,
        "time_format": time_format,
        "zone": tz,
        "start": start,
        "target": target,
        "phases": tuple(phases),
        "role": (role,) if isinstance(role, str) else tuple(f"{target}={word}" for target, word in role.items()),
        "events": None if events is None else str(events),
        "delimiter": delimiter,
        "decimal": decimal,
    }
    try:
        chosen = [_rule(name, (parameters or {}).get(name, {})) for name in names or rules()]
    except SoakwatchError as error:
        raise ValueError(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="soakwatch-judge-") as folder:
        run = Path(folder) / "run"
        imported = import_files([str(path)], run, stem_of(str(path)), options_of(given, growth_of(names)))
        for note in (*imported.notes, *notes_on_rules(str(path), imported.series, names)):
            if on_note is None:
                warnings.warn(note, stacklevel=2)
            else:
                on_note(note)
        with open_record(run) as view:
            held = traits(view) if names else {}
            uses = [
                RuleUse(widened(chosen_rule, additional_metrics(chosen_rule, held)), True if names else None)
                for chosen_rule in chosen
            ]
            return judge(view, stem_of(str(path)), uses)


def open_record(run: str | Path, runs: str | Path = "runs") -> RecordView:
    """A record to read: the folder of a run, its file, its name below ``runs``, or ``last``. Close it, or use ``with``.

    ``view.keys()`` lists the series, ``view.series(key)`` gives one as arrays, ``view.to_pandas("process.*")`` several
    as a data frame (the extra ``export``), ``view.events()`` and ``view.findings(live=False)`` what
    happened and how it was judged, ``view.labels`` the run's labels. Raises RecordError.
    """
    return RecordView.open(find_run(str(run), Path(runs)))


def mark(
    run: str | Path | SoakRun,
    kind: str,
    *,
    target: str = "",
    object: str = "",  # noqa: A002 - the word of a series
    expect: Mapping[str, int] | None = None,
    within: str | float | None = None,
    labels: Mapping[str, str] | None = None,
    token: str | None = None,
    runs: str | Path = "runs",
) -> EventBlock:
    """A context manager that records an event of a run: it begins and ends with the block, also if the block raises.

    ``run`` is a folder, a record file, a name below ``runs``, ``last``, the URL of a server (``attach`` says more), or
    what ``attach`` returned. ``expect`` is what the event causes (``{"reboot": 1}``), ``within`` the time from its
    begin after which all must be over (``"5m"``, or seconds). If the block raises, the event gets the label ``error``
    with the exception's type. Raises SoakwatchError for a missing run, or an event that overlaps with one of its kind.
    """
    attached = run if isinstance(run, SoakRun) else attach(run, token=token, runs=runs)
    return attached.event(kind, target=target, object=object, expect=expect, within=within, labels=labels)


def _rule(rule: str | Rule, given: Parameters) -> Rule:
    if not isinstance(rule, str):
        if given:
            raise ValueError(f"{rule.name} is an instance already: give its parameters to its constructor")
        return rule
    cls = rule_class(rule)
    known = {parameter.name: parameter for parameter in parameters_of(cls)}
    values: dict[str, float] = {}
    for key, setting in given.items():
        if key not in known:
            raise ValueError(f"unknown parameter {key!r} of {rule}{hint(key, known)}")
        plain = isinstance(setting, int | float) and not isinstance(setting, bool)
        values[key] = float(setting) if plain else parameter_value(known[key], setting)
    return cast("Callable[..., Rule]", cls)(**values)


def _trait(rule: Rule, metric: str | None, unit: str | None, growth: Growth | None) -> tuple[float, Trait, str]:
    if growth not in {"up", "down", None}:
        raise ValueError(f"growth {growth!r} is not a direction: write up, down or None")
    if metric is None:
        if rule.scope != "metric":
            some = ", ".join(rule.metrics[:4]) or "no series at all"
            raise ValueError(f"{rule.name} does not judge single series; it reads {some}: say which with metric=")
        given = Unit(NO_UNIT, 1.0) if unit is None else unit_of(unit)
        return given.scale, Trait(given.name, "gauge", growth), f"{IMPORTED}value"
    entry = BY_NAME.get(metric)
    if entry is None:
        raise ValueError(f"no metric is called {metric!r}{hint(metric, BY_NAME)}")
    if metric not in rule.metrics and rule.scope != "metric":
        raise ValueError(f"{rule.name} does not read {metric}: it reads {', '.join(rule.metrics) or 'no series'}")
    factor = 1.0 if unit is None else into(unit, entry.unit, metric)
    return factor, trait_of(metric, entry.unit, entry.kind), metric


def _values(value: Iterable[object], factor: float) -> NDArray[np.float64]:
    array = _array(value)
    if array.ndim != 1:
        raise ValueError(f"values have the shape {array.shape}: give one list of numbers")
    if array.dtype.kind in "US" or array.dtype.kind in "Mm":
        raise ValueError("values are not numbers: convert them first")
    try:
        numbers = np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("values are not numbers: convert them first") from None
    with np.errstate(all="ignore"):
        return numbers if factor == 1.0 else numbers * factor


def _possible(metric: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values as a record would have them: a utilisation slightly over 100 % becomes 100 %; one far over it raises
    ValueError."""
    bounded, good, _ = possible(metric, value)
    wrong = np.flatnonzero(~good & np.isfinite(value))
    if slack_of(metric) and wrong.size:
        index = int(wrong[0])
        raise ValueError(
            f"{fault_of(metric, float(value[index]))}, at position {index}: say its unit, such as unit='%'"
        )
    return np.asarray(bounded, dtype=np.float64)


def _times(time: Iterable[object]) -> NDArray[np.int64]:
    array = _array(time)
    if array.ndim != 1:
        raise ValueError(f"times have the shape {array.shape}: give one list of times")
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind == "O":
        array = np.array([_plain(item) for item in array.tolist()])
    if array.dtype.kind == "m":
        return _in_ns(array.astype("timedelta64[ns]").astype(np.int64))
    if array.dtype.kind == "M":
        if bool(np.isnat(array).any()):
            raise ValueError("a time is missing (NaT): leave its sample out")
        return _in_ns(array.astype("datetime64[ns]").astype(np.int64))
    if array.dtype.kind in "iufb":
        if not bool(np.isfinite(array.astype(np.float64)).all()):
            raise ValueError("a time is missing or infinite: leave its sample out")
    elif array.dtype.kind != "U":
        raise ValueError(
            f"times of the type {array.dtype} are not understood: give datetimes, seconds or ISO 8601 texts"
        )
    texts = [repr(item) if isinstance(item, float) else str(item) for item in array.tolist()]
    try:
        moments = time_reading(texts, TimeOptions(), "times").read(texts)
    except SoakwatchError:
        raise ValueError(f"{texts[0]!r} is not a time: give datetimes, epoch seconds or ISO 8601 texts") from None
    if bool(moments.bad.any()):
        index = int(np.flatnonzero(moments.bad)[0])
        raise ValueError(f"the time {texts[index]!r} at position {index} is not a time between 1970 and 2262")
    return moments.time_ns


def _in_ns(time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    if bool(((time_ns < 0) | (time_ns > _LATEST_NS)).any()):
        raise ValueError("times must lie between 1970 and 2262")
    return time_ns


def _plain(time: object) -> object:
    """A datetime as numpy's ``datetime64`` in UTC; any other value unchanged."""
    if isinstance(time, datetime):
        zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return np.datetime64(zoned.replace(tzinfo=None))
    return time


def _array(values: Iterable[object]) -> NDArray[np.generic]:
    """An array from a list, an iterator, an array, or a column or index of pandas."""
    if isinstance(values, np.ndarray):
        return values
    convert = getattr(values, "to_numpy", None)
    if callable(convert):
        return np.asarray(convert())
    try:
        return np.asarray(values if isinstance(values, Sequence) else list(values))
    except ValueError:
        raise ValueError("lists within the list: give one list of numbers") from None
