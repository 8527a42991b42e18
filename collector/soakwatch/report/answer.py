"""The answer of a report: what its reader must know within two minutes, in the same words in every format.

The verdict in one sentence; who, what, how much, since when and until when; what broke first and what followed; what is
different from the last run of the plan; whether it can be trusted; and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch.core.event_kinds import STOP
from soakwatch.core.formatting import extent, quantity, span_text, utc
from soakwatch.core.labels import labels_words
from soakwatch.core.plain_names import plain_name, thing_name
from soakwatch.core.units import show_seconds
from soakwatch.judge.problems import (
    Problem,
    clause,
    clock,
    effect_words,
    growth_rate,
    limit_words,
    phase_at,
    problems_of,
)
from soakwatch.judge.proved import proved_by
from soakwatch.judge.verdict import Verdict
from soakwatch.report.closing_lines import difference_words, next_step, trust_words
from soakwatch.report.headline import headline, load_of, load_then
from soakwatch.report.headroom import Headroom, first_full, nearest_limit
from soakwatch.report.page import Page
from soakwatch.report.summaries import deciding
from soakwatch_model.fact import Growth, Onset, OwnerGrew
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, lag
from soakwatch_rules.growth.memory_owners import grown_words
from soakwatch_rules.traits import Marks, plain_words, traits_of
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import counted, first_few, percent

MAX_STEPS = 5
_MAX_TEXT = 220
_HAPPENED = frozenset({Outcome.FAIL, Outcome.WARN})
_OBJECTIONS = _HAPPENED | {Outcome.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One line of what broke first and what followed. ``when`` is a time (UTC), or says that none is known; ``after``
    is the time since the first failure. ``cause`` is its index among the verdict's causes, -1 if it has none."""

    when: str
    after: str
    target: str
    text: str
    outcome: Outcome | None
    cause: int


