"""What displays say of a run that goes on, in words that all of them share."""

from __future__ import annotations

from collections import Counter

from soakwatch.core.formatting import quantity
from soakwatch.core.tables import harmless
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.problems import thing_of
from soakwatch.runs.load_figures import LATE, RATES, SHARES
from soakwatch.runs.run_status import SourceStatus, Status
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.flow import BITS, PACKETS, REQUESTS
from soakwatch_model.sample import PollOutcome
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.polls import lost_polls

_LARGE = 100_000.0
_MAX_UNDECIDED = 4


def span(seconds: float) -> str:
    """A stretch of time to the second.

    >>> span(0.2), span(5400.4)
    ('0 s', '1 h 30 min')
    """
    return show_seconds(round(seconds)) if seconds >= 0.5 else "0 s"


def alarms(status: Status) -> list[Finding]:
    """The live findings that a person should know of, in their order."""
    return [f for f in status.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}]


def forecast_text(finding: Finding) -> str:
    """What comes of it if it goes on like this; "" if nothing is foreseen."""
    return "" if finding.forecast is None else forecast_words(finding.forecast)


def finding_words(finding: Finding) -> str:
    """A live finding in one line, with its early warning."""
    text = f"{finding.sentence}; forecast: {forecast_text(finding)}" if forecast_text(finding) else finding.sentence
    return harmless(f"{title(finding)}: {text}")


def title(finding: Finding) -> str:
    """Outcome, what it is of and the rule.

    >>> from soakwatch_model.window import Window
    >>> title(Finding("process_restart", 1, Outcome.FAIL, "gw", "process.up", "process=authd", Window(0, 9), "", "", 1))
    'FAIL authd on gw (process_restart)'
    """
    thing = thing_of(finding)
    on = f"{thing} on {finding.target}" if thing and thing != finding.target else finding.target
    return f"{finding.outcome.value.upper()} {on} ({finding.rule})"


def counts(findings: tuple[Finding, ...]) -> str:
    """How many findings say what, without those that do not apply; those that are inconclusive with the names of their
    rules, most frequent first."""
    told = (outcome for outcome in Outcome if outcome not in {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE})
    counted = [(sum(f.outcome is outcome for f in findings), outcome.value) for outcome in told]
    parts = [f"{number} {word}" for number, word in counted if number]
    undecided = Counter(finding.rule for finding in findings if finding.outcome is Outcome.INCONCLUSIVE)
    if undecided:
        names = [rule for rule, _ in undecided.most_common(_MAX_UNDECIDED)]
        more = [f"{len(undecided) - len(names)} more"] if len(undecided) > len(names) else []
        parts.append(f"{undecided.total()} inconclusive ({', '.join([*names, *more])})")
    return ", ".join(parts)


def totals(status: Status) -> tuple[int, int, int]:
    """Polls of all sources: due, got, failed."""
    return (
        sum(source.due for source in status.sources),
        sum(source.got for source in status.sources),
        sum(source.failed for source in status.sources),
    )


def lost_words(source: SourceStatus) -> str:
    """How the polls ended that were not answered."""
    return lost_polls({outcome.value: n for outcome, n in source.outcomes.items() if outcome is not PollOutcome.OK})


def load_words(status: Status) -> str:
    """What the generators send now, "" if there is none that says it."""
    if not status.load:
        return ""
    parts = _sums(status, REQUESTS, PACKETS) or _sums(status, BITS)
    shares = {figure.metric for figure in SHARES}
    losses = [value for (name, _), value in status.load.items() if name in shares]
    if losses:
        parts.append(f"{max(losses):.2%} lost")
    tails = [value for (name, obj), value in status.load.items() if name == LATE and "p99" in obj]
    if tails:
        parts.append(f"p99 {quantity(max(tails), 's')}")
    return ("load " if parts else "") + ", ".join(parts)


def _sums(status: Status, *what: str) -> list[str]:
    """Each rate of these over all generators, as far as reported."""
    parts = []
    for figure in RATES:
        values = [value for (name, _), value in status.load.items() if name == figure.metric and figure.what in what]
        if values:
            total = sum(values)
            whole = total if total >= _LARGE else float(round(total))
            parts.append(f"{quantity(whole, figure.unit)} {figure.word}".rstrip())
    return parts


def own_words(memory: float | None, late_s: float | None, missed: int | None, free: float | None) -> str:
    """How the monitor itself is: its memory and the room on its disk in bytes, how late it ran in s, polls missed."""
    parts = [] if memory is None else [show_bytes(memory)]
    parts += [] if late_s is None else [f"at most {show_seconds(late_s)} late" if late_s >= 0.001 else "never late"]
    parts += [] if missed is None else [f"{missed:,} polls missed"]
    parts += [] if free is None else [f"{show_bytes(free)} free"]
    return ", ".join(parts)
