"""What went wrong, for every surface: same order, same words, each cause once with its time.

Page, list of runs, terminal, mails, hooks and dashboards all name the first one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from soakwatch.core.formatting import quantity, utc
from soakwatch.core.plain_names import plain_name, thing_name
from soakwatch.core.units import show_seconds
from soakwatch_model.fact import Gone, Growth, Happened, Lost
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import Cause
from soakwatch_rules.traits import GrowthMethod, happened_words, traits_of
from soakwatch_rules.wording.quantities import counted

_MAX_ALSO, _MAX_EFFECTS = 2, 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that went wrong: the indexes of its causes (several if devices share it), the finding that decides, the
    targets, since when and until when (None: since unknown, until the end), and what it led to."""

    causes: tuple[int, ...]
    finding: Finding
    targets: tuple[str, ...]
    since_ns: int | None
    until_ns: int | None
    effects: tuple[Finding, ...]

    @property
    def shared(self) -> str:
        """How many more devices it hit; "" if none."""
        more = len(self.targets) - 1
        return f"{counted(more, 'more device')} {'share' if more > 1 else 'shares'} it" if more > 0 else ""


def problems_of(findings: Sequence[Finding], causes: Sequence[Cause], outcome: Outcome) -> tuple[Problem, ...]:
    """All causes of this outcome in order; one that several devices share is one problem."""
    by_key: dict[tuple[object, ...], Problem] = {}
    for index, cause in enumerate(causes):
        if cause.outcome is not outcome or cause.waived:
            continue
        own = [findings[place] for place in cause.findings]
        finding = next(f for f in own if f.outcome is outcome)
        one = Problem(
            (index,), finding, (finding.target,), cause.since_ns, cause.until_ns, tuple(_effects(finding, own, outcome))
        )
        key = _shared_key(one)
        known = by_key.get(key)
        if known is None:
            by_key[key] = one
        else:
            both = (*known.targets, finding.target)
            by_key[key] = Problem(
                (*known.causes, index), known.finding, both, known.since_ns, known.until_ns, known.effects
            )
    return tuple(by_key.values())


def _effects(finding: Finding, own: Sequence[Finding], outcome: Outcome) -> Iterator[Finding]:
    """What a failure led to: other failed findings of the same cause, by rules that name an effect."""
    seen = {finding.rule}
    for other in own:
        if other.outcome is outcome and other.rule not in seen and traits_of(other.rule).words.effect:
            seen.add(other.rule)
            yield other


def _shared_key(one: Problem) -> tuple[object, ...]:
    """Devices share a finding on the readings of the same generator at the same times."""
    f = one.finding
    if f.metric not in WHOLE_LOAD:
        return (one.causes,)
    return (f.rule, f.metric, f.object, f.measured, tuple((m.begin_ns, m.end_ns) for m in f.marks), len(one.effects))


def growth_rate(finding: Finding) -> tuple[float, str] | None:
    """The rate of a growth finding per hour (negative: it falls) and its unit; None for other findings."""
    growth = traits_of(finding.rule).growth
    grew = finding.fact(Growth)
    measured = None if growth is GrowthMethod.STAGES else finding.measured  # of stages it is a level
    rate = measured if grew is None else grew.per_hour
    if growth is None or rate is None or not finding.metric:
        return None
    return rate, finding.unit if finding.unit.endswith("/h") else f"{finding.unit}/h"


def limit_words(finding: Finding) -> str:
    """The limit of a growth rule: a rate, or an increase over the run; "" if it states none."""
    rate = growth_rate(finding)
    if rate is None or not finding.limit:
        return ""
    if finding.unit == rate[1]:
        return f"limit {quantity(abs(finding.limit), rate[1])}"
    grew = finding.fact(Growth)
    return "" if grew is None or grew.tolerance is None else f"limit {quantity(grew.tolerance, '1')}"


def clause(finding: Finding, *, where: bool = True) -> str:
    """What happened to what: "authd on gateway restarted"; ``where=False`` leaves out the target.

    >>> from soakwatch_model.window import Window
    >>> at = Window(0, 3600 * 10**9)
    >>> clause(Finding("process_restart", 1, Outcome.FAIL, "gw", "", "process=authd,instance=0", at, "", "", 9))
    'authd on gw restarted'
    """
    thing = thing_name(finding.metric, finding.object)
    where = where and thing != finding.target  # a device with one process bears its name
    on = f" on {finding.target}" if where else ""
    rate = growth_rate(finding)
    if rate is not None:
        verb = "has grown" if rate[0] > 0 else "has fallen"
        of = plain_name(finding.metric, finding.object)
        return f"{of}{on} {verb} by {quantity(abs(rate[0]), rate[1])}"
    said = finding.fact(Happened)
    if said is not None:
        return f"{said.thing}{on} {said.verb}" if said.thing else f"{finding.target} {said.verb}"
    if finding.fact(Gone) is not None:
        return f"{thing}{on} exited and is still down"
    return happened_words(finding.rule, thing, finding.target, where=where)