@dataclass(frozen=True, slots=True)
class LoadThen:
    """The load at a moment: the rate of the first generator in its unit, None where it is not known, and the phase."""

    rate: float | None
    unit: str
    phase: str


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """The answer. ``facts`` are pairs of a name and a text: who, what, how much, since, until, load. ``steps`` are at
    most five, ``more_steps`` counts the others. ``finding`` is the one that decides, None if nothing failed or warned;
    ``cause`` is the index of its cause. ``proof`` is the finding whose plot proves the verdict: the same, or the one
    that came nearest to its limit. ``since_ns`` and ``until_ns`` are those of the cause; ``then`` is the load at its
    begin."""

    outcome: Outcome
    word: str
    run: str
    sentence: str
    when: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[ChainStep, ...]
    more_steps: int
    difference: str
    trust: str
    next_step: str
    finding: Finding | None = None
    cause: int = -1
    proof: Finding | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    then: LoadThen | None = None

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The three closing lines, each with the question that it answers."""
        return (
            ("Against the last run", self.difference),
            ("Can I trust it?", self.trust),
            ("What to do next", self.next_step),
        )


def answer_of(page: Page) -> ReportAnswer:
    """The answer that a record and its verdict give."""
    verdict = page.verdict
    index, cause = _leading(verdict)
    finding = None if cause is None else deciding(verdict, cause)
    steps, more = _steps(page)
    near = nearest_limit(verdict.findings)
    return ReportAnswer(
        outcome=verdict.outcome,
        word=verdict.words,
        run=verdict.run,
        sentence=headline(verdict, page.load),
        when=_when(verdict),
        facts=_facts(page, cause, finding, near),
        steps=steps,
        more_steps=more,
        difference=difference_words(verdict, page.previous),
        trust=trust_words(verdict, page.load),
        next_step=next_step(verdict, finding),
        finding=finding,
        cause=index,
        proof=finding if finding is not None or near is None else near.finding,
        since_ns=None if cause is None else cause.since_ns,
        until_ns=None if cause is None else cause.until_ns,
        then=None if cause is None or cause.since_ns is None else _then(page, cause.since_ns),
    )


def issue_text(answer: ReportAnswer) -> str:
    """The answer as plain text for an issue: facts only, one a line."""
    lines = [f"{answer.word}: {answer.sentence}", "", f"Run: {answer.run}, {answer.when}"]
    lines += [f"{name}: {text}" for name, text in answer.facts]
    if answer.steps:
        lines += ["", f"{chain_title(answer)}:"]
        for number, step in enumerate(answer.steps, 1):
            after = f" ({step.after})" if step.after else ""
            lines.append(f"{number}. {step.when}{after} {step.target}: {step.text}")
        lines += [f"and {answer.more_steps} more in the report"] if answer.more_steps else []
    lines += ["", *(f"{name}{'' if name.endswith('?') else ':'} {text}" for name, text in answer.lines)]
    if answer.finding is not None:
        rule = answer.finding
        lines += ["", f"Rule {rule.rule} (version {rule.version}): {rule.definition}"]
    return "\n".join(lines) + "\n"


def chain_title(answer: ReportAnswer) -> str:
    """The heading of the steps; a run that did not fail has only warnings."""
    if answer.outcome is Outcome.FAIL:
        return "What broke first, and what followed"
    return "Warnings, in order of time"


def _when(verdict: Verdict) -> str:
    window = verdict.window
    labels = labels_words(verdict.labels)
    span = f"{span_text(window.begin_ns, window.end_ns)} UTC, {show_seconds(window.seconds)}"
    return f"{span}; {labels}" if labels else span


def _leading(verdict: Verdict) -> tuple[int, Cause | None]:
    """The cause that decides, with its index: the first with the verdict's outcome that is not waived, else the first
    warning."""
    causes = list(enumerate(verdict.causes))
    for outcome in (verdict.outcome, Outcome.WARN):
        for index, cause in causes:
            if cause.outcome is outcome and not cause.waived:
                return index, cause
    return -1, None


def _facts(
    page: Page, cause: Cause | None, finding: Finding | None, near: Headroom | None
) -> tuple[tuple[str, str], ...]:
    verdict = page.verdict
    facts = [("Who", _who(verdict, cause, finding))]
    if cause is None or finding is None:
        if near is not None:
            of = plain_name(*near.about) if near.about[0] else near.about[1]
            facts.append(("Nearest limit", f"{of} on {near.target}: {near.measured} of {near.limit} ({near.of})"))
        if outlook := outlook_words(page):
            facts.append(("Outlook", outlook))
        facts.append(("Checks", _counts(verdict)))
    else:
        facts.append(("What", _what(finding)))
        if much := _how_much(finding):
            facts.append(("How much", much))
        if grown := grown_words(fact for fact in finding.facts if isinstance(fact, OwnerGrew)):
            facts.append(("Owner", grown))
        if finding.outcome is Outcome.INCONCLUSIVE:
            facts.append(("Reason", _short(finding.sentence)))
        if finding.outcome in _HAPPENED or cause.timeline:
            facts.append(("Since", _since(verdict, cause, finding)))
            if cause.since_ns is not None or traits_of(finding.rule).marks is Marks.WHOLE:
                facts.append(("Until", _until(verdict, cause, finding)))
    facts.append(("Load", _load(page, cause, verdict.window if finding is None else finding.window)))
    return (*facts, *_done_by_people(page))


def outlook_words(page: Page) -> str:
    """What is full first, and the least mean time between failures that the run proves; "" of a run that goes on."""
    if page.verdict.preliminary:
        return ""
    parts = []
    first = first_full(page.headroom[0])
    if first is not None:
        parts.append(f"{plain_name(*first.about)} on {first.target}: {first.forecast}")
    if proofs := [proof for proof in proved_by(page.verdict) if proof.worth_words]:
        least = min(proofs, key=lambda proof: proof.at_least_s)
        parts.append(least.words + (f" ({least.target})" if len(proofs) > 1 else ""))
    return "; ".join(parts)


def _done_by_people(page: Page) -> list[tuple[str, str]]:
    """Facts about what people did: they stopped the run, or acknowledged findings."""
    done = [("Decided", page.verdict.decided)] if page.verdict.decided else []
    stop = next((event for event in page.events if event.kind == STOP), None)
    if stop is not None:
        done.append(("Stopped", f"on request: {stop.detail.get('reason') or 'no reason given'} ({utc(stop.begin_ns)})"))
    told = [finding for finding in page.verdict.findings if finding.outcome in _OBJECTIONS]
    if known := sum(bool(page.acknowledged(finding)) for finding in told):
        done.append(("Acknowledged", f"{known} of {len(told)} findings; the verdict is the same"))
    return done


def _who(verdict: Verdict, cause: Cause | None, finding: Finding | None) -> str:
    devices = [target for target in verdict.targets if target.role == DUT]
    hit = [target.target for target in devices if target.outcome is verdict.outcome]
    if verdict.outcome is Outcome.PASS or not hit:
        names = [target.target for target in devices]
        return first_few(names) if names else "no target has the role dut"
    of = f" ({len(hit)} of {counted(len(devices), 'device')})" if len(devices) > 1 else ""
    if len(hit) == 1 and finding is not None and cause is not None and finding.target == hit[0]:
        return hit[0] + of
    return first_few(hit) + of


def _counts(verdict: Verdict) -> str:
    """How many checks ended how."""
    outcomes = [finding.outcome for finding in verdict.findings]
    words = ((Outcome.PASS, "passed"), (Outcome.WARN, "warned"), (Outcome.INCONCLUSIVE, "undecided"))
    return (
        ", ".join(f"{outcomes.count(outcome):,} {word}" for outcome, word in words if outcomes.count(outcome)) or "none"
    )


def _what(finding: Finding) -> str:
    of = plain_name if growth_rate(finding) is not None else thing_name
    return f"{of(finding.metric, finding.object) or plain_words(finding.rule)} ({finding.rule})"


def _how_much(finding: Finding) -> str:
    """Of growth the rate, both ends and the limit; of anything else the measured value and its limit."""
    numbers, rate = finding.numbers, growth_rate(finding)
    if rate is None:
        parts = [] if finding.measured is None else [quantity(finding.measured, finding.unit)]
        parts += [] if finding.limit is None else [f"limit {quantity(finding.limit, finding.unit)}"]
        return ", ".join(parts)
    value, unit = rate
    text = f"{'+' if value > 0 else '−'}{quantity(abs(value), unit)}"
    if {"mean_first", "mean_last"} <= numbers.keys():
        ends = extent(numbers["mean_first"], numbers["mean_last"], finding.unit)
        grew = finding.fact(Growth)
        change = "" if grew is None or grew.change is None else f", {percent(grew.change, sign=True)}"
        text += f" ({ends}{change})"
    limit = limit_words(finding)
    return f"{text}; {limit}" if limit else text


def _then(page: Page, since_ns: int) -> LoadThen:
    known = [(each.rate_at(since_ns), each.rate.series.trait.unit) for each in page.load if each.rate is not None]
    rate, unit = next(((rate, unit) for rate, unit in known if rate is not None), (None, ""))
    return LoadThen(rate, unit, phase_at(page.verdict.phases, since_ns))


def _load(page: Page, cause: Cause | None, window: Window) -> str:
    """The load and the phase at the moment of the cause; without a moment, the mean load of the judged window."""
    since_ns = None if cause is None else cause.since_ns
    if since_ns is not None and page.load:
        then = load_then(page.load, since_ns)
        phase, told = phase_at(page.verdict.phases, since_ns), then or "not known at that moment"
        return f"{told}, in phase {phase}" if phase else told
    return load_of(page.load, None, window) or "none recorded"


def _since(verdict: Verdict, cause: Cause, finding: Finding) -> str:
    if cause.since_ns is None:
        onset = finding.fact(Onset)
        return "not known" if onset is None else f"the first reading, {clock(onset.begin_ns, verdict.window)}"
    after_s = max(cause.since_ns - verdict.window.begin_ns, 0) * 1e-9
    flat = " (flat before)" if traits_of(finding.rule).marks is Marks.WHOLE else ""
    return f"{clock(cause.since_ns, verdict.window)}, {show_seconds(after_s)} in{flat}"


def _until(verdict: Verdict, cause: Cause, finding: Finding) -> str:
    """When the limit will be reached at this rate; without a forecast, the last moment."""
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        return words
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return "still so when the run ended"
    return "the end of the run" if cause.until_ns is None else clock(cause.until_ns, verdict.window)


def _steps(page: Page) -> tuple[tuple[ChainStep, ...], int]:
    """What failed, one line a cause, in the order that every format has; then what warned; and how many are left
    out."""
    verdict = page.verdict
    failed = problems_of(verdict.findings, verdict.causes, Outcome.FAIL)
    warned = problems_of(verdict.findings, verdict.causes, Outcome.WARN)
    first_ns = next((one.since_ns for one in (*failed, *warned) if one.since_ns is not None), None)
    steps = [_step(one, verdict, first_ns) for one in (*failed, *warned)]
    return tuple(steps[:MAX_STEPS]), max(len(steps) - MAX_STEPS, 0)


def _step(one: Problem, verdict: Verdict, first_ns: int | None) -> ChainStep:
    led = "".join(f"; {effect_words(effect)}" for effect in one.effects)
    text = _short(f"{clause(one.finding, where=False)}{led}" + (f" ({one.shared})" if one.shared else ""))
    if one.since_ns is None:
        onset = one.finding.fact(Onset)
        when = "from the first reading" if onset is not None and onset.from_first else "no moment known"
        return ChainStep(when, "", one.targets[0], text, one.finding.outcome, one.causes[0])
    ahead = first_ns is not None and one.since_ns < first_ns
    after = "" if first_ns is None else lag(first_ns, one.since_ns)
    after = lag(one.since_ns, first_ns or 0).replace("+", "−") if ahead else after
    when = clock(one.since_ns, verdict.window).removesuffix(" UTC")
    return ChainStep(when, after, one.targets[0], text, one.finding.outcome, one.causes[0])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1].rstrip() + "…"