def thing_of(finding: Finding) -> str:
    """What a finding is about: the object if something happened to it ("authd"), else the quantity ("memory of bgpd");
    "" for the target itself."""
    return thing_of_rule(finding.rule, finding.metric, finding.object)


def thing_of_rule(rule: str, metric: str, object_: str) -> str:
    """The same from a rule and a series."""
    traits = traits_of(rule)
    named = thing_name if traits.words.happened and traits.growth is None else plain_name
    return named(metric, object_) if metric or object_ else ""


def heading(finding: Finding) -> str:
    """What happened to what; for a finding that neither fails nor warns, its rule and target, as nothing may have
    happened."""
    if finding.outcome in {Outcome.FAIL, Outcome.WARN}:
        return clause(finding)
    return f"{finding.rule} on {finding.target}"


def effect_words(finding: Finding) -> str:
    """What a failure led to, with its number if known: "96 requests lost"."""
    lost = finding.fact(Lost)
    if lost is not None and lost.count:
        return f"{lost.count:,.0f} {lost.what} lost"
    return traits_of(finding.rule).words.effect


def clock(time_ns: int, window: Window) -> str:
    """The time of day, with the date if the run spans several days.

    >>> clock(1_795_000_123 * 10**9, Window(1_795_000_000 * 10**9, 1_795_100_000 * 10**9))
    '18 Nov 11:08:43 UTC'
    """
    days = {utc(at)[:10] for at in (window.begin_ns, window.end_ns, time_ns)}
    when = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{when:%-d %b }{when:%H:%M:%S} UTC" if len(days) > 1 else f"{when:%H:%M:%S} UTC"


def phase_at(phases: Sequence[Phase], time_ns: int) -> str:
    """The phase at a time; "" if none."""
    return next((p.name for p in phases if p.window.begin_ns <= time_ns < p.window.end_ns), "")


def problem_words(one: Problem, window: Window, phases: Sequence[Phase] = (), load: str = "") -> str:
    """A failure in one sentence without a full stop: what, where, when, under which load, and what it led to."""
    f = one.finding
    phase = "" if one.since_ns is None else phase_at(phases, one.since_ns)
    under = " ".join(part for part in (f"at {load}" if load else "", f"in phase {phase}" if phase else "") if part)
    if growth_rate(f) is not None:
        since = f" over {show_seconds(f.window.seconds)}" if one.since_ns is None else ""
        since = since or f" since {clock(one.since_ns or 0, window)}"
        limit = limit_words(f)
        text = f"{clause(f)}{since}" + (f" ({limit})" if limit else "") + (f", {under}" if under else "")
    elif one.since_ns is None:
        text = clause(f) + (f", {under}" if under else "")
    else:
        after = f"{show_seconds(max(one.since_ns - window.begin_ns, 0) * 1e-9)} in"
        when = ", ".join(part for part in (after, under) if part)
        start = f"at {clock(one.since_ns, window)}"
        text = f"{clause(f)} {start} ({when}){_back(one, window)}"
    led = [effect_words(effect) for effect in one.effects[:_MAX_EFFECTS]]
    text += f"; {', '.join(led)}" if led else ""
    return text + (f"; {one.shared}" if one.shared else "")


def _also(one: Problem, window: Window) -> str:
    """A further failure in a few words, with its time."""
    at = "since" if growth_rate(one.finding) is not None else "at"
    moment = "" if one.since_ns is None else f" {at} {clock(one.since_ns, window)}{_back(one, window)}"
    return clause(one.finding) + moment


def _back(one: Problem, window: Window) -> str:
    """When a thing that died was there again; "" for all else."""
    died = traits_of(one.finding.rule).crash is not None and one.finding.fact(Happened) is not None
    until_ns = one.until_ns
    if not died or one.since_ns is None or until_ns is None or until_ns <= one.since_ns:
        return ""
    return f", back at {clock(until_ns, window)}"


def fail_words(every: Sequence[Problem], window: Window, phases: Sequence[Phase] = (), load: str = "") -> str:
    """All failures in one or two sentences: the first with its time, then the others."""
    if not every:
        return ""
    text = f"{problem_words(every[0], window, phases, load)}."
    others = list(dict.fromkeys(_also(one, window) for one in every[1:]))
    if others:
        more = len(others) - _MAX_ALSO
        text += f" Also: {'; '.join(others[:_MAX_ALSO])}" + (f"; and {more} more." if more > 0 else ".")
    return text
